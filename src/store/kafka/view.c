#include "store/kafka/view.h"

#include <errno.h>
#include <stdlib.h>

enum { WAKE_LOOKS_MAX = 256 }; /* jobs of others that are passed over before one of them stands for ours */

static rt_view *inner(rt_view *v) { return ((rt_ks_view *)v)->inner; }

static const rt_share *share_of(const rt_view *v) { return ((const rt_ks_view *)v)->share; }

static bool is_ours(const rt_share *share, rt_id queue, uint32_t bucket) {
    return share == NULL || rt_share_takes(share, queue, bucket);
}

/* ---- passed on ----------------------------------------------------------------------------------------- */

static rt_code read_job(rt_view *v, rt_id id, rt_job *out) { return rt_view_job(inner(v), id, out); }
static rt_code read_body(rt_view *v, rt_id id, rt_str *out) { return rt_view_body(inner(v), id, out); }
static rt_code read_queue(rt_view *v, rt_id id, rt_queue *out) { return rt_view_queue(inner(v), id, out); }
static rt_code read_lease(rt_view *v, rt_id id, rt_lease *out) { return rt_view_lease(inner(v), id, out); }
static rt_code read_event(rt_view *v, uint64_t no, rt_event *out) { return rt_view_event(inner(v), no, out); }
static rt_code read_counts(rt_view *v, rt_id id, rt_counts *out) { return rt_view_counts(inner(v), id, out); }

static rt_code read_doc(rt_view *v, rt_doc_kind kind, rt_str name, rt_doc *out) {
    return rt_view_doc(inner(v), kind, name, out);
}

static rt_code list_docs(rt_view *v, rt_doc_kind kind, rt_str prefix, rt_str after, rt_each_doc *each,
                         void *ctx) {
    return rt_view_docs(inner(v), kind, prefix, after, each, ctx);
}

static rt_code list_queues(rt_view *v, rt_id after, rt_each_queue *each, void *ctx) {
    return rt_view_queues(inner(v), after, each, ctx);
}

static rt_code list_leases(rt_view *v, rt_id after, rt_each_lease *each, void *ctx) {
    return rt_view_leases(inner(v), after, each, ctx);
}

static rt_code list_bodies(rt_view *v, rt_id after, rt_each_body *each, void *ctx) {
    return rt_view_bodies(inner(v), after, each, ctx);
}

static rt_code list_events(rt_view *v, uint64_t after_seq, rt_each_event *each, void *ctx) {
    return rt_view_events(inner(v), after_seq, each, ctx);
}

/* ---- jobs to be taken ---------------------------------------------------------------------------------- */

typedef struct taking {
    const rt_share *share;
    rt_each_job *each;
    void *ctx;
} taking;

static bool pass_ours(void *ctx, const rt_job *job) {
    const taking *t = ctx;
    return !is_ours(t->share, job->queue, job->bucket) || t->each(t->ctx, job);
}

/* What workers claim is everybody's: a worker talks to one node, and must not miss what another node would
 * show it. */
static rt_code list_jobs(rt_view *v, const rt_job_range *range, rt_each_job *each, void *ctx) {
    const rt_share *share = share_of(v);
    const bool pushed = range->index == RT_INDEX_READY || range->index == RT_INDEX_DUE;
    if (!range->to_take || !pushed || share == NULL) return rt_view_jobs(inner(v), range, each, ctx);
    taking t = {.share = share, .each = each, .ctx = ctx};
    return rt_view_jobs(inner(v), range, pass_ours, &t);
}

/* ---- wake times ---------------------------------------------------------------------------------------- */

typedef struct waking {
    const rt_share *share;
    rt_view *view;
    rt_each_wake *each;
    void *ctx;
    rt_code code;
    int64_t due_ms; /* of the queue that is looked at; -1: nothing of it is ours */
    uint32_t looks;
} waking;

static bool find_ours(void *ctx, const rt_job *job) {
    waking *w = ctx;
    const bool found = is_ours(w->share, job->queue, job->bucket) || ++w->looks == WAKE_LOOKS_MAX;
    if (found) w->due_ms = job->due_ms;
    return !found;
}

static bool pass_wake(void *ctx, const rt_wake *wake) {
    waking *w = ctx;
    const rt_job_range range = {.index = RT_INDEX_DUE, .queue = wake->queue, .until_ms = INT64_MAX};
    w->due_ms = -1;
    w->looks = 0;
    w->code = rt_view_jobs(w->view, &range, find_ours, w);
    if (w->code != RT_OK) return false;
    return w->due_ms < 0 || w->each(w->ctx, &(rt_wake){.queue = wake->queue, .due_ms = w->due_ms});
}

static rt_code list_wakes(rt_view *v, rt_id after_queue, rt_each_wake *each, void *ctx) {
    const rt_share *share = share_of(v);
    if (share == NULL) return rt_view_wakes(inner(v), after_queue, each, ctx);
    waking w = {.share = share, .view = inner(v), .each = each, .ctx = ctx};
    const rt_code code = rt_view_wakes(inner(v), after_queue, pass_wake, &w);
    return code != RT_OK ? code : w.code;
}

/* ---- what is over -------------------------------------------------------------------------------------- */

typedef struct expiring {
    const rt_share *share;
    rt_each_expiry *each;
    void *ctx;
} expiring;

/* Each is ended by one node: all would only be in each other's way. */
static bool pass_expiry(void *ctx, const rt_expiry *expiry) {
    const expiring *x = ctx;
    const uint64_t key = expiry->kind == RT_EXPIRY_DOC ? rt_hash_str(expiry->doc_name) : expiry->id;
    return !is_ours(x->share, key, 0) || x->each(x->ctx, expiry);
}

static rt_code list_expiries(rt_view *v, int64_t until_ms, rt_each_expiry *each, void *ctx) {
    expiring x = {.share = share_of(v), .each = each, .ctx = ctx};
    return rt_view_expiries(inner(v), until_ms, pass_expiry, &x);
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static void close_view(rt_view *v) {
    rt_gate *gate = ((rt_ks_view *)v)->gate;
    rt_view_close(inner(v));
    free(v);
    rt_gate_go_out(gate);
}

const rt_view_ops rt_ks_view_ops = {
    .job = read_job,
    .body = read_body,
    .queue = read_queue,
    .lease = read_lease,
    .doc = read_doc,
    .event = read_event,
    .jobs = list_jobs,
    .docs = list_docs,
    .queues = list_queues,
    .events = list_events,
    .expiries = list_expiries,
    .wakes = list_wakes,
    .counts = read_counts,
    .leases = list_leases,
    .bodies = list_bodies,
    .close = close_view,
};

rt_code rt_ks_view_open(rt_store *local, const rt_share *share, rt_gate *gate, rt_view **out, rt_err *err) {
    rt_ks_view *v = malloc(sizeof *v);
    rt_code code = RT_OK;
    if (v == NULL) code = rt_fail(err, RT_E_NOMEM, ENOMEM, "view");
    else *v = (rt_ks_view){.base.ops = &rt_ks_view_ops, .share = share, .gate = gate};
    if (code == RT_OK) code = rt_store_view(local, &v->inner, err);
    if (code != RT_OK) {
        free(v);
        rt_gate_go_out(gate);
        return code;
    }
    *out = &v->base;
    return RT_OK;
}
