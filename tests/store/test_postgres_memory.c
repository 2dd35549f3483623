/* test_postgres_memory.c: what a node holds is not read again to be ended, unless somebody else has changed it; and where it
 * found the first free job it looks for the next ones. */
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

/* ---- where free jobs begin ----------------------------------------------------------------------------- */

/* Node 0 has taken the first two of four, two at a time, and knows where it found them. */
static void take_two(nodes *n, rt_job jobs[4]) {
    const rt_job_range two = {.index = RT_INDEX_FREE, .queue = Q, .to_take = true, .want = 2};
    for (int i = 0; i < 4; i++) jobs[i] = nodes_insert(n, 0, RT_JOB_FREE, RT_JOB_PULL);
    nodes_must_commit(n, 0);
    kit_ids ids = {.stop_at = 2};
    nodes_list(n, 0, two, &ids);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ids.ids[i], jobs[i].id);
        nodes_update(n, 0, &jobs[i], RT_JOB_LEASED);
        jobs[i].version++;
        jobs[i].state = RT_JOB_LEASED;
    }
    nodes_must_commit(n, 0);
    nodes_list(n, 0, two, &ids);
    assert_int_equal(ids.count, 2);
    assert_int_equal(ids.ids[0], jobs[2].id);
    assert_int_equal(ids.ids[1], jobs[3].id);
    rt_store_abandon(n->store[0]);
}

static void postgres__what_is_given_back_is_the_first_again(void **state) {
    nodes *n = *state;
    rt_job jobs[4];
    take_two(n, jobs);
    nodes_update(n, 0, &jobs[1], RT_JOB_FREE);
    nodes_must_commit(n, 0);
    const rt_job_range two = {.index = RT_INDEX_FREE, .queue = Q, .to_take = true, .want = 2};
    kit_ids ids = {.stop_at = 2};
    nodes_list(n, 0, two, &ids);
    assert_int_equal(ids.ids[0], jobs[1].id);
    assert_int_equal(ids.ids[1], jobs[2].id);
}

static void postgres__what_another_gave_back_is_found_by_who_finds_too_few(void **state) {
    nodes *n = *state;
    rt_job jobs[4], read;
    take_two(n, jobs);
    nodes_need(nodes_read_job(n, 1, jobs[0].id, &read), &n->err);
    nodes_update(n, 1, &read, RT_JOB_FREE);
    nodes_must_commit(n, 1);
    const rt_job_range five = {.index = RT_INDEX_FREE, .queue = Q, .to_take = true, .want = 5};
    kit_ids ids = {.stop_at = 5};
    nodes_list(n, 0, five, &ids);
    assert_int_equal(ids.count, 3);
    assert_int_equal(ids.ids[0], jobs[0].id);
    assert_int_equal(ids.ids[1], jobs[2].id);
    assert_int_equal(ids.ids[2], jobs[3].id);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, nodes_open, nodes_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(postgres__what_a_node_holds_is_ended_without_being_read_again),
        TEST(postgres__what_another_ended_meanwhile_is_read_again),
        TEST(postgres__a_body_that_another_uses_meanwhile_stays),
        TEST(postgres__what_a_failed_batch_wrote_is_not_remembered),
        TEST(postgres__what_is_given_back_is_the_first_again),
        TEST(postgres__what_another_gave_back_is_found_by_who_finds_too_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
