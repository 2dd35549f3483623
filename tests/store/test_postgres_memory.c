/* test_postgres_memory.c: what a node holds is not read again to be ended, unless somebody else has changed it. */
#include "store/postgres_nodes.h"

/* A job with a body of its own, claimed by node 0. */
static rt_job claim(nodes *n, rt_lease *lease) {
    rt_job job = nodes_new_job(n, 0, RT_JOB_FREE, RT_JOB_PULL);
    job.body = rt_store_new_id(n->store[0]);
    nodes_must_apply(n, 0, OPS(OP_BODY(job.body, RT_STR("body")), OP_JOB(NULL, &job)));
    nodes_must_commit(n, 0);
    rt_str body;
    nodes_need(nodes_read_job(n, 0, job.id, &job), &n->err);
    assert_int_equal(rt_view_body(nodes_batch(n, 0), job.body, &body), RT_E_AGAIN);
    nodes_need(rt_store_load(n->store[0], &n->err), &n->err);
    *lease = (rt_lease){.id = rt_store_new_id(n->store[0]),
                        .queue = Q,
                        .version = 1,
                        .until_ms = INT64_MAX,
                        .jobs_count = 1,
                        .jobs = {job.id}};
    const rt_job was = job;
    job.version++;
    job.state = RT_JOB_LEASED;
    job.lease = lease->id;
    nodes_must_apply(n, 0, OPS(OP_JOB(&was, &job), OP_LEASE(NULL, lease)));
    nodes_must_commit(n, 0);
    return job;
}

static rt_code finish(nodes *n, int node, const rt_job *was, const rt_lease *lease) {
    rt_job now = *was;
    const rt_event event = {
        .seq = rt_store_new_seq(n->store[node]), .job = was->id, .queue = Q, .type = RT_EVENT_DELIVERED, .at_ms = 1};
    now.version++;
    now.state = RT_JOB_DONE;
    now.last_event = event.seq;
    return nodes_apply(n, node, NULL, OPS(OP_JOB(was, &now), OP_LEASE(lease, NULL), OP_EVENT(&event)));
}

static void postgres__what_a_node_holds_is_ended_without_being_read_again(void **state) {
    nodes *n = *state;
    rt_lease lease, held;
    rt_job job = claim(n, &lease);
    assert_int_equal(rt_view_job(nodes_batch(n, 0), job.id, &job), RT_OK);
    assert_int_equal(rt_view_lease(nodes_batch(n, 0), lease.id, &held), RT_OK);
    assert_int_equal(held.jobs[0], job.id);
    assert_int_equal(finish(n, 0, &job, &held), RT_OK);
    nodes_must_commit(n, 0);
    rt_view *v = NULL;
    rt_str body;
    nodes_need(rt_store_view(n->store[1], &v, &n->err), &n->err);
    nodes_need(rt_view_job(v, job.id, &job), &n->err);
    assert_int_equal(job.state, RT_JOB_DONE);
    assert_int_equal(rt_view_lease(v, lease.id, &held), RT_E_ABSENT);
    assert_int_equal(rt_view_body(v, job.body, &body), RT_E_ABSENT);
    rt_view_close(v);
}

static void postgres__what_another_ended_meanwhile_is_read_again(void **state) {
    nodes *n = *state;
    rt_lease lease, held;
    const rt_job job = claim(n, &lease);
    rt_job read;
    nodes_need(nodes_read_job(n, 1, job.id, &read), &n->err);
    assert_int_equal(finish(n, 1, &read, &lease), RT_OK);
    nodes_must_commit(n, 1);
    // Whether it is only looked at …
    nodes_need(rt_view_job(nodes_batch(n, 0), job.id, &read), &n->err);
    assert_int_equal(read.state, RT_JOB_LEASED);
    assert_int_equal(nodes_commit(n, 0), RT_BATCH_CONFLICT);
    assert_int_equal(rt_view_job(nodes_batch(n, 0), job.id, &read), RT_E_AGAIN);
    nodes_need(nodes_read_job(n, 0, job.id, &read), &n->err);
    assert_int_equal(read.state, RT_JOB_DONE);
    assert_int_equal(nodes_commit(n, 0), RT_BATCH_DURABLE);
    // … or written.
    const rt_job second = claim(n, &lease);
    nodes_need(nodes_read_job(n, 1, second.id, &read), &n->err);
    assert_int_equal(finish(n, 1, &read, &lease), RT_OK);
    nodes_must_commit(n, 1);
    nodes_need(rt_view_job(nodes_batch(n, 0), second.id, &read), &n->err);
    nodes_need(rt_view_lease(nodes_batch(n, 0), lease.id, &held), &n->err);
    assert_int_equal(finish(n, 0, &read, &held), RT_OK);
    assert_int_equal(nodes_commit(n, 0), RT_BATCH_CONFLICT);
}

static void postgres__a_body_that_another_uses_meanwhile_stays(void **state) {
    nodes *n = *state;
    rt_lease lease;
    const rt_job job = claim(n, &lease);
    rt_job read, second = nodes_new_job(n, 1, RT_JOB_FREE, RT_JOB_PULL);
    second.body = job.body;
    nodes_must_apply(n, 1, OPS(OP_JOB(NULL, &second)));
    nodes_must_commit(n, 1);
    nodes_need(rt_view_job(nodes_batch(n, 0), job.id, &read), &n->err);
    assert_int_equal(finish(n, 0, &read, &lease), RT_OK);
    assert_int_equal(nodes_commit(n, 0), RT_BATCH_CONFLICT);
    nodes_need(nodes_read_job(n, 0, job.id, &read), &n->err);
    assert_int_equal(finish(n, 0, &read, &lease), RT_OK);
    nodes_must_commit(n, 0);
    rt_view *v = NULL;
    rt_str body;
    nodes_need(rt_store_view(n->store[1], &v, &n->err), &n->err);
    nodes_need(rt_view_body(v, job.body, &body), &n->err);
    assert_string_equal(body.ptr, "body");
    rt_view_close(v);
}

static void postgres__what_a_failed_batch_wrote_is_not_remembered(void **state) {
    nodes *n = *state;
    const rt_job job = nodes_insert(n, 0, RT_JOB_FREE, RT_JOB_PULL);
    nodes_must_commit(n, 0);
    rt_job read[NODES];
    for (int i = 0; i < NODES; i++) nodes_need(nodes_read_job(n, i, job.id, &read[i]), &n->err);
    nodes_update(n, 1, &read[1], RT_JOB_DEAD);
    nodes_must_commit(n, 1);
    nodes_update(n, 0, &read[0], RT_JOB_LEASED);
    assert_int_equal(nodes_commit(n, 0), RT_BATCH_CONFLICT);
    nodes_need(nodes_read_job(n, 0, job.id, &read[0]), &n->err);
    assert_int_equal(read[0].state, RT_JOB_DEAD);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, nodes_open, nodes_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(postgres__what_a_node_holds_is_ended_without_being_read_again),
        TEST(postgres__what_another_ended_meanwhile_is_read_again),
        TEST(postgres__a_body_that_another_uses_meanwhile_stays),
        TEST(postgres__what_a_failed_batch_wrote_is_not_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
