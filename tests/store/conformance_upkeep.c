/* conformance_upkeep.c: counters, and history within its bounds. */
#include "store/conformance_parts.h"

enum { Q = 7, NOW = 1000000 };

/* ---- counters ------------------------------------------------------------------------------------------ */

static void assert_counts(rt_view *v, rt_id queue, rt_counts want) {
    const rt_counts got = kit_counts(v, queue);
    assert_int_equal(got.ready, want.ready);
    assert_int_equal(got.scheduled, want.scheduled);
    assert_int_equal(got.free, want.free);
    assert_int_equal(got.leased, want.leased);
    assert_int_equal(got.dead, want.dead);
    assert_int_equal(got.done, want.done);
    assert_int_equal(got.bytes, want.bytes);
}

static void store__jobs_are_counted_by_state(void **state) {
    kit *k = *state;
    for (int s = RT_JOB_READY; s < RT_JOB_STATE_COUNT; s++) {
        const uint8_t flags = s == RT_JOB_FREE ? RT_JOB_PULL : 0;
        for (int i = 0; i < s; i++) (void)kit_insert(k, Q, (rt_job_state)s, flags);
    }
    const rt_counts want = {.ready = 1, .scheduled = 2, .free = 3, .leased = 4, .dead = 5, .done = 6};
    assert_counts(kit_batch(k), Q, want);
    kit_commit(k);
    assert_counts(kit_batch(k), Q, want);
    assert_counts(kit_batch(k), 0, want);
    assert_counts(kit_batch(k), Q + 1, (rt_counts){0});
    kit_reopen(k);
    assert_counts(kit_batch(k), Q, want);
    rt_view *v = kit_view(k);
    assert_counts(v, 0, want);
    rt_view_close(v);
}

static void store__bytes_count_for_each_job_that_is_not_done(void **state) {
    kit *k = *state;
    rt_job a = kit_job(k, Q, RT_JOB_READY, 0);
    rt_job b = kit_job(k, Q + 1, RT_JOB_DEAD, 0);
    a.body = b.body = rt_store_new_id(k->store);
    a.body_bytes = b.body_bytes = 5;
    kit_apply(k, OPS(OP_BODY(a.body, RT_STR("bytes")), OP_JOB(NULL, &a), OP_JOB(NULL, &b)));
    kit_commit(k);
    assert_counts(kit_batch(k), Q, (rt_counts){.ready = 1, .bytes = 5});
    assert_counts(kit_batch(k), 0, (rt_counts){.ready = 1, .dead = 1, .bytes = 10});
    rt_job done = kit_after(a);
    done.state = RT_JOB_DONE;
    done.last_event = rt_store_new_seq(k->store);
    kit_replace(k, &a, done);
    kit_commit(k);
    assert_counts(kit_batch(k), Q, (rt_counts){.done = 1});
    assert_counts(kit_batch(k), 0, (rt_counts){.done = 1, .dead = 1, .bytes = 5});
    kit_delete(k, &a);
    kit_delete(k, &b);
    assert_counts(kit_batch(k), 0, (rt_counts){0});
}

static void store__a_job_that_moves_is_counted_where_it_is(void **state) {
    kit *k = *state;
    rt_job job = kit_insert(k, Q, RT_JOB_LEASED, RT_JOB_PULL);
    rt_job now = kit_after(job);
    now.queue = Q + 1;
    now.state = RT_JOB_FREE;
    kit_replace(k, &job, now);
    assert_counts(kit_batch(k), Q, (rt_counts){0});
    assert_counts(kit_batch(k), Q + 1, (rt_counts){.free = 1});
    assert_counts(kit_batch(k), 0, (rt_counts){.free = 1});
}

/* However a store keeps its sums, they have to survive being kept for long: many commits, many queues. */
static void store__counters_stay_exact_over_many_commits(void **state) {
    kit *k = *state;
    enum { COMMITS = 400, QUEUES = 90 };
    rt_job kept[QUEUES];
    for (int i = 0; i < QUEUES; i++) kept[i] = kit_insert(k, (rt_id)i + 1, RT_JOB_SCHEDULED, 0);
    for (int i = 0; i < COMMITS; i++) {
        rt_job *job = &kept[i * 7 % QUEUES];
        rt_job now = kit_after(*job);
        now.state = job->state == RT_JOB_SCHEDULED ? RT_JOB_READY : RT_JOB_SCHEDULED;
        kit_replace(k, job, now);
        (void)kit_insert(k, (rt_id)(i % QUEUES) + 1, RT_JOB_DEAD, 0);
        if (i % 3 == 0) (void)rt_store_tidy(k->store, NOW, 100);
        kit_commit(k);
        if (i % 150 == 149) kit_reopen(k);
    }
    int64_t ready = 0;
    rt_view *v = kit_view(k);
    for (int i = 0; i < QUEUES; i++) {
        const bool is_ready = kept[i].state == RT_JOB_READY;
        const int dead = COMMITS / QUEUES + (i < COMMITS % QUEUES ? 1 : 0);
        assert_counts(v, (rt_id)i + 1, (rt_counts){.ready = is_ready, .scheduled = !is_ready, .dead = dead});
        assert_counts(kit_batch(k), (rt_id)i + 1, (rt_counts){.ready = is_ready, .scheduled = !is_ready, .dead = dead});
        ready += is_ready;
    }
    assert_counts(v, 0, (rt_counts){.ready = ready, .scheduled = QUEUES - ready, .dead = COMMITS});
    rt_view_close(v);
}

/* ---- history ------------------------------------------------------------------------------------------- */

typedef struct seqs {
    uint64_t first, count;
} seqs;

