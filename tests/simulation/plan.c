#include "plan.h"

uint64_t draw(rt_rng *rng, uint64_t low, uint64_t high) {
    RT_ASSERT(low <= high);
    return low + rt_rng_below(rng, high - low + 1);
}

bool chance(rt_rng *rng, uint32_t permille) { return rt_rng_below(rng, 1000) < permille; }

/* Nothing in half of all worlds, so that each fault is also seen alone; otherwise up to `most`. */
static uint16_t some(rt_rng *rng, uint16_t most) {
    return chance(rng, 500) ? 0 : (uint16_t)draw(rng, 1, most);
}

static void plan_faults(plan *p, rt_rng *rng) {
    // One draw a statement, here and elsewhere: C leaves the order within an initializer to the compiler.
    p->faults.again = some(rng, 300);
    p->faults.conflict = some(rng, 150);
    p->faults.full = some(rng, 60);
    p->faults.broken = some(rng, 20);
    p->faults.failed = some(rng, 100);
    p->faults.late = some(rng, 400);
    p->faults.unavailable = some(rng, 50);
    p->fault_spells = (uint32_t)some(rng, 2);
    p->crashes = some(rng, 5);
    p->stops = some(rng, 2);
    p->crashes_at_commit = some(rng, 4);
    p->one_stays_down = p->nodes > 1 && chance(rng, 300);
    p->pauses = some(rng, 3);
    p->jumps = chance(rng, 250) ? (uint32_t)draw(rng, 1, 3) : 0;
    p->lost = some(rng, 40);
    p->late = some(rng, 40);
    p->lies = some(rng, 40);
    p->failing = (uint32_t)draw(rng, 0, 900);
}

static void plan_settings(plan *p, rt_rng *rng) {
    p->settings = rt_engine_settings_default();
    if (chance(rng, 500)) p->settings.in_flight_max = (uint32_t)draw(rng, 2, 12);
    if (chance(rng, 300)) p->settings.in_flight_bytes_max = draw(rng, 2000, 20000);
    if (chance(rng, 500)) p->settings.queue_in_flight_max = (uint32_t)draw(rng, 1, 6);
    if (chance(rng, 300)) p->settings.batch_commands_max = (uint32_t)draw(rng, 1, 8);
}

static void plan_disk(plan *p, rt_rng *rng) {
    p->disk.tag = (uint32_t)rt_rng_next(rng);
    p->disk.sole_owner = p->nodes == 1 && !chance(rng, 150);
    p->disk.commit_waits = chance(rng, 400);
    if (chance(rng, 50)) p->disk.jobs_max = (uint32_t)draw(rng, 20, 200);
    if (!chance(rng, 400)) return;
    p->disk.retention.age_ms = (int64_t)draw(rng, 1, 600) * 1000;
    // Wide enough for the events of one batch: what is written and trimmed at once leaves nothing to check.
    p->disk.retention.events = draw(rng, 300, 900);
}

plan plan_of(uint64_t seed) {
    rt_rng rng = rt_rng_seeded(seed ^ 0x706c616eu);
    plan p = {.seed = seed};
    p.nodes = chance(&rng, 250) ? 2 : 1;
    p.queues = (uint32_t)draw(&rng, 1, QUEUES_MAX);
    p.endpoints = (uint32_t)draw(&rng, 1, ENDPOINTS_MAX);
    p.actions = (uint32_t)(chance(&rng, 50) ? draw(&rng, 120, 300) : draw(&rng, 15, 80));
    p.active_ms = (int64_t)(p.nodes == 2 ? draw(&rng, 5, 60) : draw(&rng, 10, 1800)) * 1000;
    p.bursts = (uint32_t)draw(&rng, 0, 400);
    p.many_subscribers = chance(&rng, 20);
    p.dead_letters = chance(&rng, 300);
    p.ttl_max_s = p.nodes == 2 ? 120 : 3600;
    p.delay_max_s = p.nodes == 2 ? 20 : 120;
    plan_disk(&p, &rng);
    if (chance(&rng, 850)) plan_faults(&p, &rng);
    plan_settings(&p, &rng);
    p.disk.loads = !p.disk.sole_owner && chance(&rng, 600);
    return p;
}
