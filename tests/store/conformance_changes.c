/* conformance_changes.c: what a change is refused for, and that a refused one leaves nothing. */
#include <stdlib.h>
#include <string.h>

#include "store/conformance_parts.h"

enum { Q = 7 };

/* A change of one harmless insert and then `op` is refused with `want`, and the insert is not there. */
static void assert_refused(kit *k, rt_op op, rt_code want) {
    const rt_job bystander = kit_job(k, Q, RT_JOB_READY, 0);
    const rt_counts before = kit_counts(kit_batch(k), 0);
    assert_int_equal(kit_try(k, OPS(OP_JOB(NULL, &bystander), op)), want);
    assert_int_equal(k->err.code, want);
    kit_assert_no_job(kit_batch(k), bystander.id);
    assert_false(kit_is_in(kit_batch(k), (rt_job_range){.index = RT_INDEX_READY}, bystander.id));
    const rt_counts after = kit_counts(kit_batch(k), 0);
    assert_memory_equal(&before, &after, sizeof before);
}

static void store__a_job_that_is_there_is_not_inserted_again(void **state) {
    kit *k = *state;
    const rt_job job = kit_insert(k, Q, RT_JOB_READY, 0);
    assert_refused(k, OP_JOB(NULL, &job), RT_E_EXISTS);
    kit_commit(k);
    assert_refused(k, OP_JOB(NULL, &job), RT_E_EXISTS);
    kit_assert_job(kit_batch(k), &job);
}

static void store__a_job_that_changed_is_not_written(void **state) {
    kit *k = *state;
    const rt_job old = kit_insert(k, Q, RT_JOB_READY, 0);
    rt_job job = old;
    kit_replace(k, &job, kit_after(old));
    const rt_job late = kit_after(old);
    assert_refused(k, OP_JOB(&old, &late), RT_E_CONFLICT);
    assert_refused(k, OP_JOB(&old, NULL), RT_E_CONFLICT);
    kit_assert_job(kit_batch(k), &job);
    kit_delete(k, &job);
    const rt_job next = kit_after(job);
    assert_refused(k, OP_JOB(&job, &next), RT_E_CONFLICT);
    assert_refused(k, OP_JOB(&job, NULL), RT_E_CONFLICT);
}

static void store__documents_are_compared_too(void **state) {
    kit *k = *state;
    const rt_doc doc = kit_doc(RT_DOC_METADATA, RT_STR("d"), RT_STR("1"));
    rt_doc next = doc;
    next.version = 2;
    assert_refused(k, OP_DOC(&doc, &next), RT_E_CONFLICT);
    kit_apply(k, OPS(OP_DOC(NULL, &doc)));
    assert_refused(k, OP_DOC(NULL, &doc), RT_E_EXISTS);
    kit_apply(k, OPS(OP_DOC(&doc, &next)));
    assert_refused(k, OP_DOC(&doc, &next), RT_E_CONFLICT);
    assert_refused(k, OP_DOC(&doc, NULL), RT_E_CONFLICT);
}

static void store__queues_are_compared_too(void **state) {
    kit *k = *state;
    const rt_queue queue = {.id = rt_store_new_id(k->store), .version = 1, .kind = RT_QUEUE_MESSAGES};
    rt_queue next = queue;
    next.version = 2;
    assert_refused(k, OP_QUEUE(&queue, &next), RT_E_CONFLICT);
    kit_apply(k, OPS(OP_QUEUE(NULL, &queue)));
    assert_refused(k, OP_QUEUE(NULL, &queue), RT_E_EXISTS);
    kit_apply(k, OPS(OP_QUEUE(&queue, &next)));
    assert_refused(k, OP_QUEUE(&queue, NULL), RT_E_CONFLICT);
}

static void store__leases_are_compared_too(void **state) {
    kit *k = *state;
    const rt_lease lease = {.id = rt_store_new_id(k->store), .queue = Q, .version = 1, .until_ms = 1};
    rt_lease next = lease;
    next.version = 2;
    assert_refused(k, OP_LEASE(&lease, &next), RT_E_CONFLICT);
    kit_apply(k, OPS(OP_LEASE(NULL, &lease)));
    assert_refused(k, OP_LEASE(NULL, &lease), RT_E_EXISTS);
    kit_apply(k, OPS(OP_LEASE(&lease, &next)));
    assert_refused(k, OP_LEASE(&lease, NULL), RT_E_CONFLICT);
}

