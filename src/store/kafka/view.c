/* view.c: views of the copy. They show everything to those who look, and to those who take, what is this node's to take. */
#include <errno.h>
#include <stdlib.h>

#include "os/clock.h"
#include "store/kafka/inside.h"

enum { WAKE_LOOKS_MAX = 256 }; /* jobs of others that are passed over before their time stands for a later one */

static rt_view *inner(rt_view *v) { return ((rt_ks_view *)v)->inner; }

static bool is_ours(const rt_ks *s, rt_id queue, uint32_t bucket) {
    return s->share == NULL || rt_share_has(s->share, rt_share_partition(queue, bucket, s->partitions));
}

/* ---- passed on ----------------------------------------------------------------------------------------- */

static rt_code read_job(rt_view *v, rt_id id, rt_job *out) { return rt_view_job(inner(v), id, out); }
static rt_code read_body(rt_view *v, rt_id id, rt_str *out) { return rt_view_body(inner(v), id, out); }
static rt_code read_queue(rt_view *v, rt_id id, rt_queue *out) { return rt_view_queue(inner(v), id, out); }
static rt_code read_lease(rt_view *v, rt_id id, rt_lease *out) { return rt_view_lease(inner(v), id, out); }
static rt_code read_event(rt_view *v, uint64_t seq, rt_event *out) { return rt_view_event(inner(v), seq, out); }
static rt_code read_counts(rt_view *v, rt_id queue, rt_counts *out) { return rt_view_counts(inner(v), queue, out); }

static rt_code read_doc(rt_view *v, rt_doc_kind kind, rt_str name, rt_doc *out) {
    return rt_view_doc(inner(v), kind, name, out);
}

static rt_code list_docs(rt_view *v, rt_doc_kind kind, rt_str prefix, rt_str after, rt_each_doc *each, void *ctx) {
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
    const rt_ks *store;
    rt_each_job *each;
    void *ctx;
} taking;

static bool pass_ours(void *ctx, const rt_job *job) {
    const taking *t = ctx;
    return !is_ours(t->store, job->queue, job->bucket) || t->each(t->ctx, job);
}

/* What workers claim is everybody's: a worker talks to one node, and must not miss what another node would show it. */
static rt_code list_jobs(rt_view *v, const rt_job_range *range, rt_each_job *each, void *ctx) {
    const rt_ks *s = ((rt_ks_view *)v)->store;
    const bool pushed = range->index == RT_INDEX_READY || range->index == RT_INDEX_DUE;
    if (!range->to_take || !pushed || s->share == NULL) return rt_view_jobs(inner(v), range, each, ctx);
    taking t = {.store = s, .each = each, .ctx = ctx};
    return rt_view_jobs(inner(v), range, pass_ours, &t);
}

/* ---- wake times ---------------------------------------------------------------------------------------- */

typedef struct waking {
    const rt_ks *store;
    rt_view *view;
    rt_each_wake *each;
    void *ctx;
    rt_code code;
    int64_t due_ms; /* of the queue that is looked at; -1: nothing of it is ours */
    uint32_t looks;
} waking;

static bool find_ours(void *ctx, const rt_job *job) {
    waking *w = ctx;
    const bool found = is_ours(w->store, job->queue, job->bucket) || ++w->looks == WAKE_LOOKS_MAX;
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
    const rt_ks *s = ((rt_ks_view *)v)->store;
    if (s->share == NULL) return rt_view_wakes(inner(v), after_queue, each, ctx);
    waking w = {.store = s, .view = inner(v), .each = each, .ctx = ctx};
    const rt_code code = rt_view_wakes(inner(v), after_queue, pass_wake, &w);
    return code != RT_OK ? code : w.code;
}

/* ---- what is over -------------------------------------------------------------------------------------- */

typedef struct expiring {
    const rt_ks *store;
    rt_each_expiry *each;
    void *ctx;
} expiring;

/* Each is ended by one node: all would only be in each other's way. */
static bool pass_expiry(void *ctx, const rt_expiry *expiry) {
    const expiring *x = ctx;
    const uint64_t key = expiry->kind == RT_EXPIRY_DOC ? rt_hash_str(expiry->doc_name) : expiry->id;
    return !is_ours(x->store, key, 0) || x->each(x->ctx, expiry);
}

static rt_code list_expiries(rt_view *v, int64_t until_ms, rt_each_expiry *each, void *ctx) {
    expiring x = {.store = ((rt_ks_view *)v)->store, .each = each, .ctx = ctx};
    return rt_view_expiries(inner(v), until_ms, pass_expiry, &x);
}

/* ---- the gate ------------------------------------------------------------------------------------------ */

void rt_gate_init(rt_gate *g) {
    (void)pthread_mutex_init(&g->lock, NULL); // neither can fail on Linux
    (void)pthread_cond_init(&g->emptied, NULL);
}

void rt_gate_deinit(rt_gate *g) {
    (void)pthread_cond_destroy(&g->emptied);
    (void)pthread_mutex_destroy(&g->lock);
}

void rt_gate_shut(rt_gate *g) {
    (void)pthread_mutex_lock(&g->lock);
    g->shut = true;
    while (g->views > 0) (void)pthread_cond_wait(&g->emptied, &g->lock);
    (void)pthread_mutex_unlock(&g->lock);
}

void rt_gate_open(rt_gate *g) {
    (void)pthread_mutex_lock(&g->lock);
    g->shut = false;
    (void)pthread_mutex_unlock(&g->lock);
}

static bool go_in(rt_gate *g) {
    (void)pthread_mutex_lock(&g->lock);
    const bool may = !g->shut;
    if (may) g->views++;
    (void)pthread_mutex_unlock(&g->lock);
    return may;
}

static void go_out(rt_gate *g) {
    (void)pthread_mutex_lock(&g->lock);
    if (--g->views == 0) (void)pthread_cond_signal(&g->emptied);
    (void)pthread_mutex_unlock(&g->lock);
}

enum { AWAY_MS_LEAST = 5000 }; /* longer than the engine ever is in one step */

bool rt_ks_is_away(const rt_ks *s) {
    if (s->cfg.alone) return false; // nobody writes behind its back
    const int64_t most_ms = s->cfg.kept_ms > AWAY_MS_LEAST ? s->cfg.kept_ms : AWAY_MS_LEAST;
    return rt_mono_ms() - atomic_load(&s->looked_ms) > most_ms;
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static void close_view(rt_view *v) {
    rt_ks *s = ((rt_ks_view *)v)->store;
    rt_view_close(inner(v));
    free(v);
    go_out(&s->gate);
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

rt_code rt_ks_view_open(rt_ks *s, rt_view **out, rt_err *err) {
    if (rt_ks_is_away(s) || !go_in(&s->gate)) return rt_fail(err, RT_E_UNAVAILABLE, 0, RT_KS_MENDING);
    rt_ks_view *v = malloc(sizeof *v);
    rt_code code = RT_OK;
    if (v == NULL) code = rt_fail(err, RT_E_NOMEM, ENOMEM, "view");
    else *v = (rt_ks_view){.base.ops = &rt_ks_view_ops, .store = s};
    if (code == RT_OK) code = rt_store_view(s->copy.local, &v->inner, err);
    if (code != RT_OK) {
        free(v);
        go_out(&s->gate);
        return code;
    }
    *out = &v->base;
    return RT_OK;
}
