/* link.c: connections. A thread makes them, so that the engine never waits for a server that does not answer. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "os/clock.h"
#include "store/postgres/inside.h"

enum { BACKOFF_FIRST_MS = 100 };

static void be_quiet(void *ctx, const char *words) {
    (void)ctx;
    (void)words;
}

/* Defaults that a URL, a service file or nothing else has a say in: a dead peer is noticed within seconds, and of several
 * hosts the one that takes writes is chosen. */
PGconn *rt_pg_connect(const rt_pg *s, const char *url, rt_err *err) {
    char seconds[16];
    (void)snprintf(seconds, sizeof seconds, "%u", (s->connect_ms + 999) / 1000);
    const char *const names[] = {"connect_timeout",     "keepalives_idle",  "keepalives_interval",  "keepalives_count",
                                 "tcp_user_timeout",    "application_name", "target_session_attrs", "dbname",
                                 NULL};
    const char *const values[] = {seconds, "10", "5", "3", "15000", "retryd", "read-write", url, NULL};
    PGconn *conn = PQconnectdbParams(names, values, 1);
    if (conn != NULL && PQstatus(conn) == CONNECTION_OK) {
        (void)PQsetNoticeProcessor(conn, be_quiet, NULL);
        return conn;
    }
    (void)rt_pg_fail(err, RT_E_UNAVAILABLE, conn == NULL ? "out of memory" : PQerrorMessage(conn));
    PQfinish(conn);
    return NULL;
}

bool rt_pg_has_session(PGconn *conn) {
    PGresult *r = PQexecParams(conn, "SELECT pg_backend_pid()", 0, NULL, NULL, NULL, NULL, 1);
    const bool good = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1;
    // A pooler makes up a number of its own.
    const bool same = good && rt_pg_read_i64(r, 0, 0) == PQbackendPID(conn);
    PQclear(r);
    return same;
}

void rt_pg_wake(const rt_pg *s) {
    const uint64_t one = 1;
    (void)!write(s->link.wake_fd, &one, sizeof one); // full: it is readable already
}

/* ---- the thread ---------------------------------------------------------------------------------------- */

/* Waits on `changed` for at most `ms`; holds the lock. */
static void wait_changed(rt_pg_link *l, int64_t ms) {
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    const long ns = until.tv_nsec + (long)(ms % 1000) * 1000000;
    until.tv_sec += (time_t)(ms / 1000) + ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    (void)pthread_cond_timedwait(&l->changed, &l->lock, &until);
}

/* How did the batch end whose COMMIT was cut off? Its row tells; and from here on that COMMIT cannot take effect any more,
 * wherever it may still be on its way. */
static bool resolve(const rt_pg *s, PGconn *conn, uint64_t batch_no, bool *durable) {
    rt_pg_args args = {0};
    rt_pg_arg_i64(&args, s->node);
    rt_pg_arg_i64(&args, (int64_t)batch_no);
    const char *const values[] = {args.bytes.ptr, args.bytes.ptr + args.at[1]};
    const int lengths[] = {8, 8};
    const int formats[] = {1, 1};
    PGresult *r = PQexecParams(conn, s->texts[RT_SQL_FENCE], 2, args.types, values, lengths, formats, 1);
    const bool good = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1;
    if (good) *durable = (uint64_t)rt_pg_read_i64(r, 0, 0) == batch_no;
    PQclear(r);
    rt_pg_args_deinit(&args);
    return good;
}

/* One try; not holding the lock. */
static PGconn *try_connect(const rt_pg *s, bool unsure, uint64_t unsure_no, bool *durable, rt_err *err) {
    PGconn *conn = rt_pg_connect(s, s->url, err);
    if (conn == NULL || !unsure || resolve(s, conn, unsure_no, durable)) return conn;
    (void)rt_pg_fail(err, RT_E_UNAVAILABLE, PQerrorMessage(conn));
    PQfinish(conn);
    return NULL;
}

static void *link_loop(void *store) {
    rt_pg *s = store;
    rt_pg_link *l = &s->link;
    rt_rng rng = rt_rng_seeded((uint64_t)s->node ^ (uint64_t)rt_boot_ms());
    int64_t backoff_ms = BACKOFF_FIRST_MS;
    (void)pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        if (!l->wanted || l->fresh != NULL) {
            (void)pthread_cond_wait(&l->changed, &l->lock);
            continue;
        }
        const bool unsure = l->unsure;
        const uint64_t unsure_no = l->unsure_no;
        bool durable = false;
        rt_err why;
        (void)pthread_mutex_unlock(&l->lock);
        PGconn *conn = try_connect(s, unsure, unsure_no, &durable, &why);
        const bool session = conn != NULL && rt_pg_has_session(conn);
        (void)pthread_mutex_lock(&l->lock);
        if (conn == NULL) {
            l->why = why;
            // Nodes that lost the same server do not come back all at once.
            wait_changed(l, backoff_ms / 2 + (int64_t)rt_rng_below(&rng, (uint64_t)backoff_ms));
            backoff_ms = backoff_ms * 2 < RT_PG_TROUBLE_BACKOFF_MS ? backoff_ms * 2 : RT_PG_TROUBLE_BACKOFF_MS;
            continue;
        }
        backoff_ms = BACKOFF_FIRST_MS;
        l->fresh = conn;
        l->session = session;
        l->told = unsure;
        l->durable = durable;
        l->unsure = false;
        atomic_store(&l->up, true);
        rt_pg_wake(s);
    }
    (void)pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- for the engine ------------------------------------------------------------------------------------ */

