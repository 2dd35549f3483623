/* A worker of a fleet: claims work on entities of a kind, on as many threads as it is told, under one session
 * whose heartbeats the library sends.
 *
 *     cc worker.c -o worker $(pkg-config --cflags --libs retryd-client)
 *     worker PROCESS KIND [THREADS [--once]]      $RETRYD_URL; --once ends where nothing is left to do */
#include <pthread.h>
#include <retryd/client.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 64, WAIT_MS = 5000, ONCE_WAIT_MS = 100 };

static const char *process, *kind;
static retry_session *session;
static bool once;
static atomic_bool stopping;

/* The work: NULL, or why it failed. A long one looks at retry_work_lost now and then. */
static const char *install(const retry_work *work) {
    return strstr(retry_work_value(work), "\"broken\":true") != NULL ? "it does not answer" : NULL;
}

static void *work_on(void *arg) {
    retry_claim_config claim = RETRY_CLAIM_CONFIG;
    claim.process = process;
    claim.kind = kind;
    claim.wait_ms = once ? ONCE_WAIT_MS : WAIT_MS;
    while (!atomic_load(&stopping)) {
        retry_work *work;
        retry_error error;
        retry_code code = retry_claim(session, &claim, &work, &error);
        if (code == RETRY_NOTHING && once) break;
        if (code == RETRY_OK) {
            const char *cause = install(work);
            printf("%s: %s\n", retry_work_entity(work), cause == NULL ? "installed" : cause);
            code = cause == NULL ? retry_work_finish(work, "{\"installed\": true}", &error)
                                 : retry_work_fail(work, cause, NULL, &error);
        }
        // Claims and ends are repeated by the library for as long as there is sense in it; then we go on with the next.
        if (code < 0) fprintf(stderr, "worker: %s\n", error.message);
        if (code == RETRY_E_INVALID || code == RETRY_E_REFUSED) break;
    }
    return arg;
}

static void wait_for_signal(const sigset_t *signals) {
    int signal_number;
    (void)sigwait(signals, &signal_number);
    atomic_store(&stopping, true); // the claims under way come to their end within WAIT_MS
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: worker PROCESS KIND [THREADS [--once]]\n");
        return 2;
    }
    process = argv[1];
    kind = argv[2];
    long threads = argc > 3 ? strtol(argv[3], NULL, 10) : 1;
    if (threads < 1 || threads > THREADS_MAX) threads = 1;
    once = argc > 4;
    const char *url = getenv("RETRYD_URL");

    sigset_t signals; // before any thread begins, so that all of them leave the signals to main
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);

    retry_error error;
    retry_client *client = NULL;
    retry_client_config config = RETRY_CLIENT_CONFIG(url == NULL ? "http://127.0.0.1:8888" : url);
    retry_session_config opening = RETRY_SESSION_CONFIG;
    opening.component = "worker.c";
    opening.interval_s = 10;
    retry_code code = retry_client_open(&config, &client, &error);
    if (code == RETRY_OK) code = retry_session_open(client, &opening, &session, &error);
    pthread_t running[THREADS_MAX];
    long started = 0;
    while (code == RETRY_OK && started < threads && pthread_create(&running[started], NULL, work_on, NULL) == 0) started++;
    if (code < 0) fprintf(stderr, "worker: %s\n", error.message);
    else if (!once) wait_for_signal(&signals);
    for (long i = 0; i < started; i++) (void)pthread_join(running[i], NULL);
    retry_session_close(session);
    retry_client_close(client);
    return code < 0;
}
