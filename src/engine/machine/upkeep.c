#include <stdlib.h>
#include <string.h>

#include "base/pack.h"
#include "engine/calls/circuit.h"
#include "engine/calls/starts.h"
#include "engine/machine/machine.h"

/* Every command here belongs to the engine itself and is asked again until it is durable: nobody else would. */
static bool must_repeat(const rt_command *cmd) {
    return cmd->code == RT_E_UNAVAILABLE || cmd->code == RT_E_FULL || cmd->code == RT_E_CONFLICT ||
           cmd->code == RT_E_IO || cmd->code == RT_E_NOMEM || cmd->code == RT_E_AGAIN;
}

static void submit_own(rt_engine *e, rt_command *cmd) {
    cmd->tries = 0;
    rt_command_list_push(&e->own, cmd);
}

/* ---- outcomes ------------------------------------------------------------------------------------------------------ */

typedef struct own_settle {
    rt_settle settle;  /* first member */
    rt_flight *flight; /* NULL: the lease was only in the store */
} own_settle;

static void free_settle(own_settle *o) {
    rt_settle_deinit(&o->settle);
    free(o);
}

static void settle_done(rt_command *cmd) {
    own_settle *o = (own_settle *)cmd;
    rt_engine *e = cmd->ctx;
    if (must_repeat(cmd)) {
        submit_own(e, cmd);
        return;
    }
    if (o->flight != NULL) {
        const rt_id queue = o->flight->queue;
        rt_take_ended(e, o->flight, o->settle.worked ? RT_LANE_WORKED : RT_LANE_FAILED);
        // It was hidden from its queue's listing while it was under way.
        if (o->settle.again && !rt_schedule_wake(&e->schedule, queue, e->now_ms)) e->wakes_pending = true;
    }
    free_settle(o);
}

static bool counts(const rt_flight *flight, const rt_outcome *outcome) {
    if (flight == NULL) return outcome->reason == RT_REASON_LOST;
    // Told twice, or late after its lease: the first word stands. Not started yet: its batch must end first.
    return !flight->settling && flight->attempt == NULL;
}

void rt_upkeep_outcome(rt_engine *e, const rt_outcome *outcome) {
    rt_flight *flight = rt_flights_find(&e->flights, outcome->job, outcome->token);
    if (!counts(flight, outcome)) {
        free(outcome->answer);
        return;
    }
    own_settle *o = malloc(sizeof *o);
    if (o == NULL) { // the attempt stays open until its lease runs out, and is then told lost
        free(outcome->answer);
        return;
    }
    rt_settle_init(&o->settle, outcome, flight == NULL || !e->store->sole_owner);
    o->settle.cmd.done = settle_done;
    o->settle.cmd.ctx = e;
    o->settle.expired = flight == NULL;
    o->flight = flight;
    if (flight != NULL) {
        flight->settling = true;
        rt_heap_remove(&e->flights.deadlines, &flight->deadline);
    }
    if (outcome->took_ms > 0 && outcome->status > 0) {
        rt_histogram_add(&e->metrics.attempt_s, (double)outcome->took_ms / 1000.0);
    }
    submit_own(e, &o->settle.cmd);
}

static void renewal_done(rt_command *cmd) {
    rt_renewal *r = (rt_renewal *)cmd;
    rt_engine *e = cmd->ctx;
    if (must_repeat(cmd)) {
        submit_own(e, cmd);
        return;
    }
    for (uint32_t i = 0; i < r->count; i++) {
        rt_flight *flight = rt_flights_find(&e->flights, r->of[i].job, r->of[i].token);
        if (flight == NULL || flight->settling) continue;
        // Lost: the attempt goes on and counts, and its outcome will be refused, as another holds the job by now.
        const bool held = cmd->code == RT_OK && r->of[i].lease_until_ms > 0;
        rt_flights_renewed(&e->flights, flight, held ? r->of[i].lease_until_ms : flight->until_ms);
    }
    free(r);
}

static void submit_renewal(rt_engine *e, rt_renewal *r) {
    if (r == NULL) return;
    r->cmd.done = renewal_done;
    r->cmd.ctx = e;
    submit_own(e, &r->cmd);
}

/* Takes the flight along in `r`, or in a new one. NULL: out of memory. */
static rt_renewal *renew(rt_engine *e, rt_renewal *r, rt_flight *flight) {
    if (r != NULL && r->count == RT_RENEW_MAX) {
        submit_renewal(e, r);
        r = NULL;
    }
    if (r == NULL) {
        r = malloc(sizeof *r);
        if (r == NULL) return NULL;
        rt_renewal_init(r);
    }
    r->of[r->count].job = flight->job;
    r->of[r->count].token = flight->token;
    r->of[r->count++].until_ms = flight->until_ms;
    rt_flights_renew(&e->flights, flight);
    return r;
}