static void store__events_and_bodies_are_written_once(void **state) {
    kit *k = *state;
    rt_job job = kit_job(k, Q, RT_JOB_READY, 0);
    job.body = rt_store_new_id(k->store);
    const rt_event event = kit_event(k, &job, 1);
    kit_apply(k, OPS(OP_BODY(job.body, RT_STR("b")), OP_JOB(NULL, &job), OP_EVENT(&event)));
    assert_refused(k, OP_EVENT(&event), RT_E_EXISTS);
    assert_refused(k, OP_BODY(job.body, RT_STR("c")), RT_E_EXISTS);
    kit_assert_body(kit_batch(k), job.body, RT_STR("b"));
}

static void store__guards_hold_what_was_only_read(void **state) {
    kit *k = *state;
    const rt_doc doc = kit_doc(RT_DOC_METADATA, RT_STR("d"), RT_STR_EMPTY);
    const rt_guard absent = {.kind = RT_DOC_METADATA, .name = doc.name, .version = 0};
    const rt_guard first = {.kind = RT_DOC_METADATA, .name = doc.name, .version = 1};
    const rt_guard other_kind = {.kind = RT_DOC_SETTING, .name = doc.name, .version = 0};
    const rt_job a = kit_job(k, Q, RT_JOB_READY, 0);
    const rt_job b = kit_job(k, Q, RT_JOB_READY, 0);
    const rt_job c = kit_job(k, Q, RT_JOB_READY, 0);
    assert_int_equal(kit_try_guarded(k, first, OPS(OP_JOB(NULL, &a))), RT_E_CONFLICT);
    assert_int_equal(kit_try_guarded(k, absent, OPS(OP_JOB(NULL, &a))), RT_OK);
    kit_apply(k, OPS(OP_DOC(NULL, &doc)));
    assert_int_equal(kit_try_guarded(k, absent, OPS(OP_JOB(NULL, &b))), RT_E_CONFLICT);
    kit_assert_no_job(kit_batch(k), b.id);
    assert_int_equal(kit_try_guarded(k, first, OPS(OP_JOB(NULL, &b))), RT_OK);
    assert_int_equal(kit_try_guarded(k, other_kind, OPS(OP_JOB(NULL, &c))), RT_OK);
    rt_doc next = doc;
    next.version = 2;
    kit_apply(k, OPS(OP_DOC(&doc, &next)));
    const rt_job d = kit_job(k, Q, RT_JOB_READY, 0);
    assert_int_equal(kit_try_guarded(k, first, OPS(OP_JOB(NULL, &d))), RT_E_CONFLICT);
}

static void store__a_refused_change_leaves_nothing_of_any_kind(void **state) {
    kit *k = *state;
    const rt_job there = kit_insert(k, Q, RT_JOB_READY, 0);
    const rt_job taken = kit_insert(k, Q, RT_JOB_READY, 0);
    rt_job job = kit_job(k, Q, RT_JOB_DEAD, 0);
    job.body = rt_store_new_id(k->store);
    const rt_doc doc = kit_doc(RT_DOC_SETTING, RT_STR("d"), RT_STR_EMPTY);
    const rt_queue queue = {.id = rt_store_new_id(k->store), .version = 1, .kind = RT_QUEUE_MESSAGES};
    const rt_lease lease = {.id = rt_store_new_id(k->store), .queue = Q, .version = 1, .until_ms = 5};
    const rt_event event = kit_event(k, &job, 1);
    const rt_op ops[] = {OP_BODY(job.body, RT_STR("b")), OP_JOB(NULL, &job),     OP_DOC(NULL, &doc),
                         OP_QUEUE(NULL, &queue),         OP_LEASE(NULL, &lease), OP_EVENT(&event),
                         OP_JOB(&there, NULL),           OP_JOB(NULL, &taken)};
    enum { N = sizeof ops / sizeof ops[0] };
    assert_int_equal(kit_try(k, ops, N), RT_E_EXISTS);
    rt_view *v = kit_batch(k);
    rt_doc got_doc;
    rt_queue got_queue;
    rt_lease got_lease;
    rt_event got_event;
    kit_assert_job(v, &there);
    kit_assert_no_job(v, job.id);
    assert_false(kit_has_body(v, job.body));
    assert_int_equal(rt_view_doc(v, doc.kind, doc.name, &got_doc), RT_E_ABSENT);
    assert_int_equal(rt_view_queue(v, queue.id, &got_queue), RT_E_ABSENT);
    assert_int_equal(rt_view_lease(v, lease.id, &got_lease), RT_E_ABSENT);
    assert_int_equal(rt_view_event(v, event.seq, &got_event), RT_E_ABSENT);
    kit_apply(k, ops, N - 1); // without the impossible part it goes through
    kit_commit(k);
    v = kit_view(k);
    kit_assert_job(v, &job);
    kit_assert_body(v, job.body, RT_STR("b"));
    rt_view_close(v);
}

