#include "fleet.h"

#include <stdlib.h>
#include <string.h>

#include "store/lmdb/store_lmdb.h"

static const int64_t EPOCH_MS = INT64_C(1790000000000);
enum { STEPS_MAX = 200000, REST_MS = 60000 };

const char *const ENTITY_NAMES[ENTITIES] = {"m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9"};
const char *const PROCESS_NAMES[PROCESSES] = {"start", "recover", "access"};

rt_backoff process_backoff(uint32_t process) {
    static const double EXPONENTS[PROCESSES] = {1.1, 2, 1};
    return (rt_backoff){.given = true,
                        .descriptor = {.initial_ns = 1000000000,
                                       .maximum_ns = UINT64_C(8500000000),
                                       .exponent = EXPONENTS[process]}};
}

int64_t fleet_wall_ms(const fleet *f) { return f->now_ms + f->offset_ms; }

static uint64_t below(fleet *f, uint64_t bound) { return rt_rng_below(&f->rng, bound); }

/* ---- nodes --------------------------------------------------------------------------------------------- */

static void start_nothing(void *ctx, rt_attempt *attempt) {
    (void)ctx;
    rt_attempt_free(attempt);
    abort();
}

static void open_store(fleet *f, node *n) {
    static const rt_memory_faults FAULTS = {
        .again = 100, .conflict = 30, .full = 5, .broken = 5, .failed = 20, .late = 50, .unavailable = 3};
    rt_err err = {0};
    if (f->lmdb == NULL) {
        if (rt_store_memory_attach(f->disk, rt_rng_next(&f->rng), &n->store, &err) != RT_OK) abort();
        rt_store_memory_set_faults(n->store, f->calm ? &(rt_memory_faults){0} : &FAULTS);
        return;
    }
    const rt_store_lmdb_config config = {.dir = f->lmdb,
                                         .map_bytes = 256u << 20,
                                         .retention = {.age_ms = INT64_C(1) << 40, .events = 1000000}};
    if (rt_store_lmdb_open(&config, &n->store, &err) != RT_OK)
        account_failed(f, "the store opens", "%s", err.msg);
}

static void start(fleet *f, node *n) {
    rt_err err = {0};
    const rt_executor executor = {.start = start_nothing};
    const rt_engine_settings settings = rt_engine_settings_default();
    open_store(f, n);
    n->life = ++f->lives;
    if (rt_engine_open(n->store, &executor, &settings, rt_rng_next(&f->rng), &n->engine, &err) != RT_OK)
        abort();
    n->wake_ms = f->now_ms;
}

static void crash(fleet *f, node *n) {
    n->life = 0; // whoever is answered from here on was never answered
    rt_engine_close(n->engine);
    rt_store_close(n->store);
    n->engine = NULL;
    n->store = NULL;
    n->up_ms = f->now_ms + (int64_t)below(f, 8000);
}

static rt_view *look(fleet *f, node *n) {
    rt_err err;
    rt_view *view = NULL;
    if (f->lmdb == NULL) return rt_memory_disk_view(f->disk);
    return rt_store_view(n->store, &view, &err) == RT_OK ? view : NULL;
}

static void step(fleet *f, node *n) {
    const int64_t next_ms = rt_engine_step(n->engine, fleet_wall_ms(f));
    n->wake_ms = next_ms == INT64_MAX ? INT64_MAX : next_ms - f->offset_ms;
    if (n->wake_ms < f->now_ms) n->wake_ms = f->now_ms;
    const bool untold = f->lmdb == NULL && rt_store_memory_untold(n->store) > 0;
    if (untold && n->wake_ms > f->now_ms + 5) n->wake_ms = f->now_ms + 5;
    rt_view *view = look(f, n);
    if (view == NULL) abort();
    account_take(f, view);
    rt_view_close(view);
}

