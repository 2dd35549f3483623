/* listing.c: walks over the ordered trees. A walk has a cursor of its own and ends when its callback says
 * so. */
#include <string.h>

#include "store/lmdb/inside.h"

typedef struct walk {
    MDB_cursor *cursor;
    MDB_val key, value;
    int rc; /* 0: key and value are set; MDB_NOTFOUND: the end */
} walk;

static rt_lmdb_view *view_of(rt_view *v) { return (rt_lmdb_view *)v; }
static rt_str key_of(const walk *w) { return rt_lmdb_str(&w->key); }
static rt_str value_of(const walk *w) { return rt_lmdb_str(&w->value); }

static void step(walk *w, MDB_cursor_op op) { w->rc = mdb_cursor_get(w->cursor, &w->key, &w->value, op); }

/* To the first entry at or behind `key`. */
static void seek(walk *w, const void *key, size_t key_len) {
    w->key = rt_lmdb_val(key, key_len); // afterwards it points into the tree
    step(w, MDB_SET_RANGE);
}

static walk begin(rt_lmdb_view *v, rt_tree tree) {
    walk w = {0};
    w.rc = mdb_cursor_open(v->txn, v->store->env.trees[tree], &w.cursor);
    return w;
}

static rt_code finish(walk *w) {
    if (w->cursor != NULL) mdb_cursor_close(w->cursor);
    return w->rc == MDB_NOTFOUND ? RT_OK : rt_lmdb_code(w->rc);
}

/* For loops: `more` false ends the walk well, and what cannot be read ends it badly. */
static void stop(walk *w) { w->rc = MDB_NOTFOUND; }
static void corrupt(walk *w) { w->rc = MDB_CORRUPTED; }

/* ---- numbered trees ------------------------------------------------------------------------------------ */

static bool number_of(const walk *w, uint64_t *out) {
    if (w->key.mv_size != sizeof *out) return false;
    memcpy(out, w->key.mv_data, sizeof *out);
    return true;
}

static void seek_behind_number(walk *w, uint64_t after) {
    const uint64_t from = after + 1;
    if (w->rc != 0) return;
    if (from == 0) stop(w);
    else seek(w, &from, sizeof from);
}

rt_code rt_lmdb_list_queues(rt_view *v, rt_id after, rt_each_queue *each, void *ctx) {
    walk w = begin(view_of(v), RT_TREE_QUEUES);
    seek_behind_number(&w, after);
    while (w.rc == 0) {
        uint64_t id;
        rt_queue queue;
        if (!number_of(&w, &id) || !rt_stored_read_queue(id, value_of(&w), &queue)) corrupt(&w);
        else if (!each(ctx, &queue)) stop(&w);
        else step(&w, MDB_NEXT);
    }
    return finish(&w);
}

rt_code rt_lmdb_list_leases(rt_view *v, rt_id after, rt_each_lease *each, void *ctx) {
    walk w = begin(view_of(v), RT_TREE_LEASES);
    seek_behind_number(&w, after);
    while (w.rc == 0) {
        uint64_t id;
        rt_lease lease;
        if (!number_of(&w, &id) || !rt_stored_read_lease(id, value_of(&w), &lease)) corrupt(&w);
        else if (!each(ctx, &lease)) stop(&w);
        else step(&w, MDB_NEXT);
    }
    return finish(&w);
}

/* Of a body: 1 where nothing says otherwise. */
static bool users_of(rt_lmdb_view *v, rt_id body, uint64_t *out) {
    rt_str value;
    const int rc = rt_lmdb_find(v, RT_TREE_USERS, body, &value);
    *out = 1;
    if (rc == 0 && value.len == sizeof *out) memcpy(out, value.ptr, sizeof *out);
    return rc == MDB_NOTFOUND || (rc == 0 && value.len == sizeof *out);
}

