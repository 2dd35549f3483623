/* order_take.c: what the end of a run makes of its order. */
#include "base/utf8.h"
#include "engine/common/job.h"
#include "engine/orders/order_parts.h"
#include "engine/orders/secret.h"

static const rt_backoff BACKOFF = {
    /* of a type that has none: 1 s, doubling to 5 min */
    .given = true,
    .descriptor = {.initial_ns = 1000000000, .maximum_ns = UINT64_C(300) * 1000000000, .exponent = 2},
};
enum { RETRY_MS = 60000 }; /* of a retry that does not say when, as in Barbican */
static const rt_str UNKNOWN = {.ptr = "Unknown", .len = 7};

int64_t rt_order_rest_ms(rt_tx *tx, const rt_order_type *t, uint64_t *interval_s) {
    int64_t rest_ms;
    *interval_s = rt_backoff_next(t->backoff.given ? &t->backoff : &BACKOFF, *interval_s, tx->rng, &rest_ms);
    return rest_ms;
}

/* What a run says of its progress. A run that says nothing leaves what was said before; after the first
 * that could be done, there is something (as in Barbican). */
static void note_progress(rt_order *o, const rt_run_answer *a) {
    const bool done = a->action == RT_RUN_DONE || a->action == RT_RUN_RETRY;
    if (!a->has_progress && (!done || o->has_sub_status)) return;
    o->has_sub_status = true;
    o->sub_status = rt_utf8_cut(a->has_progress ? a->sub_status : UNKNOWN, RT_ORDER_SUB_STATUS_MAX);
    o->sub_status_message = rt_utf8_cut(a->has_progress ? a->message : UNKNOWN, RT_ORDER_MESSAGE_MAX);
}

static rt_code standard_reason(rt_tx *tx, const rt_order *o, rt_str *out) {
    *out = rt_arena_printf(tx->arena, "%.*s failure seen - please contact site administrator.",
                           RT_STR_ARG(o->task));
    return out->ptr == NULL ? rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a reason") : RT_OK;
}

rt_code rt_order_fail(rt_tx *tx, rt_order_case *c, rt_str code, rt_str reason) {
    rt_order *o = &c->order;
    if (code.len == 0) code = RT_STR("500");
    if (reason.len == 0 && standard_reason(tx, o, &reason) != RT_OK) return RT_E_NOMEM;
    o->status = RT_ORDER_ERROR;
    o->job = 0;
    o->error_code = rt_utf8_cut(code, RT_ORDER_ERROR_CODE_MAX);
    o->error_reason = rt_utf8_cut(reason, RT_ORDER_ERROR_REASON_MAX);
    return rt_order_save(tx, c);
}

static rt_code take_done(rt_tx *tx, rt_order_case *c, const rt_job *job, const rt_run_answer *a,
                         rt_event last) {
    rt_order *o = &c->order;
    o->status = RT_ORDER_ACTIVE;
    o->job = 0;
    o->secret_ref = a->secret_ref;
    o->container_ref = a->container_ref;
    const rt_code code = rt_secrets_keep(tx, c->tenant, o, a);
    if (code != RT_OK) return code;
    rt_job_succeed(tx, job, last);
    return rt_order_save(tx, c);
}

static rt_code take_failed(rt_tx *tx, rt_order_case *c, const rt_job *job, const rt_run_answer *a,
                           rt_event last) {
    const rt_code code = rt_order_fail(tx, c, a->code, a->reason);
    if (last.text.len == 0) last.text = c->order.error_reason;
    if (code == RT_OK) rt_job_fail(tx, job, last);
    return code;
}

static uint64_t within_bounds(int64_t after_ms) {
    return (uint64_t)(after_ms < RT_RUN_AFTER_MAX_MS ? after_ms : RT_RUN_AFTER_MAX_MS);
}

static rt_code take_retry(rt_tx *tx, rt_order_case *c, const rt_job *job, const rt_run_answer *a,
                          rt_event last) {
    rt_order *o = &c->order;
    if (a->has_task) o->task = a->task;
    if (a->has_args) o->args = a->args;
    if (a->has_kwargs) o->kwargs = a->kwargs;
    o->failures = 0;
    o->interval_s = 0;
    o->retries++;
    last.type = RT_EVENT_PROGRESS;
    last.reason = RT_REASON_NONE;
    rt_job_retry(tx, job, within_bounds(a->after_ms >= 0 ? a->after_ms : RETRY_MS), INT64_MAX, last);
    return rt_order_save(tx, c);
}

static rt_code take_unavailable(rt_tx *tx, rt_order_case *c, const rt_job *job, const rt_run_answer *a,
                                rt_event last) {
    rt_order *o = &c->order;
    if (o->failures < UINT32_MAX) o->failures++;
    if (c->type.max_attempts > 0 && o->failures >= c->type.max_attempts) {
        const rt_run_answer exhausted = {.action = RT_RUN_FAILED};
        return take_failed(tx, c, job, &exhausted, last);
    }
    const int64_t rest_ms = rt_order_rest_ms(tx, &c->type, &o->interval_s);
    o->retries++;
    rt_job_retry(tx, job, within_bounds(a->after_ms >= 0 ? a->after_ms : rest_ms), INT64_MAX, last);
    return rt_order_save(tx, c);
}

rt_code rt_order_take(rt_tx *tx, rt_order_case *c, const rt_job *job, const rt_run_answer *answer,
                      rt_event last) {
    RT_ASSERT(c->order.status == RT_ORDER_PENDING);
    RT_ASSERT(c->order.job == job->id);
    note_progress(&c->order, answer);
    if (answer->has_state) c->order.state = answer->state;
    switch (answer->action) {
    case RT_RUN_DONE: return take_done(tx, c, job, answer, last);
    case RT_RUN_FAILED: last.reason = RT_REASON_FAILED; return take_failed(tx, c, job, answer, last);
    case RT_RUN_RETRY: return take_retry(tx, c, job, answer, last);
    case RT_RUN_UNAVAILABLE: return take_unavailable(tx, c, job, answer, last);
    }
    return rt_fail(tx->err, RT_E_INVALID, 0, "unknown action of a run");
}
