#include "farm.h"

#include <stdlib.h>

static const int64_t EPOCH_MS = INT64_C(1790000000000);
enum { STEPS_MAX = 400000, REST_MS = 400000, AT_ONCE_MAX = 3000 };

const char *const TYPE_NAMES[TYPES] = {"web", "ordered", "pull", "fragile", "narrow", "last"};

int64_t farm_wall_ms(const farm *f) { return f->now_ms + f->offset_ms; }
bool farm_chance(farm *f, uint32_t permille) { return rt_rng_below(&f->rng, 1000) < permille; }
int64_t farm_draw(farm *f, int64_t low, int64_t high) {
    return low + (int64_t)rt_rng_below(&f->rng, (uint64_t)(high - low) + 1);
}

/* ---- types --------------------------------------------------------------------------------------------- */

bool type_is_pulled(uint32_t type) { return type == 2 || type == 3 || type == 5; }

rt_call_type type_like(uint32_t type) {
    rt_call_type t = {
        .delivery = rt_delivery_policy_default(),
        .target = type_is_pulled(type) ? RT_STR_EMPTY : RT_STR("http://t/"),
        .backoff = {.given = true,
                    .descriptor = {.initial_ns = 1000000000,
                                   .maximum_ns = UINT64_C(4000000000),
                                   .exponent = 2}},
        .circuit = rt_circuit_settings_default(),
        .pace = {.initial_ms = 100, .maximum_ms = 2000},
        .buckets = 3,
        .json = RT_STR("{}"),
    };
    t.delivery.maximum_delay_s = 6;
    t.delivery.backoff_retries = 3;
    t.delivery.respect_retry_after = true;
    t.delivery.maximum_age_s = type == 1 || type == 3 ? MAXIMUM_AGE_S : 0;
    t.circuit.minimum_attempts = 5;
    t.circuit.sleep_s = 2;
    t.circuit.maximum_sleep_s = 10;
    t.circuit.probes = 2;
    t.circuit.release_per_s = 20;
    t.circuit.max_open_s = 30;
    t.circuit.enabled = type != 4 && type != 5;
    t.policy = type == 1 || type == 3 ? RT_CALL_BACKOFF : RT_CALL_DELIVERY_POLICY;
    t.max_attempts = type == 1 || type == 3 ? 4 : 0;
    t.ordered = type == 1;
    t.pace.enabled = type == 1 || type == 5;
    t.rate_per_s = type == RATED_TYPE ? RATE_PER_S : 0;
    t.concurrency = type == 4 ? 2 : 0;
    t.dead_type = type == 3 || type == 4 ? RT_STR("last") : RT_STR_EMPTY;
    t.dead_keep_s = type == 0 ? 20 : 0;
    return t;
}

/* ---- nodes --------------------------------------------------------------------------------------------- */

static void start(farm *f, node *n) {
    static const rt_memory_faults FAULTS = {
        .again = 100, .conflict = 30, .full = 5, .broken = 5, .failed = 20, .late = 50, .unavailable = 3};
    rt_err err = {0};
    rt_engine_settings settings = rt_engine_settings_default();
    settings.lease_margin_ms = 1000;
    settings.queue_in_flight_max = 16;
    if (rt_store_memory_attach(f->disk, rt_rng_next(&f->rng), &n->store, &err) != RT_OK) abort();
    rt_store_memory_set_faults(n->store, f->calm ? &(rt_memory_faults){0} : &FAULTS);
    n->farm = f;
    n->life = ++f->lives;
    f->started_ms = f->now_ms;
    const rt_executor executor = target_executor(n);
    if (rt_engine_open(n->store, &executor, &settings, rt_rng_next(&f->rng), &n->engine, &err) != RT_OK)
        abort();
    n->wake_ms = f->now_ms;
}

static void crash(farm *f, node *n) {
    f->crashed_ms = f->now_ms;
    n->life = 0; // whoever is answered from here on was never answered
    target_forget(f, n);
    rt_engine_close(n->engine);
    rt_store_close(n->store);
    n->engine = NULL;
    n->store = NULL;
    n->up_ms = f->now_ms + farm_draw(f, 0, 8000);
}

