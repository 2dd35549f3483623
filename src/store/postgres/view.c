#include "store/postgres/view.h"

#include <time.h>

enum { WAIT_MS = 2000 /* for a connection, before a view is refused */ };

static rt_pg_view *view_of(rt_view *v) { return (rt_pg_view *)v; }

/* ---- reading ------------------------------------------------------------------------------------------- */

static rt_code get(rt_view *v, rt_pg_part part, uint64_t key, void *record) {
    return rt_pg_get(&view_of(v)->reader, part, key, RT_DOC_NONE, RT_STR_EMPTY, record);
}

static rt_code get_job(rt_view *v, rt_id id, rt_job *out) { return get(v, RT_PG_JOBS, id, out); }
static rt_code get_queue(rt_view *v, rt_id id, rt_queue *out) { return get(v, RT_PG_QUEUES, id, out); }
static rt_code get_lease(rt_view *v, rt_id id, rt_lease *out) { return get(v, RT_PG_LEASES, id, out); }
static rt_code get_event(rt_view *v, uint64_t seq, rt_event *out) { return get(v, RT_PG_EVENTS, seq, out); }

static rt_code get_body(rt_view *v, rt_id id, rt_str *out) {
    rt_pg_body body;
    const rt_code code = get(v, RT_PG_BODIES, id, &body);
    if (code == RT_OK) *out = body.bytes;
    return code;
}

static rt_code get_doc(rt_view *v, rt_doc_kind kind, rt_str name, rt_doc *out) {
    return rt_pg_get(&view_of(v)->reader, RT_PG_DOCS, 0, kind, name, out);
}

static rt_code get_counts(rt_view *v, rt_id queue, rt_counts *out) {
    rt_pg_sums sums = {0};
    const rt_code code = get(v, RT_PG_COUNTERS, queue, &sums);
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    *out = rt_pg_counts_of(&sums);
    return RT_OK;
}

static rt_code list_jobs(rt_view *v, const rt_job_range *range, rt_each_job *each, void *ctx) {
    return rt_pg_page_jobs(&view_of(v)->reader, range, each, ctx);
}

static rt_code list_docs(rt_view *v, rt_doc_kind kind, rt_str prefix, rt_str after, rt_each_doc *each,
                         void *ctx) {
    return rt_pg_page_docs(&view_of(v)->reader, kind, prefix, after, each, ctx);
}

static rt_code list_queues(rt_view *v, rt_id after, rt_each_queue *each, void *ctx) {
    return rt_pg_page_queues(&view_of(v)->reader, after, each, ctx);
}

static rt_code list_events(rt_view *v, uint64_t after_seq, rt_each_event *each, void *ctx) {
    return rt_pg_page_events(&view_of(v)->reader, after_seq, each, ctx);
}

static rt_code list_expiries(rt_view *v, int64_t until_ms, rt_each_expiry *each, void *ctx) {
    return rt_pg_page_expiries(&view_of(v)->reader, until_ms, each, ctx);
}

static rt_code list_leases(rt_view *v, rt_id after, rt_each_lease *each, void *ctx) {
    return rt_pg_page_leases(&view_of(v)->reader, after, each, ctx);
}

static rt_code list_bodies(rt_view *v, rt_id after, rt_each_body *each, void *ctx) {
    return rt_pg_page_bodies(&view_of(v)->reader, after, each, ctx);
}

