#include "engine/common/life.h"

#include <stdlib.h>

#include "engine/common/job.h"
#include "engine/machine/machine.h"

static const rt_life *life_of(const rt_job *job) {
    if (job->flags & RT_JOB_CALL) return &rt_call_life;
    return job->flags & RT_JOB_TASK ? &rt_order_life : &rt_delivery_life;
}

rt_code rt_life_start(rt_tx *tx, const rt_job *job, rt_start *start) {
    start->due = RT_DUE_WRITTEN;
    start->attempt = NULL;
    return life_of(job)->start(tx, job, start);
}

rt_code rt_start_attempt(rt_tx *tx, const rt_job *job, rt_attempt like, rt_start *start) {
    like.job = job->id;
    like.queue = job->queue;
    like.token = start->token;
    like.number = job->attempt + 1;
    start->attempt = rt_attempt_new(&like);
    if (start->attempt == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for an attempt");
    start->bytes = sizeof like + like.body.len + like.headers.len + like.url.len + like.answer_max;
    start->due = RT_DUE_START;
    start->deadline_ms = tx->now_ms + like.timeout_ms + tx->settings->lease_margin_ms;
    start->lease_until_ms = rt_lease_until_ms(tx->now_ms, start->deadline_ms);
    if (start->write_lease) rt_job_lease(tx, job, start->token, start->lease_until_ms);
    return RT_OK;
}

bool rt_life_is_under_way(const rt_tx *tx, const rt_job *job, uint64_t token) {
    if (!tx->store->sole_owner || tx->engine == NULL) return false;
    const rt_flight *flight = rt_flights_find(&tx->engine->flights, job->id, token);
    return flight != NULL && flight->attempt == NULL && !flight->settling;
}

rt_event rt_settle_event(const rt_job *job, const rt_outcome *o) {
    return (rt_event){
        .attempt = job->attempt + 1,
        .took_ms = o->took_ms,
        .status = o->status,
        .reason = (uint8_t)o->reason,
        .text = {.ptr = o->text, .len = o->text_len},
    };
}

static rt_code decide_settle(rt_tx *tx, rt_command *cmd) {
    rt_settle *s = (rt_settle *)cmd;
    tx->frees = true;
    s->worked = false;
    s->again = false;
    rt_job job;
    const rt_code code = rt_view_job(tx->view, s->outcome.job, &job);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    if (job.state == RT_JOB_DONE || job.state == RT_JOB_DEAD) return RT_OK;
    if (s->leased && (job.state != RT_JOB_LEASED || job.lease != s->outcome.token)) return RT_OK;
    if (s->expired && job.due_ms > tx->now_ms) return RT_OK;
    return life_of(&job)->settle(tx, &job, s);
}

void rt_settle_init(rt_settle *s, const rt_outcome *outcome, bool leased) {
    *s = (rt_settle){.cmd = {.decide = decide_settle}, .outcome = *outcome, .leased = leased};
}

void rt_settle_deinit(rt_settle *s) {
    free(s->outcome.answer);
    s->outcome.answer = NULL;
}