static void step(farm *f, node *n) {
    const int64_t next_ms = rt_engine_step(n->engine, farm_wall_ms(f));
    n->wake_ms = next_ms == INT64_MAX ? INT64_MAX : next_ms - f->offset_ms;
    if (n->wake_ms < f->now_ms) n->wake_ms = f->now_ms;
    // What one batch could not do is tried again a moment later; that must not become a habit.
    if (n->wake_ms == f->now_ms) n->wake_ms += farm_chance(f, 100) ? 1 : 0;
    if (rt_store_memory_untold(n->store) > 0 && n->wake_ms > f->now_ms + 5) n->wake_ms = f->now_ms + 5;
}

bool farm_submit(farm *f, request *r) {
    const uint32_t first = (uint32_t)rt_rng_below(&f->rng, f->nodes_count);
    for (uint32_t i = 0; i < f->nodes_count; i++) {
        node *n = &f->nodes[(first + i) % f->nodes_count];
        if (n->life == 0) continue;
        r->life = n->life;
        n->wake_ms = f->now_ms;
        rt_engine_submit(n->engine, &r->as.cmd);
        return true;
    }
    return false;
}

/* ---- time ---------------------------------------------------------------------------------------------- */

static void jump(farm *f) {
    const int64_t by_ms = farm_draw(f, -30000, 30000);
    if (farm_wall_ms(f) > f->latest_ms) f->latest_ms = farm_wall_ms(f);
    f->offset_ms += farm_chance(f, 250) ? by_ms * 10 : by_ms / 10;
    f->jumped_ms = f->now_ms;
    f->set_back = f->set_back || by_ms < 0;
    for (uint32_t i = 0; i < f->nodes_count; i++) f->nodes[i].wake_ms = f->now_ms;
    f->jump_ms = f->now_ms + farm_draw(f, 5000, 60000);
}

static void disturb(farm *f) {
    if (f->now_ms >= f->jump_ms) jump(f);
    if (f->now_ms >= f->flip_ms) {
        f->down[rt_rng_below(&f->rng, TYPES)] = farm_chance(f, 500);
        f->flip_ms = f->now_ms + farm_draw(f, 500, 6000);
    }
    if (f->now_ms < f->crash_ms) return;
    node *n = &f->nodes[rt_rng_below(&f->rng, f->nodes_count)];
    if (n->life != 0) crash(f, n);
    f->crash_ms = f->now_ms + farm_draw(f, 3000, 40000);
}

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t next_ms(const farm *f) {
    int64_t next = target_next_ms(f);
    if (!f->calm) next = earlier(earlier(next, f->flip_ms), earlier(f->jump_ms, f->crash_ms));
    for (uint32_t i = 0; i < f->nodes_count; i++)
        next = earlier(next, f->nodes[i].life == 0 ? f->nodes[i].up_ms : f->nodes[i].wake_ms);
    for (uint32_t i = 0; i < CALLERS + WORKERS; i++) next = earlier(next, f->people[i].wake_ms);
    return next;
}

static void live(farm *f, int64_t until_ms) {
    uint32_t at_once = 0;
    for (uint32_t steps = 0; f->now_ms < until_ms; steps++) {
        MUST(f, steps < STEPS_MAX, "it goes on and on");
        const int64_t next = next_ms(f);
        at_once = next <= f->now_ms ? at_once + 1 : 0;
        MUST(f, at_once < AT_ONCE_MAX, "a node asks to be stepped again and again");
        f->now_ms = next < f->now_ms ? f->now_ms : earlier(next, until_ms);
        if (!f->calm) disturb(f);
        target_answer(f);
        for (uint32_t i = 0; i < CALLERS + WORKERS; i++) {
            if (f->people[i].wake_ms <= f->now_ms) person_act(f, i);
        }
        for (uint32_t i = 0; i < f->nodes_count; i++) {
            node *n = &f->nodes[i];
            if (n->life == 0 && n->up_ms <= f->now_ms) start(f, n);
            if (n->life != 0 && n->wake_ms <= f->now_ms) step(f, n);
        }
    }
}

/* ---- a run --------------------------------------------------------------------------------------------- */

typedef struct setup {
    union {
        rt_command cmd;
        rt_call_type_put put;
        rt_queue_circuit circuit;
        rt_queue_pause pause;
    } as;
    bool done;
} setup;

