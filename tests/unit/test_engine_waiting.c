/* Claims that wait, on a whole engine over a memory store: woken by what they wait for, each within its
 * time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "engine/work/work.h"
#include "store/memory/store_memory.h"

enum { START_MS = 1000000, STEPS_MAX = 1000 };

typedef struct rig {
    rt_store *store;
    rt_engine *engine;
    rt_arena arena;
    int64_t now_ms;
} rig;

static void start_nothing(void *ctx, rt_attempt *attempt) {
    (void)ctx;
    (void)attempt;
    fail_msg("there is nothing to deliver");
}

static int setup(void **state) {
    rig *r = calloc(1, sizeof *r);
    rt_err err = {0};
    const rt_store_memory_config config = {.tag = 1, .sole_owner = true, .commit_waits = true};
    const rt_executor executor = {.start = start_nothing};
    const rt_engine_settings settings = rt_engine_settings_default();
    assert_non_null(r);
    assert_int_equal(rt_store_memory_new(&config, &r->store, &err), RT_OK);
    assert_int_equal(rt_engine_open(r->store, &executor, &settings, 3, &r->engine, &err), RT_OK);
    r->now_ms = START_MS;
    *state = r;
    return 0;
}

static int teardown(void **state) {
    rig *r = *state;
    rt_engine_close(r->engine);
    rt_store_close(r->store);
    rt_arena_deinit(&r->arena);
    free(r);
    return 0;
}

static void mark(rt_command *cmd) { *(bool *)cmd->ctx = true; }

/* Steps until nothing is to be done at this time. */
static void settle(rig *r) {
    int steps = 0;
    while (rt_engine_step(r->engine, r->now_ms) <= r->now_ms) assert_true(++steps < STEPS_MAX);
}

static void run(rig *r, rt_command *cmd) {
    bool done = false;
    cmd->done = mark;
    cmd->ctx = &done;
    rt_engine_submit(r->engine, cmd);
    settle(r);
    assert_true(done);
    assert_int_equal(cmd->code, RT_OK);
}

static rt_id session(rig *r, uint32_t interval_s) {
    rt_session_create c;
    rt_session_create_init(&c);
    c.tenant = RT_STR("p");
    c.interval_s = interval_s;
    run(r, &c.cmd);
    return c.id;
}

static void process(rig *r, const char *name, const char *excludes) {
    rt_process_put c;
    rt_process_put_init(&c);
    c.tenant = RT_STR("p");
    c.name = rt_str_of(name);
    c.like.excludes[0] = rt_str_of(excludes);
    c.like.excludes_count = excludes == NULL ? 0 : 1;
    run(r, &c.cmd);
}

static void put(rig *r, const char *name) {
    rt_entity_put c;
    rt_entity_put_init(&c);
    c.tenant = RT_STR("p");
    c.name = rt_str_of(name);
    c.kind = RT_STR("machine");
    c.value = RT_STR("{}");
    run(r, &c.cmd);
}

static void end(rig *r, const rt_work *work, rt_event_type verb) {
    rt_work_end c;
    rt_work_end_init(&c);
    c.tenant = RT_STR("p");
    c.id = work->id;
    c.session = work->session;
    c.token = work->token;
    c.verb = verb;
    c.cause = RT_STR("x");
    c.arena = &r->arena;
    run(r, &c.cmd);
}

typedef struct waiter {
    rt_work_claim claim;
    bool done;
} waiter;

/* `candidate` NULL: by kind. */
static waiter *submit(rig *r, rt_id who, const char *what, const rt_str *candidate, int64_t wait_ms) {
    waiter *w = rt_arena_alloc(&r->arena, sizeof *w);
    assert_non_null(w);
    rt_work_claim_init(&w->claim);
    w->claim.tenant = RT_STR("p");
    w->claim.session = who;
    w->claim.process = rt_str_of(what);
    w->claim.kind = RT_STR("machine");
    w->claim.candidates = candidate;
    w->claim.candidates_count = candidate == NULL ? 0 : 1;
    w->claim.wait_until_ms = r->now_ms + wait_ms;
    w->claim.arena = &r->arena;
    w->claim.cmd.done = mark;
    w->claim.cmd.ctx = &w->done;
    rt_engine_submit(r->engine, &w->claim.cmd);
    return w;
}

static waiter *ask(rig *r, rt_id who, const char *what, const rt_str *candidate, int64_t wait_ms) {
    waiter *w = submit(r, who, what, candidate, wait_ms);
    settle(r);
    return w;
}

static void wait__ends_with_nothing_when_its_time_is_over(void **state) {
    rig *r = *state;
    process(r, "a", NULL);
    waiter *w = ask(r, session(r, 60), "a", NULL, 5000);
    assert_false(w->done);
    r->now_ms += 4999;
    settle(r);
    assert_false(w->done);
    r->now_ms++;
    settle(r);
    assert_true(w->done);
    assert_int_equal(w->claim.cmd.code, RT_OK);
    assert_false(w->claim.found);
}

