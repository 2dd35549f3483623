/* store.h: retryd/store.h for those who call a store, in short words. The contract stands there. */
#ifndef RT_PORT_STORE_H
#define RT_PORT_STORE_H
#include "port/record.h"
#include "retryd/store.h"

RT_MUST_USE static inline rt_code rt_store_view(rt_store *s, rt_view **out, rt_err *err) {
    return s->ops->view(s, out, err);
}
static inline rt_view *rt_store_batch(rt_store *s, rt_err *err) { return s->ops->batch(s, err); }
RT_MUST_USE static inline rt_code rt_store_load(rt_store *s, rt_err *err) { return s->ops->load(s, err); }
RT_MUST_USE static inline rt_code rt_store_apply(rt_store *s, const rt_change *c, rt_err *err) {
    return s->ops->apply(s, c, err);
}
static inline void rt_store_commit(rt_store *s, uint64_t batch_no) { s->ops->commit(s, batch_no); }
static inline bool rt_store_poll(rt_store *s, uint64_t *no, rt_batch_end *end, rt_err *err) {
    return s->ops->poll(s, no, end, err);
}
static inline void rt_store_abandon(rt_store *s) { s->ops->abandon(s); }
static inline rt_id rt_store_new_id(rt_store *s) { return s->ops->new_id(s); }
static inline uint64_t rt_store_new_seq(rt_store *s) { return s->ops->new_seq(s); }
static inline bool rt_store_tidy(rt_store *s, int64_t now_ms, uint32_t ops_max) {
    return s->ops->tidy(s, now_ms, ops_max);
}
static inline bool rt_store_woken(rt_store *s) { return s->ops->woken != NULL && s->ops->woken(s); }
static inline void rt_store_close(rt_store *s) {
    if (s != NULL) s->ops->close(s);
}

RT_MUST_USE static inline rt_code rt_view_job(rt_view *v, rt_id id, rt_job *out) {
    return v->ops->job(v, id, out);
}
RT_MUST_USE static inline rt_code rt_view_body(rt_view *v, rt_id id, rt_str *out) {
    return v->ops->body(v, id, out);
}
RT_MUST_USE static inline rt_code rt_view_queue(rt_view *v, rt_id id, rt_queue *out) {
    return v->ops->queue(v, id, out);
}
RT_MUST_USE static inline rt_code rt_view_lease(rt_view *v, rt_id id, rt_lease *out) {
    return v->ops->lease(v, id, out);
}
RT_MUST_USE static inline rt_code rt_view_doc(rt_view *v, rt_doc_kind kind, rt_str name, rt_doc *out) {
    return v->ops->doc(v, kind, name, out);
}
RT_MUST_USE static inline rt_code rt_view_event(rt_view *v, uint64_t seq, rt_event *out) {
    return v->ops->event(v, seq, out);
}
RT_MUST_USE static inline rt_code rt_view_jobs(rt_view *v, const rt_job_range *r, rt_each_job *each,
                                               void *ctx) {
    return v->ops->jobs(v, r, each, ctx);
}
RT_MUST_USE static inline rt_code rt_view_docs(rt_view *v, rt_doc_kind kind, rt_str prefix, rt_str after,
                                               rt_each_doc *each, void *ctx) {
    return v->ops->docs(v, kind, prefix, after, each, ctx);
}
RT_MUST_USE static inline rt_code rt_view_queues(rt_view *v, rt_id after, rt_each_queue *each, void *ctx) {
    return v->ops->queues(v, after, each, ctx);
}
RT_MUST_USE static inline rt_code rt_view_events(rt_view *v, uint64_t after, rt_each_event *each, void *ctx) {
    return v->ops->events(v, after, each, ctx);
}
RT_MUST_USE static inline rt_code rt_view_expiries(rt_view *v, int64_t until_ms, rt_each_expiry *each,
                                                   void *ctx) {
    return v->ops->expiries(v, until_ms, each, ctx);
}
RT_MUST_USE static inline rt_code rt_view_wakes(rt_view *v, rt_id after, rt_each_wake *each, void *ctx) {
    return v->ops->wakes(v, after, each, ctx);
}
RT_MUST_USE static inline rt_code rt_view_counts(rt_view *v, rt_id queue, rt_counts *out) {
    return v->ops->counts(v, queue, out);
}
RT_MUST_USE static inline rt_code rt_view_leases(rt_view *v, rt_id after, rt_each_lease *each, void *ctx) {
    return v->ops->leases(v, after, each, ctx);
}
RT_MUST_USE static inline rt_code rt_view_bodies(rt_view *v, rt_id after, rt_each_body *each, void *ctx) {
    return v->ops->bodies(v, after, each, ctx);
}
static inline void rt_view_close(rt_view *v) {
    if (v != NULL) v->ops->close(v);
}

#endif
