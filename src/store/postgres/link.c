#include "store/postgres/link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "os/clock.h"
#include "store/postgres/store_postgres.h"

enum { BACKOFF_FIRST_MS = 100 };

void rt_pg_wake(const rt_pg_link *l) {
    const uint64_t one = 1;
    (void)!write(l->wake_fd, &one, sizeof one); // full: it is readable already
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

/* How did the batch end whose COMMIT was cut off? Its row tells; and from here on that COMMIT cannot take
 * effect any more, wherever it may still be on its way. */
static bool resolve(const rt_pg_server *server, PGconn *conn, uint64_t batch_no, bool *durable) {
    rt_pg_args args = {0};
    rt_pg_arg_i64(&args, server->node);
    rt_pg_arg_i64(&args, (int64_t)batch_no);
    const char *const values[] = {args.bytes.ptr, args.bytes.ptr + args.at[1]};
    const int lengths[] = {8, 8};
    const int formats[] = {1, 1};
    PGresult *r = PQexecParams(conn, server->texts[RT_SQL_FENCE], 2, args.types, values, lengths, formats, 1);
    const bool good = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1;
    if (good) *durable = (uint64_t)rt_pg_read_i64(r, 0, 0) == batch_no;
    PQclear(r);
    rt_pg_args_deinit(&args);
    return good;
}

/* One try; not holding the lock. */
static PGconn *try_connect(const rt_pg_server *server, bool unsure, uint64_t unsure_no, bool *durable,
                           rt_err *err) {
    PGconn *conn = rt_pg_connect(server, server->url, err);
    if (conn == NULL || !unsure || resolve(server, conn, unsure_no, durable)) return conn;
    (void)rt_pg_fail(err, RT_E_UNAVAILABLE, PQerrorMessage(conn));
    PQfinish(conn);
    return NULL;
}

/* Is its session ours? Then the server is asked to look whether we are there. */
static bool keep_session(PGconn *conn) {
    const bool ours = rt_pg_has_session(conn);
    if (ours) rt_pg_be_watched(conn);
    return ours;
}

static void *link_loop(void *link) {
    rt_pg_link *l = link;
    rt_rng rng = rt_rng_seeded((uint64_t)l->server->node ^ (uint64_t)rt_boot_ms());
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
        PGconn *conn = try_connect(l->server, unsure, unsure_no, &durable, &why);
        const bool session = conn != NULL && keep_session(conn);
        (void)pthread_mutex_lock(&l->lock);
        if (conn == NULL) {
            l->why = why;
            // Nodes that lost the same server do not come back all at once.
            wait_changed(l, backoff_ms / 2 + (int64_t)rt_rng_below(&rng, (uint64_t)backoff_ms));
            backoff_ms *= 2;
            if (backoff_ms > RT_PG_TROUBLE_BACKOFF_MS) backoff_ms = RT_PG_TROUBLE_BACKOFF_MS;
            continue;
        }
        backoff_ms = BACKOFF_FIRST_MS;
        l->fresh = conn;
        l->session = session;
        l->told = unsure;
        l->durable = durable;
        l->unsure = false;
        atomic_store(&l->up, true);
        rt_pg_wake(l);
    }
    (void)pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- for the engine ------------------------------------------------------------------------------------ */

void rt_pg_link_lost(rt_pg_link *l, uint64_t unsure_no, const rt_err *why) {
    rt_pg_pipe_close(l->pipe);
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

/* Without it what comes is seen at the next step. */
static void watch(rt_pg_link *l) {
    struct epoll_event event = {.events = EPOLLIN};
    (void)epoll_ctl(l->poll_fd, EPOLL_CTL_ADD, PQsocket(l->pipe->conn), &event);
    l->pours = false;
}

void rt_pg_link_watch(rt_pg_link *l) {
    if (l->pipe->conn == NULL) return;
    const bool pours = (rt_pg_wants(l->pipe) & POLLOUT) != 0;
    if (pours == l->pours) return;
    struct epoll_event event = {.events = pours ? EPOLLIN | EPOLLOUT : EPOLLIN};
    (void)epoll_ctl(l->poll_fd, EPOLL_CTL_MOD, PQsocket(l->pipe->conn), &event);
    l->pours = pours;
}

bool rt_pg_link_ready(rt_pg_link *l, rt_err *err) {
    if (l->pipe->conn != NULL) return true;
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
    if (rt_pg_pipe_open(l->pipe, conn, l->server->texts, session)) {
        watch(l);
        return true;
    }
    rt_err broken;
    (void)rt_pg_fail(&broken, RT_E_UNAVAILABLE, "a new connection cannot be used");
    rt_pg_link_lost(l, 0, &broken);
    if (err != NULL) *err = broken;
    return false;
}

bool rt_pg_link_resolved(rt_pg_link *l, bool *durable) {
    (void)pthread_mutex_lock(&l->lock);
    const bool told = l->told;
    l->told = false;
    *durable = l->durable;
    (void)pthread_mutex_unlock(&l->lock);
    return told;
}

void rt_pg_link_why(rt_pg_link *l, rt_err *why) {
    (void)pthread_mutex_lock(&l->lock);
    *why = l->why;
    (void)pthread_mutex_unlock(&l->lock);
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

rt_code rt_pg_link_init(rt_pg_link *l, const rt_pg_server *server, rt_pg_pipe *pipe, rt_err *err) {
    l->server = server;
    l->pipe = pipe;
    (void)pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&l->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    if (l->wake_fd >= 0 && l->poll_fd >= 0 && epoll_ctl(l->poll_fd, EPOLL_CTL_ADD, l->wake_fd, &event) == 0)
        return RT_OK;
    return rt_fail(err, RT_E_IO, errno, "descriptors for PostgreSQL");
}

rt_code rt_pg_link_start(rt_pg_link *l, PGconn *first, rt_err *err) {
    l->fresh = first;
    l->session = keep_session(first);
    l->wanted = true;
    atomic_store(&l->up, true);
    const int rc = pthread_create(&l->thread, NULL, link_loop, l);
    l->started = rc == 0;
    return rc == 0 ? RT_OK : rt_fail(err, RT_E_IO, rc, "threads for PostgreSQL: %s", strerror(rc));
}

void rt_pg_link_stop(rt_pg_link *l) {
    (void)pthread_mutex_lock(&l->lock);
    l->stop = true;
    (void)pthread_cond_broadcast(&l->changed);
    (void)pthread_mutex_unlock(&l->lock);
}

void rt_pg_link_close(rt_pg_link *l) {
    rt_pg_link_stop(l);
    if (l->started) (void)pthread_join(l->thread, NULL);
    PQfinish(l->fresh);
    rt_pg_pipe_close(l->pipe);
    if (l->wake_fd >= 0) (void)close(l->wake_fd);
    if (l->poll_fd >= 0) (void)close(l->poll_fd);
    (void)pthread_cond_destroy(&l->changed);
    (void)pthread_mutex_destroy(&l->lock);
}
