/* Circuits, pace and rate on a whole engine over a memory store: what they hold up, and when they let go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/calls/call_claim.h"
#include "engine/calls/circuit.h"
#include "engine/engine.h"
#include "engine/queue.h"
#include "engine/read.h"
#include "store/memory/store_memory.h"

enum { START_MS = 1000000, STEPS_MAX = 2000, ATTEMPTS_MAX = 512 };

typedef struct rig {
    rt_memory_disk *disk;
    rt_store *store;
    rt_engine *engine;
    rt_arena arena;
    int64_t now_ms, next_ms;
    rt_attempt *under_way[ATTEMPTS_MAX];
    uint32_t count;   /* under way */
    uint32_t started; /* in all */
} rig;

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
    assert_int_equal(rt_engine_open(r->store, &executor, &settings, 3, &r->engine, &err), RT_OK);
}

static void forget_attempts(rig *r) {
    while (r->count > 0) rt_attempt_free(r->under_way[--r->count]);
}

static int setup(void **state) {
    rig *r = calloc(1, sizeof *r);
    const rt_store_memory_config config = {.tag = 1, .sole_owner = true, .commit_waits = true};
    assert_non_null(r);
    r->disk = rt_memory_disk_new(&config);
    assert_non_null(r->disk);
    r->now_ms = START_MS;
    open_engine(r);
    *state = r;
    return 0;
}

static void close_engine(rig *r) {
    rt_engine_close(r->engine);
    rt_store_close(r->store);
    forget_attempts(r);
}

static int teardown(void **state) {
    rig *r = *state;
    close_engine(r);
    rt_memory_disk_free(r->disk);
    rt_arena_deinit(&r->arena);
    free(r);
    return 0;
}

static void restart(rig *r) {
    close_engine(r);
    open_engine(r);
}

/* Steps until nothing is to be done at this time. */
static void settle(rig *r) {
    int steps = 0;
    while ((r->next_ms = rt_engine_step(r->engine, r->now_ms)) <= r->now_ms) assert_true(++steps < STEPS_MAX);
}

/* Goes to a time, and does what is due on the way when it is due. */
static void go(rig *r, int64_t until_ms) {
    settle(r);
    while (r->next_ms < until_ms) {
        r->now_ms = r->next_ms;
        settle(r);
    }
    r->now_ms = until_ms;
    settle(r);
}

static void pass(rig *r, int64_t ms) { go(r, r->now_ms + ms); }

static void mark(rt_command *cmd) { *(bool *)cmd->ctx = true; }

static rt_code run(rig *r, rt_command *cmd) {
    bool done = false;
    cmd->done = mark;
    cmd->ctx = &done;
    rt_engine_submit(r->engine, cmd);
    settle(r);
    assert_true(done);
    return cmd->code;
}

/* ---- types and calls ----------------------------------------------------------------------------------- */

