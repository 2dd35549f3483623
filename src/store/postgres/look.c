#include "store/postgres/look.h"

#include "store/postgres/flush.h"
#include "store/postgres/load.h"
#include "store/postgres/merge.h"
#include "store/postgres/txn.h"

static rt_code look_up(rt_view *v, rt_pg_record *r, rt_pg_record **out) {
    rt_pg *s = ((rt_pg_batch_view *)v)->store;
    rt_err err;
    if (r == NULL || (!r->known && !rt_pg_recall(&s->memory, &s->batch, r) && !rt_pg_want(&s->batch, r)))
        return RT_E_NOMEM;
    rt_pg_habit_note(&s->habits, r);
    if (!r->known && s->eager && rt_pg_load(s, &err) != RT_OK) return RT_E_UNAVAILABLE;
    if (!r->known) return RT_E_AGAIN;
    *out = r;
    return r->there ? RT_OK : RT_E_ABSENT;
}

static rt_code look_up_number(rt_view *v, rt_pg_part part, uint64_t key, rt_pg_record **out) {
    rt_pg *s = ((rt_pg_batch_view *)v)->store;
    if (key == 0 && part != RT_PG_COUNTERS) return RT_E_ABSENT;
    rt_pg_record *r = rt_pg_know(&s->batch, part, key);
    if (r != NULL && !r->known && rt_pg_is_fresh(&s->numbers, key)) rt_pg_settle_absent(r);
    return look_up(v, r, out);
}

static rt_code get_job(rt_view *v, rt_id id, rt_job *out) {
    rt_pg_record *r;
    const rt_code code = look_up_number(v, RT_PG_JOBS, id, &r);
    if (code == RT_OK) *out = r->job;
    return code;
}

static rt_code get_body(rt_view *v, rt_id id, rt_str *out) {
    rt_pg_record *r;
    const rt_code code = look_up_number(v, RT_PG_BODIES, id, &r);
    if (code == RT_OK) *out = r->body.bytes;
    return code;
}

static rt_code get_queue(rt_view *v, rt_id id, rt_queue *out) {
    rt_pg_record *r;
    const rt_code code = look_up_number(v, RT_PG_QUEUES, id, &r);
    if (code == RT_OK) *out = r->queue;
    return code;
}

static rt_code get_lease(rt_view *v, rt_id id, rt_lease *out) {
    rt_pg_record *r;
    const rt_code code = look_up_number(v, RT_PG_LEASES, id, &r);
    if (code == RT_OK) *out = r->lease;
    return code;
}

static rt_code get_doc(rt_view *v, rt_doc_kind kind, rt_str name, rt_doc *out) {
    rt_pg *s = ((rt_pg_batch_view *)v)->store;
    rt_pg_record *r = rt_pg_know_doc(&s->batch, kind, name);
    if (r != NULL && !r->known && rt_pg_starts_fresh(&s->numbers, name)) rt_pg_settle_absent(r);
    const rt_code code = look_up(v, r, &r);
    if (code == RT_OK) *out = r->doc;
    return code;
}

static rt_code get_event(rt_view *v, uint64_t seq, rt_event *out) {
    rt_pg_record *r;
    const rt_code code = look_up_number(v, RT_PG_EVENTS, seq, &r);
    if (code == RT_OK) *out = r->event;
    return code;
}

static rt_code get_counts(rt_view *v, rt_id queue, rt_counts *out) {
    rt_pg_record *r;
    const rt_code code = look_up_number(v, RT_PG_COUNTERS, queue, &r);
    if (code == RT_OK) *out = rt_pg_counts_of(&r->sums);
    return code;
}

/* For listings that no decision needs often: what was noted is sent first, so that the database has all of
 * it. */
static rt_pg_reader *read_through(rt_view *v) {
    rt_pg *s = ((rt_pg_batch_view *)v)->store;
    rt_err err;
    if (s->batch.broken) return NULL;
    if (rt_pg_flush(s, &err) != RT_OK) rt_pg_batch_break(s, &err);
    if (rt_pg_finish(s) != RT_OK || s->batch.broken) return NULL;
    rt_pg_flushed(s);
    return &s->reader;
}

static rt_code list_queues(rt_view *v, rt_id after, rt_each_queue *each, void *ctx) {
    rt_pg_reader *r = read_through(v);
    return r == NULL ? RT_E_UNAVAILABLE : rt_pg_page_queues(r, after, each, ctx);
}

static rt_code list_events(rt_view *v, uint64_t after_seq, rt_each_event *each, void *ctx) {
    rt_pg_reader *r = read_through(v);
    return r == NULL ? RT_E_UNAVAILABLE : rt_pg_page_events(r, after_seq, each, ctx);
}

static rt_code list_wakes(rt_view *v, rt_id after_queue, rt_each_wake *each, void *ctx) {
    rt_pg_reader *r = read_through(v);
    return r == NULL ? RT_E_UNAVAILABLE : rt_pg_page_wakes(r, after_queue, each, ctx);
}

const rt_view_ops rt_pg_look_ops = {
    .job = get_job,
    .body = get_body,
    .queue = get_queue,
    .lease = get_lease,
    .doc = get_doc,
    .event = get_event,
    .jobs = rt_pg_batch_jobs,
    .docs = rt_pg_batch_docs,
    .queues = list_queues,
    .events = list_events,
    .expiries = rt_pg_batch_expiries,
    .wakes = list_wakes,
    .counts = get_counts,
};
