/* job.c: one job's state record with the indexes and counters that follow from it (the table in
 * retryd/store.h). */
#include <string.h>

#include "store/lmdb/inside.h"

enum { IN_READY = 1, IN_DUE = 2, IN_FREE = 4, IN_ALL = 8, IN_DEAD = 16, IN_EXPIRY = 32 };

static unsigned indexes_of(const rt_job *job) {
    static const uint8_t PUSH[RT_JOB_STATE_COUNT] = {
        [RT_JOB_READY] = IN_READY,
        [RT_JOB_SCHEDULED] = IN_DUE,
        [RT_JOB_LEASED] = IN_DUE,
        [RT_JOB_DEAD] = IN_DEAD,
    };
    static const uint8_t PULL[RT_JOB_STATE_COUNT] = {
        [RT_JOB_SCHEDULED] = IN_DUE | IN_ALL,
        [RT_JOB_FREE] = IN_FREE | IN_ALL,
        [RT_JOB_LEASED] = IN_ALL,
        [RT_JOB_DEAD] = IN_DEAD,
    };
    RT_ASSERT(job->state > RT_JOB_NONE);
    RT_ASSERT(job->state < RT_JOB_STATE_COUNT);
    const bool ended = job->state == RT_JOB_DEAD || job->state == RT_JOB_DONE;
    const unsigned state = (job->flags & RT_JOB_PULL) != 0 ? PULL[job->state] : PUSH[job->state];
    return state | (job->expires_ms > 0 && !ended ? IN_EXPIRY : 0U);
}

/* An index entry: where, under what key, and what it says beside. */
typedef struct entry {
    rt_tree tree;
    rt_key key;
    rt_str value;
} entry;

static entry entry_of(const rt_job *job, unsigned index) {
    entry e = {.value = RT_STR_EMPTY};
    switch (index) {
    case IN_READY:
        e.tree = RT_TREE_READY;
        e.key.len = sizeof job->id;
        memcpy(e.key.bytes, &job->id, sizeof job->id);
        break;
    case IN_DUE:
        e.tree = RT_TREE_DUE;
        rt_key_due(&e.key, job->queue, job->due_ms, job->id);
        break;
    case IN_FREE:
        e.tree = RT_TREE_FREE;
        e.value = (rt_str){.ptr = (const char *)&job->key_hash, .len = sizeof job->key_hash};
        rt_key_place(&e.key, job->queue, job->id);
        break;
    case IN_ALL:
    case IN_DEAD:
        e.tree = index == IN_ALL ? RT_TREE_ALL : RT_TREE_DEAD;
        rt_key_place(&e.key, job->queue, job->id);
        break;
    default: {
        RT_ASSERT(index == IN_EXPIRY);
        rt_long_key key;
        rt_key_expiry_id(&key, job->expires_ms, RT_EXPIRY_JOB, job->id);
        e.tree = RT_TREE_EXPIRY;
        RT_ASSERT(key.len <= sizeof e.key.bytes);
        e.key.len = key.len;
        memcpy(e.key.bytes, key.bytes, key.len);
    }
    }
    return e;
}

static bool same(const entry *a, const entry *b) {
    return a->key.len == b->key.len && memcmp(a->key.bytes, b->key.bytes, a->key.len) == 0 &&
           rt_str_eq(a->value, b->value);
}

static int put_entry(rt_lmdb *s, const rt_job *job, const entry *e) {
    MDB_val value = rt_lmdb_val(e->value.ptr, e->value.len);
    if (e->tree == RT_TREE_READY) return rt_lmdb_insert(s, RT_TREE_READY, job->id, &value, 0);
    return rt_lmdb_put_at(s, e->tree, rt_lmdb_val(e->key.bytes, e->key.len), value);
}

static int move_index(rt_lmdb *s, const rt_job *was, const rt_job *now, unsigned index) {
    entry old;
    entry new;
    if (was != NULL) old = entry_of(was, index);
    if (now != NULL) new = entry_of(now, index);
    if (was != NULL && now != NULL && same(&old, &new)) return 0;
    int rc = 0;
    if (was != NULL) rc = rt_lmdb_remove_at(s, old.tree, rt_lmdb_val(old.key.bytes, old.key.len));
    if (rc == 0 && now != NULL) rc = put_entry(s, now, &new);
    return rc;
}

static int move_indexes(rt_lmdb *s, const rt_job *was, const rt_job *now) {
    const unsigned in_was = was != NULL ? indexes_of(was) : 0U;
    const unsigned in_now = now != NULL ? indexes_of(now) : 0U;
    int rc = 0;
    for (unsigned index = IN_READY; index <= IN_EXPIRY && rc == 0; index <<= 1) {
        const rt_job *from = (in_was & index) != 0 ? was : NULL;
        const rt_job *to = (in_now & index) != 0 ? now : NULL;
        if (from != NULL || to != NULL) rc = move_index(s, from, to, index);
    }
    return rc;
}

static int write_state(rt_lmdb *s, const rt_job *was, const rt_job *now) {
    if (now == NULL) return rt_lmdb_remove(s, RT_TREE_JOBS, was->id);
    unsigned char bytes[RT_STORED_JOB_BYTES];
    rt_stored_write_job(bytes, now);
    MDB_val value = {.mv_size = sizeof bytes, .mv_data = bytes};
    if (was == NULL) return rt_lmdb_insert(s, RT_TREE_JOBS, now->id, &value, 0);
    MDB_cursor *cursor;
    rt_id id = now->id;
    MDB_val key = {.mv_size = sizeof id, .mv_data = &id};
    MDB_val old;
    int rc = rt_lmdb_cursor(&s->batch, RT_TREE_JOBS, &cursor);
    if (rc == 0) rc = mdb_cursor_get(cursor, &key, &old, MDB_SET); // cheap: it stands there since the check
    if (rc == 0) rc = mdb_cursor_put(cursor, &key, &value, MDB_CURRENT);
    return rc;
}

int rt_lmdb_write_job(rt_lmdb *s, const rt_job *was, const rt_job *now) {
    s->dirty = true;
    int rc = write_state(s, was, now);
    if (rc == 0) rc = move_indexes(s, was, now);
    if (rc == 0) rc = rt_counters_change(&s->counters, was, now);
    return rc;
}