static bool has_lease_to_renew(const rt_engine *e, const rt_flight *flight) {
    return !e->store->sole_owner && flight->lease_until_ms < flight->until_ms && e->now_ms < flight->until_ms;
}

static void look_at_flights(rt_engine *e) {
    rt_flight *flight;
    rt_renewal *renewal = NULL;
    while ((flight = rt_flights_overdue(&e->flights, e->now_ms)) != NULL) {
        if (has_lease_to_renew(e, flight)) {
            renewal = renew(e, renewal, flight);
            if (renewal != NULL) continue;
            flight->lease_until_ms = flight->until_ms; // no memory: it is as good as lost
        }
        const rt_outcome lost = {
            .job = flight->job, .token = flight->token, .reason = RT_REASON_LOST, .retry_after_ms = -1};
        rt_upkeep_outcome(e, &lost);
        if (flight->settling) continue;
        (void)rt_heap_set(&e->flights.deadlines, &flight->deadline, e->now_ms + RT_STORE_PAUSE_MS);
        break; // no memory: try again a little later
    }
    submit_renewal(e, renewal);
}

/* ---- circuits ------------------------------------------------------------------------------------------------------ */

static void trip_done(rt_command *cmd) {
    rt_engine *e = cmd->ctx;
    if (must_repeat(cmd)) {
        submit_own(e, cmd);
        return;
    }
    rt_circuit_trip *c = (rt_circuit_trip *)cmd;
    rt_lane *lane = rt_map_get(&e->schedule.lanes, c->queue);
    if (lane != NULL) {
        rt_circuit_trip_end(c, lane, e->now_ms);
        rt_schedule_turn(&e->schedule, lane);
    }
    rt_waiting_wake_all(&e->waiting);
    free(c);
}

static void submit_trip(rt_engine *e, rt_lane *lane) {
    rt_circuit_trip *c = malloc(sizeof *c);
    if (c == NULL) return; // the next failure tries again
    rt_circuit_trip_begin(c, lane);
    c->cmd.done = trip_done;
    c->cmd.ctx = e;
    submit_own(e, &c->cmd);
}

void rt_upkeep_lesson(rt_engine *e, const rt_lesson *lesson) {
    rt_lane *lane = rt_map_get(&e->schedule.lanes, lesson->queue);
    if (lane != NULL && rt_circuit_note(lane, lesson, e->now_ms)) submit_trip(e, lane);
}

void rt_upkeep_circuit(rt_engine *e, rt_lane *lane) {
    if (lane->brakes != NULL && rt_circuit_has_news(lane->brakes, e->now_ms)) submit_trip(e, lane);
}

static void ask_done(rt_command *cmd) {
    if (must_repeat(cmd)) submit_own(cmd->ctx, cmd);
    else free(cmd);
}

void rt_upkeep_ask(rt_engine *e, rt_id queue) {
    rt_starts_ask *c = malloc(sizeof *c);
    if (c == NULL) return; // it asks again
    rt_starts_ask_init(c);
    c->queue = queue;
    c->cmd.done = ask_done;
    c->cmd.ctx = e;
    submit_own(e, &c->cmd);
}

/* Others are told, and heard, also a while after the last lesson. */
static void look_at_circuits(rt_engine *e) {
    size_t at = 0;
    for (rt_lane *lane; (lane = rt_map_next(&e->schedule.lanes, &at)) != NULL;) {
        rt_upkeep_circuit(e, lane);
        if (lane->brakes != NULL && rt_circuit_listens(lane->brakes, e->now_ms))
            rt_schedule_turn(&e->schedule, lane); // its record is read again then
    }
}

/* ---- expiry -------------------------------------------------------------------------------------------------------- */

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
    submit_own(e, &e->expiry.cmd);
}

/* ---- orders -------------------------------------------------------------------------------------------------------- */

static void patrol_done(rt_command *cmd);