static rt_call_type type_of(const char *target) {
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

static void put(rig *r, rt_call_type like) {
    rt_call_type_put c;
    rt_call_type_put_init(&c);
    c.tenant = RT_STR("p");
    c.name = RT_STR("t");
    c.like = like;
    assert_int_equal(run(r, &c.cmd), RT_OK);
}

static void schedule(rig *r, uint32_t count, rt_id ids[]) {
    for (uint32_t i = 0; i < count; i++) {
        rt_call_item item = {.payload = RT_STR("x")};
        rt_calls_schedule c;
        rt_calls_schedule_init(&c);
        c.tenant = RT_STR("p");
        c.type = RT_STR("t");
        c.items = &item;
        c.count = 1;
        assert_int_equal(run(r, &c.cmd), RT_OK);
        if (ids != NULL) ids[i] = item.id;
    }
}

static void answer_first(rig *r, uint16_t status, uint32_t took_ms) {
    assert_true(r->count > 0);
    rt_attempt *a = r->under_way[0];
    const rt_outcome o = {.job = a->job, .token = a->token, .reason = RT_REASON_STATUS, .status = status,
                          .took_ms = took_ms, .retry_after_ms = -1};
    memmove(&r->under_way[0], &r->under_way[1], --r->count * sizeof r->under_way[0]);
    rt_attempt_free(a);
    rt_engine_outcome(r->engine, &o);
    settle(r);
}

/* All that are under way now. */
static void answer_all(rig *r, uint16_t status) {
    for (uint32_t n = r->count; n > 0; n--) answer_first(r, status, 0);
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

static rt_queue queue_of(rig *r) {
    search s = {.found = false};
    rt_view *v = rt_memory_disk_view(r->disk);
    assert_int_equal(rt_view_queues(v, 0, find_queue, &s), RT_OK);
    rt_view_close(v);
    assert_true(s.found);
    return s.out;
}

static rt_job job_of(rig *r, rt_id id) {
    rt_job job;
    rt_view *v = rt_memory_disk_view(r->disk);
    assert_int_equal(rt_view_job(v, id, &job), RT_OK);
    rt_view_close(v);
    return job;
}

static rt_circuit_state circuit(rig *r) { return (rt_circuit_state)queue_of(r).brakes.circuit; }

/* Fails attempts until the circuit opens. */
static void trip(rig *r) {
    for (int i = 0; i < 100 && circuit(r) == RT_CIRCUIT_CLOSED; i++) answer_all(r, 503);
    assert_int_equal(circuit(r), RT_CIRCUIT_OPEN);
}

static void order(rig *r, rt_circuit_order what) {
    rt_queue_circuit c;
    rt_queue_circuit_init(&c);
    c.id = queue_of(r).id;
    c.order = what;
    assert_int_equal(run(r, &c.cmd), RT_OK);
}

/* ---- circuit ------------------------------------------------------------------------------------------- */

static void circuit__opens_when_enough_attempts_have_failed(void **state) {
    rig *r = *state;
    put(r, type_of("http://t/"));
    rt_id id;
    schedule(r, 1, &id);
    for (int i = 0; i < 3; i++) answer_all(r, 503);
    assert_int_equal(circuit(r), RT_CIRCUIT_CLOSED); // three say nothing yet
    answer_all(r, 503);
    assert_int_equal(circuit(r), RT_CIRCUIT_OPEN);
    assert_int_equal(r->count, 0);
    assert_int_equal(job_of(r, id).attempt, 4);
    const rt_brakes b = queue_of(r).brakes;
    assert_int_equal(b.opened_ms, START_MS);
    assert_int_equal(b.circuit_until_ms, START_MS + 5000);
    pass(r, 4999);
    assert_int_equal(r->started, 4);
    assert_int_equal(job_of(r, id).attempt, 4); // untouched
}

static void circuit__stays_closed_while_enough_succeed(void **state) {
    rig *r = *state;
    put(r, type_of("http://t/"));
    for (int i = 0; i < 30; i++) {
        schedule(r, 1, NULL);
        answer_first(r, i % 3 == 0 ? 503 : 200, 0);
        answer_all(r, 200);
    }
    assert_int_equal(circuit(r), RT_CIRCUIT_CLOSED);
}

static void circuit__probes_after_its_sleep_and_closes_when_they_succeed(void **state) {
    rig *r = *state;
    put(r, type_of("http://t/"));
    schedule(r, 20, NULL);
    trip(r);
    assert_int_equal(r->count, 0);
    const uint32_t before = r->started;
    pass(r, 5000);
    assert_int_equal(circuit(r), RT_CIRCUIT_HALF_OPEN);
    assert_true(r->count >= 1 && r->count <= 3);
    for (int i = 0; i < 2; i++) {
        answer_first(r, 200, 0);
        assert_int_equal(circuit(r), RT_CIRCUIT_HALF_OPEN);
        assert_true(r->started - before <= 3);
    }
    answer_first(r, 200, 0);
    assert_int_equal(circuit(r), RT_CIRCUIT_CLOSED);
    assert_int_equal(queue_of(r).brakes.opened_ms, 0);
    for (int i = 0; i < 20; i++) answer_all(r, 200);
    rt_counts counts;
    rt_view *v = rt_memory_disk_view(r->disk);
    assert_int_equal(rt_view_counts(v, queue_of(r).id, &counts), RT_OK);
    rt_view_close(v);
    assert_int_equal(counts.done, 20);
}

static void circuit__sleeps_twice_as_long_when_a_probe_fails(void **state) {
    rig *r = *state;
    rt_call_type like = type_of("http://t/");
    like.circuit.probes = 1;
    like.circuit.maximum_sleep_s = 15;
    put(r, like);
    schedule(r, 5, NULL);
    trip(r);
    const int64_t sleeps[] = {5000, 10000, 15000, 15000};
    for (int i = 0; i < 4; i++) {
        const uint32_t before = r->started;
        assert_int_equal(queue_of(r).brakes.sleep_ms, sleeps[i]);
        pass(r, sleeps[i] - 1);
        assert_int_equal(r->started, before);
        pass(r, 1);
        assert_int_equal(circuit(r), RT_CIRCUIT_HALF_OPEN);
        assert_int_equal(r->count, 1);
        answer_first(r, 503, 0);
        assert_int_equal(circuit(r), RT_CIRCUIT_OPEN);
    }
    assert_int_equal(queue_of(r).brakes.opened_ms, START_MS);
}

static void circuit__survives_a_restart(void **state) {
    rig *r = *state;
    put(r, type_of("http://t/"));
    schedule(r, 2, NULL);
    trip(r);
    const uint32_t before = r->started;
    pass(r, 2000);
    restart(r);
    pass(r, 2999);
    assert_int_equal(circuit(r), RT_CIRCUIT_OPEN);
    assert_int_equal(r->started, before);
    pass(r, 1);
    assert_int_equal(circuit(r), RT_CIRCUIT_HALF_OPEN);
    restart(r); // the probes are lost: others go
    pass(r, 0);
    assert_true(r->count > 0);
}

static void circuit__slow_answers_open_it_too(void **state) {
    rig *r = *state;
    rt_call_type like = type_of("http://t/");
    like.circuit.slow_call_s = 2;
    like.circuit.slow_call_rate = 0.5;
    put(r, like);
    schedule(r, 6, NULL);
    for (int i = 0; i < 4; i++) answer_first(r, 200, i < 2 ? 2000 : 1999);
    assert_int_equal(circuit(r), RT_CIRCUIT_OPEN);
}

static void circuit__releases_at_a_rate_after_closing(void **state) {
    rig *r = *state;
    rt_call_type like = type_of("http://t/");
    like.circuit.release_per_s = 10;
    like.circuit.probes = 1;
    put(r, like);
    schedule(r, 100, NULL);
    trip(r);
    pass(r, 5000);
    answer_first(r, 200, 0);
    assert_int_equal(circuit(r), RT_CIRCUIT_CLOSED);
    answer_all(r, 200);
    const uint32_t before = r->started;
    for (int i = 0; i < 30; i++) {
        pass(r, 100);
        answer_all(r, 200);
    }
    const uint32_t went = r->started - before;
    assert_true(went >= 28 && went <= 41); // three seconds' worth, and what was saved up
}

static void circuit__what_waits_too_long_behind_it_is_dead(void **state) {
    rig *r = *state;
    rt_call_type like = type_of("http://t/");
    like.circuit.max_open_s = 60;
    like.circuit.sleep_s = like.circuit.maximum_sleep_s = 1000;
    put(r, like);
    rt_id ids[3], late;
    schedule(r, 3, ids);
    trip(r);
    pass(r, 30000);
    schedule(r, 1, &late);
    pass(r, 29999);
    for (int i = 0; i < 3; i++) assert_int_equal(job_of(r, ids[i]).state, RT_JOB_SCHEDULED);
    restart(r);
    pass(r, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(job_of(r, ids[i]).state, RT_JOB_DEAD);
        assert_int_equal(job_of(r, ids[i]).reason, RT_REASON_CIRCUIT_OPEN);
    }
    pass(r, 29999);
    assert_int_equal(job_of(r, late).state, RT_JOB_SCHEDULED);
    pass(r, 1);
    assert_int_equal(job_of(r, late).state, RT_JOB_DEAD);
}

static void circuit__forced_by_an_operator_stays_so_until_auto(void **state) {
    rig *r = *state;
    put(r, type_of("http://t/"));
    schedule(r, 5, NULL);
    order(r, RT_CIRCUIT_FORCE_CLOSED);
    for (int i = 0; i < 20; i++) answer_all(r, 503);
    assert_int_equal(circuit(r), RT_CIRCUIT_CLOSED);
    order(r, RT_CIRCUIT_FORCE_OPEN);
    answer_all(r, 503);
    const uint32_t before = r->started;
    restart(r);
    pass(r, INT64_C(100) * 86400 * 1000);
    assert_int_equal(r->started, before);
    assert_int_equal(circuit(r), RT_CIRCUIT_OPEN);
    order(r, RT_CIRCUIT_AUTO);
    assert_int_equal(circuit(r), RT_CIRCUIT_HALF_OPEN);
    assert_true(r->count > 0);
    for (int i = 0; i < 10; i++) answer_all(r, 200);
    assert_int_equal(circuit(r), RT_CIRCUIT_CLOSED);
}

static void circuit__switched_off_by_its_type_lets_go_at_once(void **state) {
    rig *r = *state;
    rt_call_type like = type_of("http://t/");
    put(r, like);
    schedule(r, 2, NULL);
    trip(r);
    like.circuit.enabled = false;
    put(r, like);
    assert_int_equal(circuit(r), RT_CIRCUIT_CLOSED);
    assert_true(r->count > 0);
}

/* ---- workers ------------------------------------------------------------------------------------------- */

static void claim_init(rig *r, rt_call_claim *c, uint32_t limit) {
    rt_call_claim_init(c);
    c->tenant = RT_STR("p");
    c->type = RT_STR("t");
    c->limit = limit;
    c->lease_s = 60;
    c->arena = &r->arena;
}

static rt_call_claim claim(rig *r, uint32_t limit) {
    rt_call_claim c;
    claim_init(r, &c, limit);
    assert_int_equal(run(r, &c.cmd), RT_OK);
    return c;
}

static void end(rig *r, const rt_claimed_call *call, rt_call_verb verb) {
    rt_call_end c;
    rt_call_end_init(&c);
    c.tenant = RT_STR("p");
    c.id = call->job.id;
    c.token = call->token;
    c.verb = verb;
    assert_int_equal(run(r, &c.cmd), RT_OK);
}

static void workers__feed_the_circuit_and_wait_for_it(void **state) {
    rig *r = *state;
    put(r, type_of(""));
    schedule(r, 10, NULL);
    const rt_call_claim c = claim(r, 4);
    assert_int_equal(c.count, 4);
    for (int i = 0; i < 4; i++) end(r, &c.calls[i], RT_CALL_FAIL);
    assert_int_equal(circuit(r), RT_CIRCUIT_OPEN);
    assert_int_equal(claim(r, 20).count, 0);
    rt_call_claim waits;
    claim_init(r, &waits, 20);
    waits.wait_until_ms = r->now_ms + 60000;
    bool done = false;
    waits.cmd.done = mark;
    waits.cmd.ctx = &done;
    rt_engine_submit(r->engine, &waits.cmd);
    pass(r, 4999);
    assert_false(done);
    pass(r, 1);
    assert_true(done);
    assert_int_equal(waits.count, 3); // the probes
    assert_int_equal(circuit(r), RT_CIRCUIT_HALF_OPEN);
    assert_int_equal(claim(r, 20).count, 0);
    for (int i = 0; i < 3; i++) end(r, &waits.calls[i], RT_CALL_FINISH);
    assert_int_equal(circuit(r), RT_CIRCUIT_CLOSED);
    assert_int_equal(claim(r, 20).count, 7);
}

static void workers__outcomes_of_before_are_no_probes(void **state) {
    rig *r = *state;
    rt_call_type like = type_of("");
    like.circuit.probes = 10;
    put(r, like);
    schedule(r, 20, NULL);
    const rt_call_claim old = claim(r, 8);
    for (int i = 0; i < 4; i++) end(r, &old.calls[i], RT_CALL_FAIL);
    assert_int_equal(circuit(r), RT_CIRCUIT_OPEN);
    end(r, &old.calls[4], RT_CALL_FINISH); // while it is open an end means nothing
    pass(r, 5000);
    const rt_call_claim probes = claim(r, 20);
    assert_int_equal(probes.count, 7); // three are under way still
    assert_int_equal(circuit(r), RT_CIRCUIT_HALF_OPEN);
    end(r, &old.calls[5], RT_CALL_FAIL);
    end(r, &old.calls[6], RT_CALL_FINISH);
    assert_int_equal(circuit(r), RT_CIRCUIT_HALF_OPEN);
    assert_int_equal(queue_of(r).brakes.probes, 0);
    end(r, &probes.calls[0], RT_CALL_FINISH);
    assert_int_equal(queue_of(r).brakes.probes, 1);
    end(r, &probes.calls[1], RT_CALL_FAIL);
    assert_int_equal(circuit(r), RT_CIRCUIT_OPEN);
}

static void workers__wait_for_the_rate(void **state) {
    rig *r = *state;
    rt_call_type like = type_of("");
    like.rate_per_s = 5;
    put(r, like);
    schedule(r, 20, NULL);
    assert_int_equal(claim(r, 20).count, 5);
    assert_int_equal(claim(r, 20).count, 0);
    rt_call_claim waits;
    claim_init(r, &waits, 20);
    waits.wait_until_ms = r->now_ms + 60000;
    bool done = false;
    waits.cmd.done = mark;
    waits.cmd.ctx = &done;
    rt_engine_submit(r->engine, &waits.cmd);
    pass(r, 199);
    assert_false(done);
    pass(r, 1);
    assert_true(done);
    assert_int_equal(waits.count, 1);
}

static void workers__that_wait_get_what_is_scheduled_or_retried(void **state) {
    rig *r = *state;
    put(r, type_of(""));
    rt_call_claim waits;
    for (int i = 0; i < 2; i++) {
        claim_init(r, &waits, 20);
        waits.wait_until_ms = r->now_ms + 60000;
        bool done = false;
        waits.cmd.done = mark;
        waits.cmd.ctx = &done;
        rt_engine_submit(r->engine, &waits.cmd);
        settle(r);
        assert_false(done);
        schedule(r, 1, NULL);
        assert_true(done);
        assert_int_equal(waits.count, 1);
    }
}

/* ---- pace and rate ------------------------------------------------------------------------------------- */

static void pace__grows_with_failures_and_shrinks_with_successes(void **state) {
    rig *r = *state;
    rt_call_type like = type_of("http://t/");
    like.circuit.enabled = false;
    like.pace = (rt_pace_settings){.enabled = true, .initial_ms = 100, .maximum_ms = 400};
    put(r, like);
    schedule(r, 20, NULL);
    answer_all(r, 503);
    const int64_t pace_ms = queue_of(r).brakes.pace_ms;
    assert_true(pace_ms >= 100);
    while (r->count > 0) answer_first(r, 503, 0);
    for (int i = 0; i < 4; i++) { // to the maximum
        go(r, queue_of(r).brakes.pace_until_ms);
        assert_int_equal(r->count, 1); // one after the other
        answer_all(r, 503);
    }
    assert_int_equal(queue_of(r).brakes.pace_ms, 400);
    const uint32_t before = r->started;
    pass(r, 399);
    assert_int_equal(r->started, before);
    pass(r, 1);
    assert_int_equal(r->count, 1);
    answer_all(r, 200);
    assert_int_equal(queue_of(r).brakes.pace_ms, 200);
    restart(r);
    pass(r, 199);
    assert_int_equal(r->count, 0);
    pass(r, 1);
    answer_all(r, 200);
    assert_int_equal(queue_of(r).brakes.pace_ms, 100);
    pass(r, 100);
    answer_all(r, 200);
    assert_int_equal(queue_of(r).brakes.pace_ms, 0);
    assert_true(r->count >= 1);
}

static void rate__holds_starts(void **state) {
    rig *r = *state;
    rt_call_type like = type_of("http://t/");
    like.rate_per_s = 10;
    put(r, like);
    schedule(r, 60, NULL);
    answer_all(r, 200);
    for (int i = 0; i < 100; i++) {
        pass(r, 10);
        answer_all(r, 200);
    }
    assert_true(r->started >= 18 && r->started <= 21); // ten at once, ten in the second after
    like.rate_per_s = 0;
    put(r, like);
    for (int i = 0; i < 20; i++) answer_all(r, 200);
    assert_int_equal(r->started, 60);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(circuit__opens_when_enough_attempts_have_failed),
        CASE(circuit__stays_closed_while_enough_succeed),
        CASE(circuit__probes_after_its_sleep_and_closes_when_they_succeed),
        CASE(circuit__sleeps_twice_as_long_when_a_probe_fails),
        CASE(circuit__survives_a_restart),
        CASE(circuit__slow_answers_open_it_too),
        CASE(circuit__releases_at_a_rate_after_closing),
        CASE(circuit__what_waits_too_long_behind_it_is_dead),
        CASE(circuit__forced_by_an_operator_stays_so_until_auto),
        CASE(circuit__switched_off_by_its_type_lets_go_at_once),
        CASE(workers__feed_the_circuit_and_wait_for_it),
        CASE(workers__outcomes_of_before_are_no_probes),
        CASE(workers__wait_for_the_rate),
        CASE(workers__that_wait_get_what_is_scheduled_or_retried),
        CASE(pace__grows_with_failures_and_shrinks_with_successes),
        CASE(rate__holds_starts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
