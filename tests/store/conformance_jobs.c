/* conformance_jobs.c: which index a job is in, and how they are listed. */
#include "store/conformance_parts.h"

enum { Q = 7, OTHER = 8, FOR_EVER = INT32_MAX };

static rt_job_range in(rt_job_index index, rt_id queue) {
    return (rt_job_range){.index = index, .queue = queue, .until_ms = FOR_EVER};
}

static const rt_job_index INDEXES[] = {RT_INDEX_READY, RT_INDEX_DUE, RT_INDEX_FREE, RT_INDEX_ALL, RT_INDEX_DEAD};
enum { INDEX_COUNT = sizeof INDEXES / sizeof INDEXES[0] };

/* The table of retryd/store.h, rule 4: state by index. */
static const bool PUSH[RT_JOB_STATE_COUNT][INDEX_COUNT] = {
    /*                     ready  due    free   all    dead */
    [RT_JOB_READY]     = { true,  false, false, false, false },
    [RT_JOB_SCHEDULED] = { false, true,  false, false, false },
    [RT_JOB_LEASED]    = { false, true,  false, false, false },
    [RT_JOB_DEAD]      = { false, false, false, false, true  },
    [RT_JOB_DONE]      = { false, false, false, false, false },
};
static const bool PULL[RT_JOB_STATE_COUNT][INDEX_COUNT] = {
    [RT_JOB_SCHEDULED] = { false, true,  false, true,  false },
    [RT_JOB_FREE]      = { false, false, true,  true,  false },
    [RT_JOB_LEASED]    = { false, false, false, true,  false },
    [RT_JOB_DEAD]      = { false, false, false, false, true  },
    [RT_JOB_DONE]      = { false, false, false, false, false },
};

/* A pull job is never ready, a push job never free. */
static bool may_be(int job_state, uint8_t flags) {
    return job_state != ((flags & RT_JOB_PULL) != 0 ? RT_JOB_READY : RT_JOB_FREE);
}

static void assert_indexed(rt_view *v, const rt_job *job) {
    const bool *want = (job->flags & RT_JOB_PULL) != 0 ? PULL[job->state] : PUSH[job->state];
    for (int i = 0; i < INDEX_COUNT; i++) {
        if (kit_is_in(v, in(INDEXES[i], job->queue), job->id) != want[i]) {
            fail_msg("%s job, %s: index %d is wrong", (job->flags & RT_JOB_PULL) != 0 ? "pull" : "push",
                     rt_job_state_name((rt_job_state)job->state), (int)INDEXES[i]);
        }
    }
    if (want[RT_INDEX_DEAD]) assert_true(kit_is_in(v, in(RT_INDEX_DEAD, 0), job->id));
}

static void store__a_new_store_is_empty(void **state) {
    kit *k = *state;
    rt_view *v = kit_view(k);
    for (int i = 0; i < INDEX_COUNT; i++) kit_assert_list(v, in(INDEXES[i], Q), NULL, 0);
    kit_assert_no_job(v, 1);
    const rt_counts counts = kit_counts(v, 0);
    assert_int_equal(counts.ready + counts.scheduled + counts.free + counts.leased + counts.dead + counts.done, 0);
    rt_view_close(v);
}

static void store__a_job_is_in_the_indexes_of_its_state(void **state) {
    kit *k = *state;
    for (int s = RT_JOB_READY; s < RT_JOB_STATE_COUNT; s++) {
        for (uint8_t flags = 0; flags <= RT_JOB_PULL; flags++) {
            if (!may_be(s, flags)) continue;
            const rt_job job = kit_insert(k, Q, (rt_job_state)s, flags);
            assert_indexed(kit_batch(k), &job);
            kit_delete(k, &job);
            for (int i = 0; i < INDEX_COUNT; i++) kit_assert_list(kit_batch(k), in(INDEXES[i], Q), NULL, 0);
        }
    }
}

static void store__each_change_of_state_moves_the_job(void **state) {
    kit *k = *state;
    for (int from = RT_JOB_READY; from < RT_JOB_DONE; from++) { // done is for good
        for (int to = RT_JOB_READY; to < RT_JOB_STATE_COUNT; to++) {
            for (uint8_t flags = 0; flags <= RT_JOB_PULL; flags++) {
                if (!may_be(from, flags) || !may_be(to, flags)) continue;
                rt_job job = kit_insert(k, Q, (rt_job_state)from, flags);
                rt_job now = kit_after(job);
                now.state = (uint8_t)to;
                now.last_event = rt_store_new_seq(k->store);
                kit_replace(k, &job, now);
                kit_assert_job(kit_batch(k), &job);
                assert_indexed(kit_batch(k), &job);
                kit_delete(k, &job);
            }
        }
    }
}

