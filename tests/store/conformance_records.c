/* conformance_records.c: documents, queues, leases, events, bodies, and when things expire. */
#include <stdlib.h>
#include <string.h>

#include "store/conformance_parts.h"

enum { Q = 7, FOR_EVER = INT32_MAX };
#define BYTES(literal) ((rt_str){.ptr = (literal), .len = sizeof(literal) - 1})

/* ---- documents ----------------------------------------------------------------------------------------- */

static rt_doc put_doc(kit *k, rt_str name, rt_str value) {
    const rt_doc doc = kit_doc(RT_DOC_SETTING, name, value);
    kit_apply(k, OPS(OP_DOC(NULL, &doc)));
    return doc;
}

static void assert_doc(rt_view *v, const rt_doc *want) {
    rt_doc got;
    assert_int_equal(rt_view_doc(v, want->kind, want->name, &got), RT_OK);
    assert_int_equal(got.kind, want->kind);
    assert_int_equal(got.version, want->version);
    assert_int_equal(got.expires_ms, want->expires_ms);
    kit_assert_str(got.name, want->name);
    kit_assert_str(got.value, want->value);
}

static void assert_no_doc(rt_view *v, rt_doc_kind kind, rt_str name) {
    rt_doc got;
    assert_int_equal(rt_view_doc(v, kind, name, &got), RT_E_ABSENT);
}

static void store__a_document_is_made_replaced_and_deleted(void **state) {
    kit *k = *state;
    const rt_doc made = put_doc(k, RT_STR("name"), RT_STR("one"));
    assert_doc(kit_batch(k), &made);
    assert_no_doc(kit_batch(k), RT_DOC_CURSOR, made.name);
    const rt_doc next = {.kind = made.kind, .name = made.name, .version = 2, .value = RT_STR("two, and longer")};
    kit_apply(k, OPS(OP_DOC(&made, &next)));
    assert_doc(kit_batch(k), &next);
    kit_commit(k);
    kit_reopen(k);
    assert_doc(kit_batch(k), &next);
    kit_apply(k, OPS(OP_DOC(&next, NULL)));
    assert_no_doc(kit_batch(k), made.kind, made.name);
    const rt_doc again = put_doc(k, RT_STR("name"), RT_STR_EMPTY);
    assert_doc(kit_batch(k), &again);
}

typedef struct names {
    rt_str name[16];
    size_t count, stop_at;
} names;

static bool keep_name(void *ctx, const rt_doc *doc) {
    names *out = ctx;
    out->name[out->count++] = doc->name; // lent by the view, which stays open
    return out->count != out->stop_at;
}

static void assert_names(rt_view *v, rt_str prefix, rt_str after, const rt_str *want, size_t want_count) {
    names got = {0};
    assert_int_equal(rt_view_docs(v, RT_DOC_SETTING, prefix, after, keep_name, &got), RT_OK);
    assert_int_equal(got.count, want_count);
    for (size_t i = 0; i < want_count; i++) kit_assert_str(got.name[i], want[i]);
}

static void store__documents_are_listed_bytewise_by_prefix(void **state) {
    kit *k = *state;
    const rt_str sorted[] = {BYTES("\0"),      BYTES("a"),        BYTES("a\0"), BYTES("a\0b"), BYTES("ab"),
                             BYTES("a\xff"), BYTES("a\xff\xff"), BYTES("b"),  BYTES("\xff")};
    enum { N = sizeof sorted / sizeof sorted[0] };
    for (size_t i = 0; i < N; i++) put_doc(k, sorted[(i * 5 + 3) % N], RT_STR_EMPTY);
    const rt_doc before = kit_doc(RT_DOC_CURSOR, RT_STR("a"), RT_STR_EMPTY);
    kit_apply(k, OPS(OP_DOC(NULL, &before)));
    rt_view *v = kit_batch(k);
    assert_names(v, RT_STR_EMPTY, RT_STR_EMPTY, sorted, N);
    assert_names(v, RT_STR("a"), RT_STR_EMPTY, sorted + 1, 6);
    assert_names(v, BYTES("a\0"), RT_STR_EMPTY, sorted + 2, 2);
    assert_names(v, BYTES("a\xff"), RT_STR_EMPTY, sorted + 5, 2);
    assert_names(v, RT_STR("a"), RT_STR("a"), sorted + 2, 5);
    assert_names(v, RT_STR("a"), BYTES("a\0bb"), sorted + 4, 3);
    assert_names(v, RT_STR("a"), BYTES("\0"), sorted + 1, 6);
    assert_names(v, RT_STR("a"), RT_STR("b"), NULL, 0);
    assert_names(v, RT_STR_EMPTY, BYTES("\xff"), NULL, 0);
    assert_names(v, RT_STR("none"), RT_STR_EMPTY, NULL, 0);
    names first = {.stop_at = 2};
    assert_int_equal(rt_view_docs(v, RT_DOC_SETTING, RT_STR_EMPTY, RT_STR_EMPTY, keep_name, &first), RT_OK);
    assert_int_equal(first.count, 2);
}

