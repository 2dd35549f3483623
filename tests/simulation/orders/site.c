#include "site.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/lmdb/store_lmdb.h"
#include "json/run_json.h"

static const int64_t EPOCH_MS = INT64_C(1790000000000);
enum { STEPS_MAX = 400000, END_MS = 400000 };

const char *const TYPE_NAMES[TYPES] = {"plug", "http"};

int64_t site_wall_ms(const site *s) { return s->now_ms + s->offset_ms; }
uint64_t site_below(site *s, uint64_t bound) { return rt_rng_below(&s->rng, bound); }
bool site_chance(site *s, uint32_t permille) { return site_below(s, 1000) < permille; }
int64_t site_draw(site *s, int64_t low, int64_t high) {
    return low + (int64_t)site_below(s, (uint64_t)(high - low) + 1);
}
void site_mix(site *s, uint64_t what) { s->hash = rt_hash_u64(s->hash ^ what); }

/* ---- nodes --------------------------------------------------------------------------------------------- */

static void open_store(site *s, node *n) {
    static const rt_memory_faults FAULTS = {
        .again = 100, .conflict = 30, .full = 5, .broken = 5, .failed = 20, .late = 50, .unavailable = 3};
    rt_err err = {0};
    if (s->lmdb == NULL) {
        if (rt_store_memory_attach(s->disk, rt_rng_next(&s->rng), &n->store, &err) != RT_OK) abort();
        rt_store_memory_set_faults(n->store, s->calm ? &(rt_memory_faults){0} : &FAULTS);
        return;
    }
    const rt_store_lmdb_config config = {.dir = s->lmdb,
                                         .map_bytes = 256u << 20,
                                         .retention = {.age_ms = INT64_C(1) << 40, .events = 1000000}};
    if (rt_store_lmdb_open(&config, &n->store, &err) != RT_OK)
        books_failed(s, "the store opens", "%s", err.msg);
}

static void start(site *s, node *n) {
    rt_err err = {0};
    const rt_executor executor = worker_executor(n);
    rt_engine_settings settings = rt_engine_settings_default();
    open_store(s, n);
    n->life = ++s->lives;
    (void)snprintf(n->name, sizeof n->name, "node %" PRIu32 ", life %" PRIu64, n->number, n->life);
    settings.node = n->name;
    settings.read_run = rt_run_from_text;
    settings.schedule_period_ms = PERIOD_MS;
    settings.lock_timeout_ms = LOCK_TIMEOUT_MS;
    if (rt_engine_open(n->store, &executor, &settings, rt_rng_next(&s->rng), &n->engine, &err) != RT_OK)
        abort();
    n->wake_ms = s->now_ms;
    n->paused_until_ms = 0;
}

static void crash(site *s, node *n) {
    n->life = 0; // whoever is answered from here on was never answered
    s->stepping = n;
    rt_engine_close(n->engine);
    rt_store_close(n->store);
    s->stepping = NULL;
    n->engine = NULL;
    n->store = NULL;
    worker_forget(s, n);
    n->up_ms = s->now_ms + site_draw(s, 0, 8000);
}

static void landed(void *ctx, rt_view *before, rt_view *after) {
    site *s = ctx;
    (void)before;
    s->landed++;
    books_look(s, after);
}

void site_look(site *s) {
    rt_err err;
    rt_view *view = NULL;
    if (s->lmdb == NULL || s->stepping->store == NULL) return; // the memory store tells by itself
    if (rt_store_view(s->stepping->store, &view, &err) != RT_OK) abort();
    s->landed++;
    books_look(s, view);
    rt_view_close(view);
}

static void step(site *s, node *n) {
    const uint64_t before = s->landed;
    s->stepping = n;
    const int64_t next_ms = rt_engine_step(n->engine, site_wall_ms(s));
    site_look(s);
    MUST(s, atomic_load(&rt_engine_metrics(n->engine)->orders.counts[RT_ORDER_REPAIRED]) == 0,
         "2: the patrol had something to repair");
    s->stepping = NULL;
    n->wake_ms = next_ms == INT64_MAX ? INT64_MAX : next_ms - s->offset_ms;
    if (n->wake_ms < s->now_ms) n->wake_ms = s->now_ms;
    const bool untold = s->lmdb == NULL && rt_store_memory_untold(n->store) > 0;
    if (untold && n->wake_ms > s->now_ms + 5) n->wake_ms = s->now_ms + 5;
    // What was decided by one clock is begun by another.
    if (untold && s->jump_ms != INT64_MAX && site_chance(s, 20)) s->jump_ms = s->now_ms;
    // Most of all while it has the lock, which is but for a moment.
    const bool holds = s->lock.token != 0 && rt_str_eq(s->lock.holder, rt_str_of(n->name));
    if (!s->calm && site_chance(s, holds ? 200 : 3)) n->paused_until_ms = s->now_ms + site_draw(s, 1, 15000);
    if (s->calm || before >= s->crash_at_landed || s->landed < s->crash_at_landed) return;
    s->crash_at_landed = s->landed + 1 + site_below(s, 150);
    crash(s, n);
}

static bool is_up(const site *s, const node *n) { return n->life != 0 && n->paused_until_ms <= s->now_ms; }

node *site_node(site *s) {
    const uint32_t first = (uint32_t)site_below(s, s->nodes_count);
    for (uint32_t i = 0; i < s->nodes_count; i++) {
        node *n = &s->nodes[(first + i) % s->nodes_count];
        if (is_up(s, n)) return n;
    }
    return NULL;
}

