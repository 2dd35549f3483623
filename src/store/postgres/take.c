#include "store/postgres/take.h"

static rt_pg_record *know_row(rt_pg *s, rt_pg_part part, const PGresult *rows, int row, int first) {
    const int64_t key = rt_pg_read_i64(rows, row, first);
    if (part != RT_PG_DOCS) return rt_pg_know(&s->batch, part, (uint64_t)key);
    return rt_pg_know_doc(&s->batch, (rt_doc_kind)key, rt_pg_read_bytes(rows, row, first + 1));
}

/* What the batch has done to a body's users or a queue's sums before they were read. */
static void add_unsent(rt_pg_record *r) {
    if (r->part == RT_PG_BODIES) r->body.users += r->more;
    if (r->part != RT_PG_COUNTERS) return;
    int64_t *sums = &r->sums.ready;
    const int64_t *more = &r->more_sums.ready;
    for (size_t i = 0; i < (sizeof r->sums - sizeof r->sums.queue) / sizeof *sums; i++) sums[i] += more[i];
}

rt_code rt_pg_take_row(rt_pg *s, rt_pg_part part, const PGresult *rows, int row, int first,
                       rt_pg_record **out) {
    rt_pg_record *r = know_row(s, part, rows, row, first);
    if (r == NULL) return RT_E_NOMEM;
    *out = r;
    const bool sums = part == RT_PG_BODIES || part == RT_PG_COUNTERS;
    if (r->touched && (!sums || r->known)) return RT_OK;
    const uint64_t recalled = r->recalled ? r->was : 0;
    if (!rt_pg_read_row(&RT_PG_TABLES[part], rows, row, first, &s->batch.arena, rt_pg_value(r)))
        return RT_E_CORRUPT;
    // What was decided on the other one must not stand.
    if (recalled != 0 && rt_pg_version(r) != recalled) return RT_E_CONFLICT;
    r->known = r->there = true;
    r->was = rt_pg_version(r);
    add_unsent(r);
    if (part == RT_PG_BODIES) r->there = r->body.users > 0;
    if (part == RT_PG_JOBS) rt_pg_numbers_seen(&s->numbers, r->job.last_event);
    return RT_OK;
}