bool fleet_submit(fleet *f, request *r) {
    const uint32_t first = (uint32_t)below(f, f->nodes_count);
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

static void jump(fleet *f) {
    const int64_t by_ms = (int64_t)below(f, 60000) - 30000;
    f->offset_ms += below(f, 4) == 0 ? by_ms * 100 : by_ms / 10;
    for (uint32_t i = 0; i < f->nodes_count; i++) f->nodes[i].wake_ms = f->now_ms;
    f->jump_ms = f->now_ms + 5000 + (int64_t)below(f, 40000);
}

static void disturb(fleet *f) {
    if (f->now_ms >= f->jump_ms) jump(f);
    if (f->now_ms < f->crash_ms) return;
    node *n = &f->nodes[below(f, f->nodes_count)];
    if (n->life != 0) crash(f, n);
    f->crash_ms = f->now_ms + 3000 + (int64_t)below(f, 30000);
}

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

/* When something happens next. Workers who have gone do nothing any more. */
static int64_t next_ms(const fleet *f, bool workers) {
    int64_t next = f->calm ? INT64_MAX : earlier(f->jump_ms, f->crash_ms);
    for (uint32_t i = 0; i < f->nodes_count; i++) {
        next = earlier(next, f->nodes[i].life == 0 ? f->nodes[i].up_ms : f->nodes[i].wake_ms);
    }
    for (uint32_t i = 0; workers && i < WORKERS; i++) next = earlier(next, f->workers[i].wake_ms);
    return next;
}

static void live(fleet *f, int64_t until_ms, bool workers) {
    for (uint32_t steps = 0; f->now_ms < until_ms; steps++) {
        MUST(f, steps < STEPS_MAX, "it goes on and on");
        const int64_t next = next_ms(f, workers);
        f->now_ms = next < f->now_ms ? f->now_ms : earlier(next, until_ms);
        if (!f->calm) disturb(f);
        for (uint32_t i = 0; workers && i < WORKERS; i++) {
            if (f->workers[i].wake_ms <= f->now_ms) worker_act(f, i);
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
    rt_process_put process;
    bool done;
} setup;

static void set_up_done(rt_command *cmd) { ((setup *)cmd)->done = true; }

static void register_processes(fleet *f) {
    for (uint32_t i = 0; i < PROCESSES; i++) {
        setup s = {.done = false};
        rt_process_put_init(&s.process);
        s.process.tenant = TENANT;
        s.process.name = rt_str_of(PROCESS_NAMES[i]);
        s.process.like.backoff = process_backoff(i);
        if (i == 0) s.process.like.excludes[s.process.like.excludes_count++] = rt_str_of(PROCESS_NAMES[1]);
        do {
            s.done = false;
            s.process.cmd.done = set_up_done;
            rt_engine_submit(f->nodes[0].engine, &s.process.cmd);
            while (!s.done) step(f, &f->nodes[0]);
        } while (s.process.cmd.code != RT_OK);
    }
}

/* Faults stop; workers go on for a while, so that they hear the end of what they asked for; then they are
 * gone. */
static void end_well(fleet *f) {
    f->calm = true;
    for (uint32_t i = 0; i < f->nodes_count; i++) {
        node *n = &f->nodes[i];
        if (n->life == 0) start(f, n);
        if (f->lmdb == NULL) rt_store_memory_set_faults(n->store, &(rt_memory_faults){0});
    }
    live(f, f->now_ms + 20000, true);
    // After a clock that was set back a session lives longer than its interval.
    int64_t last_ms = fleet_wall_ms(f);
    for (uint32_t i = 0; i < f->account.sessions_count; i++) {
        if (f->account.sessions[i].deadline_ms > last_ms) last_ms = f->account.sessions[i].deadline_ms;
    }
    live(f, f->now_ms + last_ms - fleet_wall_ms(f) + REST_MS, false);
    MUST(f, f->requests_open == 0, "every request has its end");
    rt_view *view = look(f, &f->nodes[0]);
    if (view == NULL) abort();
    account_close(f, view);
    rt_view_close(view);
}

uint64_t fleet_run(uint64_t seed, const char *lmdb) {
    fleet *f = calloc(1, sizeof *f);
    if (f == NULL) abort();
    *f = (fleet){.seed = seed, .rng = rt_rng_seeded(seed), .offset_ms = EPOCH_MS, .lmdb = lmdb};
    f->nodes_count = lmdb == NULL ? 1 + (uint32_t)below(f, NODES_MAX) : 1;
    const rt_store_memory_config config = {.tag = 7, .sole_owner = f->nodes_count == 1};
    f->disk = rt_memory_disk_new(&config);
    if (f->disk == NULL) abort();
    f->jump_ms = (int64_t)below(f, 40000);
    f->crash_ms = (int64_t)below(f, 20000);
    for (uint32_t i = 0; i < f->nodes_count; i++) start(f, &f->nodes[i]);
    register_processes(f);
    for (uint32_t i = 0; i < WORKERS; i++) f->workers[i].wake_ms = (int64_t)below(f, 1000);
    live(f, ACTIVE_MS, true);
    end_well(f);
    for (uint32_t i = 0; i < f->nodes_count; i++) crash(f, &f->nodes[i]);
    rt_memory_disk_free(f->disk);
    const uint64_t hash = f->account.hash ^ f->account.counts[RT_EVENT_STARTED];
    free(f);
    return hash;
}