static void store__a_body_needs_a_job_and_a_job_its_body(void **state) {
    kit *k = *state;
    assert_refused(k, OP_BODY(rt_store_new_id(k->store), RT_STR("orphan")), RT_E_INVALID);
    rt_job job = kit_job(k, Q, RT_JOB_READY, 0);
    job.body = rt_store_new_id(k->store);
    assert_refused(k, OP_JOB(NULL, &job), RT_E_INVALID);
}

static void store__a_done_job_needs_its_last_event(void **state) {
    kit *k = *state;
    rt_job job = kit_job(k, Q, RT_JOB_DONE, 0);
    job.last_event = 0;
    assert_refused(k, OP_JOB(NULL, &job), RT_E_INVALID);
}

static void store__what_is_too_large_is_refused(void **state) {
    kit *k = *state;
    char *big = calloc(1, RT_BODY_BYTES_MAX + 1);
    assert_non_null(big);
    const rt_str body = {.ptr = big, .len = RT_BODY_BYTES_MAX + 1};
    const rt_str value = {.ptr = big, .len = RT_DOC_VALUE_MAX + 1};
    const rt_str doc_name = {.ptr = big, .len = RT_DOC_NAME_MAX + 1};
    const rt_str queue_name = {.ptr = big, .len = RT_QUEUE_NAME_MAX + 1};
    assert_refused(k, OP_BODY(rt_store_new_id(k->store), body), RT_E_TOO_LARGE);
    const rt_doc large = kit_doc(RT_DOC_SETTING, RT_STR("d"), value);
    assert_refused(k, OP_DOC(NULL, &large), RT_E_TOO_LARGE);
    const rt_doc named = kit_doc(RT_DOC_SETTING, doc_name, RT_STR_EMPTY);
    assert_refused(k, OP_DOC(NULL, &named), RT_E_TOO_LARGE);
    const rt_doc nameless = kit_doc(RT_DOC_SETTING, RT_STR_EMPTY, RT_STR_EMPTY);
    assert_refused(k, OP_DOC(NULL, &nameless), RT_E_TOO_LARGE);
    const rt_queue queue = {.id = rt_store_new_id(k->store), .version = 1, .kind = RT_QUEUE_MESSAGES, .name = queue_name};
    assert_refused(k, OP_QUEUE(NULL, &queue), RT_E_TOO_LARGE);
    rt_doc got;
    assert_int_equal(rt_view_doc(kit_batch(k), RT_DOC_SETTING, doc_name, &got), RT_E_ABSENT);
    free(big);
}