static void wait__is_woken_by_an_entity_of_a_kind_that_nobody_knew(void **state) {
    rig *r = *state;
    process(r, "a", NULL);
    waiter *w = ask(r, session(r, 60), "a", NULL, 5000);
    put(r, "m");
    assert_true(w->done);
    assert_true(w->claim.found);
}

static void wait__one_entity_wakes_one_and_the_next_the_next(void **state) {
    rig *r = *state;
    process(r, "a", NULL);
    put(r, "m0");
    const rt_id s = session(r, 60);
    assert_true(ask(r, s, "a", NULL, 0)->done);
    waiter *first = ask(r, s, "a", NULL, 5000);
    waiter *second = ask(r, s, "a", NULL, 5000);
    put(r, "m1");
    assert_true(first->done && first->claim.found);
    assert_false(second->done);
    put(r, "m2");
    assert_true(second->done && second->claim.found);
}

static void wait__ends_with_the_backoff(void **state) {
    rig *r = *state;
    process(r, "a", NULL);
    put(r, "m");
    const rt_id s = session(r, 60);
    const waiter *first = ask(r, s, "a", NULL, 0);
    end(r, &first->claim.work, RT_EVENT_FAILED);
    waiter *w = ask(r, s, "a", NULL, 5000);
    const rt_str m = RT_STR("m");
    r->now_ms += 999;
    settle(r);
    assert_false(w->done);
    r->now_ms++;
    settle(r);
    assert_true(w->done && w->claim.found);
    waiter *by_name = ask(r, s, "a", &m, 5000);
    assert_false(by_name->done);
    end(r, &w->claim.work, RT_EVENT_CANCELED);
    assert_true(by_name->done && by_name->claim.found);
}

static void wait__ends_when_an_operator_clears_the_backoff(void **state) {
    rig *r = *state;
    process(r, "a", NULL);
    put(r, "m");
    const rt_str names[] = {RT_STR("m"), RT_STR("nobody put it")};
    const rt_id s = session(r, 60);
    for (size_t i = 0; i < 2; i++) {
        const waiter *first = ask(r, s, "a", &names[i], 0);
        end(r, &first->claim.work, RT_EVENT_FAILED);
        const waiter *w = ask(r, s, "a", &names[i], 30000);
        assert_false(w->done);
        rt_backoff_clear c;
        rt_backoff_clear_init(&c);
        c.tenant = RT_STR("p");
        c.entity = names[i];
        c.process = RT_STR("a");
        run(r, &c.cmd);
        assert_true(w->done && w->claim.found);
    }
}

static void wait__ends_when_the_process_that_excludes_it_does(void **state) {
    rig *r = *state;
    process(r, "a", "b");
    process(r, "b", NULL);
    put(r, "m");
    const rt_id s = session(r, 60);
    const waiter *first = ask(r, s, "a", NULL, 0);
    assert_true(first->claim.found);
    waiter *w = ask(r, s, "b", NULL, 5000);
    assert_false(w->done);
    end(r, &first->claim.work, RT_EVENT_FINISHED);
    assert_true(w->done && w->claim.found);
}

/* By kind and by name, of the process that says so and of the one that it names. */
static void wait__ends_when_processes_exclude_each_other_no_more(void **state) {
    rig *r = *state;
    static const char *const ENTITIES[4][2] = {{"m0", "n0"}, {"m1", "n1"}, {"m2", "n2"}, {"m3", "n3"}};
    const rt_id s = session(r, 60);
    for (int i = 0; i < 4; i++) {
        process(r, "a", "b");
        process(r, "b", NULL);
        for (int k = 0; k < 2; k++) put(r, ENTITIES[i][k]);
        const rt_str names[] = {rt_str_of(ENTITIES[i][0]), rt_str_of(ENTITIES[i][1])};
        const char *works = i % 2 == 0 ? "a" : "b", *waits = i % 2 == 0 ? "b" : "a";
        const waiter *first[2], *w[2];
        for (int k = 0; k < 2; k++) first[k] = ask(r, s, works, &names[k], 0);
        for (int k = 0; k < 2; k++) w[k] = ask(r, s, waits, i < 2 ? NULL : &names[k], 5000);
        assert_true(first[0]->claim.found && first[1]->claim.found);
        process(r, "a", "b"); // as before
        assert_false(w[0]->done || w[1]->done);
        process(r, "a", NULL);
        assert_true(w[0]->done && w[0]->claim.found && w[1]->done && w[1]->claim.found);
        for (int k = 0; k < 2; k++) {
            end(r, &first[k]->claim.work, RT_EVENT_FINISHED);
            end(r, &w[k]->claim.work, RT_EVENT_FINISHED);
        }
    }
}

/* The claim is decided, and does not wait yet: its batch is not durable. */
static void wait__misses_nothing_that_comes_before_it_begins(void **state) {
    rig *r = *state;
    process(r, "a", "b");
    process(r, "b", NULL);
    put(r, "m");
    const rt_id s = session(r, 60);
    assert_true(ask(r, s, "a", NULL, 0)->claim.found);
    const waiter *w = submit(r, s, "b", NULL, 5000);
    process(r, "a", NULL); // in the same batch
    assert_true(w->done && w->claim.found);
}

