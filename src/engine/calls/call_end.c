#include "engine/calls/call_claim.h"

#include "engine/calls/call_parts.h"
#include "engine/calls/circuit.h"

/* A call that is held, and everything that its end needs. */
typedef struct held {
    rt_job job;
    rt_lease lease;
    rt_queue queue;
    rt_call_type type;
} held;

static rt_code not_held(rt_tx *tx) {
    return rt_fail(tx->err, RT_E_FENCED, 0, "the token does not hold the event (any more)");
}

static uint32_t took_ms(const rt_tx *tx, const rt_lease *lease) {
    const int64_t took = tx->now_ms - lease->from_ms;
    if (took < 0) return 0;
    return took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
}

/* Others may wait for what this one stood in the way of: concurrency, a circuit that closes with it. */
static void tell(rt_tx *tx, const held *h) {
    if (h->type.concurrency > 0 || h->queue.brakes.circuit != RT_CIRCUIT_CLOSED) rt_tx_tell(tx, h->job.queue);
}

static rt_code over(rt_tx *tx, const held *h, rt_call_news *news, int64_t *until_ms) {
    news->attempt.attempt = h->job.attempt + 1;
    news->attempt.took_ms = took_ms(tx, &h->lease);
    rt_tx_put_lease(tx, &h->lease, NULL);
    tell(tx, h);
    return rt_call_over(tx, &h->job, &h->queue, &h->type, news, until_ms);
}

/* ---- a worker's words ---------------------------------------------------------------------------------- */

static rt_code finish(rt_tx *tx, const held *h) {
    rt_call_news news = {.verdict = RT_VERDICT_SUCCESS, .retry_after_ms = -1, .holder = h->lease.id};
    int64_t until_ms;
    return over(tx, h, &news, &until_ms);
}

static rt_code fail(rt_tx *tx, rt_call_end *c, const held *h) {
    rt_call_news news = {
        .verdict = c->give_up ? RT_VERDICT_REJECTED : RT_VERDICT_RETRY,
        .rejected_as = RT_REASON_FAILED,
        .target_failed = !c->give_up, // a call that nobody could make says nothing bad of its target
        .obey = true,
        .retry_after_ms = c->retry_after_ms,
        .holder = h->lease.id,
        .attempt = {.reason = RT_REASON_FAILED, .text = c->error},
    };
    return over(tx, h, &news, &c->until_ms);
}

static rt_code release(rt_tx *tx, const held *h) {
    rt_job now = h->job;
    now.state = RT_JOB_FREE;
    now.lease = 0;
    now.due_ms = tx->now_ms;
    rt_tx_event(tx, &now, (rt_event){.type = RT_EVENT_RELEASED});
    rt_tx_update_job(tx, &h->job, &now);
    rt_tx_put_lease(tx, &h->lease, NULL);
    return RT_OK;
}

static rt_code extend(rt_tx *tx, rt_call_end *c, const held *h) {
    RT_ASSERT(c->lease_s >= 1 && c->lease_s <= RT_CALL_LEASE_S_MAX);
    rt_lease now = h->lease;
    now.until_ms = tx->now_ms + (int64_t)c->lease_s * 1000;
    now.ttl_s = c->lease_s;
    rt_tx_put_lease(tx, &h->lease, &now);
    c->until_ms = now.until_ms;
    return RT_OK;
}

/* ---- who may ------------------------------------------------------------------------------------------- */

/* The same word of the same holder again gets the same answer; what it did is still the last that was done. */
static rt_code answer_again(rt_tx *tx, rt_call_end *c, const rt_job *job) {
    const bool last = job->lease == c->token && job->state != RT_JOB_LEASED;
    const bool finished = job->state == RT_JOB_DONE && job->reason == RT_REASON_DELIVERED;
    if (!last || c->verb != (finished ? RT_CALL_FINISH : RT_CALL_FAIL)) return not_held(tx);
    const bool again = job->state == RT_JOB_SCHEDULED || job->state == RT_JOB_FREE;
    if (!finished && again) c->until_ms = job->due_ms;
    return RT_OK;
}

static rt_code load(rt_tx *tx, const rt_call_end *c, rt_job *job, rt_queue *queue, rt_call_type *type) {
    rt_code code = rt_view_job(tx->view, c->id, job);
    if (code != RT_OK) return code;
    if (!(job->flags & RT_JOB_CALL)) return RT_E_ABSENT;
    code = rt_call_type_of_queue(tx, job->queue, queue, type);
    if (code != RT_OK) return code;
    rt_str tenant, name;
    const bool own = rt_call_type_split(queue->name, &tenant, &name) && rt_str_eq(tenant, c->tenant);
    return own ? RT_OK : RT_E_ABSENT;
}

static rt_code decide_end(rt_tx *tx, rt_command *cmd) {
    rt_call_end *c = (rt_call_end *)cmd;
    tx->frees = true;
    c->until_ms = 0;
    held h;
    rt_code code = load(tx, c, &h.job, &h.queue, &h.type);
    if (code != RT_OK) return code;
    if (h.job.lease != c->token || c->token == 0) return not_held(tx);
    if (h.job.state != RT_JOB_LEASED) return answer_again(tx, c, &h.job);
    code = rt_view_lease(tx->view, c->token, &h.lease);
    if (code != RT_OK) return code == RT_E_ABSENT ? not_held(tx) : code;
    if (h.lease.until_ms <= tx->now_ms) return not_held(tx);
    switch (c->verb) {
    case RT_CALL_FINISH: return finish(tx, &h);
    case RT_CALL_FAIL: return fail(tx, c, &h);
    case RT_CALL_RELEASE: return release(tx, &h);
    case RT_CALL_EXTEND: return extend(tx, c, &h);
    }
    return RT_E_INVALID;
}

void rt_call_end_init(rt_call_end *c) {
    *c = (rt_call_end){.cmd = {.decide = decide_end}, .retry_after_ms = -1};
}

/* ---- a lease that ran out ------------------------------------------------------------------------------ */

rt_code rt_call_lost(rt_tx *tx, const rt_job *job, const rt_lease *lease) {
    held h = {.job = *job, .lease = *lease};
    const rt_code code = rt_call_type_of_queue(tx, job->queue, &h.queue, &h.type);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code; // its queue is being emptied
    rt_call_news news = {.verdict = RT_VERDICT_RETRY,
                         .target_failed = true,
                         .retry_after_ms = -1,
                         .attempt = {.reason = RT_REASON_LOST}};
    news.attempt.attempt = job->attempt + 1;
    news.attempt.took_ms = took_ms(tx, lease);
    tell(tx, &h);
    int64_t until_ms;
    return rt_call_over(tx, job, &h.queue, &h.type, &news, &until_ms);
}
