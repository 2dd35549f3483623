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

bool rt_store_lmdb_tidy(rt_store *store, const rt_retention *bounds, int64_t now_ms, uint32_t ops_max, bool *wrote) {
    rt_lmdb *s = lmdb_of(store);
    const bool dirty = s->dirty;
    s->retention = *bounds;
    s->dirty = false;
    const bool more = rt_lmdb_tidy(s, now_ms, ops_max);
    *wrote = s->dirty;
    s->dirty = s->dirty || dirty;
    return more;
}

rt_code rt_store_lmdb_sync(rt_store *store, rt_err *err) {
    rt_lmdb *s = lmdb_of(store);
    const int rc = s->env.mdb != NULL ? mdb_env_sync(s->env.mdb, 1) : MDB_PANIC;
    return rc == 0 ? RT_OK : rt_lmdb_fail(err, rc, "the store cannot sync");
}
