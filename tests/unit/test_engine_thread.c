/* The engine with real threads around it, over the memory store. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/ring.h"
#include "engine/messages/message.h"
#include "engine/messages/subscription.h"
#include "os/clock.h"
#include "runtime/engine_thread.h"
#include "store/memory/store_memory.h"

enum { ANSWERS_MAX = 64 };

typedef struct rig {
    rt_store *store;
    rt_engine_thread *thread;
    rt_engine *engine;
    bool swallow;     /* the executor never says what came of an attempt */
    atomic_uint started;
    sem_t done;
} rig;

/* An executor whose answers come at once, from the thread that asks. */
static void start(void *ctx, rt_attempt *attempt) {
    rig *r = ctx;
    const rt_outcome o = {.job = attempt->job,
                          .token = attempt->token,
                          .reason = RT_REASON_STATUS,
                          .status = 200,
                          .retry_after_ms = -1};
    rt_attempt_free(attempt);
    atomic_fetch_add(&r->started, 1);
    if (!r->swallow) rt_engine_thread_outcome(r->thread, &o);
}

static void open_rig(rig *r, uint32_t commands_max) {
    rt_err err;
    *r = (rig){.swallow = false};
    assert_int_equal(sem_init(&r->done, 0, 0), 0);
    const rt_store_memory_config store = {.tag = 7, .sole_owner = true};
    assert_int_equal(rt_store_memory_new(&store, &r->store, &err), RT_OK);
    const rt_engine_thread_config cfg = {
        .commands_max = commands_max, .commands_bytes_max = 1 << 20, .outcomes_max = ANSWERS_MAX};
    assert_int_equal(rt_engine_thread_open(&cfg, &r->thread, &err), RT_OK);
    const rt_executor executor = {.ctx = r, .start = start};
    rt_engine_settings settings = rt_engine_settings_default();
    settings.in_flight_max = ANSWERS_MAX;
    if (rt_engine_open(r->store, &executor, &settings, 1, &r->engine, &err) != RT_OK) fail_msg("%s", err.msg);
}

static void start_rig(rig *r) {
    rt_err err;
    assert_int_equal(rt_engine_thread_start(r->thread, r->engine, r->store, &err), RT_OK);
}

static void close_rig(rig *r) {
    rt_engine_thread_stop(r->thread, 5000);
    rt_engine_close(r->engine);
    rt_engine_thread_close(r->thread);
    rt_store_close(r->store);
    (void)sem_destroy(&r->done);
}

static void told(rt_command *cmd) {
    rig *r = cmd->ctx;
    (void)sem_post(&r->done);
}

static void await(rig *r, size_t count) {
    for (size_t i = 0; i < count; i++) {
        while (sem_wait(&r->done) != 0) {}
    }
}

/* A post to queue "q" of tenant "p". */
typedef struct posting {
    rt_post post;
    rt_post_item item;
} posting;

static void init_posting(posting *p, rig *r) {
    *p = (posting){.item = {.body = RT_STR("\"hello\""), .delay_s = -1}};
    rt_post_init(&p->post);
    p->post.cmd.done = told;
    p->post.cmd.ctx = r;
    p->post.tenant = RT_STR("p");
    p->post.queue = RT_STR("q");
    p->post.client_hash = 1;
    p->post.items = &p->item;
    p->post.count = 1;
}

static void subscribe(rig *r) {
    rt_subscription_create c;
    rt_subscription_create_init(&c);
    c.cmd.done = told;
    c.cmd.ctx = r;
    c.tenant = RT_STR("p");
    c.queue = RT_STR("q");
    c.like = (rt_subscription){.uri = RT_STR("http://h/"), .ttl_s = 3600, .options_json = RT_STR("{}")};
    assert_true(rt_engine_thread_submit(r->thread, &c.cmd, 1));
    await(r, 1);
    assert_int_equal(c.cmd.code, RT_OK);
}

/* Until all jobs of the store have ended or wait: `done` deliveries and `free` messages. */
static void await_counts(rig *r, int64_t done, int64_t free_count) {
    rt_counts c = {0};
    const uint64_t give_up_us = rt_mono_us() + 10000000;
    while (c.done != done || c.free != free_count) {
        if (rt_mono_us() > give_up_us) fail_msg("%d done, %d free", (int)c.done, (int)c.free);
        rt_view *v;
        assert_int_equal(rt_engine_view(r->engine, &v, NULL), RT_OK);
        assert_int_equal(rt_view_counts(v, 0, &c), RT_OK);
        rt_view_close(v);
    }
}