static void patrol_on(rt_engine *e) {
    e->patrol_busy = true;
    rt_order_patrol_init(&e->patrol);
    e->patrol.cmd.done = patrol_done;
    e->patrol.cmd.ctx = e;
    submit_own(e, &e->patrol.cmd);
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

/* ---- cursors ------------------------------------------------------------------------------------------------------- */

typedef struct cursor_task {
    rt_heap_node node; /* first member: sleeps until its next slice */
    rt_cursor_step step;
} cursor_task;

static cursor_task *task_of(rt_command *cmd) {
    return (cursor_task *)((char *)cmd - offsetof(cursor_task, step));
}

static void cursor_done(rt_command *cmd);

static void step_cursor(rt_engine *e, cursor_task *task) {
    const rt_id id = task->step.id;
    rt_cursor_step_init(&task->step);
    task->step.id = id;
    task->step.cmd.done = cursor_done;
    task->step.cmd.ctx = e;
    submit_own(e, &task->step.cmd);
}

static void cursor_done(rt_command *cmd) {
    rt_engine *e = cmd->ctx;
    cursor_task *task = task_of(cmd);
    if (cmd->code == RT_OK && task->step.finished) {
        e->cursors_busy--;
        free(task);
        return;
    }
    int64_t at_ms = cmd->code == RT_OK ? task->step.next_ms : e->now_ms + RT_STORE_PAUSE_MS;
    if (cmd->code == RT_E_CORRUPT) at_ms = e->now_ms + RT_CORRUPT_PAUSE_MS;
    if (at_ms < e->now_ms) at_ms = e->now_ms;
    if (!rt_heap_set(&e->cursors, &task->node, at_ms)) step_cursor(e, task);
}

void rt_upkeep_cursor(rt_engine *e, rt_id id) {
    cursor_task *task = calloc(1, sizeof *task);
    if (task == NULL) {
        e->cursors_pending = true; // it is on disk: found by the next look at all of them
        return;
    }
    *task = (cursor_task){.node = {.tie = id}, .step = {.id = id}};
    e->cursors_busy++;
    if (!rt_heap_set(&e->cursors, &task->node, e->now_ms)) step_cursor(e, task);
}

static bool add_cursor(void *ctx, const rt_doc *doc) {
    if (doc->name.len == 8) rt_upkeep_cursor(ctx, rt_get_be64((const unsigned char *)doc->name.ptr));
    return true;
}

/* What is durable, for a look at all of it. NULL: the store does not answer; asked again after a pause. */
static rt_view *look(rt_engine *e) {
    rt_view *view;
    const rt_code code = rt_store_view(e->store, &view, &e->err);
    if (code == RT_OK) return view;
    e->trouble = code;
    e->trouble_why = e->err;
    e->store_pause_until_ms = e->now_ms + RT_STORE_PAUSE_MS;
    return NULL;
}

/* At the start, and when one could not be noted: only while none is known, or one would be carried on twice. */
static void find_cursors(rt_engine *e) {
    if (!e->cursors_pending || e->cursors_busy > 0 || e->now_ms < e->store_pause_until_ms) return;
    rt_view *view = look(e);
    if (view == NULL) return;
    e->cursors_pending =
        rt_view_docs(view, RT_DOC_CURSOR, RT_STR_EMPTY, RT_STR_EMPTY, add_cursor, e) != RT_OK;
    rt_view_close(view);
}

static void carry_on(rt_engine *e) {
    for (;;) {
        rt_heap_node *first = rt_heap_first(&e->cursors);
        if (first == NULL || first->at_ms > e->now_ms) return;
        rt_heap_remove(&e->cursors, first);
        step_cursor(e, (cursor_task *)first);
    }
}

/* ---- wake times ---------------------------------------------------------------------------------------------------- */

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
    rt_view *view = look(e);
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
    look_at_circuits(e);
    if (e->now_ms < e->look_at_ms) return;
    e->look_at_ms = e->now_ms + RT_LOOK_MS;
    e->wakes_pending = true;
    e->cursors_pending = true; // of a node that is gone
    if (e->expiry_at_ms > e->now_ms) e->expiry_at_ms = e->now_ms;
    if (e->patrol_at_ms == INT64_MAX) e->patrol_at_ms = e->now_ms + e->settings.schedule_period_ms;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------ */

void rt_upkeep(rt_engine *e) {
    poll_others(e);
    find_wakes(e);
    find_cursors(e);
    look_at_flights(e);
    rt_waiting_end_overdue(&e->waiting, e->now_ms);
    sweep(e);
    patrol(e);
    carry_on(e);
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
    rt_heap_node *node;
    while ((node = rt_heap_first(&e->cursors)) != NULL) {
        rt_heap_remove(&e->cursors, node);
        free((cursor_task *)node);
    }
    rt_heap_deinit(&e->cursors);
    // What still waits is ours: outcomes and cursor steps. Expiry step and patrol live in the engine.
    rt_command *cmd;
    while ((cmd = rt_command_list_pop(&e->own)) != NULL) {
        if (cmd->done == settle_done) free_settle((own_settle *)cmd);
        else if (cmd->done == cursor_done) free(task_of(cmd));
        else if (cmd->done == renewal_done) free(cmd);
        else if (cmd->done == trip_done) free(cmd);
    }
}
