/* view.c: the set of views, and reading one record through a view or the batch. */
#include <time.h>

#include "store/lmdb/inside.h"

static rt_lmdb_view *view_of(rt_view *v) { return (rt_lmdb_view *)v; }

/* ---- the set of views ---------------------------------------------------------------------------------- */

rt_code rt_lmdb_views_init(rt_lmdb *s, rt_err *err) {
    rt_lmdb_views *views = &s->views;
    const int rc = pthread_mutex_init(&views->mutex, NULL);
    if (rc != 0) return rt_fail(err, RT_E_NOMEM, rc, "mutex of the views");
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&views->all_closed, &attr); // cannot fail on Linux, like the two calls before
    (void)pthread_condattr_destroy(&attr);
    for (int i = 0; i < RT_LMDB_VIEWS_MAX; i++) {
        views->slots[i] = (rt_lmdb_view){.base.ops = &rt_lmdb_view_ops, .store = s};
    }
    return RT_OK;
}

/* Gives back what LMDB allocated for a view that is not open. */
static void drop_slot(rt_lmdb_view *v) {
    for (int i = 0; i < RT_TREE_COUNT; i++) {
        if (v->cursors[i] != NULL) mdb_cursor_close(v->cursors[i]);
        v->cursors[i] = NULL;
    }
    if (v->txn != NULL) mdb_txn_abort(v->txn);
    v->txn = NULL;
}

void rt_lmdb_views_deinit(rt_lmdb *s) {
    RT_ASSERT(s->views.open_count == 0);
    for (int i = 0; i < RT_LMDB_VIEWS_MAX; i++) drop_slot(&s->views.slots[i]);
    (void)pthread_cond_destroy(&s->views.all_closed);
    (void)pthread_mutex_destroy(&s->views.mutex);
}

bool rt_lmdb_views_release(rt_lmdb *s, uint32_t wait_ms) {
    rt_lmdb_views *views = &s->views;
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    const long ns = until.tv_nsec + (long)(wait_ms % 1000) * 1000000;
    until.tv_sec += (time_t)(wait_ms / 1000) + ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    (void)pthread_mutex_lock(&views->mutex);
    views->refused = true;
    int rc = 0;
    while (views->open_count > 0 && rc == 0) {
        rc = pthread_cond_timedwait(&views->all_closed, &views->mutex, &until);
    }
    const bool released = views->open_count == 0;
    for (int i = 0; released && i < RT_LMDB_VIEWS_MAX; i++) drop_slot(&views->slots[i]);
    (void)pthread_mutex_unlock(&views->mutex);
    return released;
}

void rt_lmdb_views_allow(rt_lmdb *s) {
    (void)pthread_mutex_lock(&s->views.mutex);
    s->views.refused = false;
    (void)pthread_mutex_unlock(&s->views.mutex);
}

static void give_back(rt_lmdb_view *v) {
    rt_lmdb_views *views = &v->store->views;
    (void)pthread_mutex_lock(&views->mutex);
    v->is_open = false;
    views->open_count--;
    if (views->open_count == 0) (void)pthread_cond_signal(&views->all_closed);
    (void)pthread_mutex_unlock(&views->mutex);
}

static rt_code take_slot(rt_lmdb_views *views, rt_lmdb_view **out, rt_err *err) {
    rt_code code = RT_OK;
    (void)pthread_mutex_lock(&views->mutex);
    uint32_t i = 0;
    while (i < RT_LMDB_VIEWS_MAX && views->slots[i].is_open) i++;
    if (views->refused) {
        code = rt_fail(err, RT_E_UNAVAILABLE, 0, "the store is being opened afresh after an error");
    } else if (i == RT_LMDB_VIEWS_MAX) {
        code = rt_fail(err, RT_E_UNAVAILABLE, 0, "too many views are open (%d)", RT_LMDB_VIEWS_MAX);
    } else {
        views->slots[i].is_open = true;
        views->open_count++;
        *out = &views->slots[i];
    }
    (void)pthread_mutex_unlock(&views->mutex);
    return code;
}

rt_code rt_lmdb_view_open(rt_lmdb *s, rt_view **out, rt_err *err) {
    rt_lmdb_view *v = NULL;
    const rt_code code = take_slot(&s->views, &v, err);
    if (code != RT_OK) return code;
    v->bound = 0;
    const int rc = v->txn != NULL ? mdb_txn_renew(v->txn)
                                  : mdb_txn_begin(s->env.mdb, NULL, MDB_RDONLY, &v->txn);
    if (rc != 0) {
        give_back(v);
        return rt_lmdb_fail(err, rc, "cannot open a view");
    }
    *out = &v->base;
    return RT_OK;
}

