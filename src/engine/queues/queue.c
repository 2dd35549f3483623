#include "engine/queues/queue.h"

#include "engine/calls/line.h"
#include "engine/common/job.h"
#include "engine/common/queue.h"

/* ---- emptying ---------------------------------------------------------------------------------------- */

rt_code rt_drain_slice(rt_tx *tx, rt_cursor *c, bool *finished) {
    // A job may be in two of these, so a slice takes from one; what has ended is in none.
    const rt_job_index indexes[] = {RT_INDEX_ALL, RT_INDEX_DUE, RT_INDEX_DEAD};
    const size_t count = c->keep_dead ? 2 : 3;
    rt_cursor_jobs p = {.count = 0};
    tx->frees = true;
    for (size_t i = 0; i < count && p.count == 0; i++) {
        const rt_job_range range = {
            .index = indexes[i], .queue = c->queue, .after_queue = c->queue, .until_ms = INT64_MAX};
        const rt_code code = rt_cursor_read_jobs(tx, &range, &p);
        if (code != RT_OK) return code;
    }
    for (uint32_t i = 0; i < p.count; i++) rt_job_end(tx, &p.jobs[i], c->reason);
    uint32_t places = 0; // calls in line leave them behind
    if (p.count == 0) {
        const rt_code code = rt_line_forget(tx, c->queue, RT_CURSOR_SLICE, &places);
        if (code != RT_OK) return code;
    }
    *finished = p.count == 0 && places == 0;
    return *finished ? rt_queue_forget(tx, c->queue, 0) : RT_OK;
}

/* ---- pausing ----------------------------------------------------------------------------------------- */

static rt_code decide_pause(rt_tx *tx, rt_command *cmd) {
    rt_queue_pause *c = (rt_queue_pause *)cmd;
    tx->frees = true; // to resume is what gives room back
    rt_queue was;
    const rt_code code = rt_queue_load(tx, c->id, &was);
    if (code != RT_OK) return code;
    if (was.gone) return rt_fail(tx->err, RT_E_ABSENT, 0, "the queue is being removed");
    if (was.paused_until_ms == c->until_ms) return RT_OK;
    rt_queue now = was;
    now.paused_until_ms = c->until_ms;
    rt_tx_put_queue(tx, &was, &now);
    return RT_OK;
}

void rt_queue_pause_init(rt_queue_pause *c) { *c = (rt_queue_pause){.cmd = {.decide = decide_pause}}; }