static void wait__is_woken_by_the_end_of_a_session(void **state) {
    rig *r = *state;
    process(r, "a", NULL);
    put(r, "m");
    assert_true(ask(r, session(r, 5), "a", NULL, 0)->claim.found);
    waiter *w = ask(r, session(r, 60), "a", NULL, 30000);
    r->now_ms += 5000;
    settle(r);
    assert_true(w->done && w->claim.found);
}

static void wait__ends_with_its_own_session(void **state) {
    rig *r = *state;
    process(r, "a", NULL);
    const rt_id s = session(r, 5);
    waiter *w = ask(r, s, "a", NULL, 30000);
    r->now_ms += 5000;
    settle(r);
    assert_true(w->done);
    w = ask(r, s, "a", NULL, 30000);
    assert_int_equal(w->claim.cmd.code, RT_E_FENCED);
}

/* What a dead session's claim was woken for goes to the next in line. */
static void wait__passes_on_what_it_cannot_take(void **state) {
    rig *r = *state;
    process(r, "a", NULL);
    put(r, "m");
    const rt_id s = session(r, 60);
    const waiter *first = ask(r, s, "a", NULL, 0);
    const rt_id dying = session(r, 60);
    waiter *stale = ask(r, dying, "a", NULL, 30000);
    waiter *w = ask(r, s, "a", NULL, 30000);
    rt_session_close c;
    rt_session_close_init(&c);
    c.tenant = RT_STR("p");
    c.id = dying;
    run(r, &c.cmd);
    end(r, &first->claim.work, RT_EVENT_CANCELED);
    settle(r);
    assert_true(stale->done);
    assert_int_equal(stale->claim.cmd.code, RT_E_FENCED);
    assert_true(w->done && w->claim.found);
}

static void wait__is_refused_when_too_many_do(void **state) {
    rig *r = *state;
    process(r, "a", NULL);
    const rt_id who = session(r, 60);
    waiter *last = NULL;
    for (int i = 0; i < RT_WAITING_MAX; i++) last = ask(r, who, "a", NULL, 5000);
    assert_false(last->done);
    const waiter *more = ask(r, who, "a", NULL, 5000);
    assert_true(more->done);
    assert_int_equal(more->claim.cmd.code, RT_E_FULL);
    r->now_ms += 5000;
    settle(r);
    assert_true(last->done);
    assert_int_equal(last->claim.cmd.code, RT_OK);
}

static void wait__ends_when_the_server_is_about_to_stop(void **state) {
    rig *r = *state;
    process(r, "a", NULL);
    const rt_id s = session(r, 60);
    waiter *w = ask(r, s, "a", NULL, 30000);
    rt_waits_end c;
    rt_waits_end_init(&c);
    run(r, &c.cmd);
    assert_true(w->done);
    assert_false(w->claim.found);
    assert_true(ask(r, s, "a", NULL, 30000)->done);
}

static void wait__is_answered_when_the_engine_closes(void **state) {
    rig *r = *state;
    process(r, "a", NULL);
    waiter *w = ask(r, session(r, 60), "a", NULL, 30000);
    assert_false(w->done);
    rt_engine_drain(r->engine);
    assert_true(w->done);
}

static void metrics__count_work_by_process_after_the_commit(void **state) {
    rig *r = *state;
    process(r, "a", NULL);
    put(r, "m");
    const rt_id s = session(r, 60);
    const waiter *first = ask(r, s, "a", NULL, 0);
    end(r, &first->claim.work, RT_EVENT_FAILED);
    end(r, &first->claim.work, RT_EVENT_FAILED); // again: counts nothing
    rt_work_metrics *m = &rt_engine_metrics(r->engine)->work;
    const uint32_t at = rt_work_metrics_at(m, RT_STR("a"));
    assert_int_equal(m->counts[at][RT_WORK_STARTED], 1);
    assert_int_equal(m->counts[at][RT_WORK_FAILED], 1);
    assert_int_equal(m->counts[at][RT_WORK_FINISHED], 0);
    assert_int_equal(m->sessions_started, 1);
}

int main(void) {
#define ON_RIG(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        ON_RIG(wait__ends_with_nothing_when_its_time_is_over),
        ON_RIG(wait__is_woken_by_an_entity_of_a_kind_that_nobody_knew),
        ON_RIG(wait__one_entity_wakes_one_and_the_next_the_next),
        ON_RIG(wait__ends_with_the_backoff),
        ON_RIG(wait__ends_when_an_operator_clears_the_backoff),
        ON_RIG(wait__ends_when_the_process_that_excludes_it_does),
        ON_RIG(wait__ends_when_processes_exclude_each_other_no_more),
        ON_RIG(wait__misses_nothing_that_comes_before_it_begins),
        ON_RIG(wait__is_woken_by_the_end_of_a_session),
        ON_RIG(wait__ends_with_its_own_session),
        ON_RIG(wait__passes_on_what_it_cannot_take),
        ON_RIG(wait__is_refused_when_too_many_do),
        ON_RIG(wait__ends_when_the_server_is_about_to_stop),
        ON_RIG(wait__is_answered_when_the_engine_closes),
        ON_RIG(metrics__count_work_by_process_after_the_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
