/* feed.c: what a store needs that is fed from a log: a note of how far it is, and history trimmed as the log says. */
#include "store/lmdb/inside.h"

static const char NOTE_KEY[] = "note"; // beside META_KEY, in LMDB's unnamed tree

static rt_lmdb *lmdb_of(rt_store *s) { return (rt_lmdb *)s; }

rt_code rt_store_lmdb_put_note(rt_store *store, rt_str note, rt_err *err) {
    rt_lmdb *s = lmdb_of(store);
    RT_ASSERT(s->batch.txn != NULL);
    RT_ASSERT(note.len <= RT_LMDB_NOTE_MAX);
    if (s->broken) return rt_fail(err, RT_E_UNAVAILABLE, s->why.sys_errno, "%s", s->why.msg);
    MDB_val key = rt_lmdb_val(NOTE_KEY, sizeof NOTE_KEY - 1);
    MDB_val value = rt_lmdb_val(note.ptr, note.len);
    s->dirty = true;
    const int rc = mdb_put(s->batch.txn, s->env.meta, &key, &value, 0);
    if (rc == 0) return RT_OK;
    rt_lmdb_break(s, rc, "the store cannot write");
    return rt_lmdb_fail(err, rc, "note");
}

rt_code rt_store_lmdb_note(rt_view *view, rt_str *out) {
    rt_lmdb_view *v = (rt_lmdb_view *)view;
    MDB_val key = rt_lmdb_val(NOTE_KEY, sizeof NOTE_KEY - 1);
    MDB_val value;
    const int rc = mdb_get(v->txn, v->store->env.meta, &key, &value);
    if (rc == 0) *out = rt_lmdb_str(&value);
    return rt_lmdb_code(rc);
}

bool rt_store_lmdb_tidy(rt_store *store, const rt_retention *bounds, int64_t now_ms, uint32_t ops_max,
                        rt_lmdb_dropped *dropped, void *ctx) {
    rt_lmdb *s = lmdb_of(store);
    s->retention = *bounds;
    s->dropped = dropped;
    s->dropped_ctx = ctx;
    const bool more = rt_lmdb_tidy(s, now_ms, ops_max);
    s->dropped = NULL;
    return more;
}

static int put_body(rt_lmdb *s, rt_id id, rt_str bytes, uint64_t users) {
    rt_str old;
    int rc = rt_lmdb_find(&s->batch, RT_TREE_USERS, id, &old);
    if (rc == 0) rc = rt_lmdb_remove(s, RT_TREE_USERS, id);
    if (rc != 0 && rc != MDB_NOTFOUND) return rc;
    rc = rt_lmdb_find(&s->batch, RT_TREE_BODIES, id, &old);
    if (rc == 0) rc = rt_lmdb_remove(s, RT_TREE_BODIES, id);
    if (rc != 0 && rc != MDB_NOTFOUND) return rc;
    if (users == 0) return 0;
    MDB_val value = {.mv_size = rt_stored_body_bytes(bytes)};
    rc = rt_lmdb_insert(s, RT_TREE_BODIES, id, &value, MDB_RESERVE);
    if (rc != 0) return rc;
    rt_stored_write_body(value.mv_data, bytes);
    value = rt_lmdb_val(&users, sizeof users);
    return users == 1 ? 0 : rt_lmdb_insert(s, RT_TREE_USERS, id, &value, 0);
}

rt_code rt_store_lmdb_put_body(rt_store *store, rt_id id, rt_str bytes, uint64_t users, rt_err *err) {
    rt_lmdb *s = lmdb_of(store);
    RT_ASSERT(s->batch.txn != NULL);
    RT_ASSERT(bytes.len <= RT_BODY_BYTES_MAX);
    const int rc = s->broken ? 0 : put_body(s, id, bytes, users);
    if (rc != 0) rt_lmdb_break(s, rc, "the store cannot write");
    return s->broken ? rt_fail(err, RT_E_UNAVAILABLE, s->why.sys_errno, "%s", s->why.msg) : RT_OK;
}

static int put_event(rt_lmdb *s, uint64_t seq, const rt_str *value) {
    rt_str old;
    rt_event event;
    int rc = rt_lmdb_find(&s->batch, RT_TREE_EVENTS, seq, &old);
    if (rc == 0) rc = rt_lmdb_remove(s, RT_TREE_EVENTS, seq);
    if (rc != 0 && rc != MDB_NOTFOUND) return rc;
    if (value == NULL) return 0;
    if (!rt_stored_read_event(seq, *value, &event)) return MDB_CORRUPTED;
    MDB_val bytes = rt_lmdb_val(value->ptr, value->len);
    return rt_lmdb_insert(s, RT_TREE_EVENTS, seq, &bytes, 0);
}

rt_code rt_store_lmdb_put_event(rt_store *store, uint64_t seq, const rt_str *value, rt_err *err) {
    rt_lmdb *s = lmdb_of(store);
    RT_ASSERT(s->batch.txn != NULL);
    const int rc = s->broken ? 0 : put_event(s, seq, value);
    if (rc != 0) rt_lmdb_break(s, rc, "the store cannot write");
    return s->broken ? rt_fail(err, RT_E_UNAVAILABLE, s->why.sys_errno, "%s", s->why.msg) : RT_OK;
}

rt_code rt_store_lmdb_sync(rt_store *store, rt_err *err) {
    rt_lmdb *s = lmdb_of(store);
    const int rc = s->env.mdb != NULL ? mdb_env_sync(s->env.mdb, 1) : MDB_PANIC;
    return rc == 0 ? RT_OK : rt_lmdb_fail(err, rc, "the store cannot sync");
}