static void close_view(rt_view *view) {
    rt_lmdb_view *v = view_of(view);
    RT_ASSERT(!v->is_batch);
    RT_ASSERT(v->is_open);
    mdb_txn_reset(v->txn);
    give_back(v);
}

/* ---- one record ---------------------------------------------------------------------------------------- */

static rt_code read_job(rt_view *v, rt_id id, rt_job *out) {
    return rt_lmdb_code(rt_lmdb_find_job(view_of(v), id, out));
}

static rt_code read_body(rt_view *v, rt_id id, rt_str *out) {
    rt_str value;
    const int rc = rt_lmdb_find(view_of(v), RT_TREE_BODIES, id, &value);
    if (rc != 0) return rt_lmdb_code(rc);
    return rt_stored_read_body(value, out) ? RT_OK : RT_E_CORRUPT;
}

static rt_code read_queue(rt_view *v, rt_id id, rt_queue *out) {
    rt_str value;
    const int rc = rt_lmdb_find(view_of(v), RT_TREE_QUEUES, id, &value);
    if (rc != 0) return rt_lmdb_code(rc);
    return rt_stored_read_queue(id, value, out) ? RT_OK : RT_E_CORRUPT;
}

static rt_code read_lease(rt_view *v, rt_id id, rt_lease *out) {
    rt_str value;
    const int rc = rt_lmdb_find(view_of(v), RT_TREE_LEASES, id, &value);
    if (rc != 0) return rt_lmdb_code(rc);
    return rt_stored_read_lease(id, value, out) ? RT_OK : RT_E_CORRUPT;
}

static rt_code read_event(rt_view *v, uint64_t seq, rt_event *out) {
    rt_str value;
    const int rc = rt_lmdb_find(view_of(v), RT_TREE_EVENTS, seq, &value);
    if (rc != 0) return rt_lmdb_code(rc);
    return rt_stored_read_event(seq, value, out) ? RT_OK : RT_E_CORRUPT;
}

static rt_code read_doc(rt_view *view, rt_doc_kind kind, rt_str name, rt_doc *out) {
    if (name.len == 0 || name.len > RT_DOC_NAME_MAX) return RT_E_ABSENT;
    rt_long_key key;
    rt_key_doc(&key, kind, name);
    // By hand, because the name that is lent must be the tree's own, not the caller's.
    rt_lmdb_view *v = view_of(view);
    MDB_cursor *cursor;
    MDB_val k = {.mv_size = key.len, .mv_data = key.bytes};
    MDB_val value;
    int rc = rt_lmdb_cursor(v, RT_TREE_DOCS, &cursor);
    if (rc == 0) rc = mdb_cursor_get(cursor, &k, &value, MDB_SET_KEY);
    if (rc != 0) return rt_lmdb_code(rc);
    rt_doc_kind own_kind;
    rt_str own_name;
    if (!rt_key_read_doc(rt_lmdb_str(&k), &own_kind, &own_name)) return RT_E_CORRUPT;
    return rt_stored_read_doc(own_kind, own_name, rt_lmdb_str(&value), out) ? RT_OK : RT_E_CORRUPT;
}

static rt_code read_counts(rt_view *view, rt_id queue, rt_counts *out) {
    rt_lmdb_view *v = view_of(view);
    const rt_lmdb *s = v->store;
    if (v->is_batch) return rt_counters_read_batch(&s->counters, &s->env, v->txn, queue, out);
    return rt_counters_read(&s->env, v->txn, queue, out);
}

const rt_view_ops rt_lmdb_view_ops = {
    .job = read_job,
    .body = read_body,
    .queue = read_queue,
    .lease = read_lease,
    .doc = read_doc,
    .event = read_event,
    .jobs = rt_lmdb_list_jobs,
    .docs = rt_lmdb_list_docs,
    .queues = rt_lmdb_list_queues,
    .events = rt_lmdb_list_events,
    .expiries = rt_lmdb_list_expiries,
    .wakes = rt_lmdb_list_wakes,
    .counts = read_counts,
    .leases = rt_lmdb_list_leases,
    .bodies = rt_lmdb_list_bodies,
    .close = close_view,
};
