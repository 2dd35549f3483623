/* listen.c: what other nodes shout, so that nobody has to look again and again. A help, not a must: where the server has no
 * LISTEN, or a pooler stands in between, nodes look a few times a second. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/postgres/inside.h"

enum { RETRY_MS = 5000, POLL_FOR_EVER = -1 };

/* True: the store closes. */
static bool sleep_until(const rt_pg *s, int fd, int timeout_ms) {
    struct pollfd fds[] = {{.fd = s->link.stop_fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    (void)poll(fds, 2, timeout_ms);
    return fds[0].revents != 0;
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
            stop = sleep_until(s, PQsocket(conn), POLL_FOR_EVER);
            good = stop || PQconsumeInput(conn) == 1;
            if (good) hear(s, conn);
        }
        PQfinish(conn);
        if (!stop) stop = sleep_until(s, -1, RETRY_MS);
    }
    return NULL;
}