/* ---- time ---------------------------------------------------------------------------------------------- */

static void jump(site *s) {
    int64_t by_ms = site_draw(s, -30000, 30000);
    if (site_chance(s, 250)) by_ms *= 100;
    else by_ms /= 10;
    s->offset_ms += by_ms;
    if (by_ms < 0) s->back_ms -= by_ms;
    s->jumps++;
    for (uint32_t i = 0; i < s->nodes_count; i++) s->nodes[i].wake_ms = s->now_ms;
    s->jump_ms = s->now_ms + site_draw(s, 10000, 80000);
}

static void disturb(site *s) {
    if (s->now_ms >= s->jump_ms) jump(s);
    if (s->now_ms >= s->crash_ms) {
        node *n = &s->nodes[site_below(s, s->nodes_count)];
        if (n->life != 0) crash(s, n);
        s->crash_ms = s->now_ms + site_draw(s, 5000, 40000);
    }
    if (s->now_ms >= s->pause_ms) { // longer than its leases, at times
        node *n = &s->nodes[site_below(s, s->nodes_count)];
        if (n->life != 0) n->paused_until_ms = s->now_ms + site_draw(s, 100, 15000);
        s->pause_ms = s->now_ms + site_draw(s, 5000, 40000);
    }
}

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t next_of(const node *n) {
    if (n->life == 0) return n->up_ms;
    return n->wake_ms > n->paused_until_ms ? n->wake_ms : n->paused_until_ms;
}

static int64_t next_ms(const site *s) {
    int64_t next = worker_next_ms(s);
    if (!s->calm)
        next = earlier(earlier(next, s->act_ms), earlier(s->jump_ms, earlier(s->crash_ms, s->pause_ms)));
    for (uint32_t i = 0; i < s->nodes_count; i++) next = earlier(next, next_of(&s->nodes[i]));
    return next;
}

static void live_on(site *s, int64_t until_ms) {
    const int64_t next = next_ms(s);
    s->now_ms = next < s->now_ms ? s->now_ms : earlier(next, until_ms);
    if (!s->calm) disturb(s);
    if (!s->calm && s->now_ms >= s->act_ms) client_act(s);
    worker_act(s);
    for (uint32_t i = 0; i < s->nodes_count; i++) {
        node *n = &s->nodes[i];
        if (n->life == 0 && n->up_ms <= s->now_ms) start(s, n);
        if (is_up(s, n) && n->wake_ms <= s->now_ms) step(s, n);
    }
}

/* ---- a run --------------------------------------------------------------------------------------------- */

static void calm_down(site *s) {
    s->calm = true;
    for (uint32_t i = 0; i < s->nodes_count; i++) {
        node *n = &s->nodes[i];
        n->paused_until_ms = 0;
        if (n->life == 0) start(s, n);
        if (s->lmdb == NULL) rt_store_memory_set_faults(n->store, &(rt_memory_faults){0});
        n->wake_ms = s->now_ms;
    }
}

/* 13: from here on each order comes to its end by itself. What is due waits for as long as the clock was
 * set back. */
static void end_well(site *s) {
    calm_down(s);
    const int64_t latest_ms = s->now_ms + s->back_ms + END_MS;
    for (uint32_t steps = 0; !books_have_ended(s) || s->requests_open > 0; steps++) {
        MUST(s, s->now_ms < latest_ms && steps < STEPS_MAX, "13: an order has not ended");
        live_on(s, latest_ms);
    }
    const int64_t quiet_ms = s->now_ms + 3 * PERIOD_MS;
    while (s->now_ms < quiet_ms) live_on(s, quiet_ms);
    if (s->lmdb != NULL) return;
    rt_view *view = rt_memory_disk_view(s->disk);
    if (view == NULL) abort();
    books_close(s, view);
    rt_view_close(view);
}

static void plan(site *s) {
    s->nodes_count = s->lmdb == NULL ? 1 + (uint32_t)site_below(s, NODES_MAX) : 1;
    s->run_limit_ms = site_chance(s, 500) ? 2000 : 9000;
    s->jump_ms = site_chance(s, 500) ? INT64_MAX : site_draw(s, 0, 60000);
    s->crash_ms = site_draw(s, 0, 40000);
    s->pause_ms = site_draw(s, 0, 40000);
    s->crash_at_landed = 1 + site_below(s, 100);
}

uint64_t site_run(uint64_t seed, const char *lmdb) {
    site *s = calloc(1, sizeof *s);
    if (s == NULL) abort();
    s->seed = seed;
    s->rng = rt_rng_seeded(seed);
    s->offset_ms = EPOCH_MS;
    s->lmdb = lmdb;
    plan(s);
    const rt_store_memory_config config = {.tag = 7, .sole_owner = s->nodes_count == 1};
    s->disk = rt_memory_disk_new(&config);
    if (s->disk == NULL) abort();
    rt_memory_disk_watch(s->disk, landed, s);
    for (uint32_t i = 0; i < s->nodes_count; i++) {
        s->nodes[i] = (node){.site = s, .number = i};
        start(s, &s->nodes[i]);
    }
    client_set_up(s);
    for (uint32_t steps = 0; s->now_ms < ACTIVE_MS; steps++) {
        MUST(s, steps < STEPS_MAX, "it goes on and on");
        live_on(s, ACTIVE_MS);
    }
    end_well(s);
    for (uint32_t i = 0; i < s->nodes_count; i++) crash(s, &s->nodes[i]);
    rt_memory_disk_free(s->disk);
    const uint64_t hash = s->hash ^ s->taken;
    free(s);
    return hash;
}
