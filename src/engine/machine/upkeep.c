#include <string.h>

#include "engine/machine/machine.h"

/* ---- expiry -------------------------------------------------------------------------------------------- */

static void expiry_done(rt_command *cmd) {
    rt_engine *e = cmd->ctx;
    e->expiry_busy = false;
    const int64_t next_ms = cmd->code == RT_OK ? e->expiry.next_ms : e->now_ms + RT_STORE_PAUSE_MS;
    // What was written since with an earlier end has lowered it already.
    if (next_ms < e->expiry_at_ms) e->expiry_at_ms = next_ms;
}

static void sweep(rt_engine *e) {
    if (e->expiry_busy || e->expiry_at_ms > e->now_ms) return;
    e->expiry_busy = true;
    e->expiry_at_ms = INT64_MAX;
    rt_expiry_step_init(&e->expiry);
    e->expiry.cmd.done = expiry_done;
    e->expiry.cmd.ctx = e;
    rt_own_submit(e, &e->expiry.cmd);
}

/* ---- orders -------------------------------------------------------------------------------------------- */

static void patrol_done(rt_command *cmd);

static void patrol_on(rt_engine *e) {
    e->patrol_busy = true;
    rt_order_patrol_init(&e->patrol);
    e->patrol.cmd.done = patrol_done;
    e->patrol.cmd.ctx = e;
    rt_own_submit(e, &e->patrol.cmd);
}

/* Somewhere around a period from now, so that nodes that started together do not meet for ever. */
static void patrol_rest(rt_engine *e) {
    const int64_t fifth_ms = e->settings.schedule_period_ms / 5;
    const int64_t dither_ms = (int64_t)rt_rng_below(&e->rng, (uint64_t)(2 * fifth_ms) + 1) - fifth_ms;
    e->patrol_busy = false;
    e->patrol_at_ms = e->now_ms + e->settings.schedule_period_ms + dither_ms;
    e->patrol_count = 0;
}

static void patrol_done(rt_command *cmd) {
    rt_engine *e = cmd->ctx;
    rt_order_patrol *p = &e->patrol;
    if (cmd->code != RT_OK || p->ends) { // a lock that could not be given back is with the end of the next round
        if (cmd->code == RT_OK) e->patrol_held = false;
        p->ends = false;
        patrol_rest(e);
        return;
    }
    const bool last = p->count < RT_PATROL_SLICE;
    const bool none = last && p->after_len == 0 && p->count == 0;
    if (!p->barred) {
        p->after_len = last ? 0 : p->seen_len;
        memcpy(p->after, p->seen, p->after_len);
    }
    e->patrol_held = e->patrol_held || p->held;
    e->patrol_count += p->count;
    const bool over = last || p->barred || e->patrol_count >= RT_PATROL_ROUND;
    p->ends = over && e->patrol_held;
    if (!over || p->ends) {
        patrol_on(e);
        return;
    }
    patrol_rest(e);
    if (none) e->patrol_at_ms = INT64_MAX; // until there is an order
}

static void patrol(rt_engine *e) {
    if (!e->patrol_busy && e->patrol_at_ms <= e->now_ms) patrol_on(e);
}

/* ---- wake times ---------------------------------------------------------------------------------------- */

typedef struct wakes {
    rt_engine *e;
    uint32_t count;
} wakes;

static bool add_wake(void *ctx, const rt_wake *wake) {
    wakes *w = ctx;
    if (!rt_schedule_wake(&w->e->schedule, wake->queue, wake->due_ms)) return false;
    w->e->wakes_after = wake->queue;
    return ++w->count < RT_WAKES_SLICE;
}

/* Fills the schedule after a start or a failed batch, a slice a step, so that a server with many queues answers at once. */
static void find_wakes(rt_engine *e) {
    if (!e->wakes_pending || e->now_ms < e->store_pause_until_ms) return;
    rt_view *view = rt_own_view(e);
    if (view == NULL) return;
    wakes w = {.e = e};
    const rt_code code = rt_view_wakes(view, e->wakes_after, add_wake, &w);
    rt_view_close(view);
    if (code != RT_OK || w.count == RT_WAKES_SLICE) return;
    e->wakes_pending = false;
    e->wakes_after = 0;
}

/* Other nodes write to the same store: look for what they left. */
static void poll_others(rt_engine *e) {
    if (e->store->sole_owner) return;
    if (rt_store_woken(e->store)) e->poll_at_ms = rt_earlier(e->poll_at_ms, e->polled_ms + RT_POLL_LEAST_MS);
    if (e->now_ms < e->poll_at_ms) return;
    e->polled_ms = e->now_ms;
    e->poll_at_ms = e->now_ms + RT_POLL_MS;
    e->ready_pending = true;
    rt_schedule_doubt(&e->schedule);
    rt_waiting_wake_all(&e->waiting);
    rt_circuits_look(e);
    if (e->now_ms < e->look_at_ms) return;
    e->look_at_ms = e->now_ms + RT_LOOK_MS;
    e->wakes_pending = true;
    e->cursors_pending = true; // of a node that is gone
    if (e->expiry_at_ms > e->now_ms) e->expiry_at_ms = e->now_ms;
    if (e->patrol_at_ms == INT64_MAX) e->patrol_at_ms = e->now_ms + e->settings.schedule_period_ms;
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

void rt_upkeep(rt_engine *e) {
    poll_others(e);
    find_wakes(e);
    rt_cursors_find(e);
    rt_attempts_look(e);
    rt_waiting_end_overdue(&e->waiting, e->now_ms);
    sweep(e);
    patrol(e);
    rt_cursors_carry_on(e);
}

int64_t rt_upkeep_next_ms(const rt_engine *e) {
    if (e->wakes_pending || (e->cursors_pending && e->cursors_busy == 0)) return e->now_ms;
    int64_t next = rt_earlier(rt_flights_next_ms(&e->flights), rt_waiting_next_ms(&e->waiting));
    if (!e->expiry_busy) next = rt_earlier(next, e->expiry_at_ms);
    if (!e->patrol_busy) next = rt_earlier(next, e->patrol_at_ms);
    const rt_heap_node *cursor = rt_heap_first(&e->cursors);
    if (cursor != NULL) next = rt_earlier(next, cursor->at_ms);
    return e->store->sole_owner ? next : rt_earlier(next, e->poll_at_ms);
}

void rt_upkeep_close(rt_engine *e) {
    rt_cursors_close(e);
    // What still waits is ours; but expiry step and patrol live in the engine.
    rt_command *cmd;
    while ((cmd = rt_command_list_pop(&e->own)) != NULL) {
        if (rt_attempts_drop(cmd) || rt_circuits_drop(cmd)) continue;
        (void)rt_cursors_drop(cmd);
    }
}
