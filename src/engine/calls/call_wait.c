#include "engine/calls/call_wait.h"

#include "engine/common/flight.h"
#include "engine/common/job.h"

void rt_call_wait(rt_tx *tx, rt_job *job, int64_t due_ms) {
    if (due_ms >= RT_LINE_DUE_MS) due_ms = RT_LINE_DUE_MS - 1;
    const bool at_once = due_ms <= tx->now_ms;
    // The FIFO is for new jobs only: it is taken in the order of ids, and never looked at again behind what was taken.
    job->state = at_once && (job->flags & RT_JOB_PULL) ? RT_JOB_FREE : RT_JOB_SCHEDULED;
    job->due_ms = at_once ? tx->now_ms : due_ms; // FREE: since when it waits for a worker
}

void rt_call_note_age(rt_job *job, const rt_call_type *type) {
    const int64_t limit_ms = rt_job_age_limit_ms(job->placed_ms, type->delivery.maximum_age_s);
    job->expires_ms = limit_ms == INT64_MAX ? 0 : limit_ms;
}

bool rt_call_is_held(const rt_tx *tx, const rt_job *job) {
    if (job->state == RT_JOB_LEASED) return true;
    return tx->flights != NULL && rt_flights_find(tx->flights, job->id, 0) != NULL;
}