rt_code rt_lmdb_list_bodies(rt_view *v, rt_id after, rt_each_body *each, void *ctx) {
    walk w = begin(view_of(v), RT_TREE_BODIES);
    seek_behind_number(&w, after);
    while (w.rc == 0) {
        uint64_t id;
        uint64_t users;
        rt_str bytes;
        if (!number_of(&w, &id) || !rt_stored_read_body(value_of(&w), &bytes)) corrupt(&w);
        else if (!users_of(view_of(v), id, &users)) corrupt(&w);
        else if (!each(ctx, id, bytes, users)) stop(&w);
        else step(&w, MDB_NEXT);
    }
    return finish(&w);
}

rt_code rt_lmdb_list_events(rt_view *v, uint64_t after_seq, rt_each_event *each, void *ctx) {
    walk w = begin(view_of(v), RT_TREE_EVENTS);
    seek_behind_number(&w, after_seq);
    while (w.rc == 0) {
        uint64_t seq;
        rt_event event;
        if (!number_of(&w, &seq) || !rt_stored_read_event(seq, value_of(&w), &event)) corrupt(&w);
        else if (!each(ctx, &event)) stop(&w);
        else step(&w, MDB_NEXT);
    }
    return finish(&w);
}

/* ---- jobs ---------------------------------------------------------------------------------------------- */

/* Where `range` begins in a tree of places; for `backwards` the entry before it. */
static void seek_place(walk *w, const rt_job_range *range) {
    const bool all_queues = range->index == RT_INDEX_DEAD && range->queue == 0;
    const rt_id queue = all_queues ? range->after_queue : range->queue;
    rt_key key;
    if (range->backwards) {
        rt_key_place(&key, queue, range->after != 0 ? range->after : UINT64_MAX);
        seek(w, key.bytes, key.len);
        if (w->rc == MDB_NOTFOUND) step(w, MDB_LAST);
        else if (w->rc == 0) step(w, MDB_PREV);
        return;
    }
    if (range->after == UINT64_MAX) {
        stop(w);
        return;
    }
    rt_key_place(&key, queue, range->after + 1);
    seek(w, key.bytes, key.len);
}

static void seek_due(walk *w, const rt_job_range *range) {
    rt_key key;
    if (range->after == UINT64_MAX) rt_key_due(&key, range->queue, range->after_due_ms, UINT64_MAX);
    else rt_key_due(&key, range->queue, range->after_due_ms, range->after + 1);
    seek(w, key.bytes, key.len);
}

static bool is_numbered(const rt_job_range *range) {
    return range->index == RT_INDEX_READY || range->index == RT_INDEX_EVERY;
}

/* The id of the entry under the walk. False: it is outside the range, or (walk ended) unreadable. */
static bool id_in_range(walk *w, const rt_job_range *range, rt_id *id) {
    rt_id queue = range->queue;
    int64_t due_ms = range->until_ms;
    bool readable;
    if (is_numbered(range)) readable = number_of(w, id);
    else if (range->index == RT_INDEX_DUE) readable = rt_key_read_due(key_of(w), &queue, &due_ms, id);
    else readable = rt_key_read_place(key_of(w), &queue, id);
    if (!readable) {
        corrupt(w);
        return false;
    }
    const bool all_dead = range->index == RT_INDEX_DEAD && range->queue == 0;
    return (is_numbered(range) || all_dead || queue == range->queue) && due_ms <= range->until_ms;
}

static bool is_echo(const walk *w, const rt_job_range *range) {
    uint64_t hash = 0;
    if (range->index != RT_INDEX_FREE || range->skip_hash == 0) return false;
    if (w->value.mv_size == sizeof hash) memcpy(&hash, w->value.mv_data, sizeof hash);
    return hash == range->skip_hash;
}

