#include "store/postgres/tidy.h"

#include <stdlib.h>

#include "os/clock.h"
#include "store/postgres/flush.h"
#include "store/postgres/node/sums.h"
#include "store/postgres/txn.h"

enum {
    LOOK_AGAIN_MS = 10000, /* others add to it too */
    ROWS_MAX = 4096
};

typedef struct oldest {
    rt_pg *store;
    int64_t now_ms;
    int64_t seqs[ROWS_MAX], jobs[ROWS_MAX];
    uint32_t count;        /* those that are over */
    bool all_over;         /* more may be behind them */
    uint32_t limit;
} oldest;

static rt_code take_oldest(void *ctx, const PGresult *rows) {
    oldest *o = ctx;
    rt_pg_history *h = &o->store->history;
    const rt_retention *bounds = &o->store->retention;
    const int found = PQntuples(rows);
    h->looked = true;
    h->looked_ms = rt_mono_ms();
    h->oldest_ms = INT64_MAX;
    h->count = found > 0 ? rt_pg_read_i64(rows, 0, 3) : 0;
    for (int i = 0; i < found; i++) {
        const int64_t at_ms = rt_pg_read_i64(rows, i, 2);
        const bool too_many = (uint64_t)(h->count > i ? h->count - i : 0) > bounds->events;
        if (!too_many && at_ms > o->now_ms - bounds->age_ms) {
            h->oldest_ms = at_ms;
            return RT_OK;
        }
        o->seqs[o->count] = rt_pg_read_i64(rows, i, 0);
        o->jobs[o->count++] = rt_pg_read_i64(rows, i, 1);
    }
    o->all_over = (uint32_t)found == o->limit;
    return RT_OK;
}

static rt_code forget_jobs(void *ctx, const PGresult *rows) {
    rt_pg *s = ctx;
    const int gone = PQntuples(rows);
    for (int i = 0; i < gone; i++) {
        const rt_job was = {.queue = (rt_id)rt_pg_read_i64(rows, i, 1), .state = RT_JOB_DONE};
        if (!rt_pg_count(&s->batch, &was, NULL)) return RT_E_NOMEM;
        rt_pg_record *r = rt_pg_find(&s->batch, RT_PG_JOBS, (rt_id)rt_pg_read_i64(rows, i, 0));
        if (r == NULL) continue;
        r->there = false;
        r->was = 0;
    }
    return RT_OK;
}

static rt_code drop(rt_pg *s, const oldest *o) {
    rt_pg_args_clear(&s->args);
    rt_pg_arg_i64s(&s->args, o->seqs, o->count);
    rt_pg_send(&s->pipe, RT_SQL_TIDY_EVENTS, &s->args, NULL, NULL);
    rt_pg_args_clear(&s->args);
    rt_pg_arg_i64s(&s->args, o->jobs, o->count);
    rt_pg_arg_i64s(&s->args, o->seqs, o->count);
    rt_pg_send(&s->pipe, RT_SQL_TIDY_JOBS, &s->args, forget_jobs, s);
    const rt_code code = rt_pg_finish(s);
    if (code != RT_OK) return code;
    s->history.count -= o->count;
    return rt_pg_count_events(&s->batch, -(int64_t)o->count) ? RT_OK : RT_E_NOMEM;
}

/* Nothing can be over yet, as far as we know. */
static bool may_wait(const rt_pg *s, int64_t now_ms) {
    const rt_pg_history *h = &s->history;
    if (!h->looked || rt_mono_ms() - h->looked_ms > LOOK_AGAIN_MS) return false;
    const bool too_many = h->count > 0 && (uint64_t)h->count > s->retention.events;
    return !too_many && h->oldest_ms > now_ms - s->retention.age_ms;
}

/* What was dropped stays in the index until the next vacuum: it is not passed over each time. Others may be
 * late with smaller numbers, so now and then it is. */
static int64_t gone_seq(rt_pg_history *h) {
    if (h->looked && rt_mono_ms() - h->gone_ms < LOOK_AGAIN_MS) return h->gone_seq;
    h->gone_ms = rt_mono_ms();
    h->gone_seq = 0;
    return 0;
}

bool rt_pg_tidy(rt_pg *s, int64_t now_ms, uint32_t ops_max) {
    RT_ASSERT(ops_max >= 2);
    rt_pg_batch *b = &s->batch;
    if (b->broken || may_wait(s, now_ms)) return false;
    oldest *o = calloc(1, sizeof *o);
    if (o == NULL) return false;
    o->store = s;
    o->now_ms = now_ms;
    o->limit = ops_max / 2 < ROWS_MAX ? ops_max / 2 : ROWS_MAX;
    rt_err err;
    const rt_code flushed = rt_pg_flush(s, &err); // what the batch itself has written counts too
    if (flushed != RT_OK) rt_pg_batch_break(s, &err);
    rt_pg_args_clear(&s->args);
    rt_pg_arg_i32(&s->args, (int32_t)o->limit);
    rt_pg_arg_i64(&s->args, gone_seq(&s->history));
    rt_pg_send(&s->pipe, RT_SQL_TIDY_LOOK, &s->args, take_oldest, o);
    rt_code code = rt_pg_finish(s);
    if (code == RT_OK) rt_pg_flushed(s);
    if (code == RT_OK && o->count > 0) code = drop(s, o);
    if (code == RT_OK && o->count > 0) s->history.gone_seq = o->seqs[o->count - 1];
    const bool more = code == RT_OK && o->all_over && o->count > 0;
    free(o);
    return more;
}
