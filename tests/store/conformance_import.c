/* conformance_import.c: what a copy of a store reads, and how it is written into another one. */
#include <string.h>

#include "store/conformance_parts.h"

enum { Q = 7 };

/* Ids and numbers beyond all that the store has given out. */
static const rt_import FROM = {.tag = 0x5eed, .ids_from = (UINT64_C(1) << 48) + 5000000, .seqs_from = 6000000};

/* Stores that are the view of something else need not do all this. */
static void skip_unless_copied(kit *k) {
    rt_view *v = kit_view(k);
    const bool copied = v->ops->leases != NULL && v->ops->bodies != NULL;
    rt_view_close(v);
    if (!copied) skip();
}

static void import(kit *k, const rt_op *ops, size_t ops_count) {
    const rt_change change = {.ops = ops, .ops_count = (uint32_t)ops_count, .import = &FROM};
    (void)kit_batch(k);
    const rt_code code = rt_store_apply(k->store, &change, &k->err);
    if (code != RT_OK) fail_msg("import: %s (%s)", rt_code_name(code), k->err.msg);
}

static rt_job numbered(rt_id id, rt_job_state state, uint8_t flags) {
    return (rt_job){
        .id = id, .queue = Q, .version = 9, .state = (uint8_t)state, .flags = flags, .placed_ms = 1, .due_ms = 2};
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static void store__every_job_is_listed_whatever_its_state(void **state) {
    kit *k = *state;
    skip_unless_copied(k);
    const rt_job ready = kit_insert(k, Q, RT_JOB_READY, 0);
    const rt_job done = kit_insert(k, Q + 1, RT_JOB_DONE, 0);
    const rt_job leased = kit_insert(k, Q, RT_JOB_LEASED, RT_JOB_PULL);
    const rt_job dead = kit_insert(k, Q + 2, RT_JOB_DEAD, 0);
    kit_commit(k);
    rt_view *v = kit_view(k);
    kit_assert_list(v, (rt_job_range){.index = RT_INDEX_EVERY}, IDS(ready.id, done.id, leased.id, dead.id));
    kit_assert_list(v, (rt_job_range){.index = RT_INDEX_EVERY, .after = done.id}, IDS(leased.id, dead.id));
    rt_view_close(v);
}

static bool keep_lease(void *ctx, const rt_lease *lease) {
    kit_ids *out = ctx;
    out->ids[out->count++] = lease->id;
    return out->count != out->stop_at;
}

static void store__leases_are_listed_by_id(void **state) {
    kit *k = *state;
    skip_unless_copied(k);
    rt_lease leases[3];
    for (size_t i = 0; i < 3; i++) { // the second has no end
        leases[i] = (rt_lease){.id = rt_store_new_id(k->store), .queue = Q, .version = 1, .until_ms = i == 1 ? 0 : 50};
        kit_apply(k, OPS(OP_LEASE(NULL, &leases[i])));
    }
    kit_commit(k);
    rt_view *v = kit_view(k);
    kit_ids got = {0};
    assert_int_equal(rt_view_leases(v, 0, keep_lease, &got), RT_OK);
    assert_int_equal(got.count, 3);
    for (size_t i = 0; i < 3; i++) assert_int_equal(got.ids[i], leases[i].id);
    got = (kit_ids){.stop_at = 1};
    assert_int_equal(rt_view_leases(v, leases[0].id, keep_lease, &got), RT_OK);
    assert_int_equal(got.count, 1);
    assert_int_equal(got.ids[0], leases[1].id);
    rt_view_close(v);
}

typedef struct bodies {
    rt_id ids[4];
    uint64_t users[4];
    char bytes[4][8];
    size_t count;
} bodies;

static bool keep_body(void *ctx, rt_id id, rt_str bytes, uint64_t users) {
    bodies *out = ctx;
    assert_true(out->count < 4 && bytes.len < 8);
    out->ids[out->count] = id;
    out->users[out->count] = users;
    memcpy(out->bytes[out->count++], bytes.ptr, bytes.len);
    return true;
}

static bodies list_bodies(kit *k) {
    bodies got = {0};
    rt_view *v = kit_view(k);
    assert_int_equal(rt_view_bodies(v, 0, keep_body, &got), RT_OK);
    rt_view_close(v);
    return got;
}

static void store__bodies_are_listed_with_the_number_of_their_users(void **state) {
    kit *k = *state;
    skip_unless_copied(k);
    rt_job own = kit_job(k, Q, RT_JOB_READY, 0);
    rt_job first = kit_job(k, Q, RT_JOB_READY, 0);
    rt_job second = kit_job(k, Q, RT_JOB_DEAD, 0);
    own.body = own.id;
    first.body = second.body = first.id;
    own.body_bytes = first.body_bytes = second.body_bytes = 3;
    kit_apply(k, OPS(OP_BODY(own.body, RT_STR("own")), OP_JOB(NULL, &own), OP_BODY(first.body, RT_STR("two")),
                     OP_JOB(NULL, &first), OP_JOB(NULL, &second)));
    kit_commit(k);
    const bodies got = list_bodies(k);
    assert_int_equal(got.count, 2);
    assert_int_equal(got.ids[0], own.body);
    assert_int_equal(got.users[0], 1);
    assert_string_equal(got.bytes[0], "own");
    assert_int_equal(got.ids[1], first.body);
    assert_int_equal(got.users[1], 2);
    assert_string_equal(got.bytes[1], "two");
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static void store__imported_records_keep_ids_and_versions(void **state) {
    kit *k = *state;
    skip_unless_copied(k);
    rt_job job = numbered(3, RT_JOB_LEASED, RT_JOB_PULL);
    job.lease = 4;
    const rt_lease lease = {.id = 4, .queue = Q, .version = 5, .until_ms = 77, .jobs_count = 1, .jobs = {3}};
    const rt_queue queue = {.id = Q, .version = 11, .kind = RT_QUEUE_MESSAGES, .name = RT_STR("p/q")};
    rt_doc doc = kit_doc(RT_DOC_METADATA, RT_STR("d"), RT_STR("v"));
    doc.version = 6;
    doc.expires_ms = 99;
    const rt_event event = {
        .seq = 12, .prev = 2, .job = 3, .queue = Q, .at_ms = 8, .type = RT_EVENT_ATTEMPT, .text = RT_STR("t")};
    import(k, OPS(OP_QUEUE(NULL, &queue), OP_LEASE(NULL, &lease), OP_JOB(NULL, &job), OP_DOC(NULL, &doc),
                  OP_EVENT(&event)));
    kit_commit(k);
    kit_reopen(k);
    rt_view *v = kit_view(k);
    kit_assert_job(v, &job);
    rt_lease got_lease;
    rt_queue got_queue;
    rt_doc got_doc;
    rt_event got_event;
    assert_int_equal(rt_view_lease(v, 4, &got_lease), RT_OK);
    assert_int_equal(got_lease.version, 5);
    assert_int_equal(rt_view_queue(v, Q, &got_queue), RT_OK);
    assert_int_equal(got_queue.version, 11);
    assert_int_equal(rt_view_doc(v, RT_DOC_METADATA, RT_STR("d"), &got_doc), RT_OK);
    assert_int_equal(got_doc.version, 6);
    assert_int_equal(rt_view_event(v, 12, &got_event), RT_OK);
    assert_int_equal(got_event.prev, 2);
    kit_ids expiries = {0};
    kit_expiries(v, 1000, &expiries);
    assert_int_equal(expiries.count, 2); // indexes and counters are the store's own work
    assert_int_equal(kit_counts(v, Q).leased, 1);
    rt_view_close(v);
}

static void store__an_imported_body_comes_before_its_jobs_and_goes_with_the_last(void **state) {
    kit *k = *state;
    skip_unless_copied(k);
    const rt_op body = {.kind = RT_OP_BODY, .body = {.id = 3, .bytes = RT_STR("both"), .users = 2}};
    import(k, &body, 1);
    kit_commit(k);
    rt_job jobs[] = {numbered(3, RT_JOB_READY, 0), numbered(5, RT_JOB_READY, 0)};
    for (size_t i = 0; i < 2; i++) {
        jobs[i].body = 3;
        jobs[i].body_bytes = 4;
        import(k, OPS(OP_JOB(NULL, &jobs[i])));
    }
    kit_commit(k);
    assert_int_equal(list_bodies(k).users[0], 2);
    assert_int_equal(kit_counts(kit_batch(k), 0).bytes, 8);
    kit_delete(k, &jobs[0]);
    kit_commit(k);
    kit_assert_body(kit_batch(k), 3, RT_STR("both"));
    kit_delete(k, &jobs[1]);
    kit_commit(k);
    assert_false(kit_has_body(kit_batch(k), 3));
}

static void store__after_an_import_numbers_go_on_where_the_other_store_was(void **state) {
    kit *k = *state;
    skip_unless_copied(k);
    const rt_job job = numbered(3, RT_JOB_READY, 0);
    import(k, OPS(OP_JOB(NULL, &job)));
    kit_commit(k);
    assert_true(rt_store_new_id(k->store) >= FROM.ids_from);
    assert_true(rt_store_new_seq(k->store) >= FROM.seqs_from);
    kit_reopen(k);
    assert_int_equal(k->store->tag, FROM.tag);
    assert_true(rt_store_new_id(k->store) >= FROM.ids_from);
    assert_true(rt_store_new_seq(k->store) >= FROM.seqs_from);
}

static void store__an_import_that_fails_leaves_nothing(void **state) {
    kit *k = *state;
    skip_unless_copied(k);
    if (k->factory->fail_next_commit == NULL) skip();
    const uint32_t tag = k->store->tag;
    const rt_job job = numbered(3, RT_JOB_READY, 0);
    import(k, OPS(OP_JOB(NULL, &job)));
    k->factory->fail_next_commit(k->factory->ctx, k->store);
    assert_int_equal(kit_end(k), RT_BATCH_FAILED);
    kit_reopen(k);
    assert_int_equal(k->store->tag, tag);
    kit_assert_no_job(kit_batch(k), 3);
}

store_tests store_tests_import(void) {
    static const struct CMUnitTest TESTS[] = {
        STORE_TEST(store__every_job_is_listed_whatever_its_state),
        STORE_TEST(store__leases_are_listed_by_id),
        STORE_TEST(store__bodies_are_listed_with_the_number_of_their_users),
        STORE_TEST(store__imported_records_keep_ids_and_versions),
        STORE_TEST(store__an_imported_body_comes_before_its_jobs_and_goes_with_the_last),
        STORE_TEST(store__after_an_import_numbers_go_on_where_the_other_store_was),
        STORE_TEST(store__an_import_that_fails_leaves_nothing),
    };
    return (store_tests){TESTS, sizeof TESTS / sizeof TESTS[0]};
}
