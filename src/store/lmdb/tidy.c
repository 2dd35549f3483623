/* tidy.c: history is kept within its bounds, oldest first; with the last event of a job that is done goes the
 * job. */
#include <string.h>

#include "store/lmdb/inside.h"

/* The oldest event. An event that cannot be read counts as oldest of all, or it would keep all others for
 * ever. */
static int first_event(rt_lmdb *s, MDB_cursor **cursor, rt_event *out) {
    MDB_val key;
    MDB_val value;
    int rc = rt_lmdb_cursor(&s->batch, RT_TREE_EVENTS, cursor);
    if (rc == 0) rc = mdb_cursor_get(*cursor, &key, &value, MDB_FIRST);
    if (rc != 0) return rc;
    uint64_t seq = 0;
    if (key.mv_size == sizeof seq) memcpy(&seq, key.mv_data, sizeof seq);
    if (!rt_stored_read_event(seq, rt_lmdb_str(&value), out)) {
        *out = (rt_event){.seq = seq, .at_ms = INT64_MIN};
    }
    return 0;
}

/* Drops the event under the cursor, with its job if that has nothing else left. */
static int drop_event(rt_lmdb *s, MDB_cursor *cursor, const rt_event *event, uint32_t *writes) {
    rt_job job;
    s->dirty = true;
    int rc = mdb_cursor_del(cursor, 0);
    *writes += 1;
    if (rc != 0) return rc;
    rc = rt_lmdb_find_job(&s->batch, event->job, &job);
    if (s->dropped != NULL) s->dropped(s->dropped_ctx, false, event->seq);
    // A job that cannot be read must not keep all history for ever.
    if (rc == MDB_NOTFOUND || rc == MDB_CORRUPTED) return 0;
    if (rc != 0 || job.state != RT_JOB_DONE || job.last_event != event->seq) return rc;
    *writes += 1;
    if (s->dropped != NULL) s->dropped(s->dropped_ctx, true, job.id);
    return rt_lmdb_write_job(s, &job, NULL);
}

bool rt_lmdb_tidy(rt_lmdb *s, int64_t now_ms, uint32_t ops_max) {
    RT_ASSERT(s->batch.txn != NULL);
    RT_ASSERT(ops_max >= 2);
    if (s->broken) return false;
    MDB_stat stat;
    int rc = mdb_stat(s->batch.txn, s->env.trees[RT_TREE_EVENTS], &stat);
    uint64_t count = rc == 0 ? stat.ms_entries : 0;
    for (uint32_t writes = 0; rc == 0 && count > 0; count--) {
        MDB_cursor *cursor;
        rt_event event;
        rc = first_event(s, &cursor, &event);
        if (rc != 0) break;
        const bool too_many = count > s->retention.events;
        const bool too_old = event.at_ms <= now_ms - s->retention.age_ms;
        if (!too_many && !too_old) return false;
        if (writes + 2 > ops_max) return true;
        rc = drop_event(s, cursor, &event, &writes);
    }
    if (rc != 0) rt_lmdb_break(s, rc, "history cannot be trimmed");
    return false;
}
