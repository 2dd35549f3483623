#include "engine/common/job.h"

#include "engine/common/schedule.h"

void rt_job_end(rt_tx *tx, const rt_job *was, rt_reason reason) {
    rt_job now = *was;
    now.state = RT_JOB_DONE;
    now.reason = (uint8_t)reason;
    now.lease = 0;
    now.due_ms = 0;
    rt_tx_event(tx, &now, (rt_event){.type = RT_EVENT_ENDED, .reason = (uint8_t)reason});
    rt_tx_update_job(tx, was, &now);
    tx->frees = true;
}

/* Done by the attempt `last`. */
static void end_by(rt_tx *tx, const rt_job *was, rt_event_type type, rt_reason reason, rt_event last) {
    rt_job now = *was;
    now.state = RT_JOB_DONE;
    now.reason = (uint8_t)reason;
    now.attempt = last.attempt;
    now.lease = 0;
    now.due_ms = 0;
    last.type = (uint8_t)type;
    rt_tx_event(tx, &now, last);
    rt_tx_update_job(tx, was, &now);
    tx->frees = true;
}

void rt_job_succeed(rt_tx *tx, const rt_job *was, rt_event last) {
    last.reason = RT_REASON_DELIVERED;
    end_by(tx, was, RT_EVENT_DELIVERED, RT_REASON_DELIVERED, last);
}

void rt_job_fail(rt_tx *tx, const rt_job *was, rt_event last) {
    if (last.reason == RT_REASON_NONE) last.reason = RT_REASON_FAILED;
    end_by(tx, was, RT_EVENT_ENDED, RT_REASON_FAILED, last);
}

void rt_job_give_up(rt_tx *tx, const rt_job *was, rt_reason reason, rt_event last) {
    rt_job now = *was;
    now.state = RT_JOB_DEAD;
    now.reason = (uint8_t)reason;
    now.lease = 0;
    now.due_ms = 0;
    if (last.attempt > 0) now.attempt = last.attempt;
    last.type = RT_EVENT_DEAD;
    if (last.reason == RT_REASON_NONE) last.reason = (uint8_t)reason;
    rt_tx_event(tx, &now, last);
    rt_tx_update_job(tx, was, &now);
    tx->frees = true;
}

void rt_job_retry(rt_tx *tx, const rt_job *was, uint64_t delay_ms, int64_t limit_ms, rt_event last) {
    rt_job now = *was;
    now.state = RT_JOB_SCHEDULED;
    now.lease = 0;
    now.attempt = last.attempt;
    now.interval_ms = delay_ms < UINT32_MAX ? (uint32_t)delay_ms : UINT32_MAX;
    now.due_ms = tx->now_ms + (int64_t)delay_ms;
    // At its maximum age the job is looked at once more, and dies: neither before nor a whole delay later.
    if (now.due_ms > limit_ms) now.due_ms = limit_ms > tx->now_ms ? limit_ms : tx->now_ms;
    if (last.type != RT_EVENT_PROGRESS) last.type = RT_EVENT_ATTEMPT;
    last.delay_ms = now.interval_ms;
    rt_tx_event(tx, &now, last);
    rt_tx_update_job(tx, was, &now);
    tx->frees = true;
}

void rt_job_lease(rt_tx *tx, const rt_job *was, uint64_t token, int64_t until_ms) {
    rt_job now = *was;
    now.state = RT_JOB_LEASED;
    now.lease = token;
    now.due_ms = until_ms;
    rt_tx_update_job(tx, was, &now);
    tx->frees = true;
}

void rt_job_place(rt_tx *tx, rt_job *job) {
    job->state = RT_JOB_READY;
    if (tx->schedule != NULL) job->state = (uint8_t)rt_schedule_place(tx->schedule, job->queue, tx->now_ms);
    RT_ASSERT(job->state == RT_JOB_READY || job->state == RT_JOB_SCHEDULED);
    job->due_ms = job->state == RT_JOB_SCHEDULED ? tx->now_ms : 0;
}
