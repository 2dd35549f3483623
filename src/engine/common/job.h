/* job.h: the ways in which a job's state changes, the same for jobs of every kind. Each writes the job and a line of its
 * history to the change. For decisions only. */
#ifndef RT_ENGINE_COMMON_JOB_H
#define RT_ENGINE_COMMON_JOB_H
#include "engine/common/command.h"

/* Ends it for a reason that is not its own success: expired, deleted, unsubscribed. */
void rt_job_end(rt_tx *tx, const rt_job *was, rt_reason reason);
/* Done: the attempt `last` succeeded (its attempt number counts; type and reason are set here). */
void rt_job_succeed(rt_tx *tx, const rt_job *was, rt_event last);
/* Done: what it stood for has failed for good by the attempt `last` (an order is in ERROR). A reason of the attempt's own,
 * such as the last timeout of many, is kept in its event. */
void rt_job_fail(rt_tx *tx, const rt_job *was, rt_event last);
/* Dead, in plain sight, for `reason`. `last` is the attempt that was the last straw, or all zero. */
void rt_job_give_up(rt_tx *tx, const rt_job *was, rt_reason reason, rt_event last);
/* The attempt `last` failed (or, if its type says PROGRESS, did not); the next one is made after `delay_ms`, but not after
 * `limit_ms` (INT64_MAX: no limit). */
void rt_job_retry(rt_tx *tx, const rt_job *was, uint64_t delay_ms, int64_t limit_ms, rt_event last);
/* Where a fresh pushed job stands: at once in the FIFO, or behind what its queue has waiting. */
void rt_job_place(rt_tx *tx, rt_job *job);
/* A push job is under way, and the store holds its lease. */
void rt_job_lease(rt_tx *tx, const rt_job *was, uint64_t token, int64_t until_ms);

/* When a job that was posted at `placed_ms` is too old. maximum_age_s 0: never, INT64_MAX. */
static inline int64_t rt_job_age_limit_ms(int64_t placed_ms, uint64_t maximum_age_s) {
    return maximum_age_s == 0 ? INT64_MAX : placed_ms + (int64_t)maximum_age_s * 1000;
}

#endif