static void store__a_job_that_moves_to_another_queue_leaves_the_first(void **state) {
    kit *k = *state;
    static const rt_job_state STATES[] = {RT_JOB_SCHEDULED, RT_JOB_FREE, RT_JOB_LEASED, RT_JOB_DEAD};
    for (size_t s = 0; s < sizeof STATES / sizeof STATES[0]; s++) {
        rt_job job = kit_insert(k, Q, STATES[s], RT_JOB_PULL);
        rt_job now = kit_after(job);
        now.queue = OTHER;
        kit_replace(k, &job, now);
        assert_indexed(kit_batch(k), &job);
        for (int i = RT_INDEX_DUE; i < INDEX_COUNT; i++) kit_assert_list(kit_batch(k), in(INDEXES[i], Q), NULL, 0);
        kit_delete(k, &job);
    }
}

static void store__a_new_due_time_moves_the_entry(void **state) {
    kit *k = *state;
    rt_job first = kit_insert(k, Q, RT_JOB_SCHEDULED, 0);
    const rt_job second = kit_insert(k, Q, RT_JOB_SCHEDULED, 0);
    rt_job now = kit_after(first);
    now.due_ms += 1;
    kit_replace(k, &first, now);
    kit_assert_list(kit_batch(k), in(RT_INDEX_DUE, Q), IDS(second.id, first.id));
}

static void store__ready_is_one_fifo_by_id(void **state) {
    kit *k = *state;
    const rt_job a = kit_insert(k, OTHER, RT_JOB_READY, 0);
    rt_job b = kit_insert(k, Q, RT_JOB_DEAD, 0);
    const rt_job c = kit_insert(k, Q, RT_JOB_READY, 0);
    rt_view *v = kit_batch(k);
    kit_assert_list(v, in(RT_INDEX_READY, 0), IDS(a.id, c.id));
    rt_job redriven = kit_after(b);
    redriven.state = RT_JOB_READY;
    kit_replace(k, &b, redriven); // an old id goes to its place, not to the end
    v = kit_batch(k);
    kit_assert_list(v, in(RT_INDEX_READY, 0), IDS(a.id, b.id, c.id));
    rt_job_range range = in(RT_INDEX_READY, 0);
    range.after = a.id;
    kit_assert_list(v, range, IDS(b.id, c.id));
    range.after = c.id;
    kit_assert_list(v, range, NULL, 0);
}

static void store__due_is_by_time_then_id_within_a_queue(void **state) {
    kit *k = *state;
    static const int64_t DUE[] = {5000, 3000, 3000, 4000};
    rt_job jobs[4];
    for (int i = 0; i < 4; i++) {
        jobs[i] = kit_job(k, Q, RT_JOB_SCHEDULED, 0);
        jobs[i].due_ms = DUE[i];
        kit_apply(k, OPS(OP_JOB(NULL, &jobs[i])));
    }
    (void)kit_insert(k, OTHER, RT_JOB_SCHEDULED, 0);
    (void)kit_insert(k, Q - 1, RT_JOB_SCHEDULED, 0);
    rt_view *v = kit_batch(k);
    rt_job_range range = in(RT_INDEX_DUE, Q);
    kit_assert_list(v, range, IDS(jobs[1].id, jobs[2].id, jobs[3].id, jobs[0].id));
    range.until_ms = 4000;
    kit_assert_list(v, range, IDS(jobs[1].id, jobs[2].id, jobs[3].id));
    range.until_ms = 3999;
    kit_assert_list(v, range, IDS(jobs[1].id, jobs[2].id));
    range.until_ms = 2999;
    kit_assert_list(v, range, NULL, 0);
    range.until_ms = FOR_EVER;
    range.after_due_ms = 3000;
    range.after = jobs[1].id;
    kit_assert_list(v, range, IDS(jobs[2].id, jobs[3].id, jobs[0].id));
    range.after = jobs[2].id;
    kit_assert_list(v, range, IDS(jobs[3].id, jobs[0].id));
    range.after_due_ms = 5000;
    range.after = jobs[0].id;
    kit_assert_list(v, range, NULL, 0);
}

