#include "store/postgres/listen.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/clock.h"

enum { RETRY_MS = 5000, POLL_FOR_EVER = -1, SHOUT_EVERY_MS = 20 };

typedef struct shouting {
    bool due;
    int64_t last_ms; /* monotonic */
} shouting;

/* True: the store closes. `fd` -1: there is no connection, and nobody to shout to. */
static bool sleep_until(const rt_pg_listener *l, int fd, shouting *shout, int timeout_ms) {
    struct pollfd fds[] = {{.fd = l->stop_fd, .events = POLLIN},
                           {.fd = fd, .events = POLLIN},
                           {.fd = fd < 0 ? -1 : l->shout_fd, .events = POLLIN}};
    (void)poll(fds, 3, timeout_ms);
    uint64_t news;
    if (fds[2].revents != 0 && read(l->shout_fd, &news, sizeof news) == (ssize_t)sizeof news)
        shout->due = true;
    return fds[0].revents != 0;
}

/* Whatever came as the answer to the shout before. False: it has not come yet. */
static bool is_idle(PGconn *conn) {
    while (PQisBusy(conn) == 0) {
        PGresult *r = PQgetResult(conn);
        if (r == NULL) return true;
        PQclear(r);
    }
    return false;
}

/* Never waits for the server. How long until it may be done, or for ever: until something comes. */
static int shout_if_due(const rt_pg_listener *l, PGconn *conn, shouting *shout) {
    if (!is_idle(conn) || !shout->due) return POLL_FOR_EVER;
    const int64_t now_ms = rt_mono_ms();
    const int64_t wait_ms = shout->last_ms + SHOUT_EVERY_MS - now_ms;
    if (wait_ms > 0) return (int)wait_ms;
    char node[24];
    (void)snprintf(node, sizeof node, "%lld", (long long)l->link->server->node);
    const char *const values[] = {node};
    (void)PQsendQueryParams(conn, "SELECT pg_notify('retryd', $1)", 1, NULL, values, NULL, NULL, 0);
    *shout = (shouting){.last_ms = now_ms}; // what cannot be sent is seen when the connection is read
    return POLL_FOR_EVER;
}

static bool subscribe(PGconn *conn) {
    PGresult *r = PQexec(conn, "LISTEN retryd");
    const bool good = PQresultStatus(r) == PGRES_COMMAND_OK;
    PQclear(r);
    return good;
}

static void hear(rt_pg_listener *l, PGconn *conn) {
    PGnotify *note;
    bool others = false;
    while ((note = PQnotifies(conn)) != NULL) {
        int64_t node;
        others = others || !rt_str_to_i64(rt_str_of(note->extra), &node) || node != l->link->server->node;
        PQfreemem(note);
    }
    if (!others || atomic_exchange(&l->shouted, true)) return;
    rt_pg_wake(l->link);
}

static void *listen_loop(void *listener) {
    rt_pg_listener *l = listener;
    const rt_pg_server *server = l->link->server;
    bool stop = false;
    shouting shout = {.due = false};
    while (!stop) {
        rt_err err;
        PGconn *conn = rt_pg_connect(server, server->listen_url, &err);
        const bool reached = conn != NULL;
        bool good = reached && rt_pg_has_session(conn) && subscribe(conn);
        if (reached && !good) { // it never will
            PQfinish(conn);
            return NULL;
        }
        while (good && !stop) {
            stop = sleep_until(l, PQsocket(conn), &shout, shout_if_due(l, conn, &shout));
            good = stop || PQconsumeInput(conn) == 1;
            if (good) hear(l, conn);
        }
        PQfinish(conn);
        if (!stop) stop = sleep_until(l, -1, &shout, RETRY_MS);
    }
    return NULL;
}

static void tell(int fd) {
    const uint64_t one = 1;
    if (fd >= 0) (void)!write(fd, &one, sizeof one);
}

rt_code rt_pg_listener_start(rt_pg_listener *l, const rt_pg_link *link, rt_err *err) {
    l->link = link;
    l->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->shout_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->stop_fd < 0 || l->shout_fd < 0) return rt_fail(err, RT_E_IO, errno, "descriptors for PostgreSQL");
    const int rc = pthread_create(&l->thread, NULL, listen_loop, l);
    l->started = rc == 0;
    return rc == 0 ? RT_OK : rt_fail(err, RT_E_IO, rc, "threads for PostgreSQL: %s", strerror(rc));
}

void rt_pg_listener_close(rt_pg_listener *l) {
    tell(l->stop_fd);
    if (l->started) (void)pthread_join(l->thread, NULL);
    if (l->stop_fd >= 0) (void)close(l->stop_fd);
    if (l->shout_fd >= 0) (void)close(l->shout_fd);
}

void rt_pg_shout(const rt_pg_listener *l) { tell(l->shout_fd); }
