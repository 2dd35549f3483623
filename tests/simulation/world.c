#include "world.h"

#include <stdlib.h>

static const int64_t EPOCH_MS = INT64_C(1790000000000);

int64_t world_wall_ms(const world *w) { return w->now_ms + w->offset_ms; }

void world_appoint(world *w, appointment *a, int64_t in_ms) {
    RT_ASSERT(in_ms >= 0);
    a->node.tie = ++w->ties;
    if (!rt_heap_set(&w->agenda, &a->node, w->now_ms + in_ms)) abort();
}

/* ---- what happens by itself ---------------------------------------------------------------------------- */

/* Things that were planned own their memory: gone when they have happened. */
static void plan_one(world *w, void (*happen)(world *w, appointment *a), uint32_t number, int64_t in_ms) {
    appointment *a = calloc(1, sizeof *a);
    if (a == NULL) abort();
    a->happen = happen;
    a->number = number;
    world_appoint(w, a, in_ms);
}

static void act(world *w, appointment *a) {
    free(a);
    uint32_t count = 1;
    if (chance(&w->rng, w->plan.bursts)) count += (uint32_t)draw(&w->rng, 1, 6);
    for (uint32_t i = 0; i < count; i++) client_act(w);
}

static void change_mood(world *w, appointment *a) {
    free(a);
    endpoint_change_mood(w);
}

static void restart(world *w, appointment *a) {
    node *n = &w->nodes[a->number];
    free(a);
    if (n->life == 0) node_start(w, n);
}

void world_crash(world *w, node *n) {
    node_crash(w, n);
    const int64_t down_ms =
        chance(&w->rng, 700) ? (int64_t)draw(&w->rng, 0, 2000) : (int64_t)draw(&w->rng, 0, 120000);
    plan_one(w, restart, n->number, down_ms);
}

static void crash(world *w, appointment *a) {
    node *n = &w->nodes[a->number];
    free(a);
    if (n->life != 0) world_crash(w, n);
}

static void stop(world *w, appointment *a) {
    node *n = &w->nodes[a->number];
    free(a);
    if (n->life != 0 && !n->stopping) node_stop(n);
}

static void resume(world *w, appointment *a) {
    node *n = &w->nodes[a->number];
    free(a);
    if (!n->paused) return;
    n->paused = false;
    trace_note(&w->trace, "resume", n->number, 0);
}

void world_pause(world *w, node *n) {
    n->paused = true;
    trace_note(&w->trace, "pause", n->number, 0);
    plan_one(w, resume, n->number, (int64_t)draw(&w->rng, 10, 90000));
}

static void pause(world *w, appointment *a) {
    node *n = &w->nodes[a->number];
    free(a);
    if (n->life != 0 && !n->paused) world_pause(w, n);
}

static void jump(world *w, appointment *a) {
    free(a);
    const int64_t by_ms = (int64_t)draw(&w->rng, 0, 7200000) - 3600000;
    const int64_t jump_ms = chance(&w->rng, 500) ? by_ms : by_ms / 1000;
    w->offset_ms += jump_ms;
    if (jump_ms < 0) w->back_ms -= jump_ms;
    w->jumps++;
    for (uint32_t i = 0; i < w->plan.nodes; i++) {
        if (w->nodes[i].life != 0) w->nodes[i].wake_ms = w->now_ms; // a driver's timer follows the wall clock
    }
    trace_note(&w->trace, "clock", (uint64_t)w->offset_ms, 0);
}

static void end_spell(world *w, appointment *a) {
    free(a);
    if (!w->draining) node_set_faults(w, &w->plan.faults);
}

static void begin_spell(world *w, appointment *a) {
    free(a);
    if (w->draining) return;
    rt_memory_faults faults = w->plan.faults;
    if (chance(&w->rng, 500)) faults.unavailable = 1000;
    else faults.full = 1000;
    node_set_faults(w, &faults);
    trace_note(&w->trace, "spell", faults.unavailable, faults.full);
    plan_one(w, end_spell, 0, (int64_t)draw(&w->rng, 100, 20000));
}

static void plan_many(world *w, uint32_t count, void (*happen)(world *w, appointment *a), uint32_t numbers) {
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t number = (uint32_t)rt_rng_below(&w->rng, numbers);
        plan_one(w, happen, number, (int64_t)rt_rng_below(&w->rng, (uint64_t)w->plan.active_ms));
    }
}

/* ---- the run ------------------------------------------------------------------------------------------- */