static void store__free_passes_over_the_callers_own(void **state) {
    kit *k = *state;
    rt_job jobs[4];
    for (int i = 0; i < 4; i++) {
        jobs[i] = kit_job(k, Q, RT_JOB_FREE, RT_JOB_PULL);
        jobs[i].key_hash = i % 2 == 0 ? 111 : 222;
        kit_apply(k, OPS(OP_JOB(NULL, &jobs[i])));
    }
    (void)kit_insert(k, OTHER, RT_JOB_FREE, RT_JOB_PULL);
    rt_view *v = kit_batch(k);
    rt_job_range range = in(RT_INDEX_FREE, Q);
    kit_assert_list(v, range, IDS(jobs[0].id, jobs[1].id, jobs[2].id, jobs[3].id));
    range.skip_hash = 111;
    kit_assert_list(v, range, IDS(jobs[1].id, jobs[3].id));
    range.after = jobs[1].id;
    kit_assert_list(v, range, IDS(jobs[3].id));
    range.skip_hash = 333;
    kit_assert_list(v, range, IDS(jobs[2].id, jobs[3].id));
    range.to_take = true;
    kit_assert_list(v, range, IDS(jobs[2].id, jobs[3].id));
}

static void store__a_new_hash_is_passed_over_from_then_on(void **state) {
    kit *k = *state;
    rt_job job = kit_insert(k, Q, RT_JOB_FREE, RT_JOB_PULL);
    rt_job now = kit_after(job);
    now.key_hash = 9;
    kit_replace(k, &job, now);
    rt_job_range range = in(RT_INDEX_FREE, Q);
    range.skip_hash = 9;
    kit_assert_list(kit_batch(k), range, NULL, 0);
}

static void store__all_is_listed_both_ways(void **state) {
    kit *k = *state;
    (void)kit_insert(k, Q - 1, RT_JOB_FREE, RT_JOB_PULL);
    const rt_job a = kit_insert(k, Q, RT_JOB_FREE, RT_JOB_PULL);
    (void)kit_insert(k, OTHER, RT_JOB_FREE, RT_JOB_PULL);
    const rt_job b = kit_insert(k, Q, RT_JOB_LEASED, RT_JOB_PULL);
    const rt_job c = kit_insert(k, Q, RT_JOB_SCHEDULED, RT_JOB_PULL);
    rt_view *v = kit_batch(k);
    rt_job_range range = in(RT_INDEX_ALL, Q);
    kit_assert_list(v, range, IDS(a.id, b.id, c.id));
    range.after = b.id;
    kit_assert_list(v, range, IDS(c.id));
    range.backwards = true;
    kit_assert_list(v, range, IDS(a.id));
    range.after = 0;
    kit_assert_list(v, range, IDS(c.id, b.id, a.id));
    range.queue = OTHER + 1; // behind all others: nothing of this queue
    kit_assert_list(v, range, NULL, 0);
    range.queue = 1; // before all others
    kit_assert_list(v, range, NULL, 0);
}

static void store__dead_is_listed_by_queue_and_of_all(void **state) {
    kit *k = *state;
    const rt_job a = kit_insert(k, OTHER, RT_JOB_DEAD, 0);
    const rt_job b = kit_insert(k, Q, RT_JOB_DEAD, RT_JOB_PULL);
    const rt_job c = kit_insert(k, Q, RT_JOB_DEAD, 0);
    rt_view *v = kit_batch(k);
    rt_job_range range = in(RT_INDEX_DEAD, Q);
    kit_assert_list(v, range, IDS(b.id, c.id));
    range.after = b.id;
    kit_assert_list(v, range, IDS(c.id));
    range = in(RT_INDEX_DEAD, 0);
    kit_assert_list(v, range, IDS(b.id, c.id, a.id));
    range.after_queue = Q;
    range.after = b.id;
    kit_assert_list(v, range, IDS(c.id, a.id));
    range.after = c.id;
    kit_assert_list(v, range, IDS(a.id));
    range.after_queue = OTHER;
    range.after = a.id;
    kit_assert_list(v, range, NULL, 0);
}

static void store__a_listing_ends_when_its_reader_has_enough(void **state) {
    kit *k = *state;
    for (int i = 0; i < 5; i++) (void)kit_insert(k, Q, RT_JOB_READY, 0);
    kit_ids list = {.stop_at = 2};
    kit_list(kit_batch(k), in(RT_INDEX_READY, 0), &list);
    assert_int_equal(list.count, 2);
}

