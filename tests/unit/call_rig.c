#include "call_rig.h"

enum { STEPS_MAX = 2000 };

static void start(void *ctx, rt_attempt *attempt) {
    rig *r = ctx;
    assert_true(r->count < ATTEMPTS_MAX);
    r->under_way[r->count++] = attempt;
    r->started++;
}

static void open_engine(rig *r) {
    rt_err err = {0};
    const rt_executor executor = {.ctx = r, .start = start};
    rt_engine_settings settings = rt_engine_settings_default();
    assert_int_equal(rt_store_memory_attach(r->disk, 7, &r->store, &err), RT_OK);
    assert_int_equal(rt_engine_open(r->store, &executor, &settings, r->seed, &r->engine, &err), RT_OK);
}

static void forget_attempts(rig *r) {
    while (r->count > 0) rt_attempt_free(r->under_way[--r->count]);
}

static rig *make_rigs(uint32_t count, rt_retention retention) {
    rig *r = calloc(count, sizeof *r);
    const rt_store_memory_config config = {.tag = 1, .sole_owner = count == 1, .commit_waits = true,
                                           .retention = retention};
    assert_non_null(r);
    rt_memory_disk *disk = rt_memory_disk_new(&config);
    assert_non_null(disk);
    for (uint32_t i = 0; i < count; i++) {
        r[i].disk = disk;
        r[i].now_ms = START_MS;
        r[i].seed = 3 + i;
        open_engine(&r[i]);
    }
    return r;
}

int rig_setup(void **state) {
    *state = make_rigs(1, (rt_retention){0});
    return 0;
}

int rig_setup_forgetful(void **state) {
    *state = make_rigs(1, (rt_retention){.age_ms = INT64_MAX / 2, .events = RIG_EVENTS_KEPT});
    return 0;
}

int rig_setup_both(void **state) {
    *state = make_rigs(2, (rt_retention){0});
    return 0;
}

static void close_engine(rig *r) {
    rt_engine_close(r->engine);
    rt_store_close(r->store);
    forget_attempts(r);
}

int rig_teardown(void **state) {
    rig *r = *state;
    close_engine(r);
    rt_memory_disk_free(r->disk);
    rt_arena_deinit(&r->arena);
    free(r);
    return 0;
}

int rig_teardown_both(void **state) {
    rig *r = *state;
    close_engine(&r[1]);
    rt_arena_deinit(&r[1].arena);
    return rig_teardown(state);
}

void rig_restart(rig *r) {
    close_engine(r);
    r->seed += 2;
    open_engine(r);
}

/* Steps until nothing is to be done at this time. */
static void settle(rig *r) {
    int steps = 0;
    while ((r->next_ms = rt_engine_step(r->engine, r->now_ms)) <= r->now_ms) assert_true(++steps < STEPS_MAX);
}

void rig_pass(rig *r, int64_t ms) {
    const int64_t until_ms = r->now_ms + ms;
    settle(r);
    while (r->next_ms < until_ms) {
        r->now_ms = r->next_ms;
        settle(r);
    }
    r->now_ms = until_ms;
    settle(r);
}

void rig_pass_both(rig r[2], int64_t ms) {
    const int64_t until_ms = r[0].now_ms + ms;
    for (;;) {
        settle(&r[0]);
        settle(&r[1]);
        if (r[0].now_ms == until_ms) return;
        int64_t next_ms = r[0].next_ms < r[1].next_ms ? r[0].next_ms : r[1].next_ms;
        if (next_ms > until_ms) next_ms = until_ms;
        r[0].now_ms = r[1].now_ms = next_ms;
    }
}

static void mark(rt_command *cmd) { *(bool *)cmd->ctx = true; }

void rig_submit(rig *r, rt_command *cmd, bool *done) {
    *done = false;
    cmd->done = mark;
    cmd->ctx = done;
    rt_engine_submit(r->engine, cmd);
    settle(r);
}

rt_code rig_run(rig *r, rt_command *cmd) {
    bool done;
    rig_submit(r, cmd, &done);
    assert_true(done);
    return cmd->code;
}

/* ---- types and calls ----------------------------------------------------------------------------------- */