static void open_world(world *w, uint64_t seed, bool verbose) {
    *w = (world){.plan = plan_of(seed), .rng = rt_rng_seeded(seed), .offset_ms = EPOCH_MS};
    const plan *p = &w->plan;
    trace_init(&w->trace, seed, verbose);
    ledger_init(&w->ledger, &w->trace);
    w->disk = rt_memory_disk_new(&p->disk);
    if (w->disk == NULL) abort();
    rt_memory_disk_watch(w->disk, check_landed, w);
    check_init(w);
    client_init(w);
    for (uint32_t i = 0; i < p->endpoints; i++) endpoint_change_mood(w);
    for (uint32_t i = 0; i < p->nodes; i++) {
        w->nodes[i] = (node){.world = w, .number = i, .wake_ms = INT64_MAX};
        node_start(w, &w->nodes[i]);
    }
    plan_many(w, p->actions, act, 1);
    plan_many(w, p->endpoints * 2, change_mood, 1);
    plan_many(w, p->fault_spells, begin_spell, 1);
    plan_many(w, p->crashes, crash, p->nodes);
    plan_many(w, p->stops, stop, p->nodes);
    plan_many(w, p->pauses, pause, p->nodes);
    plan_many(w, p->jumps, jump, 1);
    for (uint32_t i = 0; i < p->crashes_at_commit; i++) w->crash_at_landed[i] = draw(&w->rng, 1, 100);
}

static void close_world(world *w) {
    for (uint32_t i = 0; i < w->plan.nodes; i++) {
        if (w->nodes[i].life != 0) node_crash(w, &w->nodes[i]);
    }
    endpoint_deinit(w);
    client_deinit(w);
    check_deinit(w);
    rt_heap_node *left;
    while ((left = rt_heap_first(&w->agenda)) != NULL) {
        rt_heap_remove(&w->agenda, left);
        free(left);
    }
    rt_heap_deinit(&w->agenda);
    rt_memory_disk_free(w->disk);
    ledger_deinit(&w->ledger);
}

static int64_t next_ms(const world *w) {
    const rt_heap_node *first = rt_heap_first(&w->agenda);
    int64_t next = first == NULL ? INT64_MAX : first->at_ms;
    for (uint32_t i = 0; i < w->plan.nodes; i++) {
        const node *n = &w->nodes[i];
        if (n->life == 0 || n->paused) continue;
        if (n->input) return w->now_ms;
        if (n->wake_ms < next) next = n->wake_ms;
    }
    return next;
}

/* One moment: what stands in the agenda for it, then every node that has something to do. False: nothing is
 * left. */
static bool live_on(world *w) {
    const int64_t next = next_ms(w);
    if (next == INT64_MAX) return false;
    if (next > w->now_ms) w->now_ms = next;
    w->trace.at_ms = w->now_ms;
    if (w->draining) check_in_time(w);
    rt_heap_node *first;
    while ((first = rt_heap_first(&w->agenda)) != NULL && first->at_ms <= w->now_ms) {
        rt_heap_remove(&w->agenda, first);
        appointment *a = (appointment *)first;
        a->happen(w, a);
        if (chance(&w->rng, 500)) break; // what comes together need not meet the same step
    }
    for (uint32_t i = 0; i < w->plan.nodes; i++) {
        node *n = &w->nodes[i];
        if (n->life != 0 && !n->paused && (n->input || n->wake_ms <= w->now_ms)) node_step(w, n);
    }
    return true;
}

static void stop_faults(world *w) {
    w->draining = true;
    w->drain_ms = w->now_ms;
    trace_note(&w->trace, "drain", 0, 0);
    node_set_faults(w, &(const rt_memory_faults){0});
    for (uint32_t i = 0; i < w->plan.nodes; i++) {
        node *n = &w->nodes[i];
        n->paused = false;
        if (n->stopping && n->life != 0) node_crash(w, n);
        if (n->life == 0) node_start(w, n);
        n->wake_ms = w->now_ms;
    }
    if (w->plan.one_stays_down) node_crash(w, &w->nodes[rt_rng_below(&w->rng, w->plan.nodes)]);
}

/* An hour without anything to do; less where nodes look every moment for what others left. */
static void be_quiet(world *w) {
    const uint64_t before = w->steps;
    const int64_t until_ms = w->now_ms + (w->plan.disk.sole_owner ? 3600000 : 45000);
    while (next_ms(w) <= until_ms && live_on(w)) {}
    w->quiet_steps = (uint32_t)(w->steps - before);
}

tally world_run(uint64_t seed, bool verbose) {
    world w;
    open_world(&w, seed, verbose);
    while (w.now_ms < w.plan.active_ms && live_on(&w)) {}
    stop_faults(&w);
    // Whoever paused a queue for good resumes it; then everything that was promised must come to its end by
    // itself.
    while (!client_resume_all(&w)) (void)live_on(&w);
    while (!check_has_ended(&w) && live_on(&w)) {}
    be_quiet(&w);
    check_ended(&w);
    const tally t = {
        .hash = w.trace.hash,
        .steps = w.steps,
        .batches = w.landed,
        .messages = w.ledger.messages_count,
        .deliveries = w.deliveries,
        .attempts = w.attempts,
        .crashes = w.lives - w.plan.nodes,
    };
    close_world(&w);
    return t;
}
