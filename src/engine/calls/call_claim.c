#include "engine/calls/call_claim.h"

#include "engine/calls/call_over.h"
#include "engine/calls/circuit.h"
#include "engine/common/answers.h"
#include "engine/common/job.h"

enum {
    SET_ASIDE_MAX = 64,       /* calls that are too old, ended by one claim */
    CLAIM_BYTES_MAX = 4 << 20 /* a claim ends behind the call that passes this: it is held in memory */
};

/* ---- choosing ------------------------------------------------------------------------------------------ */

typedef struct picking {
    rt_tx *tx;
    const rt_call_type *type;
    rt_job jobs[RT_LEASE_JOBS_MAX];
    rt_job old[SET_ASIDE_MAX];
    uint32_t count, max, old_count;
    uint64_t bytes;
} picking;

static bool pick(void *ctx, const rt_job *job) {
    picking *p = ctx;
    if (p->tx->now_ms >= rt_job_age_limit_ms(job->placed_ms, p->type->delivery.maximum_age_s)) {
        p->old[p->old_count++] = *job;
        return p->old_count < SET_ASIDE_MAX;
    }
    p->jobs[p->count++] = *job;
    rt_tx_want_body(p->tx, job->body);
    p->bytes += job->body_bytes;
    return p->count < p->max && p->bytes < CLAIM_BYTES_MAX;
}

/* How many the type lets go now. */
static rt_code room_of(rt_tx *tx, rt_call_claim *c, const rt_queue *queue, const rt_call_type *type,
                       uint32_t *out) {
    *out = 0;
    c->wait.again_ms = queue->paused_until_ms == INT64_MAX ? 0 : queue->paused_until_ms;
    if (queue->paused_until_ms > tx->now_ms) return RT_OK;
    uint32_t room;
    const rt_code code = rt_brakes_room(tx, queue, type, &room, &c->wait.again_ms);
    if (code != RT_OK) return code;
    if (c->wait.again_ms == INT64_MAX) c->wait.again_ms = 0;
    *out = room < c->limit ? room : c->limit;
    return RT_OK;
}

/* ---- taking -------------------------------------------------------------------------------------------- */

/* Results outlive the decision. */
static rt_code keep(rt_tx *tx, rt_call_claim *c, const rt_job *job, const rt_lease *lease) {
    rt_str body;
    rt_code code = rt_view_body(tx->view, job->body, &body);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_E_CORRUPT : code;
    code = rt_answers_copy(tx, &c->cmd, c->arena, &body);
    if (code != RT_OK) return code;
    rt_claimed_call *out = &c->calls[c->count];
    *out = (rt_claimed_call){.job = *job, .token = lease->id, .until_ms = lease->until_ms};
    if (!rt_call_decode(body, &out->call))
        return rt_fail(tx->err, RT_E_CORRUPT, 0, "an event cannot be read");
    c->count++;
    return RT_OK;
}

static rt_code take(rt_tx *tx, rt_call_claim *c, const rt_job *was) {
    rt_lease lease = {
        .id = rt_tx_new_id(tx),
        .queue = was->queue,
        .version = 1,
        .from_ms = tx->now_ms,
        .until_ms = tx->now_ms + (int64_t)c->lease_s * 1000,
        .ttl_s = c->lease_s,
        .jobs_count = 1,
        .jobs = {was->id},
    };
    rt_job now = *was;
    now.state = RT_JOB_LEASED;
    now.lease = lease.id;
    now.due_ms = lease.until_ms;
    now.claims++;
    if (c->worker.len > 0) rt_tx_event(tx, &now, (rt_event){.type = RT_EVENT_CLAIMED, .text = c->worker});
    rt_tx_update_job(tx, was, &now);
    rt_tx_put_lease(tx, NULL, &lease);
    return keep(tx, c, &now, &lease);
}

static rt_code claim(rt_tx *tx, rt_call_claim *c, const rt_queue *queue, const rt_call_type *type) {
    picking *p = rt_arena_alloc(tx->arena, sizeof *p);
    if (p == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a claim");
    *p = (picking){.tx = tx, .type = type};
    rt_code code = room_of(tx, c, queue, type, &p->max);
    if (code != RT_OK || p->max == 0) return code;
    const rt_job_range range = {.index = RT_INDEX_FREE, .queue = queue->id, .to_take = true, .want = p->max};
    code = rt_view_jobs(tx->view, &range, pick, p);
    for (uint32_t i = 0; i < p->old_count && code == RT_OK; i++)
        code = rt_call_give_up(tx, &p->old[i], type, RT_REASON_EXPIRED);
    if (code == RT_OK && p->count > 0) code = rt_brakes_start(tx, queue, type, p->count);
    for (uint32_t i = 0; i < p->count && code == RT_OK; i++) code = take(tx, c, &p->jobs[i]);
    if (code == RT_OK && p->count == 0 && p->old_count == SET_ASIDE_MAX) c->wait.again_ms = tx->now_ms + 1;
    return code;
}

static rt_code decide_claim(rt_tx *tx, rt_command *cmd) {
    rt_call_claim *c = (rt_call_claim *)cmd;
    RT_ASSERT(c->limit >= 1 && c->limit <= RT_LEASE_JOBS_MAX);
    RT_ASSERT(c->lease_s >= 1 && c->lease_s <= RT_CALL_LEASE_S_MAX);
    tx->frees = true; // a store that is full is emptied by those who get something done
    c->count = 0;
    rt_call_type type;
    rt_code code = rt_call_type_load(tx, c->tenant, c->type, &type, NULL);
    if (code != RT_OK) return code;
    if (type.target.len > 0)
        return rt_fail(tx->err, RT_E_INVALID, 0, "events of this type are pushed to their target");
    rt_queue queue;
    code = rt_call_type_of_queue(tx, type.queue, &queue, &type);
    if (code != RT_OK) return code;
    c->topics[0] = type.queue;
    c->wait.topics = c->topics;
    c->wait.topics_count = 1;
    c->wait.one = true;
    c->wait.until_ms = c->wait_until_ms;
    code = claim(tx, c, &queue, &type);
    if (code == RT_OK && c->count == 0 && c->wait_until_ms > tx->now_ms) cmd->wait = &c->wait;
    return code;
}

void rt_call_claim_init(rt_call_claim *c) { *c = (rt_call_claim){.cmd = {.decide = decide_claim}}; }
