/* call_age.c: a call that is too old dies when it is, wherever it waits: for a worker, behind a circuit, in line. Its job
 * notes when that will be, so that the index of what ends finds it (queues/expiry.c). */
#include "engine/calls/call_over.h"
#include "engine/calls/call_wait.h"
#include "engine/calls/line.h"
#include "engine/common/job.h"

/* Does a worker's lease end with this sweep? Then its end writes the job, and notes its age again. */
static rt_code look_at_lease(rt_tx *tx, const rt_job *job, bool *ends) {
    rt_lease lease;
    *ends = false;
    if (job->state != RT_JOB_LEASED || !(job->flags & RT_JOB_PULL)) return RT_OK;
    const rt_code code = rt_view_lease(tx->view, job->lease, &lease);
    *ends = code == RT_OK && lease.until_ms <= tx->now_ms;
    return code == RT_E_ABSENT ? RT_OK : code;
}

/* The type may say something else by now. Who holds it is not disturbed: when it comes back, its age is noted again. */
static void note_again(rt_tx *tx, const rt_job *job, const rt_call_type *type) {
    rt_job now = *job;
    rt_call_note_age(&now, type);
    if (now.expires_ms <= tx->now_ms) now.expires_ms = 0;
    rt_tx_update_job(tx, job, &now);
}

rt_code rt_call_expire(rt_tx *tx, const rt_job *job, bool *left) {
    rt_queue queue;
    rt_call_type type;
    // Only one call may leave a line within a change, and a dead one may go on as another of another type.
    *left = rt_line_is_written(tx, job);
    if (*left) return RT_OK;
    bool ends;
    rt_code code = look_at_lease(tx, job, &ends);
    if (code != RT_OK || ends) return code;
    code = rt_call_type_of_queue(tx, job->queue, &queue, &type);
    if (code == RT_E_ABSENT) { // its line goes with its queue
        rt_job_end(tx, job, RT_REASON_DELETED);
        return RT_OK;
    }
    if (code != RT_OK) return code;
    const int64_t limit_ms = rt_job_age_limit_ms(job->placed_ms, type.delivery.maximum_age_s);
    if (limit_ms <= tx->now_ms && !rt_call_is_held(tx, job)) return rt_call_give_up(tx, job, &type, RT_REASON_EXPIRED);
    note_again(tx, job, &type);
    return RT_OK;
}

/* ---- when the type changes ----------------------------------------------------------------------------- */

/* What is held notes its age when it comes back. */
static void note_now(rt_tx *tx, const rt_job *job, const rt_call_type *type) {
    rt_job now = *job;
    rt_call_note_age(&now, type);
    if (job->state != RT_JOB_LEASED && now.expires_ms != job->expires_ms) rt_tx_update_job(tx, job, &now);
}

rt_code rt_age_slice(rt_tx *tx, rt_cursor *c, bool *finished) {
    rt_queue queue;
    rt_call_type type;
    rt_code code = rt_call_type_of_queue(tx, c->queue, &queue, &type);
    *finished = code == RT_E_ABSENT;
    if (code != RT_OK) return *finished ? RT_OK : code;
    rt_cursor_jobs *p = rt_arena_alloc(tx->arena, sizeof *p);
    if (p == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for ages");
    const rt_job_range range = {
        .index = type.target.len == 0 ? RT_INDEX_ALL : RT_INDEX_DUE,
        .queue = c->queue,
        .after = c->after,
        .after_due_ms = (int64_t)c->from,
        .until_ms = INT64_MAX,
    };
    code = rt_cursor_read_jobs(tx, &range, p);
    if (code != RT_OK) return code;
    for (uint32_t i = 0; i < p->count; i++) note_now(tx, &p->jobs[i], &type);
    *finished = p->count < RT_CURSOR_SLICE;
    if (*finished) return RT_OK;
    c->after = p->jobs[p->count - 1].id;
    c->from = (uint64_t)p->jobs[p->count - 1].due_ms;
    return RT_OK;
}
