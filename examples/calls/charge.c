/* A call that is tried again until it succeeds. The dependency is a file: away as long as it is not there.
 *
 *     cc charge.c -o charge $(pkg-config --cflags --libs retryd-client)
 *     charge run CARD…      tries each now; what fails is handed to retryd
 *     charge work           runs what was handed over, by this or by charge.py or charge.mjs, until SIGINT or SIGTERM
 *
 * $RETRYD_URL; $DEPENDENCY, a path; $SPOOL, a folder for when retryd is away too. The event type: see README.md. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <retryd/client.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char TYPE[] = "card.transaction";

/* Adds a line to a file, which it does not make. */
static int charge(retry_call *call, void *arg) {
    const int fd = open(arg, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0) {
        retry_call_failed(call, "card-unreachable", strerror(errno));
        return 1;
    }
    // More than once for the same card is possible: what it does must bear that.
    const int written = dprintf(fd, "%s\n", (const char *)retry_call_body(call, NULL));
    return close(fd) != 0 || written < 0;
}

static int run_all(retry_client *client, char **cards) {
    int failed = 0;
    for (; *cards != NULL; cards++) {
        retry_request request = RETRY_REQUEST(*cards, strlen(*cards));
        request.content_type = "text/plain; charset=utf-8";
        retry_error error;
        const retry_code code = retry_run(client, TYPE, &request, NULL, &error);
        printf("%s: %s\n", *cards, code < 0 ? error.message : retry_code_name(code));
        failed |= code < 0;
    }
    return failed;
}

static int work(retry_client *client, const sigset_t *signals) {
    retry_error error;
    retry_workers *workers;
    retry_workers_config config = RETRY_WORKERS_CONFIG;
    config.threads = 4;
    config.lease_s = 10; // so long a call of ours rests if we die; one that takes longer is no problem
    config.wait_ms = 1000;
    if (retry_workers_start(client, TYPE, &config, &workers, &error) < 0) {
        fprintf(stderr, "charge: %s\n", error.message);
        return 1;
    }
    int signal_number;
    (void)sigwait(signals, &signal_number);
    retry_workers_stop(workers);
    return 0;
}

static void log_line(void *arg, retry_log_level level, const char *message) {
    (void)arg, (void)level;
    fprintf(stderr, "charge: %s\n", message);
}

int main(int argc, char **argv) {
    char *dependency = getenv("DEPENDENCY");
    const char *url = getenv("RETRYD_URL");
    if (argc < 2 || dependency == NULL) {
        fprintf(stderr, "usage: DEPENDENCY=PATH charge run CARD… | work\n");
        return 2;
    }
    sigset_t signals; // before any thread begins, so that all of them leave the signals to main
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);

    retry_error error;
    retry_client *client;
    retry_client_config config = RETRY_CLIENT_CONFIG(url == NULL ? "http://127.0.0.1:8888" : url);
    config.spool_dir = getenv("SPOOL");
    config.log = log_line;
    if (retry_client_open(&config, &client, &error) < 0) {
        fprintf(stderr, "charge: %s\n", error.message);
        return 1;
    }
    (void)retry_register(client, TYPE, charge, dependency, NULL);
    const int failed = strcmp(argv[1], "work") == 0 ? work(client, &signals) : run_all(client, argv + 2);
    retry_client_close(client);
    return failed;
}
