#include "engine/common/renew.h"

#include "engine/common/job.h"

int64_t rt_lease_until_ms(int64_t now_ms, int64_t until_ms) {
    return until_ms < now_ms + RT_LEASE_MS ? until_ms : now_ms + RT_LEASE_MS;
}

static rt_code decide_renewal(rt_tx *tx, rt_command *cmd) {
    rt_renewal *r = (rt_renewal *)cmd;
    tx->frees = true;
    rt_code again = RT_OK;
    for (uint32_t i = 0; i < r->count; i++) {
        rt_job job;
        const rt_code code = rt_view_job(tx->view, r->of[i].job, &job);
        if (code == RT_E_AGAIN) again = code; // the others are wanted too
        else if (code != RT_OK && code != RT_E_ABSENT) return code;
        const bool held = code == RT_OK && job.state == RT_JOB_LEASED && job.lease == r->of[i].token;
        const int64_t until_ms = rt_lease_until_ms(tx->now_ms, r->of[i].until_ms);
        // Never shortened: of a worker that answered 202 it ends later than its attempt.
        r->of[i].lease_until_ms = !held ? 0 : until_ms > job.due_ms ? until_ms : job.due_ms;
        if (held && until_ms > job.due_ms) rt_job_lease(tx, &job, job.lease, until_ms);
    }
    return again;
}

void rt_renewal_init(rt_renewal *r) { *r = (rt_renewal){.cmd = {.decide = decide_renewal}}; }
