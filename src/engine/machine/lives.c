#include "engine/machine/lives.h"

#include <stdlib.h>

#include "engine/calls/call_life.h"
#include "engine/messages/delivery.h"
#include "engine/orders/order_life.h"

static const rt_life *life_of(const rt_job *job) {
    if (job->flags & RT_JOB_CALL) return &rt_call_life;
    return job->flags & RT_JOB_TASK ? &rt_order_life : &rt_delivery_life;
}

rt_code rt_life_start(rt_tx *tx, const rt_job *job, rt_start *start) {
    start->due = RT_DUE_WRITTEN;
    start->attempt = NULL;
    return life_of(job)->start(tx, job, start);
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
