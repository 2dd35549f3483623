/* listen.c: what nodes shout to each other, so that nobody has to look again and again. A help, not a must: where the server
 * has no LISTEN, or a pooler stands in between, nodes look a few times a second.
 *
 * NOTIFY has the commits that it is part of wait for each other, until they are on disk. So it is never part of a batch, but
 * follows one that is durable, on a connection of its own, where there is nothing to sync. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/clock.h"
#include "store/postgres/inside.h"

enum { RETRY_MS = 5000, POLL_FOR_EVER = -1, SHOUT_EVERY_MS = 20 };

typedef struct shouting {
    bool due;
    int64_t last_ms; /* monotonic */
} shouting;

void rt_pg_shout(const rt_pg *s) {
    const uint64_t one = 1;
    (void)!write(s->link.shout_fd, &one, sizeof one);
}

/* True: the store closes. `fd` -1: there is no connection, and nobody to shout to. */
static bool sleep_until(const rt_pg *s, int fd, shouting *shout, int timeout_ms) {
    struct pollfd fds[] = {{.fd = s->link.stop_fd, .events = POLLIN},
                           {.fd = fd, .events = POLLIN},
                           {.fd = fd < 0 ? -1 : s->link.shout_fd, .events = POLLIN}};
    (void)poll(fds, 3, timeout_ms);
    uint64_t news;
    if (fds[2].revents != 0 && read(s->link.shout_fd, &news, sizeof news) == (ssize_t)sizeof news) shout->due = true;
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
static int shout_if_due(const rt_pg *s, PGconn *conn, shouting *shout) {
    if (!is_idle(conn) || !shout->due) return POLL_FOR_EVER;
    const int64_t now_ms = rt_mono_ms();
    const int64_t wait_ms = shout->last_ms + SHOUT_EVERY_MS - now_ms;
    if (wait_ms > 0) return (int)wait_ms;
    char node[24];
    (void)snprintf(node, sizeof node, "%lld", (long long)s->node);
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

static void hear(rt_pg *s, PGconn *conn) {
    PGnotify *note;
    bool others = false;
    while ((note = PQnotifies(conn)) != NULL) {
        int64_t node;
        others = others || !rt_str_to_i64(rt_str_of(note->extra), &node) || node != s->node;
        PQfreemem(note);
    }
    if (!others || atomic_exchange(&s->link.shouted, true)) return;
    rt_pg_wake(s);
}

void *rt_pg_listen(void *store) {
    rt_pg *s = store;
    bool stop = false;
    shouting shout = {.due = false};
    while (!stop) {
        rt_err err;
        PGconn *conn = rt_pg_connect(s, s->listen_url, &err);
        const bool reached = conn != NULL;
        bool good = reached && rt_pg_has_session(conn) && subscribe(conn);
        if (reached && !good) { // it never will
            PQfinish(conn);
            return NULL;
        }
        while (good && !stop) {
            stop = sleep_until(s, PQsocket(conn), &shout, shout_if_due(s, conn, &shout));
            good = stop || PQconsumeInput(conn) == 1;
            if (good) hear(s, conn);
        }
        PQfinish(conn);
        if (!stop) stop = sleep_until(s, -1, &shout, RETRY_MS);
    }
    return NULL;
}
