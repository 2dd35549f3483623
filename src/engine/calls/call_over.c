#include "engine/calls/call_over.h"
#include "engine/calls/call_wait.h"
#include "engine/calls/circuit.h"
#include "engine/calls/line.h"
#include "engine/common/job.h"

/* ---- when again ---------------------------------------------------------------------------------------- */

/* What the policy says of the attempt after this one. */
typedef struct next {
    bool again;
    uint64_t delay_ms, interval_ms; /* interval: what the next delay grows from */
    uint64_t most_ms;               /* Retry-After counts up to it */
} next;

static next by_delivery_policy(rt_tx *tx, const rt_job *job, const rt_delivery_policy *p) {
    next n = {.most_ms = (uint64_t)p->maximum_delay_s * 1000};
    rt_phase phase;
    n.again = rt_delivery_policy_delay(p, job->attempt + 1, &n.delay_ms, &phase);
    if (n.again)
        n.delay_ms = rt_delivery_policy_jittered(p, n.delay_ms, job->interval_ms, rt_rng_next(tx->rng));
    n.interval_ms = n.delay_ms;
    return n;
}

static next by_backoff(rt_tx *tx, const rt_job *job, const rt_call_type *type) {
    next n = {.again = type->max_attempts == 0 || job->attempt + 1 < type->max_attempts};
    int64_t rest_ms = 0;
    n.interval_ms = rt_backoff_next(&type->backoff, job->interval_ms / 1000, tx->rng, &rest_ms) * 1000;
    n.delay_ms = (uint64_t)rest_ms;
    n.most_ms = type->backoff.given ? type->backoff.descriptor.maximum_ns / 1000000 : n.delay_ms;
    return n;
}

static next after(rt_tx *tx, const rt_job *job, const rt_call_type *type, const rt_call_news *news) {
    next n = type->policy == RT_CALL_BACKOFF ? by_backoff(tx, job, type)
                                             : by_delivery_policy(tx, job, &type->delivery);
    if (news->retry_after_ms <= 0 || !(news->obey || type->delivery.respect_retry_after)) return n;
    const uint64_t most_ms = news->obey ? (uint64_t)RT_DELAY_S_MAX * 1000 : n.most_ms;
    const uint64_t asked_ms =
        (uint64_t)news->retry_after_ms < most_ms ? (uint64_t)news->retry_after_ms : most_ms;
    if (n.delay_ms < asked_ms) n.delay_ms = asked_ms;
    return n;
}

/* ---- ends ---------------------------------------------------------------------------------------------- */

static rt_code finish(rt_tx *tx, const rt_job *job, uint64_t holder, rt_event last) {
    rt_job now = *job;
    now.state = RT_JOB_DONE;
    now.reason = RT_REASON_DELIVERED;
    now.attempt = last.attempt;
    now.lease = holder;
    now.due_ms = 0;
    now.expires_ms = 0;
    last.type = RT_EVENT_DELIVERED;
    last.reason = RT_REASON_DELIVERED;
    rt_tx_event(tx, &now, last);
    rt_tx_update_job(tx, job, &now);
    return rt_line_leave(tx, job);
}

/* *next_id: the call on the type for dead ones that goes on from this one; 0: none, it stays where it is. */
static rt_code move(rt_tx *tx, const rt_job *job, const rt_call_type *type, rt_id *next_id) {
    *next_id = 0;
    if (type == NULL || type->dead_type.len == 0) return RT_OK;
    rt_str body;
    rt_call call;
    rt_code code = rt_view_body(tx->view, job->body, &body);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_E_CORRUPT : code;
    if (!rt_call_decode(body, &call)) return rt_fail(tx->err, RT_E_CORRUPT, 0, "an event cannot be read");
    rt_call_type to;
    code = rt_call_type_load(tx, call.tenant, type->dead_type, &to, NULL);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code; // it dies in plain sight then
    return rt_call_continue(tx, &to, type->dead_type, &call, job->id, next_id);
}

