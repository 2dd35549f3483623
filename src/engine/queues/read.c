#include "engine/queues/read.h"

#include <string.h>

#include "engine/calls/line.h"

enum { CHUNK_QUEUES = 16, SEARCH_BYTES_A_JOB = 4096 };

rt_code rt_read_job(rt_view *v, rt_id id, rt_job *out) {
    rt_job job;
    const rt_code code = rt_view_job(v, id, &job);
    if (code != RT_OK) return code;
    if (job.flags & RT_JOB_HOLDER) return RT_E_ABSENT; // the engine's own
    *out = job;
    return RT_OK;
}

rt_code rt_read_attempts(rt_view *v, const rt_job *job, uint32_t limit, rt_each_event *each, void *ctx) {
    uint64_t seq = job->last_event;
    for (uint32_t i = 0; i < limit && seq != 0; i++) {
        rt_event event;
        const rt_code code = rt_view_event(v, seq, &event);
        if (code == RT_E_ABSENT) return RT_OK; // trimmed, with all before it
        if (code != RT_OK) return code;
        if (!each(ctx, &event)) return RT_OK;
        seq = event.prev;
    }
    return RT_OK;
}

typedef struct dead_jobs {
    rt_view *view;
    const rt_dead_filter *filter;
    rt_dead_place *place;
    rt_each_job *each;
    void *ctx;
    uint32_t left;
    bool more;
    rt_code code;
} dead_jobs;

/* How many jobs one whose body is searched stands for. */
static uint32_t cost_of(const rt_dead_filter *filter, const rt_job *job) {
    return 1 + (filter->text.len > 0 ? job->body_bytes / SEARCH_BYTES_A_JOB : 0);
}

static bool show_dead(void *ctx, const rt_job *job) {
    dead_jobs *d = ctx;
    bool matches;
    d->more = d->left == 0;
    if (d->more) return false;
    d->code = rt_dead_matches(d->view, d->filter, job, &matches);
    if (d->code != RT_OK) return false;
    const uint32_t cost = cost_of(d->filter, job);
    d->left -= cost < d->left ? cost : d->left;
    *d->place = (rt_dead_place){.queue = job->queue, .job = job->id};
    if (!matches) return true;
    d->more = !d->each(d->ctx, job);
    return !d->more;
}

rt_code rt_read_dead(rt_view *v, const rt_dead_filter *filter, rt_dead_place *place, uint32_t scan_max,
                     rt_each_job *each, void *ctx, bool *more) {
    dead_jobs d = {.view = v, .filter = filter, .place = place, .each = each, .ctx = ctx, .left = scan_max};
    const rt_job_range range = {
        .index = RT_INDEX_DEAD, .queue = filter->queue, .after_queue = place->queue, .after = place->job};
    const rt_code code = rt_view_jobs(v, &range, show_dead, &d);
    *more = d.more;
    return code == RT_OK ? d.code : code;
}

static bool copy_first(void *ctx, const rt_job *job) {
    *(rt_job *)ctx = *job;
    return false;
}

/* The first job of an index of a queue; state RT_JOB_NONE: there is none. */
static rt_code first_of(rt_view *v, rt_job_index index, rt_id queue, rt_job *out) {
    *out = (rt_job){.state = RT_JOB_NONE};
    const rt_job_range range = {.index = index, .queue = queue, .until_ms = INT64_MAX};
    return rt_view_jobs(v, &range, copy_first, out);
}

static rt_code complete_line(rt_view *v, rt_queue_line *line) {
    rt_code code = rt_view_counts(v, line->queue.id, &line->counts);
    rt_job due, pull;
    if (code == RT_OK) code = first_of(v, RT_INDEX_DUE, line->queue.id, &due);
    if (code == RT_OK) code = first_of(v, RT_INDEX_ALL, line->queue.id, &pull);
    if (code != RT_OK) return code;
    line->next_due_ms = due.state == RT_JOB_SCHEDULED && !rt_line_waits(&due) ? due.due_ms : INT64_MAX;
    line->oldest_ms = pull.state != RT_JOB_NONE ? pull.placed_ms : due.placed_ms;
    return RT_OK;
}

typedef struct queue_chunk {
    rt_queue queues[CHUNK_QUEUES];
    char names[CHUNK_QUEUES][RT_QUEUE_NAME_MAX];
    uint32_t count;
    rt_id seen;
} queue_chunk;

static bool add_queue(void *ctx, const rt_queue *queue) {
    queue_chunk *c = ctx;
    c->seen = queue->id;
    if (queue->gone || queue->name.len > RT_QUEUE_NAME_MAX) return true;
    rt_queue *copy = &c->queues[c->count];
    *copy = *queue;
    copy->name.ptr = c->names[c->count];
    if (queue->name.len > 0) memcpy(c->names[c->count], queue->name.ptr, queue->name.len);
    return ++c->count < CHUNK_QUEUES;
}

rt_code rt_read_queue_lines(rt_view *v, rt_id after, rt_each_queue_line *each, void *ctx) {
    queue_chunk c = {.seen = after, .count = CHUNK_QUEUES};
    while (c.count == CHUNK_QUEUES) {
        c.count = 0;
        rt_code code = rt_view_queues(v, c.seen, add_queue, &c);
        for (uint32_t i = 0; i < c.count && code == RT_OK; i++) {
            rt_queue_line line = {.queue = c.queues[i]};
            code = complete_line(v, &line);
            if (code == RT_OK && !each(ctx, &line)) return RT_OK;
        }
        if (code != RT_OK) return code;
    }
    return RT_OK;
}

rt_code rt_read_queue_line(rt_view *v, rt_id id, rt_queue_line *out) {
    rt_queue_line line;
    rt_code code = rt_view_queue(v, id, &line.queue);
    if (code == RT_OK) code = complete_line(v, &line);
    if (code == RT_OK) *out = line;
    return code;
}

rt_code rt_read_totals(rt_view *v, rt_counts *out) { return rt_view_counts(v, 0, out); }

rt_code rt_read_events(rt_view *v, uint64_t after_seq, rt_each_event *each, void *ctx) {
    return rt_view_events(v, after_seq, each, ctx);
}
