/* conformance_batches.c: who sees what when, and what a restart keeps. */
#include <pthread.h>
#include <string.h>

#include "store/conformance_parts.h"

enum { Q = 7 };

static const rt_job_range READY = {.index = RT_INDEX_READY};

static void store__the_batch_sees_its_own_changes_and_views_do_not(void **state) {
    kit *k = *state;
    const rt_job job = kit_insert(k, Q, RT_JOB_READY, 0);
    kit_assert_job(kit_batch(k), &job);
    assert_int_equal(kit_counts(kit_batch(k), Q).ready, 1);
    rt_view *before = kit_view(k);
    kit_assert_no_job(before, job.id);
    assert_int_equal(kit_counts(before, Q).ready, 0);
    kit_commit(k);
    kit_assert_no_job(before, job.id);
    rt_view *after = kit_view(k);
    kit_assert_job(after, &job);
    kit_assert_list(after, READY, IDS(job.id));
    assert_int_equal(kit_counts(after, Q).ready, 1);
    rt_view_close(after);
    rt_view_close(before);
}

static void store__a_view_stays_as_it_was_opened(void **state) {
    kit *k = *state;
    rt_job job = kit_job(k, Q, RT_JOB_READY, 0);
    job.body = rt_store_new_id(k->store);
    const rt_doc doc = kit_doc(RT_DOC_SETTING, RT_STR("d"), RT_STR("first"));
    kit_apply(k, OPS(OP_BODY(job.body, RT_STR("body")), OP_JOB(NULL, &job), OP_DOC(NULL, &doc)));
    kit_commit(k);
    rt_view *v = kit_view(k);
    rt_doc lent;
    assert_int_equal(rt_view_doc(v, doc.kind, doc.name, &lent), RT_OK);
    rt_doc next = kit_doc(RT_DOC_SETTING, RT_STR("d"), RT_STR("other"));
    next.version = 2;
    kit_apply(k, OPS(OP_JOB(&job, NULL), OP_DOC(&doc, &next)));
    kit_commit(k);
    for (int i = 0; i < 50; i++) { // enough for freed pages to be used again, were it not for the view
        (void)kit_insert(k, Q, RT_JOB_READY, 0);
        kit_commit(k);
    }
    kit_assert_str(lent.value, RT_STR("first"));
    kit_assert_job(v, &job);
    kit_assert_body(v, job.body, RT_STR("body"));
    kit_assert_list(v, READY, IDS(job.id));
    assert_int_equal(kit_counts(v, Q).ready, 1);
    rt_view_close(v);
    assert_int_equal(kit_counts(kit_batch(k), Q).ready, 50);
}

static void store__an_abandoned_batch_never_was(void **state) {
    kit *k = *state;
    rt_job kept = kit_insert(k, Q, RT_JOB_READY, 0);
    kit_commit(k);
    const rt_job lost = kit_insert(k, Q, RT_JOB_READY, 0);
    rt_job changed = kit_after(kept);
    changed.state = RT_JOB_DEAD;
    kit_apply(k, OPS(OP_JOB(&kept, &changed)));
    rt_store_abandon(k->store);
    kit_assert_no_job(kit_batch(k), lost.id);
    kit_assert_job(kit_batch(k), &kept);
    kit_assert_list(kit_batch(k), READY, IDS(kept.id));
    assert_int_equal(kit_counts(kit_batch(k), 0).ready, 1);
    assert_int_equal(kit_counts(kit_batch(k), 0).dead, 0);
    rt_store_abandon(k->store);
    rt_store_abandon(k->store); // of nothing is nothing
    kit_replace(k, &kept, changed);
    kit_commit(k);
    kit_assert_job(kit_batch(k), &changed);
}

static void store__a_failed_batch_never_was(void **state) {
    kit *k = *state;
    if (k->factory->fail_next_commit == NULL) skip();
    const rt_job kept = kit_insert(k, Q, RT_JOB_READY, 0);
    kit_commit(k);
    const rt_job lost = kit_insert(k, Q, RT_JOB_READY, 0);
    k->factory->fail_next_commit(k->factory->ctx, k->store);
    assert_int_equal(kit_end(k), RT_BATCH_FAILED);
    assert_int_not_equal(k->err.code, RT_OK);
    assert_int_not_equal(k->err.msg[0], '\0');
    rt_view *v = kit_view(k); // reads go on
    kit_assert_list(v, READY, IDS(kept.id));
    assert_int_equal(kit_counts(v, 0).ready, 1);
    rt_view_close(v);
    kit_assert_no_job(kit_batch(k), lost.id);
    assert_int_equal(kit_counts(kit_batch(k), 0).ready, 1);
    kit_apply(k, OPS(OP_JOB(NULL, &lost))); // the same again, and it goes through
    kit_commit(k);
    kit_reopen(k);
    kit_assert_job(kit_batch(k), &lost);
    assert_int_equal(kit_counts(kit_batch(k), 0).ready, 2);
}

static void store__an_empty_batch_is_durable(void **state) {
    kit *k = *state;
    kit_commit(k); // none was open
    (void)kit_batch(k);
    kit_commit(k); // nothing was applied
    (void)kit_batch(k);
    assert_int_equal(rt_store_load(k->store, &k->err), RT_OK);
    kit_commit(k);
}