static void store__a_document_may_be_as_large_as_allowed(void **state) {
    kit *k = *state;
    char longest[RT_DOC_NAME_MAX];
    memset(longest, 0xff, sizeof longest);
    char *value = malloc(RT_DOC_VALUE_MAX);
    assert_non_null(value);
    for (size_t i = 0; i < RT_DOC_VALUE_MAX; i++) value[i] = (char)(unsigned char)(i * 31);
    const rt_str name = {.ptr = longest, .len = sizeof longest};
    rt_doc doc = kit_doc(RT_DOC_SETTING, name, (rt_str){.ptr = value, .len = RT_DOC_VALUE_MAX});
    doc.expires_ms = 5;
    kit_apply(k, OPS(OP_DOC(NULL, &doc)));
    kit_commit(k);
    rt_view *v = kit_view(k);
    assert_doc(v, &doc);
    assert_names(v, name, RT_STR_EMPTY, &name, 1);
    assert_names(v, RT_STR_EMPTY, name, NULL, 0);
    kit_ids expired;
    kit_expiries(v, 5, &expired);
    assert_int_equal(expired.count, 1);
    rt_view_close(v);
    free(value);
}

/* ---- queues -------------------------------------------------------------------------------------------- */

static void assert_queue(rt_view *v, const rt_queue *want) {
    rt_queue got;
    assert_int_equal(rt_view_queue(v, want->id, &got), RT_OK);
    assert_int_equal(got.id, want->id);
    assert_int_equal(got.owner, want->owner);
    assert_int_equal(got.version, want->version);
    assert_int_equal(got.paused_until_ms, want->paused_until_ms);
    assert_int_equal(got.in_flight_max, want->in_flight_max);
    assert_int_equal(got.kind, want->kind);
    assert_int_equal(got.gone, want->gone);
    kit_assert_str(got.name, want->name);
}

static bool keep_queue(void *ctx, const rt_queue *queue) {
    kit_ids *out = ctx;
    out->ids[out->count++] = queue->id;
    return out->count != out->stop_at;
}

static void store__queues_are_kept_and_listed_by_id(void **state) {
    kit *k = *state;
    char longest[RT_QUEUE_NAME_MAX];
    memset(longest, 'n', sizeof longest);
    const rt_queue a = {.id = rt_store_new_id(k->store), .version = 1, .kind = RT_QUEUE_MESSAGES, .name = RT_STR("p/q")};
    const rt_queue b = {.id = rt_store_new_id(k->store),
                        .owner = a.id,
                        .version = 1,
                        .paused_until_ms = INT64_MAX,
                        .in_flight_max = UINT32_MAX,
                        .kind = RT_QUEUE_DELIVERY,
                        .gone = 1,
                        .name = {.ptr = longest, .len = sizeof longest}};
    kit_apply(k, OPS(OP_QUEUE(NULL, &b), OP_QUEUE(NULL, &a)));
    kit_commit(k);
    rt_view *v = kit_view(k);
    assert_queue(v, &a);
    assert_queue(v, &b);
    kit_ids ids = {0};
    assert_int_equal(rt_view_queues(v, 0, keep_queue, &ids), RT_OK);
    assert_int_equal(ids.count, 2);
    assert_int_equal(ids.ids[0], a.id);
    assert_int_equal(ids.ids[1], b.id);
    ids = (kit_ids){0};
    assert_int_equal(rt_view_queues(v, a.id, keep_queue, &ids), RT_OK);
    assert_int_equal(ids.count, 1);
    rt_view_close(v);
    kit_apply(k, OPS(OP_QUEUE(&b, NULL)));
    rt_queue got;
    assert_int_equal(rt_view_queue(kit_batch(k), b.id, &got), RT_E_ABSENT);
}

/* ---- leases -------------------------------------------------------------------------------------------- */

