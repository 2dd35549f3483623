/* node.c: an engine on the disk, its life and its death. */
#include <stdlib.h>

#include "world.h"

enum { AT_ONCE_MAX = 300, LATE_POLL_MS = 20 };

void node_set_faults(world *w, const rt_memory_faults *faults) {
    for (uint32_t i = 0; i < w->plan.nodes; i++) {
        if (w->nodes[i].life != 0) rt_store_memory_set_faults(w->nodes[i].store, faults);
    }
}

node *node_any(world *w) {
    const uint32_t first = (uint32_t)rt_rng_below(&w->rng, w->plan.nodes);
    for (uint32_t i = 0; i < w->plan.nodes; i++) {
        node *n = &w->nodes[(first + i) % w->plan.nodes];
        if (n->life != 0 && !n->paused && !n->stopping) return n;
    }
    return NULL;
}

void node_start(world *w, node *n) {
    RT_ASSERT(n->life == 0);
    rt_err err = {0};
    if (rt_store_memory_attach(w->disk, rt_rng_next(&w->rng), &n->store, &err) != RT_OK) abort();
    if (!w->draining) rt_store_memory_set_faults(n->store, &w->plan.faults);
    const rt_executor executor = endpoint_executor(n);
    n->life = ++w->lives;
    if (rt_engine_open(n->store, &executor, &w->plan.settings, rt_rng_next(&w->rng), &n->engine, &err) !=
        RT_OK)
        abort();
    n->wake_ms = w->now_ms;
    n->paused = false;
    n->stopping = false;
    n->input = false;
    n->at_once = 0;
    trace_note(&w->trace, "start", n->number, n->life);
}

void node_crash(world *w, node *n) {
    RT_ASSERT(n->life != 0);
    trace_note(&w->trace, "crash", n->number, n->life);
    if (n->stopping && rt_engine_busy(n->engine) == 0) check_stopped(w, n);
    endpoint_forget(w, n);
    n->life = 0; // requests that are answered from here on were never answered
    rt_engine_close(n->engine);
    rt_store_close(n->store);
    n->engine = NULL;
    n->store = NULL;
    n->wake_ms = INT64_MAX;
}

void node_stop(node *n) {
    n->stopping = true;
    n->input = true;
    rt_engine_drain(n->engine);
    trace_note(&n->world->trace, "stop", n->number, n->life);
}

static void check_spinning(world *w, node *n, int64_t next_ms) {
    const bool idle = next_ms > world_wall_ms(w) || n->landed != w->landed;
    n->at_once = idle ? 0 : n->at_once + 1;
    n->landed = w->landed;
    TRACE_CHECK(&w->trace, n->at_once <= AT_ONCE_MAX, "node %u asks to be stepped at once, again and again",
                n->number);
}

/* Did one of the batches behind which a node dies reach the disk since? */
static bool must_crash(const world *w, uint64_t before) {
    for (uint32_t i = 0; i < CRASHES_AT_COMMIT_MAX; i++) {
        if (w->crash_at_landed[i] > before && w->crash_at_landed[i] <= w->landed) return true;
    }
    return false;
}

void node_step(world *w, node *n) {
    const uint64_t before = w->landed;
    n->input = false;
    const int64_t wall_ms = world_wall_ms(w);
    if (wall_ms > w->wall_max_ms) w->wall_max_ms = wall_ms;
    w->steps++;
    const int64_t next_ms = rt_engine_step(n->engine, wall_ms);
    check_spinning(w, n, next_ms);
    trace_say(&w->trace, "next step in %lld ms",
              next_ms == INT64_MAX ? -1LL : (long long)(next_ms - wall_ms));
    n->wake_ms = next_ms == INT64_MAX ? INT64_MAX : next_ms - w->offset_ms;
    if (n->wake_ms < w->now_ms) n->wake_ms = w->now_ms;
    // Nodes that share a disk look at it many times a second. A machine may be slow, and the simulation saves
    // time.
    const bool slow = !w->plan.disk.sole_owner && n->wake_ms > w->now_ms;
    if (slow && n->wake_ms < INT64_MAX) n->wake_ms += (int64_t)draw(&w->rng, 0, w->draining ? 3000 : 400);
    if (rt_store_memory_untold(n->store) > 0) {
        const int64_t poll_ms = w->now_ms + (int64_t)draw(&w->rng, 1, LATE_POLL_MS);
        if (poll_ms < n->wake_ms) n->wake_ms = poll_ms;
    }
    trace_note(&w->trace, "step", n->number, w->landed);
    check_account(w);
    if (n->stopping && rt_engine_busy(n->engine) == 0) {
        world_crash(w, n); // nobody was left without an answer, and nothing under way
        return;
    }
    if (w->draining) return;
    if (must_crash(w, before)) world_crash(w, n);
    // The worst moment to stand still: a batch is on its way.
    else if (rt_store_memory_untold(n->store) > 0 && chance(&w->rng, 20 * w->plan.pauses)) world_pause(w, n);
}