void rt_pg_link_lost(rt_pg *s, uint64_t unsure_no, const rt_err *why) {
    rt_pg_link *l = &s->link;
    rt_pg_pipe_close(&s->pipe);
    (void)pthread_mutex_lock(&l->lock);
    atomic_store(&l->up, false);
    l->wanted = true;
    l->why = *why;
    if (unsure_no > 0) {
        l->unsure = true;
        l->unsure_no = unsure_no;
    }
    (void)pthread_cond_signal(&l->changed);
    (void)pthread_mutex_unlock(&l->lock);
}

static void watch(const rt_pg *s) {
    struct epoll_event event = {.events = EPOLLIN};
    (void)epoll_ctl(s->base.fd, EPOLL_CTL_ADD, PQsocket(s->pipe.conn), &event); // without it: seen at the next step
}

bool rt_pg_link_ready(rt_pg *s, rt_err *err) {
    if (s->pipe.conn != NULL) return true;
    rt_pg_link *l = &s->link;
    (void)pthread_mutex_lock(&l->lock);
    PGconn *conn = l->fresh;
    l->fresh = NULL;
    if (conn != NULL) l->wanted = false;
    const rt_err why = l->why;
    const bool session = l->session;
    (void)pthread_mutex_unlock(&l->lock);
    if (conn == NULL) {
        (void)rt_fail(err, RT_E_UNAVAILABLE, 0, "%s", why.msg);
        return false;
    }
    if (rt_pg_pipe_open(&s->pipe, conn, s->texts, session)) {
        watch(s);
        return true;
    }
    rt_err broken;
    (void)rt_pg_fail(&broken, RT_E_UNAVAILABLE, "a new connection cannot be used");
    rt_pg_link_lost(s, 0, &broken);
    if (err != NULL) *err = broken;
    return false;
}

bool rt_pg_link_resolved(rt_pg *s, bool *durable) {
    rt_pg_link *l = &s->link;
    (void)pthread_mutex_lock(&l->lock);
    const bool told = l->told;
    l->told = false;
    *durable = l->durable;
    (void)pthread_mutex_unlock(&l->lock);
    return told;
}

void rt_pg_link_why(rt_pg *s, rt_err *why) {
    (void)pthread_mutex_lock(&s->link.lock);
    *why = s->link.why;
    (void)pthread_mutex_unlock(&s->link.lock);
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

rt_code rt_pg_link_init(rt_pg *s, rt_err *err) {
    rt_pg_link *l = &s->link;
    (void)pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&l->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->shout_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->base.fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    if (l->wake_fd < 0 || l->stop_fd < 0 || l->shout_fd < 0 || s->base.fd < 0 ||
        epoll_ctl(s->base.fd, EPOLL_CTL_ADD, l->wake_fd, &event) != 0)
        return rt_fail(err, RT_E_IO, errno, "descriptors for PostgreSQL");
    return RT_OK;
}

rt_code rt_pg_link_start(rt_pg *s, rt_err *err) {
    rt_pg_link *l = &s->link;
    int rc = pthread_create(&l->thread, NULL, link_loop, s);
    l->started = rc == 0;
    if (rc == 0) rc = pthread_create(&l->listener, NULL, rt_pg_listen, s);
    l->listening = rc == 0;
    return rc == 0 ? RT_OK : rt_fail(err, RT_E_IO, rc, "threads for PostgreSQL: %s", strerror(rc));
}

void rt_pg_link_close(rt_pg *s) {
    rt_pg_link *l = &s->link;
    (void)pthread_mutex_lock(&l->lock);
    l->stop = true;
    (void)pthread_cond_broadcast(&l->changed);
    (void)pthread_mutex_unlock(&l->lock);
    const uint64_t one = 1;
    if (l->stop_fd >= 0) (void)!write(l->stop_fd, &one, sizeof one);
    if (l->started) (void)pthread_join(l->thread, NULL);
    if (l->listening) (void)pthread_join(l->listener, NULL);
    PQfinish(l->fresh);
    rt_pg_pipe_close(&s->pipe);
    if (l->wake_fd >= 0) (void)close(l->wake_fd);
    if (l->stop_fd >= 0) (void)close(l->stop_fd);
    if (l->shout_fd >= 0) (void)close(l->shout_fd);
    if (s->base.fd >= 0) (void)close(s->base.fd);
    (void)pthread_cond_destroy(&l->changed);
    (void)pthread_mutex_destroy(&l->lock);
}