static bool keep_seq(void *ctx, const rt_event *event) {
    seqs *out = ctx;
    if (out->count++ == 0) out->first = event->seq;
    return true;
}

static seqs events_of(rt_view *v) {
    seqs out = {0};
    assert_int_equal(rt_view_events(v, 0, keep_seq, &out), RT_OK);
    return out;
}

/* A job with one event, which ended it when `state` is DONE. */
static rt_job with_event(kit *k, rt_job_state state, int64_t at_ms) {
    rt_job job = kit_job(k, Q, state, 0);
    const rt_event event = kit_event(k, &job, at_ms);
    job.last_event = event.seq;
    kit_apply(k, OPS(OP_JOB(NULL, &job), OP_EVENT(&event)));
    return job;
}

static void tidy_all(kit *k, int64_t now_ms) {
    for (int i = 0; rt_store_tidy(k->store, now_ms, 4); i++) assert_true(i < 1000);
    kit_commit(k);
}

static void store__history_is_trimmed_by_count_oldest_first(void **state) {
    kit *k = *state;
    kit_recreate(k, (rt_retention){.age_ms = NOW, .events = 3});
    rt_job jobs[5];
    for (int i = 0; i < 5; i++) jobs[i] = with_event(k, i == 0 ? RT_JOB_DEAD : RT_JOB_DONE, NOW);
    kit_commit(k);
    assert_int_equal(events_of(kit_batch(k)).count, 5); // nothing goes but by tidy
    tidy_all(k, NOW);
    rt_view *v = kit_view(k);
    assert_int_equal(events_of(v).count, 3);
    assert_int_equal(events_of(v).first, jobs[2].last_event);
    kit_assert_job(v, &jobs[0]); // dead: stays without its history
    kit_assert_no_job(v, jobs[1].id);
    kit_assert_job(v, &jobs[2]);
    assert_counts(v, Q, (rt_counts){.dead = 1, .done = 3});
    rt_view_close(v);
    assert_false(rt_store_tidy(k->store, NOW, 100));
    assert_int_equal(events_of(kit_batch(k)).count, 3);
}

static void store__history_is_trimmed_by_age(void **state) {
    kit *k = *state;
    kit_recreate(k, (rt_retention){.age_ms = 1000, .events = 100});
    const rt_job old = with_event(k, RT_JOB_DONE, NOW);
    const rt_job young = with_event(k, RT_JOB_DONE, NOW + 1);
    kit_commit(k);
    tidy_all(k, NOW + 999);
    kit_assert_job(kit_batch(k), &old);
    tidy_all(k, NOW + 1000);
    kit_assert_no_job(kit_batch(k), old.id);
    kit_assert_job(kit_batch(k), &young);
    tidy_all(k, NOW + 2000);
    kit_assert_no_job(kit_batch(k), young.id);
    assert_int_equal(events_of(kit_batch(k)).count, 0);
    assert_counts(kit_batch(k), 0, (rt_counts){0});
    tidy_all(k, NOW + 2000);
}

static void store__a_done_job_goes_with_its_last_event_only(void **state) {
    kit *k = *state;
    kit_recreate(k, (rt_retention){.age_ms = NOW, .events = 1});
    rt_job job = with_event(k, RT_JOB_SCHEDULED, NOW);
    const rt_event end = kit_event(k, &job, NOW);
    rt_job done = kit_after(job);
    done.state = RT_JOB_DONE;
    done.last_event = end.seq;
    kit_apply(k, OPS(OP_JOB(&job, &done), OP_EVENT(&end)));
    tidy_all(k, NOW);
    kit_assert_job(kit_batch(k), &done); // its first event went, its last one is still there
    rt_event got;
    assert_int_equal(rt_view_event(kit_batch(k), end.seq, &got), RT_OK);
    assert_int_equal(rt_view_event(kit_batch(k), got.prev, &got), RT_E_ABSENT);
    (void)with_event(k, RT_JOB_DEAD, NOW);
    tidy_all(k, NOW);
    kit_assert_no_job(kit_batch(k), job.id);
}

static void store__tidy_does_no_more_than_it_was_told(void **state) {
    kit *k = *state;
    kit_recreate(k, (rt_retention){.age_ms = NOW, .events = 1});
    for (int i = 0; i < 11; i++) (void)with_event(k, RT_JOB_DONE, NOW);
    kit_commit(k);
    assert_true(rt_store_tidy(k->store, NOW, 4));
    const uint64_t left = events_of(kit_batch(k)).count;
    assert_true(left >= 7); // at most four writes
    assert_true(left < 11); // and something was done
    rt_store_abandon(k->store);
    assert_int_equal(events_of(kit_batch(k)).count, 11);
    assert_false(rt_store_tidy(k->store, NOW, 100));
    assert_int_equal(events_of(kit_batch(k)).count, 1);
    assert_counts(kit_batch(k), Q, (rt_counts){.done = 1});
}

static const struct CMUnitTest TESTS[] = {
    STORE_TEST(store__jobs_are_counted_by_state),
    STORE_TEST(store__bytes_count_for_each_job_that_is_not_done),
    STORE_TEST(store__a_job_that_moves_is_counted_where_it_is),
    STORE_TEST(store__counters_stay_exact_over_many_commits),
    STORE_TEST(store__history_is_trimmed_by_count_oldest_first),
    STORE_TEST(store__history_is_trimmed_by_age),
    STORE_TEST(store__a_done_job_goes_with_its_last_event_only),
    STORE_TEST(store__tidy_does_no_more_than_it_was_told),
};

store_tests store_tests_upkeep(void) {
    return (store_tests){.tests = TESTS, .count = sizeof TESTS / sizeof TESTS[0]};
}