enum { SUBMITTERS = 4, POSTS = 250 };

static void *submit_many(void *arg) {
    rig *r = arg;
    posting *list = calloc(POSTS, sizeof *list);
    for (size_t i = 0; i < POSTS; i++) {
        init_posting(&list[i], r);
        while (!rt_engine_thread_submit(r->thread, &list[i].post.cmd, sizeof *list)) {}
    }
    return list;
}

static void engine_thread__answers_every_command_and_takes_every_outcome(void **state) {
    (void)state;
    rig r;
    open_rig(&r, 64);
    start_rig(&r);
    subscribe(&r);
    pthread_t threads[SUBMITTERS];
    for (size_t i = 0; i < SUBMITTERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, submit_many, &r), 0);
    }
    posting *lists[SUBMITTERS];
    for (size_t i = 0; i < SUBMITTERS; i++) pthread_join(threads[i], (void **)&lists[i]);
    await(&r, SUBMITTERS * POSTS);
    for (size_t i = 0; i < SUBMITTERS; i++) {
        for (size_t j = 0; j < POSTS; j++) assert_int_equal(lists[i][j].post.cmd.code, RT_OK);
        free(lists[i]);
    }
    await_counts(&r, SUBMITTERS * POSTS, SUBMITTERS * POSTS);
    assert_int_equal(atomic_load(&r.started), SUBMITTERS * POSTS);
    rt_err why;
    assert_int_equal(rt_engine_thread_trouble(r.thread, &why), RT_OK);
    close_rig(&r);
}

static void engine_thread__refuses_what_does_not_fit(void **state) {
    (void)state;
    rig r;
    open_rig(&r, 2);
    posting three[3];
    for (size_t i = 0; i < 3; i++) init_posting(&three[i], &r);
    rt_err why;
    assert_int_equal(rt_engine_thread_trouble(r.thread, &why), RT_E_UNAVAILABLE);
    assert_true(rt_engine_thread_submit(r.thread, &three[0].post.cmd, 1));
    assert_false(rt_engine_thread_submit(r.thread, &three[1].post.cmd, 1 << 20)); // too many bytes
    assert_true(rt_engine_thread_submit(r.thread, &three[1].post.cmd, 1));
    assert_false(rt_engine_thread_submit(r.thread, &three[2].post.cmd, 1)); // too many commands
    start_rig(&r);
    await(&r, 2);
    assert_int_equal(three[0].post.cmd.code, RT_OK);
    assert_int_equal(three[1].post.cmd.code, RT_OK);
    rt_engine_thread_stop(r.thread, 0);
    assert_false(rt_engine_thread_submit(r.thread, &three[2].post.cmd, 1)); // too late
    close_rig(&r);
}

static void engine_thread__stops_while_an_attempt_never_ends(void **state) {
    (void)state;
    rig r;
    open_rig(&r, 64);
    r.swallow = true;
    start_rig(&r);
    subscribe(&r);
    posting p;
    init_posting(&p, &r);
    assert_true(rt_engine_thread_submit(r.thread, &p.post.cmd, 1));
    await(&r, 1);
    while (atomic_load(&r.started) == 0) {}
    const uint64_t before = rt_mono_us();
    rt_engine_thread_stop(r.thread, 100);
    const uint64_t took_us = rt_mono_us() - before;
    assert_true(took_us >= 99000);
    rt_engine_thread_stop(r.thread, 100); // once more does nothing
    close_rig(&r);
}

static void engine_thread__leaves_no_command_without_an_answer(void **state) {
    (void)state;
    rig r;
    open_rig(&r, 64);
    posting list[10];
    for (size_t i = 0; i < 10; i++) {
        init_posting(&list[i], &r);
        assert_true(rt_engine_thread_submit(r.thread, &list[i].post.cmd, 1));
    }
    start_rig(&r);
    rt_engine_thread_stop(r.thread, 0); // whatever it got to
    rt_engine_close(r.engine);
    r.engine = NULL;
    await(&r, 10);
    for (size_t i = 0; i < 10; i++) {
        assert_true(list[i].post.cmd.code == RT_OK || list[i].post.cmd.code == RT_E_UNAVAILABLE);
    }
    close_rig(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engine_thread__answers_every_command_and_takes_every_outcome),
        cmocka_unit_test(engine_thread__refuses_what_does_not_fit),
        cmocka_unit_test(engine_thread__stops_while_an_attempt_never_ends),
        cmocka_unit_test(engine_thread__leaves_no_command_without_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