rt_call_type rig_type(const char *target) {
    rt_call_type t = {
        .delivery = rt_delivery_policy_default(),
        .target = rt_str_of(target),
        .circuit = rt_circuit_settings_default(),
        .pace = rt_pace_settings_default(),
        .buckets = 1,
        .json = RT_STR("{}"),
    };
    t.delivery.retries_with_no_delay = 1000;
    t.circuit.minimum_attempts = 4;
    t.circuit.release_per_s = 0;
    return t;
}

void rig_put(rig *r, rt_call_type like) {
    rt_call_type_put c;
    rt_call_type_put_init(&c);
    c.tenant = RT_STR("p");
    c.name = RT_STR("t");
    c.like = like;
    assert_int_equal(rig_run(r, &c.cmd), RT_OK);
}

void rig_schedule_init(rt_calls_schedule *c, rt_call_item *item) {
    *item = (rt_call_item){.payload = RT_STR("x")};
    rt_calls_schedule_init(c);
    c->tenant = RT_STR("p");
    c->type = RT_STR("t");
    c->items = item;
    c->count = 1;
}

void rig_schedule(rig *r, uint32_t count, rt_id ids[]) {
    for (uint32_t i = 0; i < count; i++) {
        rt_call_item item;
        rt_calls_schedule c;
        rig_schedule_init(&c, &item);
        assert_int_equal(rig_run(r, &c.cmd), RT_OK);
        if (ids != NULL) ids[i] = item.id;
    }
}

void rig_answer(rig *r, uint16_t status, uint32_t took_ms) {
    assert_true(r->count > 0);
    rt_attempt *a = r->under_way[0];
    const rt_outcome o = {.job = a->job,
                          .token = a->token,
                          .reason = RT_REASON_STATUS,
                          .status = status,
                          .took_ms = took_ms,
                          .retry_after_ms = -1};
    memmove(&r->under_way[0], &r->under_way[1], --r->count * sizeof r->under_way[0]);
    rt_attempt_free(a);
    rt_engine_outcome(r->engine, &o);
    settle(r);
}

/* All that are under way now. */
void rig_answer_all(rig *r, uint16_t status) {
    for (uint32_t n = r->count; n > 0; n--) rig_answer(r, status, 0);
}

typedef struct search {
    rt_queue out;
    bool found;
} search;

static bool find_queue(void *ctx, const rt_queue *queue) {
    search *s = ctx;
    if (queue->kind != RT_QUEUE_CALLS) return true;
    s->out = *queue;
    s->found = true;
    return false;
}

rt_queue rig_queue(rig *r) {
    search s = {.found = false};
    rt_view *v = rt_memory_disk_view(r->disk);
    assert_int_equal(rt_view_queues(v, 0, find_queue, &s), RT_OK);
    rt_view_close(v);
    assert_true(s.found);
    return s.out;
}

rt_job rig_job(rig *r, rt_id id) {
    rt_job job;
    rt_view *v = rt_memory_disk_view(r->disk);
    assert_int_equal(rt_view_job(v, id, &job), RT_OK);
    rt_view_close(v);
    return job;
}

rt_circuit_state rig_circuit(rig *r) { return (rt_circuit_state)rig_queue(r).brakes.circuit; }

void rig_order(rig *r, rt_circuit_order what) {
    rt_queue_circuit c;
    rt_queue_circuit_init(&c);
    c.id = rig_queue(r).id;
    c.order = what;
    assert_int_equal(rig_run(r, &c.cmd), RT_OK);
}

void rig_claim_init(rig *r, rt_call_claim *c, uint32_t limit) {
    rt_call_claim_init(c);
    c->tenant = RT_STR("p");
    c->type = RT_STR("t");
    c->limit = limit;
    c->lease_s = 60;
    c->arena = &r->arena;
}

rt_call_claim rig_claim(rig *r, uint32_t limit) {
    rt_call_claim c;
    rig_claim_init(r, &c, limit);
    assert_int_equal(rig_run(r, &c.cmd), RT_OK);
    return c;
}

void rig_end(rig *r, const rt_claimed_call *call, rt_call_verb verb) {
    rt_call_end c;
    rt_call_end_init(&c);
    c.tenant = RT_STR("p");
    c.id = call->job.id;
    c.token = call->token;
    c.verb = verb;
    assert_int_equal(rig_run(r, &c.cmd), RT_OK);
}