/* A dead call is kept for a time that its type says: this document's. */
static rt_code keep_dead(rt_tx *tx, const rt_job *job, const rt_call_type *type) {
    if (type == NULL || type->dead_keep_s == 0) return RT_OK;
    unsigned char *name = rt_arena_alloc(tx->arena, 16);
    if (name == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a dead event");
    rt_put_be64(name, job->id);
    rt_put_be64(name + 8, job->generation);
    const rt_doc doc = {.kind = RT_DOC_CALL_DEAD,
                        .name = {.ptr = (const char *)name, .len = 16},
                        .expires_ms = tx->now_ms + (int64_t)type->dead_keep_s * 1000,
                        .value = RT_STR("1")};
    rt_tx_put_doc(tx, NULL, &doc);
    return RT_OK;
}

static rt_code die(rt_tx *tx, const rt_job *job, const rt_call_type *type, rt_reason reason, uint64_t holder,
                   rt_event last) {
    rt_id next_id;
    rt_code code = move(tx, job, type, &next_id);
    if (code != RT_OK) return code;
    rt_job now = *job;
    now.state = next_id == 0 ? RT_JOB_DEAD : RT_JOB_DONE;
    now.reason = (uint8_t)reason;
    now.lease = holder;
    now.due_ms = 0;
    now.expires_ms = 0;
    if (last.attempt > 0) now.attempt = last.attempt;
    last.type = RT_EVENT_DEAD;
    if (last.reason == RT_REASON_NONE) last.reason = (uint8_t)reason;
    rt_tx_event(tx, &now, last);
    if (next_id != 0) {
        const rt_id_text id = rt_id_format(tx->store->tag, next_id);
        const rt_str text = rt_arena_dup(tx->arena, rt_str_of(id.s));
        if (text.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a dead event");
        rt_tx_event(tx, &now, (rt_event){.type = RT_EVENT_MOVED, .reason = (uint8_t)reason, .text = text});
    } else {
        code = keep_dead(tx, &now, type);
    }
    rt_tx_update_job(tx, job, &now);
    tx->frees = true;
    return code == RT_OK ? rt_line_leave(tx, job) : code;
}

static void retry(rt_tx *tx, const rt_job *job, const rt_call_type *type, const rt_call_news *news,
                  const next *n, int64_t *until_ms) {
    rt_job now = *job;
    rt_event last = news->attempt;
    const int64_t limit_ms = rt_job_age_limit_ms(job->placed_ms, type->delivery.maximum_age_s);
    int64_t due_ms = tx->now_ms + (int64_t)n->delay_ms;
    // At its maximum age it is looked at once more, and dies: neither before nor a whole delay later.
    if (due_ms > limit_ms) due_ms = limit_ms > tx->now_ms ? limit_ms : tx->now_ms;
    now.state = RT_JOB_SCHEDULED;
    now.due_ms = due_ms;
    now.attempt = last.attempt;
    now.interval_ms = n->interval_ms < UINT32_MAX ? (uint32_t)n->interval_ms : UINT32_MAX;
    now.lease = news->holder;
    rt_call_note_age(&now, type);
    if ((job->flags & RT_JOB_PULL) && due_ms <= tx->now_ms) now.state = RT_JOB_FREE;
    last.type = RT_EVENT_ATTEMPT;
    last.delay_ms = n->delay_ms < UINT32_MAX ? (uint32_t)n->delay_ms : UINT32_MAX;
    rt_tx_event(tx, &now, last);
    rt_tx_update_job(tx, job, &now);
    *until_ms = due_ms;
}

/* A probe that failed has waited for the circuit to close like all that it was a probe for, see circuit_limit.c. */
static bool has_waited_enough(const rt_tx *tx, const rt_job *job, const rt_queue *queue, const rt_call_type *type) {
    const rt_brakes *b = &queue->brakes;
    if (b->opened_ms == 0 || b->forced || type->circuit.max_open_s == 0) return false;
    const int64_t since_ms = job->placed_ms > b->opened_ms ? job->placed_ms : b->opened_ms;
    return tx->now_ms - since_ms >= (int64_t)type->circuit.max_open_s * 1000;
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

rt_code rt_call_over(rt_tx *tx, const rt_job *job, const rt_queue *queue, const rt_call_type *type,
                     const rt_call_news *news, int64_t *until_ms) {
    tx->frees = true;
    *until_ms = 0;
    if (!news->tells_nothing) {
        const rt_code code = rt_brakes_learn(tx, queue, type, news->target_failed, news->attempt.took_ms);
        if (code != RT_OK) return code;
    }
    if (news->verdict == RT_VERDICT_SUCCESS) return finish(tx, job, news->holder, news->attempt);
    if (news->verdict == RT_VERDICT_REJECTED)
        return die(tx, job, type, news->rejected_as, news->holder, news->attempt);
    const next n = after(tx, job, type, news);
    if (!n.again) return die(tx, job, type, RT_REASON_EXHAUSTED, news->holder, news->attempt);
    if (has_waited_enough(tx, job, queue, type))
        return die(tx, job, type, RT_REASON_CIRCUIT_OPEN, news->holder, news->attempt);
    retry(tx, job, type, news, &n, until_ms);
    return RT_OK;
}

rt_code rt_call_give_up(rt_tx *tx, const rt_job *job, const rt_call_type *type, rt_reason reason) {
    return die(tx, job, type, reason, 0, (rt_event){0});
}
