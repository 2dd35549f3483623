/* warm.c: where reading takes round trips, decisions are tried without effect until they find all that they read. A batch
 * then costs a few round trips, however much is decided in it. */
#include <stdlib.h>

#include "engine/machine/machine.h"

enum { ROUNDS_MAX = 8 }; /* a decision rarely comes upon more than two or three records one after the other */

/* ---- commands ------------------------------------------------------------------------------------------ */

static bool lacks_something(rt_engine *e, rt_command *cmd) {
    rt_tx *tx = rt_batch_tx(e);
    if (tx == NULL) return false;
    tx->trial = true;
    cmd->wait = NULL;
    return cmd->decide(tx, cmd) == RT_E_AGAIN;
}

static size_t gather(rt_command **to, size_t room, const rt_command_list *from, size_t max) {
    size_t count = 0;
    for (rt_command *cmd = from->first; cmd != NULL && count < max && count < room; cmd = cmd->next) to[count++] = cmd;
    return count;
}

void rt_warm_commands(rt_engine *e, size_t max) {
    if (!e->store->loads) return;
    size_t count = 0;
    if (e->now_ms >= e->store_pause_until_ms) count = gather(e->warming, RT_WARM_MAX, &e->own, RT_WARM_MAX);
    count += gather(e->warming + count, RT_WARM_MAX - count, &e->inbox, max);
    if (count < 2) return; // one alone loses nothing by asking as it goes
    for (int round = 0; round < ROUNDS_MAX; round++) {
        size_t lacking = 0;
        for (size_t i = 0; i < count; i++) {
            if (lacks_something(e, e->warming[i])) e->warming[lacking++] = e->warming[i];
        }
        count = lacking;
        if (count == 0 || e->open == NULL || rt_store_load(e->store, &e->err) != RT_OK) return;
    }
}

/* ---- jobs to be taken ---------------------------------------------------------------------------------- */

typedef struct due_jobs {
    rt_engine *e;
    rt_job *jobs; /* RT_TAKES_MAX */
    uint32_t count, max;
    int64_t now_ms;
} due_jobs;

static bool keep_ready(void *ctx, const rt_job *job) {
    due_jobs *d = ctx;
    if (d->count < d->max && rt_flights_find(&d->e->flights, job->id, 0) == NULL) d->jobs[d->count++] = *job;
    return d->count < d->max;
}

static bool keep_due(void *ctx, const rt_job *job) {
    const due_jobs *d = ctx;
    return job->due_ms <= d->now_ms && keep_ready(ctx, job);
}

/* Wants the listing; true: it is all there. */
static bool list(rt_view *view, const rt_job_range *range, rt_each_job *each, due_jobs *d, uint32_t most) {
    const uint32_t before = d->count;
    d->max = before + most < RT_TAKES_MAX ? before + most : RT_TAKES_MAX;
    if (rt_view_jobs(view, range, each, d) != RT_E_AGAIN) return true;
    d->count = before;
    return false;
}

/* Lanes in their turn, as many as a step may serve. */
static bool list_lanes(rt_engine *e, rt_view *view, const rt_turns *turns, due_jobs *d, uint32_t *lanes) {
    bool all = true;
    for (const rt_lane *lane = turns->first; lane != NULL && *lanes > 0; lane = lane->turn_next, (*lanes)--) {
        const rt_job_range range = rt_due_lane(lane);
        rt_queue queue;
        if (!lane->known) all = rt_view_queue(view, lane->queue, &queue) != RT_E_AGAIN && all;
        if (lane->known && lane->paused_until_ms > e->now_ms) continue;
        all = list(view, &range, keep_due, d, RT_LANE_QUANTUM) && all;
    }
    return all;
}

static bool list_all(rt_engine *e, due_jobs *d) {
    rt_view *view = rt_store_batch(e->store, &e->err);
    if (view == NULL) return true;
    d->count = 0;
    bool all = true;
    if (e->ready_pending) {
        const rt_job_range range = rt_due_ready(e);
        all = list(view, &range, keep_ready, d, RT_TAKES_MAX / 2);
    }
    uint32_t lanes = RT_TAKES_MAX / RT_LANE_QUANTUM;
    all = list_lanes(e, view, &e->schedule.sound, d, &lanes) && all;
    return list_lanes(e, view, &e->schedule.suspect, d, &lanes) && all;
}

/* What its queue and its start will read. */
static bool start_lacks_something(rt_engine *e, const rt_job *job) {
    rt_tx *tx = rt_batch_tx(e);
    if (tx == NULL) return false;
    const rt_lane *lane = rt_map_get(&e->schedule.lanes, job->queue);
    rt_queue queue;
    const bool unknown =
        (lane == NULL || !lane->known) && rt_view_queue(tx->view, job->queue, &queue) == RT_E_AGAIN;
    if (job->state == RT_JOB_LEASED) return unknown; // its end is a command
    rt_start start = {.token = 1, .write_lease = !e->store->sole_owner};
    const rt_code code = rt_life_start(tx, job, &start);
    rt_attempt_free(start.attempt);
    return unknown || code == RT_E_AGAIN;
}

void rt_warm_takes(rt_engine *e) {
    if (!e->store->loads) return;
    due_jobs d = {.e = e, .jobs = malloc(RT_TAKES_MAX * sizeof *d.jobs), .now_ms = e->now_ms};
    if (d.jobs == NULL) return; // it goes without, one round trip after the other
    for (int round = 0; round < ROUNDS_MAX; round++) {
        if (list_all(e, &d)) break;
        if (rt_store_load(e->store, &e->err) != RT_OK) break;
    }
    uint32_t count = d.count;
    for (int round = 0; round < ROUNDS_MAX && count > 0; round++) {
        uint32_t lacking = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (start_lacks_something(e, &d.jobs[i])) d.jobs[lacking++] = d.jobs[i];
        }
        count = lacking;
        if (count > 0 && rt_store_load(e->store, &e->err) != RT_OK) break;
    }
    free(d.jobs);
}
