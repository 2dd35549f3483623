#include "engine/calls/call_claim.h"
#include "engine/calls/call_over.h"
#include "engine/calls/call_wait.h"
#include "engine/calls/circuit.h"
#include "engine/calls/line.h"

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

static void release(rt_tx *tx, const rt_job *job, const rt_lease *lease, const rt_call_type *type) {
    rt_job now = *job; // its lease stays noted, for who asks again
    now.state = RT_JOB_FREE;
    rt_call_note_age(&now, type);
    now.due_ms = tx->now_ms;
    rt_tx_event(tx, &now, (rt_event){.type = RT_EVENT_RELEASED});
    rt_tx_update_job(tx, job, &now);
    rt_tx_put_lease(tx, lease, NULL);
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

/* What its holder did to a call that is noted as its own but no longer held. */
static rt_code last_word(rt_tx *tx, const rt_job *job, rt_call_verb *out) {
    rt_event last = {0};
    *out = job->state == RT_JOB_DONE && job->reason == RT_REASON_DELIVERED ? RT_CALL_FINISH : RT_CALL_FAIL;
    if (job->state != RT_JOB_FREE) return RT_OK;
    const rt_code code = rt_view_event(tx->view, job->last_event, &last); // a release has one of its own
    if (code == RT_OK && last.type == RT_EVENT_RELEASED) *out = RT_CALL_RELEASE;
    return code == RT_E_ABSENT ? RT_OK : code;
}

/* The same word of the same holder again gets the same answer; what it did is still the last that was done. */
static rt_code answer_again(rt_tx *tx, rt_call_end *c, const rt_job *job) {
    rt_call_verb word;
    const rt_code code = last_word(tx, job, &word);
    if (code != RT_OK) return code;
    if (c->verb != word) return not_held(tx);
    if (job->state == RT_JOB_SCHEDULED || job->state == RT_JOB_FREE) c->until_ms = job->due_ms;
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

static rt_code end(rt_tx *tx, rt_call_end *c) {
    tx->frees = true;
    c->until_ms = 0;
    held h;
    // Both at once, where reading takes a round trip.
    const rt_code leased = rt_view_lease(tx->view, c->token, &h.lease);
    rt_code code = load(tx, c, &h.job, &h.queue, &h.type);
    if (code != RT_OK) return code;
    if (h.job.lease != c->token || c->token == 0) return not_held(tx);
    if (h.job.state != RT_JOB_LEASED) return answer_again(tx, c, &h.job);
    if (leased != RT_OK) return leased == RT_E_ABSENT ? not_held(tx) : leased;
    if (h.lease.until_ms <= tx->now_ms) return not_held(tx);
    switch (c->verb) {
    case RT_CALL_FINISH: return finish(tx, &h);
    case RT_CALL_FAIL: return fail(tx, c, &h);
    case RT_CALL_RELEASE: release(tx, &h.job, &h.lease, &h.type); return RT_OK;
    case RT_CALL_EXTEND: return extend(tx, c, &h);
    }
    return RT_E_INVALID;
}

static rt_code decide_end(rt_tx *tx, rt_command *cmd) { return end(tx, (rt_call_end *)cmd); }

/* ---- many words ---------------------------------------------------------------------------------------- */

/* One of the same call that was not refused: the view does not show what this change has done with it. */
static const rt_call_end *same_before(const rt_call_ends *c, uint32_t at) {
    for (uint32_t i = 0; i < at; i++) {
        const rt_code code = c->ends[i].cmd.code;
        if (c->ends[i].id == c->ends[at].id && (code == RT_OK || code == RT_E_AGAIN)) return &c->ends[i];
    }
    return NULL;
}

/* Its verdict; what it wants to read before it has one is wanted together with that of the others. */
static rt_code judge(rt_tx *tx, rt_call_ends *c, uint32_t at) {
    rt_call_end *one = &c->ends[at];
    const rt_call_end *before = same_before(c, at);
    const uint32_t ops = tx->ops_count;
    rt_code code = RT_OK;
    if (before == NULL) {
        code = end(tx, one);
    } else if (before->token != one->token) {
        code = not_held(tx);
    } else {
        one->until_ms = before->until_ms;
        code = before->cmd.code;
    }
    one->cmd.code = code;
    one->cmd.err = *tx->err;
    const bool refused = (code == RT_E_ABSENT || code == RT_E_FENCED) && tx->ops_count == ops;
    return refused ? RT_OK : code;
}

static rt_code decide_ends(rt_tx *tx, rt_command *cmd) {
    rt_call_ends *c = (rt_call_ends *)cmd;
    RT_ASSERT(c->count >= 1);
    RT_ASSERT(c->count <= RT_CALL_ENDS_MAX);
    rt_code all = RT_OK;
    for (uint32_t i = 0; i < c->count; i++) {
        const rt_code code = judge(tx, c, i);
        if (code == RT_E_AGAIN) all = code;
        else if (code != RT_OK) return code;
    }
    return all;
}

void rt_call_ends_init(rt_call_ends *c) { *c = (rt_call_ends){.cmd = {.decide = decide_ends}}; }

void rt_call_end_init(rt_call_end *c) {
    *c = (rt_call_end){.cmd = {.decide = decide_end}, .retry_after_ms = -1};
}

/* ---- a claim that nobody heard of ---------------------------------------------------------------------- */

static rt_code give_back(rt_tx *tx, const rt_claimed_call *claimed) {
    rt_job job;
    rt_lease lease;
    rt_queue queue;
    rt_call_type type;
    rt_code code = rt_view_job(tx->view, claimed->job.id, &job);
    if (code == RT_OK && (job.state != RT_JOB_LEASED || job.lease != claimed->token)) code = RT_E_ABSENT;
    if (code == RT_OK) code = rt_view_lease(tx->view, claimed->token, &lease);
    if (code == RT_OK) code = rt_call_type_of_queue(tx, job.queue, &queue, &type);
    if (code == RT_OK) release(tx, &job, &lease, &type);
    return code == RT_E_ABSENT ? RT_OK : code;
}

static rt_code decide_give_back(rt_tx *tx, rt_command *cmd) {
    const rt_call_claim *c = (const rt_call_claim *)cmd;
    rt_code code = RT_OK;
    tx->frees = true;
    for (uint32_t i = 0; i < c->count && code == RT_OK; i++) code = give_back(tx, &c->calls[i]);
    return code;
}

void rt_call_claim_give_back(rt_call_claim *c) { c->cmd.decide = decide_give_back; }

/* ---- a lease that ran out ------------------------------------------------------------------------------ */

static rt_code lose(rt_tx *tx, const rt_job *job, const rt_lease *lease) {
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

rt_code rt_call_lease_end(rt_tx *tx, const rt_job *job, const rt_lease *lease, bool *left) {
    const bool holds = job->state == RT_JOB_LEASED && job->lease == lease->id;
    tx->frees = true;
    *left = holds && rt_line_is_written(tx, job);
    if (*left) return RT_OK;
    const rt_code code = holds ? lose(tx, job, lease) : RT_OK;
    if (code == RT_OK) rt_tx_put_lease(tx, lease, NULL);
    return code;
}