typedef struct reader {
    rt_view *v;
    size_t seen, inner;
} reader;

static bool count_inner(void *ctx, const rt_job *job) {
    (void)job;
    ((reader *)ctx)->inner++;
    return true;
}

static bool read_more(void *ctx, const rt_job *job) {
    reader *r = ctx;
    rt_job same;
    assert_int_equal(rt_view_job(r->v, job->id, &same), RT_OK);
    const rt_job_range range = {.index = RT_INDEX_READY};
    assert_int_equal(rt_view_jobs(r->v, &range, count_inner, r), RT_OK);
    r->seen++;
    return true;
}

static void store__a_listings_reader_may_read_on_in_the_same_view(void **state) {
    kit *k = *state;
    for (int i = 0; i < 3; i++) (void)kit_insert(k, Q, RT_JOB_READY, 0);
    kit_commit(k);
    const rt_job_range range = {.index = RT_INDEX_READY};
    reader r = {.v = kit_batch(k)};
    assert_int_equal(rt_view_jobs(r.v, &range, read_more, &r), RT_OK);
    rt_view *v = kit_view(k);
    r.v = v;
    assert_int_equal(rt_view_jobs(v, &range, read_more, &r), RT_OK);
    rt_view_close(v);
    assert_int_equal(r.seen, 6);
    assert_int_equal(r.inner, 18);
}

static bool keep_wake(void *ctx, const rt_wake *wake) {
    kit_ids *out = ctx;
    out->ids[out->count++] = wake->queue;
    out->ids[out->count++] = (rt_id)wake->due_ms;
    return out->count != out->stop_at;
}

static void assert_wakes(rt_view *v, rt_id after, const rt_id *want, size_t want_count) {
    kit_ids got = {0};
    assert_int_equal(rt_view_wakes(v, after, keep_wake, &got), RT_OK);
    assert_int_equal(got.count, want_count);
    for (size_t i = 0; i < want_count; i++) assert_int_equal(got.ids[i], want[i]);
}

static void store__wakes_gives_the_first_due_time_of_each_queue(void **state) {
    kit *k = *state;
    static const struct { rt_id queue; int64_t due_ms; } ROWS[] = {{9, 50}, {3, 70}, {3, 20}, {3, 90}, {5, 10}};
    rt_job last = {0};
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        last = kit_job(k, ROWS[i].queue, i == 2 ? RT_JOB_LEASED : RT_JOB_SCHEDULED, 0);
        last.due_ms = ROWS[i].due_ms;
        kit_apply(k, OPS(OP_JOB(NULL, &last)));
    }
    (void)kit_insert(k, 4, RT_JOB_READY, 0);
    assert_wakes(kit_batch(k), 0, IDS(3, 20, 5, 10, 9, 50));
    assert_wakes(kit_batch(k), 3, IDS(5, 10, 9, 50));
    assert_wakes(kit_batch(k), 9, NULL, 0);
    kit_ids first = {.stop_at = 2};
    assert_int_equal(rt_view_wakes(kit_batch(k), 0, keep_wake, &first), RT_OK);
    assert_int_equal(first.count, 2);
    kit_delete(k, &last);
    assert_wakes(kit_batch(k), 0, IDS(3, 20, 9, 50));
}

static const struct CMUnitTest TESTS[] = {
    STORE_TEST(store__a_new_store_is_empty),
    STORE_TEST(store__a_job_is_in_the_indexes_of_its_state),
    STORE_TEST(store__each_change_of_state_moves_the_job),
    STORE_TEST(store__a_job_that_moves_to_another_queue_leaves_the_first),
    STORE_TEST(store__a_new_due_time_moves_the_entry),
    STORE_TEST(store__ready_is_one_fifo_by_id),
    STORE_TEST(store__due_is_by_time_then_id_within_a_queue),
    STORE_TEST(store__free_passes_over_the_callers_own),
    STORE_TEST(store__a_new_hash_is_passed_over_from_then_on),
    STORE_TEST(store__all_is_listed_both_ways),
    STORE_TEST(store__dead_is_listed_by_queue_and_of_all),
    STORE_TEST(store__a_listing_ends_when_its_reader_has_enough),
    STORE_TEST(store__a_listings_reader_may_read_on_in_the_same_view),
    STORE_TEST(store__wakes_gives_the_first_due_time_of_each_queue),
};

store_tests store_tests_jobs(void) {
    return (store_tests){.tests = TESTS, .count = sizeof TESTS / sizeof TESTS[0]};
}
