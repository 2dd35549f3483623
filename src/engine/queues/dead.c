#include "engine/queues/dead.h"

#include "engine/calls/call.h"
#include "engine/common/job.h"
#include "engine/common/queue.h"
#include "engine/messages/message.h"
#include "engine/messages/subscription.h"

/* What one slice may pass over: dead jobs, and bytes of bodies that are searched. */
enum { LOOKED_AT_MAX = 1024, SEARCHED_BYTES_MAX = 4 << 20 };

/* ---- single jobs ------------------------------------------------------------------------------------- */

static void redrive(rt_tx *tx, const rt_job *was) {
    rt_job now = *was;
    now.state = RT_JOB_SCHEDULED;
    now.reason = RT_REASON_NONE;
    now.due_ms = tx->now_ms;
    now.attempt = 0;
    now.interval_ms = 0;
    now.generation++;
    // A job that died of its maximum age would otherwise die of it again at once.
    now.placed_ms = tx->now_ms;
    rt_tx_event(tx, &now, (rt_event){.type = RT_EVENT_REDRIVEN});
    rt_tx_update_job(tx, was, &now);
}

/* Is there still somebody to deliver to? */
static rt_code find_subscription(rt_tx *tx, const rt_job *job, bool *there) {
    const rt_str name = rt_subscription_name(tx->arena, job->owner, job->queue);
    if (name.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a subscription's name");
    rt_doc doc;
    const rt_code code = rt_view_doc(tx->view, RT_DOC_SUBSCRIPTION, name, &doc);
    *there = code == RT_OK && (doc.expires_ms == 0 || doc.expires_ms > tx->now_ms);
    return code == RT_E_ABSENT ? RT_OK : code;
}

/* *there false: nobody to send it to is left, and nothing was done. */
static rt_code redrive_job(rt_tx *tx, const rt_job *job, bool *there) {
    if (job->flags & RT_JOB_CALL) return rt_call_redrive(tx, job, there);
    const rt_code code = find_subscription(tx, job, there);
    if (code == RT_OK && *there) redrive(tx, job);
    return code;
}

/* A job that has not ended, for an operator. RT_E_ABSENT. */
static rt_code load_job(rt_tx *tx, rt_id id, rt_job *out) {
    const rt_code code = rt_view_job(tx->view, id, out);
    if (code != RT_OK) return code;
    return out->state == RT_JOB_DONE || (out->flags & RT_JOB_HOLDER) ? RT_E_ABSENT : RT_OK;
}

static rt_code decide_redrive(rt_tx *tx, rt_command *cmd) {
    rt_dead_redrive *c = (rt_dead_redrive *)cmd;
    tx->frees = true;
    rt_job job;
    rt_code code = load_job(tx, c->id, &job);
    if (code != RT_OK) return code;
    if (job.state != RT_JOB_DEAD) return rt_fail(tx->err, RT_E_FENCED, 0, "the job is not dead");
    bool there;
    code = redrive_job(tx, &job, &there);
    if (code != RT_OK || there) return code;
    return rt_fail(tx->err, RT_E_INVALID, 0, "its %s is gone: nobody to deliver it to",
                   job.flags & RT_JOB_CALL ? "event type" : "subscription");
}

void rt_dead_redrive_init(rt_dead_redrive *c) { *c = (rt_dead_redrive){.cmd = {.decide = decide_redrive}}; }

static rt_code decide_delete(rt_tx *tx, rt_command *cmd) {
    rt_job_delete *c = (rt_job_delete *)cmd;
    tx->frees = true;
    rt_job job;
    const rt_code code = load_job(tx, c->id, &job);
    if (code != RT_OK) return code;
    if (job.flags & RT_JOB_WORK) {
        return rt_fail(tx->err, RT_E_INVALID, 0,
                       "the job belongs to an entity: delete that, or say what it wants");
    }
    if ((job.flags & (RT_JOB_TASK | RT_JOB_CANCEL)) == RT_JOB_TASK) {
        return rt_fail(tx->err, RT_E_INVALID, 0, "the job is the task of an order: delete that");
    }
    const bool dead = job.state == RT_JOB_DEAD;
    if (c->only_dead && !dead) return rt_fail(tx->err, RT_E_FENCED, 0, "the job is not dead");
    if (job.flags & RT_JOB_CALL) return rt_call_delete(tx, &job);
    rt_job_end(tx, &job, RT_REASON_DELETED);
    return dead ? rt_queue_forget(tx, job.queue, 1) : RT_OK;
}

void rt_job_delete_init(rt_job_delete *c) { *c = (rt_job_delete){.cmd = {.decide = decide_delete}}; }

/* ---- many -------------------------------------------------------------------------------------------- */

static rt_code decide_many(rt_tx *tx, rt_command *cmd) {
    rt_dead_many *c = (rt_dead_many *)cmd;
    tx->frees = true;
    rt_cursor cursor = {
        .id = rt_tx_new_id(tx),
        .kind = RT_CURSOR_DEAD,
        .filter = c->filter,
        .remove = c->remove,
        .rate = c->rate,
    };
    cursor.last = cursor.id; // nothing that is posted from now on
    c->cursor = cursor.id;
    return rt_cursor_start(tx, &cursor);
}

void rt_dead_many_init(rt_dead_many *c) { *c = (rt_dead_many){.cmd = {.decide = decide_many}}; }

typedef struct page {
    rt_view *view;
    const rt_cursor *c;
    rt_job jobs[RT_CURSOR_SLICE];
    uint32_t count, max, looked_at, searched_bytes;
    rt_id queue, after; /* looked at up to here */
    bool more;
    rt_code code;
} page;

static bool add_dead(void *ctx, const rt_job *job) {
    page *p = ctx;
    bool matches = false;
    p->more = p->count == p->max || p->looked_at == LOOKED_AT_MAX || p->searched_bytes > SEARCHED_BYTES_MAX;
    if (p->more) return false;
    p->looked_at++;
    if (p->c->filter.text.len > 0) p->searched_bytes += job->body_bytes;
    if (job->id <= p->c->last) p->code = rt_dead_matches(p->view, &p->c->filter, job, &matches);
    if (p->code != RT_OK) return false;
    p->queue = job->queue;
    p->after = job->id;
    if (matches) p->jobs[p->count++] = *job;
    return true;
}

/* Handles jobs[count] of one queue. */
static rt_code handle_run(rt_tx *tx, const rt_cursor *c, const rt_job *jobs, uint32_t count) {
    if (c->remove) {
        for (uint32_t i = 0; i < count; i++) rt_job_end(tx, &jobs[i], RT_REASON_DELETED);
        return rt_queue_forget(tx, jobs[0].queue, count);
    }
    bool there = true; // one subscription or type has them all
    rt_code code = RT_OK;
    for (uint32_t i = 0; i < count && there && code == RT_OK; i++) code = redrive_job(tx, &jobs[i], &there);
    return code;
}

rt_code rt_dead_slice(rt_tx *tx, rt_cursor *c, bool *finished) {
    tx->frees = true;
    // A tenth of a second's worth at a time, so that a rate is a trickle rather than gusts.
    const uint32_t tenth = c->rate < 20 ? 1 : c->rate / 10;
    page p = {.view = tx->view, .c = c, .max = c->rate == 0 || tenth > RT_CURSOR_SLICE ? RT_CURSOR_SLICE : tenth};
    p.queue = c->after_queue;
    p.after = c->after;
    const rt_job_range range = {
        .index = RT_INDEX_DEAD, .queue = c->filter.queue, .after_queue = c->after_queue, .after = c->after};
    rt_code code = rt_view_jobs(tx->view, &range, add_dead, &p);
    if (code == RT_OK) code = p.code;
    for (uint32_t from = 0; from < p.count && code == RT_OK;) {
        uint32_t to = from + 1;
        while (to < p.count && p.jobs[to].queue == p.jobs[from].queue) to++;
        code = handle_run(tx, c, &p.jobs[from], to - from);
        from = to;
    }
    c->after_queue = p.queue;
    c->after = p.after;
    if (c->rate > 0) c->next_ms = tx->now_ms + ((int64_t)p.count * 1000 + c->rate - 1) / c->rate;
    *finished = !p.more;
    return code;
}