static void store__a_restart_keeps_what_was_durable_and_only_that(void **state) {
    kit *k = *state;
    const uint32_t tag = k->store->tag;
    rt_job jobs[3];
    for (int i = 0; i < 3; i++) jobs[i] = kit_insert(k, Q, RT_JOB_READY, 0);
    kit_commit(k);
    const rt_job lost = kit_insert(k, Q, RT_JOB_READY, 0);
    kit_reopen(k);
    kit_assert_list(kit_batch(k), READY, IDS(jobs[0].id, jobs[1].id, jobs[2].id));
    kit_assert_no_job(kit_batch(k), lost.id);
    const rt_job more = kit_insert(k, Q, RT_JOB_READY, 0);
    kit_commit(k);
    (void)kit_insert(k, Q, RT_JOB_READY, 0);
    kit_crash(k);
    kit_assert_list(kit_batch(k), READY, IDS(jobs[0].id, jobs[1].id, jobs[2].id, more.id));
    assert_int_equal(kit_counts(kit_batch(k), 0).ready, 4);
    assert_int_equal(k->store->tag, tag);
}

static void store__numbers_rise_over_batches_and_restarts(void **state) {
    kit *k = *state;
    rt_id last_id = 0;
    uint64_t last_seq = 0;
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < 3; i++) {
            rt_job job = kit_job(k, Q, RT_JOB_READY, 0);
            const rt_event event = kit_event(k, &job, 1);
            assert_true(job.id > last_id);
            assert_true(event.seq > last_seq);
            last_id = job.id;
            last_seq = event.seq;
            kit_apply(k, OPS(OP_JOB(NULL, &job), OP_EVENT(&event)));
        }
        if (round == 1) {
            rt_store_abandon(k->store);
            continue;
        }
        kit_commit(k);
        if (round == 3) kit_reopen(k);
        if (round == 4) kit_crash(k);
    }
}

static void store__a_number_is_larger_than_all_that_were_stored(void **state) {
    kit *k = *state;
    for (int i = 0; i < 10000; i++) (void)rt_store_new_id(k->store); // many that no record holds
    const rt_job job = kit_insert(k, Q, RT_JOB_READY, 0);
    kit_commit(k);
    kit_crash(k);
    assert_true(rt_store_new_id(k->store) > job.id);
}

static void store__many_views_may_be_open(void **state) {
    kit *k = *state;
    rt_view *views[40];
    rt_job jobs[40];
    for (int i = 0; i < 40; i++) {
        views[i] = kit_view(k);
        jobs[i] = kit_insert(k, Q, RT_JOB_READY, 0);
        kit_commit(k);
    }
    for (int i = 0; i < 40; i++) {
        assert_int_equal(kit_counts(views[i], Q).ready, i);
        kit_assert_no_job(views[i], jobs[i].id);
        if (i > 0) kit_assert_job(views[i], &jobs[i - 1]);
        rt_view_close(views[i]);
    }
}

/* ---- another thread ------------------------------------------------------------------------------------ */

enum { READ_ROUNDS = 300, PAIR = 2 };

typedef struct reading {
    rt_store *store;
    rt_id first, second; /* both jobs change in the same batches: a view sees both at the same version */
    int wrong;
} reading;

/* cmocka's assertions are for the test's own thread, so this only counts. */
static void *read_pairs(void *ctx) {
    reading *r = ctx;
    uint64_t last = 0;
    for (int i = 0; i < READ_ROUNDS; i++) {
        rt_view *v = NULL;
        rt_err err;
        if (rt_store_view(r->store, &v, &err) != RT_OK) {
            r->wrong++;
            continue;
        }
        rt_job a;
        rt_job b;
        rt_counts counts;
        const bool there = rt_view_job(v, r->first, &a) == RT_OK && rt_view_job(v, r->second, &b) == RT_OK &&
                           rt_view_counts(v, Q, &counts) == RT_OK;
        if (!there || a.version != b.version || a.version < last || counts.ready != PAIR) r->wrong++;
        if (there) last = a.version;
        rt_view_close(v);
    }
    return NULL;
}

static void store__another_thread_reads_whole_batches(void **state) {
    kit *k = *state;
    rt_job a = kit_insert(k, Q, RT_JOB_READY, 0);
    rt_job b = kit_insert(k, Q, RT_JOB_READY, 0);
    kit_commit(k);
    reading r = {.store = k->store, .first = a.id, .second = b.id};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_pairs, &r), 0);
    for (int i = 0; i < 100; i++) {
        kit_replace(k, &a, kit_after(a));
        kit_replace(k, &b, kit_after(b));
        kit_commit(k);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(r.wrong, 0);
}

static const struct CMUnitTest TESTS[] = {
    STORE_TEST(store__the_batch_sees_its_own_changes_and_views_do_not),
    STORE_TEST(store__a_view_stays_as_it_was_opened),
    STORE_TEST(store__an_abandoned_batch_never_was),
    STORE_TEST(store__a_failed_batch_never_was),
    STORE_TEST(store__an_empty_batch_is_durable),
    STORE_TEST(store__a_restart_keeps_what_was_durable_and_only_that),
    STORE_TEST(store__numbers_rise_over_batches_and_restarts),
    STORE_TEST(store__a_number_is_larger_than_all_that_were_stored),
    STORE_TEST(store__many_views_may_be_open),
    STORE_TEST(store__another_thread_reads_whole_batches),
};

store_tests store_tests_batches(void) {
    return (store_tests){.tests = TESTS, .count = sizeof TESTS / sizeof TESTS[0]};
}