static void set_up_done(rt_command *cmd) { ((setup *)cmd)->done = true; }

static void run(farm *f, setup *s) {
    do {
        s->done = false;
        s->as.cmd.done = set_up_done;
        rt_engine_submit(f->nodes[0].engine, &s->as.cmd);
        while (!s->done) step(f, &f->nodes[0]);
    } while (s->as.cmd.code != RT_OK);
}

static void put_type(farm *f, uint32_t type) {
    setup s;
    rt_call_type_put_init(&s.as.put);
    s.as.put.tenant = TENANT;
    s.as.put.name = rt_str_of(TYPE_NAMES[type]);
    s.as.put.like = type_like(type);
    run(f, &s);
}

static bool note_queue(void *ctx, const rt_queue *queue) {
    farm *f = ctx;
    rt_str tenant, name;
    if (!rt_call_type_split(queue->name, &tenant, &name)) return true;
    for (uint32_t i = 0; i < TYPES; i++) {
        if (rt_str_eq(rt_str_of(TYPE_NAMES[i]), name)) f->queues[i] = queue->id;
    }
    return true;
}

static void make_types(farm *f) {
    for (uint32_t i = 0; i < TYPES; i++) put_type(f, i);
    rt_view *view = rt_memory_disk_view(f->disk);
    if (view == NULL || rt_view_queues(view, 0, note_queue, f) != RT_OK) abort();
    rt_view_close(view);
}

/* Nobody stands in the way any more: what waits must end by itself. */
static void let_go(farm *f) {
    for (uint32_t i = 0; i < TYPES; i++) {
        put_type(f, i);
        setup s;
        rt_queue_circuit_init(&s.as.circuit);
        s.as.circuit.id = f->queues[i];
        s.as.circuit.order = RT_CIRCUIT_AUTO;
        run(f, &s);
        rt_queue_pause_init(&s.as.pause);
        s.as.pause.id = f->queues[i];
        run(f, &s);
    }
}

static void end_well(farm *f) {
    f->calm = true;
    for (uint32_t i = 0; i < f->nodes_count; i++) {
        node *n = &f->nodes[i];
        if (n->life == 0) start(f, n);
        rt_store_memory_set_faults(n->store, &(rt_memory_faults){0});
    }
    live(f, f->now_ms + 10000); // callers hear the end of what they asked for
    let_go(f);
    const int64_t behind_ms = f->latest_ms - farm_wall_ms(f); // what is due by a clock that was set back since
    live(f, f->now_ms + REST_MS + (behind_ms > 0 ? behind_ms : 0));
    rt_view *view = rt_memory_disk_view(f->disk);
    if (view == NULL) abort();
    account_close(f, view);
    rt_view_close(view);
}

uint64_t farm_run(uint64_t seed) {
    farm *f = calloc(1, sizeof *f);
    if (f == NULL) abort();
    *f = (farm){.seed = seed, .rng = rt_rng_seeded(seed), .offset_ms = EPOCH_MS, .next_number = 1};
    f->nodes_count = 1 + (uint32_t)rt_rng_below(&f->rng, NODES_MAX);
    const rt_store_memory_config config = {.tag = 7, .sole_owner = f->nodes_count == 1};
    f->disk = rt_memory_disk_new(&config);
    if (f->disk == NULL) abort();
    rt_memory_disk_watch(f->disk, account_landed, f);
    f->jump_ms = farm_draw(f, 0, 60000);
    f->crash_ms = farm_draw(f, 0, 30000);
    f->jumped_ms = INT64_MIN / 2;
    for (uint32_t i = 0; i < f->nodes_count; i++) start(f, &f->nodes[i]);
    make_types(f);
    for (uint32_t i = 0; i < CALLERS + WORKERS; i++) f->people[i].wake_ms = farm_draw(f, 0, 1000);
    live(f, ACTIVE_MS);
    end_well(f);
    for (uint32_t i = 0; i < f->nodes_count; i++) crash(f, &f->nodes[i]);
    MUST(f, f->requests_open == 0, "every request has its end");
    rt_memory_disk_free(f->disk);
    rt_map_deinit(&f->account.by_id);
    rt_arena_deinit(&f->arena);
    const uint64_t hash = f->account.hash;
    free(f);
    return hash;
}