static void store__a_lease_keeps_its_jobs_and_moves_its_end(void **state) {
    kit *k = *state;
    rt_lease lease = {.id = rt_store_new_id(k->store), .queue = Q, .version = 1, .from_ms = 10, .until_ms = 100,
                      .ttl_s = 60, .grace_s = 61, .jobs_count = RT_LEASE_JOBS_MAX};
    for (rt_id i = 0; i < RT_LEASE_JOBS_MAX; i++) lease.jobs[i] = 1000 + i;
    kit_apply(k, OPS(OP_LEASE(NULL, &lease)));
    rt_lease got;
    assert_int_equal(rt_view_lease(kit_batch(k), lease.id, &got), RT_OK);
    assert_memory_equal(&got, &lease, sizeof got);
    kit_ids expired;
    kit_expiries(kit_batch(k), 99, &expired);
    assert_int_equal(expired.count, 0);
    kit_expiries(kit_batch(k), 100, &expired);
    assert_int_equal(expired.count, 1);
    assert_int_equal(expired.ids[0], lease.id);
    const rt_lease next = {.id = lease.id, .queue = Q, .version = 2, .from_ms = 50, .until_ms = 200, .jobs_count = 1,
                           .jobs = {1000}};
    kit_apply(k, OPS(OP_LEASE(&lease, &next)));
    assert_int_equal(rt_view_lease(kit_batch(k), lease.id, &got), RT_OK);
    assert_memory_equal(&got, &next, sizeof got);
    kit_expiries(kit_batch(k), 199, &expired);
    assert_int_equal(expired.count, 0);
    kit_apply(k, OPS(OP_LEASE(&next, NULL)));
    kit_expiries(kit_batch(k), FOR_EVER, &expired);
    assert_int_equal(expired.count, 0);
    assert_int_equal(rt_view_lease(kit_batch(k), lease.id, &got), RT_E_ABSENT);
}

static void store__a_lease_without_jobs_or_end_does_not_expire(void **state) {
    kit *k = *state;
    const rt_lease lease = {.id = rt_store_new_id(k->store), .queue = Q, .version = 1};
    kit_apply(k, OPS(OP_LEASE(NULL, &lease)));
    kit_ids expired;
    kit_expiries(kit_batch(k), FOR_EVER, &expired);
    assert_int_equal(expired.count, 0);
}

/* ---- events -------------------------------------------------------------------------------------------- */

static bool keep_seq(void *ctx, const rt_event *event) {
    kit_ids *out = ctx;
    out->ids[out->count++] = event->seq;
    return out->count != out->stop_at;
}

static void store__events_are_chained_and_listed(void **state) {
    kit *k = *state;
    char text[RT_EVENT_TEXT_MAX + 10];
    memset(text, 't', sizeof text);
    rt_job job = kit_insert(k, Q, RT_JOB_READY, 0);
    rt_event first = kit_event(k, &job, 1);
    first.attempt = 1;
    first.took_ms = 2;
    first.delay_ms = 3;
    first.status = 599;
    first.reason = RT_REASON_STATUS;
    first.text = (rt_str){.ptr = text, .len = sizeof text}; // cut when stored
    rt_job now = kit_after(job);
    now.last_event = first.seq;
    kit_apply(k, OPS(OP_JOB(&job, &now), OP_EVENT(&first)));
    const rt_event second = kit_event(k, &now, 2);
    kit_apply(k, OPS(OP_EVENT(&second)));
    kit_commit(k);
    rt_view *v = kit_view(k);
    rt_event got;
    assert_int_equal(rt_view_event(v, second.seq, &got), RT_OK);
    assert_int_equal(got.prev, first.seq);
    assert_int_equal(rt_view_event(v, got.prev, &got), RT_OK);
    kit_assert_str(got.text, (rt_str){.ptr = text, .len = RT_EVENT_TEXT_MAX});
    assert_int_equal(got.job, job.id);
    assert_int_equal(got.queue, Q);
    assert_int_equal(got.at_ms, 1);
    assert_int_equal(got.attempt, 1);
    assert_int_equal(got.took_ms, 2);
    assert_int_equal(got.delay_ms, 3);
    assert_int_equal(got.status, 599);
    assert_int_equal(got.type, RT_EVENT_ATTEMPT);
    assert_int_equal(got.reason, RT_REASON_STATUS);
    assert_int_equal(got.prev, 0);
    assert_int_equal(rt_view_event(v, second.seq + 1, &got), RT_E_ABSENT);
    kit_ids seqs = {0};
    assert_int_equal(rt_view_events(v, 0, keep_seq, &seqs), RT_OK);
    assert_int_equal(seqs.count, 2);
    assert_int_equal(seqs.ids[0], first.seq);
    seqs = (kit_ids){0};
    assert_int_equal(rt_view_events(v, first.seq, keep_seq, &seqs), RT_OK);
    assert_int_equal(seqs.count, 1);
    assert_int_equal(seqs.ids[0], second.seq);
    rt_view_close(v);
}