static void store__what_the_batch_lent_can_be_written_back(void **state) {
    kit *k = *state;
    const rt_doc doc = kit_doc(RT_DOC_SETTING, RT_STR("the name"), RT_STR("the value"));
    const rt_queue queue = {.id = rt_store_new_id(k->store), .version = 1, .kind = RT_QUEUE_MESSAGES, .name = RT_STR("q")};
    kit_apply(k, OPS(OP_DOC(NULL, &doc), OP_QUEUE(NULL, &queue)));
    for (uint64_t version = 1; version < 20; version++) {
        rt_doc was_doc;
        rt_queue was_queue;
        assert_int_equal(rt_view_doc(kit_batch(k), doc.kind, doc.name, &was_doc), RT_OK);
        assert_int_equal(rt_view_queue(kit_batch(k), queue.id, &was_queue), RT_OK);
        const rt_doc filler = kit_doc(RT_DOC_SETTING, (rt_str){.ptr = &"abcdefghijklmnopqrstuvwxyz"[version], .len = 3},
                                      RT_STR("moves the others"));
        rt_doc now_doc = was_doc;
        now_doc.version++;
        now_doc.expires_ms = (int64_t)version;
        rt_queue now_queue = was_queue;
        now_queue.version++;
        kit_apply(k, OPS(OP_DOC(NULL, &filler), OP_QUEUE(&was_queue, &now_queue), OP_DOC(&was_doc, &now_doc)));
        if (version % 5 == 0) kit_commit(k);
    }
    rt_doc got_doc;
    rt_queue got_queue;
    assert_int_equal(rt_view_doc(kit_batch(k), doc.kind, doc.name, &got_doc), RT_OK);
    kit_assert_str(got_doc.value, doc.value);
    assert_int_equal(got_doc.version, 20);
    assert_int_equal(rt_view_queue(kit_batch(k), queue.id, &got_queue), RT_OK);
    kit_assert_str(got_queue.name, queue.name);
    kit_ids expiring;
    kit_expiries(kit_batch(k), INT32_MAX, &expiring);
    assert_int_equal(expiring.count, 1);
}

static void store__a_change_may_have_as_many_ops_as_allowed(void **state) {
    kit *k = *state;
    rt_job *jobs = calloc(RT_CHANGE_OPS_MAX, sizeof *jobs);
    rt_op *ops = calloc(RT_CHANGE_OPS_MAX, sizeof *ops);
    assert_non_null(jobs);
    assert_non_null(ops);
    for (size_t i = 0; i < RT_CHANGE_OPS_MAX; i++) {
        jobs[i] = kit_job(k, 1 + i % 100, RT_JOB_READY, 0);
        ops[i] = OP_JOB(NULL, &jobs[i]);
    }
    kit_apply(k, ops, RT_CHANGE_OPS_MAX);
    kit_commit(k);
    rt_view *v = kit_view(k);
    assert_int_equal(kit_counts(v, 0).ready, RT_CHANGE_OPS_MAX);
    kit_assert_job(v, &jobs[RT_CHANGE_OPS_MAX - 1]);
    rt_view_close(v);
    for (size_t i = 0; i < RT_CHANGE_OPS_MAX; i++) ops[i] = OP_JOB(&jobs[i], NULL);
    kit_apply(k, ops, RT_CHANGE_OPS_MAX);
    kit_commit(k);
    assert_int_equal(kit_counts(kit_batch(k), 0).ready, 0);
    free(ops);
    free(jobs);
}

static const struct CMUnitTest TESTS[] = {
    STORE_TEST(store__a_job_that_is_there_is_not_inserted_again),
    STORE_TEST(store__a_job_that_changed_is_not_written),
    STORE_TEST(store__documents_are_compared_too),
    STORE_TEST(store__queues_are_compared_too),
    STORE_TEST(store__leases_are_compared_too),
    STORE_TEST(store__events_and_bodies_are_written_once),
    STORE_TEST(store__guards_hold_what_was_only_read),
    STORE_TEST(store__a_refused_change_leaves_nothing_of_any_kind),
    STORE_TEST(store__a_body_needs_a_job_and_a_job_its_body),
    STORE_TEST(store__a_done_job_needs_its_last_event),
    STORE_TEST(store__what_is_too_large_is_refused),
    STORE_TEST(store__what_the_batch_lent_can_be_written_back),
    STORE_TEST(store__a_change_may_have_as_many_ops_as_allowed),
};

store_tests store_tests_changes(void) {
    return (store_tests){.tests = TESTS, .count = sizeof TESTS / sizeof TESTS[0]};
}