static rt_code list_wakes(rt_view *v, rt_id after_queue, rt_each_wake *each, void *ctx) {
    return rt_pg_page_wakes(&view_of(v)->reader, after_queue, each, ctx);
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

static void give_back(rt_pg_view *v) {
    rt_pg_views *views = v->views;
    (void)pthread_mutex_lock(&views->lock);
    v->is_open = false;
    (void)pthread_cond_signal(&views->closed);
    (void)pthread_mutex_unlock(&views->lock);
}

static void close_view(rt_view *view) {
    rt_pg_view *v = view_of(view);
    if (!v->pipe.broken) { // nobody waits for that; the next one who gets it does
        rt_pg_wait(&v->pipe);
        rt_pg_send(&v->pipe, RT_SQL_ROLLBACK, NULL, NULL, NULL);
        rt_pg_end(&v->pipe, v->views->server->statement_ms);
        (void)rt_pg_step(&v->pipe);
    }
    if (v->pipe.broken) rt_pg_pipe_close(&v->pipe);
    rt_arena_clear(&v->arena);
    give_back(v);
}

static const rt_view_ops VIEW_OPS = {
    .job = get_job,
    .body = get_body,
    .queue = get_queue,
    .lease = get_lease,
    .doc = get_doc,
    .event = get_event,
    .jobs = list_jobs,
    .docs = list_docs,
    .queues = list_queues,
    .events = list_events,
    .expiries = list_expiries,
    .wakes = list_wakes,
    .counts = get_counts,
    .leases = list_leases,
    .bodies = list_bodies,
    .close = close_view,
};

/* One that has a connection, or else one that has none yet. */
static rt_pg_view *free_slot(rt_pg_views *views) {
    rt_pg_view *bare = NULL;
    for (uint32_t i = 0; i < views->max; i++) {
        rt_pg_view *v = &views->slots[i];
        if (v->is_open) continue;
        if (v->pipe.conn != NULL) return v;
        if (bare == NULL) bare = v;
    }
    return bare;
}

static rt_code take_slot(rt_pg_views *views, rt_pg_view **out, rt_err *err) {
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += WAIT_MS / 1000;
    (void)pthread_mutex_lock(&views->lock);
    rt_pg_view *v = free_slot(views);
    int rc = 0;
    while (v == NULL && rc == 0) {
        rc = pthread_cond_timedwait(&views->closed, &views->lock, &until);
        v = free_slot(views);
    }
    if (v != NULL) v->is_open = true;
    (void)pthread_mutex_unlock(&views->lock);
    if (v == NULL)
        return rt_fail(err, RT_E_UNAVAILABLE, 0, "all %u connections for reading are busy", views->max);
    *out = v;
    return RT_OK;
}

static bool connect_view(rt_pg_view *v, rt_err *err) {
    const rt_pg_server *server = v->views->server;
    PGconn *conn = rt_pg_connect(server, server->url, err);
    if (conn == NULL) return false;
    if (rt_pg_pipe_open(&v->pipe, conn, server->texts, rt_pg_has_session(conn))) return true;
    (void)rt_pg_fail(err, RT_E_UNAVAILABLE, "a connection cannot be used");
    return false;
}

/* The snapshot is taken by the first statement that reads. */
static bool begin(rt_pg_view *v) {
    rt_pg_wait(&v->pipe); // the end of the view before
    if (v->pipe.broken) return false;
    rt_pg_send(&v->pipe, RT_SQL_BEGIN_READ, NULL, NULL, NULL);
    rt_pg_send(&v->pipe, RT_SQL_SETTINGS, NULL, NULL, NULL);
    rt_pg_end(&v->pipe, v->views->server->statement_ms);
    rt_pg_wait(&v->pipe);
    return v->pipe.code == RT_OK && !v->pipe.broken;
}

rt_code rt_pg_view_open(rt_pg_views *views, rt_view **out, rt_err *err) {
    rt_err why;
    if (!atomic_load(&views->link->up)) { // no need to find out once more
        rt_pg_link_why(views->link, &why);
        return rt_fail(err, RT_E_UNAVAILABLE, 0, "%s", why.msg);
    }
    rt_pg_view *v = NULL;
    const rt_code code = take_slot(views, &v, err);
    if (code != RT_OK) return code;
    bool good = v->pipe.conn != NULL && begin(v); // a connection of before may have died meanwhile
    if (!good) {
        rt_pg_pipe_close(&v->pipe);
        good = connect_view(v, err);
        if (good && !begin(v)) {
            (void)rt_fail(err, RT_E_UNAVAILABLE, 0, "%s", v->pipe.err.msg);
            good = false;
        }
    }
    if (good) {
        *out = &v->base;
        return RT_OK;
    }
    rt_pg_pipe_close(&v->pipe);
    give_back(v);
    return RT_E_UNAVAILABLE;
}

rt_code rt_pg_views_init(rt_pg_views *views, uint32_t max, const rt_pg_server *server, rt_pg_link *link,
                         rt_err *err) {
    views->max = max;
    views->server = server;
    views->link = link;
    const int rc = pthread_mutex_init(&views->lock, NULL);
    if (rc != 0) return rt_fail(err, RT_E_NOMEM, rc, "mutex of the views");
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&views->closed, &attr); // cannot fail on Linux, like the two calls before
    (void)pthread_condattr_destroy(&attr);
    for (uint32_t i = 0; i < RT_PG_VIEWS_MAX; i++) {
        rt_pg_view *v = &views->slots[i];
        *v = (rt_pg_view){.base.ops = &VIEW_OPS, .views = views};
        v->reader = (rt_pg_reader){.pipe = &v->pipe, .arena = &v->arena, .within_ms = server->statement_ms};
    }
    return RT_OK;
}

void rt_pg_views_deinit(rt_pg_views *views) {
    for (uint32_t i = 0; i < RT_PG_VIEWS_MAX; i++) {
        rt_pg_view *v = &views->slots[i];
        RT_ASSERT(!v->is_open);
        rt_pg_pipe_close(&v->pipe);
        rt_pg_args_deinit(&v->reader.args);
        rt_arena_deinit(&v->arena);
    }
    (void)pthread_cond_destroy(&views->closed);
    (void)pthread_mutex_destroy(&views->lock);
}