/* ---- bodies -------------------------------------------------------------------------------------------- */

static rt_job with_body(kit *k, rt_job_state state, rt_id body) {
    rt_job job = kit_job(k, Q, state, 0);
    job.body = body;
    return job;
}

static void store__a_shared_body_goes_with_its_last_user(void **state) {
    kit *k = *state;
    const rt_id body = rt_store_new_id(k->store);
    const rt_id other = rt_store_new_id(k->store);
    const rt_job a = with_body(k, RT_JOB_READY, body);
    const rt_job b = with_body(k, RT_JOB_READY, body);
    const rt_job c = with_body(k, RT_JOB_READY, body);
    const rt_job d = with_body(k, RT_JOB_READY, other);
    kit_apply(k, OPS(OP_BODY(body, RT_STR("shared")), OP_BODY(other, RT_STR("alone")), OP_JOB(NULL, &a),
                     OP_JOB(NULL, &d), OP_JOB(NULL, &b), OP_JOB(NULL, &c)));
    kit_commit(k);
    kit_delete(k, &b);
    rt_job dead = kit_after(a);
    dead.state = RT_JOB_DEAD;
    kit_apply(k, OPS(OP_JOB(&a, &dead)));
    kit_assert_body(kit_batch(k), body, RT_STR("shared"));
    kit_commit(k);
    rt_job done = kit_after(c);
    done.state = RT_JOB_DONE;
    done.last_event = rt_store_new_seq(k->store);
    kit_apply(k, OPS(OP_JOB(&c, &done)));
    kit_assert_body(kit_batch(k), body, RT_STR("shared")); // a dead job can be redriven
    kit_apply(k, OPS(OP_JOB(&dead, NULL)));
    assert_false(kit_has_body(kit_batch(k), body));
    kit_assert_body(kit_batch(k), other, RT_STR("alone"));
    kit_commit(k);
    kit_apply(k, OPS(OP_JOB(&d, NULL)));
    assert_false(kit_has_body(kit_batch(k), other));
}

static void store__a_later_user_keeps_the_body(void **state) {
    kit *k = *state;
    const rt_id body = rt_store_new_id(k->store);
    const rt_job a = with_body(k, RT_JOB_SCHEDULED, body);
    kit_apply(k, OPS(OP_BODY(body, RT_STR("bytes")), OP_JOB(NULL, &a)));
    kit_commit(k);
    const rt_job b = with_body(k, RT_JOB_READY, body);
    kit_apply(k, OPS(OP_JOB(NULL, &b)));
    kit_delete(k, &a);
    kit_commit(k);
    kit_assert_body(kit_batch(k), body, RT_STR("bytes"));
    const rt_job c = with_body(k, RT_JOB_READY, body);
    kit_apply(k, OPS(OP_JOB(NULL, &c), OP_JOB(&b, NULL))); // handed over within one change
    kit_assert_body(kit_batch(k), body, RT_STR("bytes"));
    kit_delete(k, &c);
    assert_false(kit_has_body(kit_batch(k), body));
}

static void store__bodies_of_all_sizes_come_back_as_they_were(void **state) {
    kit *k = *state;
    static const size_t SIZES[] = {0, 1, 100, 1000, 2030, 4096, 5000, 65536, RT_BODY_BYTES_MAX};
    enum { N = sizeof SIZES / sizeof SIZES[0] };
    char *bytes = malloc(RT_BODY_BYTES_MAX);
    assert_non_null(bytes);
    for (size_t i = 0; i < RT_BODY_BYTES_MAX; i++) bytes[i] = (char)(unsigned char)(i * 7 + i / 256);
    rt_id ids[N];
    for (size_t i = 0; i < N; i++) {
        ids[i] = rt_store_new_id(k->store);
        const rt_job job = with_body(k, RT_JOB_READY, ids[i]);
        kit_apply(k, OPS(OP_BODY(ids[i], ((rt_str){.ptr = bytes, .len = SIZES[i]})), OP_JOB(NULL, &job)));
        kit_assert_body(kit_batch(k), ids[i], (rt_str){.ptr = bytes, .len = SIZES[i]});
    }
    kit_commit(k);
    kit_reopen(k);
    rt_view *v = kit_view(k);
    for (size_t i = 0; i < N; i++) kit_assert_body(v, ids[i], (rt_str){.ptr = bytes, .len = SIZES[i]});
    rt_view_close(v);
    free(bytes);
}