rt_code rt_lmdb_list_jobs(rt_view *view, const rt_job_range *range, rt_each_job *each, void *ctx) {
    static const rt_tree TREES[] = {
        [RT_INDEX_READY] = RT_TREE_READY, [RT_INDEX_DUE] = RT_TREE_DUE,   [RT_INDEX_FREE] = RT_TREE_FREE,
        [RT_INDEX_ALL] = RT_TREE_ALL,     [RT_INDEX_DEAD] = RT_TREE_DEAD, [RT_INDEX_EVERY] = RT_TREE_JOBS,
    };
    rt_lmdb_view *v = view_of(view);
    RT_ASSERT(!range->backwards || range->index == RT_INDEX_ALL);
    walk w = begin(v, TREES[range->index]);
    if (w.rc == 0) {
        if (is_numbered(range)) seek_behind_number(&w, range->after);
        else if (range->index == RT_INDEX_DUE) seek_due(&w, range);
        else seek_place(&w, range);
    }
    while (w.rc == 0) {
        rt_id id;
        rt_job job;
        if (!id_in_range(&w, range, &id)) {
            if (w.rc == 0) stop(&w);
            break;
        }
        if (!is_echo(&w, range)) {
            w.rc = rt_lmdb_find_job(v, id, &job);
            if (w.rc == MDB_NOTFOUND) corrupt(&w);
            if (w.rc != 0) break;
            if (!each(ctx, &job)) {
                stop(&w);
                break;
            }
        }
        step(&w, range->backwards ? MDB_PREV : MDB_NEXT);
    }
    return finish(&w);
}

/* ---- documents ----------------------------------------------------------------------------------------- */

rt_code rt_lmdb_list_docs(rt_view *v, rt_doc_kind kind, rt_str prefix, rt_str after, rt_each_doc *each,
                          void *ctx) {
    if (prefix.len > RT_DOC_NAME_MAX) return RT_OK;
    // Nothing is longer than a name can be, so what is cut off cannot change the order, only add the equal
    // one.
    const rt_str cut = {.ptr = after.ptr, .len = after.len < RT_DOC_NAME_MAX ? after.len : RT_DOC_NAME_MAX};
    rt_long_key from;
    rt_key_doc(&from, kind, rt_str_cmp(cut, prefix) > 0 ? cut : prefix);
    walk w = begin(view_of(v), RT_TREE_DOCS);
    if (w.rc == 0) seek(&w, from.bytes, from.len);
    while (w.rc == 0) {
        rt_doc_kind own_kind;
        rt_str name;
        rt_doc doc;
        if (!rt_key_read_doc(key_of(&w), &own_kind, &name)) {
            corrupt(&w);
        } else if (own_kind != kind || !rt_str_starts(name, prefix)) {
            stop(&w);
        } else if (after.len > 0 && rt_str_cmp(name, after) <= 0) {
            step(&w, MDB_NEXT);
        } else if (!rt_stored_read_doc(kind, name, value_of(&w), &doc)) {
            corrupt(&w);
        } else if (!each(ctx, &doc)) {
            stop(&w);
        } else {
            step(&w, MDB_NEXT);
        }
    }
    return finish(&w);
}

/* ---- times --------------------------------------------------------------------------------------------- */

rt_code rt_lmdb_list_expiries(rt_view *v, int64_t until_ms, rt_each_expiry *each, void *ctx) {
    walk w = begin(view_of(v), RT_TREE_EXPIRY);
    if (w.rc == 0) step(&w, MDB_FIRST);
    while (w.rc == 0) {
        rt_expiry expiry;
        if (!rt_key_read_expiry(key_of(&w), &expiry)) corrupt(&w);
        else if (expiry.at_ms > until_ms || !each(ctx, &expiry)) stop(&w);
        else step(&w, MDB_NEXT);
    }
    return finish(&w);
}

static void seek_queue_behind(walk *w, rt_id queue) {
    if (queue == UINT64_MAX) {
        stop(w);
        return;
    }
    rt_key key;
    rt_key_due(&key, queue + 1, INT64_MIN, 0);
    seek(w, key.bytes, key.len);
}

rt_code rt_lmdb_list_wakes(rt_view *v, rt_id after_queue, rt_each_wake *each, void *ctx) {
    walk w = begin(view_of(v), RT_TREE_DUE);
    if (w.rc == 0) seek_queue_behind(&w, after_queue);
    while (w.rc == 0) {
        rt_id id;
        rt_wake wake;
        if (!rt_key_read_due(key_of(&w), &wake.queue, &wake.due_ms, &id)) corrupt(&w);
        else if (!each(ctx, &wake)) stop(&w);
        else seek_queue_behind(&w, wake.queue);
    }
    return finish(&w);
}
