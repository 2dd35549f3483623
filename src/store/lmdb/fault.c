#include "store/lmdb/fault.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static const char WORDS[] =
    "retryd: a page of the data cannot be read (SIGBUS): data.mdb was cut short, or its disk fails; restore a backup\n";

/* Returning tries the same read again, which then ends the process, since the handler is there for one time only. */
static void explain(int number) {
    (void)number;
    const ssize_t written = write(STDERR_FILENO, WORDS, sizeof WORDS - 1);
    (void)written;
}

static void install(void) {
    struct sigaction action = {.sa_handler = explain, .sa_flags = (int)SA_RESETHAND};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGBUS, &action, NULL);
}

void rt_lmdb_fault_explain(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, install);
}