/* ---- expiry -------------------------------------------------------------------------------------------- */

static void store__expiry_has_jobs_leases_and_documents_by_time(void **state) {
    kit *k = *state;
    rt_job job = kit_job(k, Q, RT_JOB_FREE, RT_JOB_PULL);
    job.expires_ms = 300;
    rt_job push = kit_job(k, Q, RT_JOB_READY, 0);
    push.expires_ms = 100;
    const rt_lease lease = {.id = rt_store_new_id(k->store), .queue = Q, .version = 1, .until_ms = 200};
    rt_doc doc = kit_doc(RT_DOC_SETTING, RT_STR("d"), RT_STR_EMPTY);
    doc.expires_ms = 250;
    const rt_doc never = kit_doc(RT_DOC_SETTING, RT_STR("e"), RT_STR_EMPTY);
    kit_apply(k, OPS(OP_JOB(NULL, &job), OP_JOB(NULL, &push), OP_LEASE(NULL, &lease), OP_DOC(NULL, &doc),
                     OP_DOC(NULL, &never)));
    kit_ids got;
    kit_expiries(kit_batch(k), 299, &got);
    assert_int_equal(got.count, 3);
    assert_int_equal(got.ids[0], push.id);
    assert_int_equal(got.ids[1], lease.id);
    assert_int_equal(got.ids[2], 'd');
    rt_doc later = doc;
    later.version++;
    later.expires_ms = 1000;
    kit_apply(k, OPS(OP_DOC(&doc, &later)));
    kit_expiries(kit_batch(k), FOR_EVER, &got);
    assert_int_equal(got.count, 4);
    assert_int_equal(got.ids[2], job.id);
    assert_int_equal(got.ids[3], 'd');
    kit_apply(k, OPS(OP_DOC(&later, NULL)));
    kit_expiries(kit_batch(k), FOR_EVER, &got);
    assert_int_equal(got.count, 3);
}

static void store__a_job_expires_until_it_is_dead_or_done(void **state) {
    kit *k = *state;
    for (int s = RT_JOB_READY; s < RT_JOB_STATE_COUNT; s++) {
        const uint8_t flags = s == RT_JOB_FREE ? RT_JOB_PULL : 0;
        rt_job job = kit_job(k, Q, RT_JOB_SCHEDULED, flags);
        job.expires_ms = 50;
        kit_apply(k, OPS(OP_JOB(NULL, &job)));
        rt_job now = kit_after(job);
        now.state = (uint8_t)s;
        now.expires_ms = 60;
        now.last_event = rt_store_new_seq(k->store);
        kit_replace(k, &job, now);
        kit_ids got;
        kit_expiries(kit_batch(k), 59, &got);
        assert_int_equal(got.count, 0);
        kit_expiries(kit_batch(k), 60, &got);
        assert_int_equal(got.count, s != RT_JOB_DEAD && s != RT_JOB_DONE);
        kit_delete(k, &job);
    }
}

static const struct CMUnitTest TESTS[] = {
    STORE_TEST(store__a_document_is_made_replaced_and_deleted),
    STORE_TEST(store__documents_are_listed_bytewise_by_prefix),
    STORE_TEST(store__a_document_may_be_as_large_as_allowed),
    STORE_TEST(store__queues_are_kept_and_listed_by_id),
    STORE_TEST(store__a_lease_keeps_its_jobs_and_moves_its_end),
    STORE_TEST(store__a_lease_without_jobs_or_end_does_not_expire),
    STORE_TEST(store__events_are_chained_and_listed),
    STORE_TEST(store__a_shared_body_goes_with_its_last_user),
    STORE_TEST(store__a_later_user_keeps_the_body),
    STORE_TEST(store__bodies_of_all_sizes_come_back_as_they_were),
    STORE_TEST(store__expiry_has_jobs_leases_and_documents_by_time),
    STORE_TEST(store__a_job_expires_until_it_is_dead_or_done),
};

store_tests store_tests_records(void) {
    return (store_tests){.tests = TESTS, .count = sizeof TESTS / sizeof TESTS[0]};
}
