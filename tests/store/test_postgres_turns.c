/* test_postgres_turns.c: nodes that want the same records neither stand still nor decide in vain for long. */
#include "os/clock.h"
#include "store/postgres_nodes.h"

enum { TURN_MS = 300, SOON_MS = 900 /* sooner than the database looks for deadlocks, which is after 1 s */ };

static const rt_str SHARED = {.ptr = "shared", .len = 6};

/* Asks until it is there; absent: a version of 0. */
static rt_doc read_shared(nodes *n, int node) {
    rt_doc doc = {.kind = RT_DOC_PROCESS, .name = SHARED};
    rt_code code = rt_view_doc(nodes_batch(n, node), RT_DOC_PROCESS, SHARED, &doc);
    if (code == RT_E_AGAIN) {
        nodes_need(rt_store_load(n->store[node], &n->err), &n->err);
        code = rt_view_doc(nodes_batch(n, node), RT_DOC_PROCESS, SHARED, &doc);
    }
    if (code != RT_E_ABSENT) nodes_need(code, &n->err);
    return doc;
}

static void write_shared(nodes *n, int node, const rt_doc *was) {
    rt_doc now = *was;
    now.version++;
    now.value = RT_STR("value");
    nodes_must_apply(n, node, OPS(OP_DOC(was->version == 0 ? NULL : was, &now)));
}

static void write_shared_alone(nodes *n, int node) {
    const rt_doc doc = read_shared(n, node);
    write_shared(n, node, &doc);
    nodes_must_commit(n, node);
}

static void list_to_take(nodes *n, int node) {
    const rt_job_range due = {.index = RT_INDEX_DUE, .queue = Q, .until_ms = INT64_MAX, .to_take = true};
    kit_ids ids = {.stop_at = 100};
    nodes_list(n, node, due, &ids);
    assert_int_equal(ids.count, 1);
}

/* As when the lease of a slow node runs out: another is about to take its job, while it still wants to end it. What
 * the other writes next may be what the slow one has: if each waited, both would stand still. */
static void postgres__what_another_is_taking_is_not_waited_for(void **state) {
    nodes *n = *state;
    const rt_job job = nodes_insert(n, 0, RT_JOB_LEASED, 0);
    nodes_must_commit(n, 0);
    rt_job read;
    list_to_take(n, 0);
    write_shared_alone(n, 1);
    nodes_need(nodes_read_job(n, 1, job.id, &read), &n->err);
    const rt_doc doc = read_shared(n, 1);
    write_shared(n, 1, &doc);
    nodes_update(n, 1, &read, RT_JOB_SCHEDULED);
    const int64_t began_ms = rt_mono_ms();
    assert_int_equal(nodes_commit(n, 1), RT_BATCH_CONFLICT);
    assert_true(rt_mono_ms() - began_ms < SOON_MS);
    nodes_update(n, 0, &job, RT_JOB_SCHEDULED);
    nodes_must_commit(n, 0);
}

/* `slow` decides, and `fast` is there before it. */
static void overtake(nodes *n, int slow, int fast) {
    const rt_doc before = read_shared(n, slow);
    write_shared_alone(n, fast);
    write_shared(n, slow, &before);
    assert_int_equal(nodes_commit(n, slow), RT_BATCH_CONFLICT);
}

/* Decides, and reads nothing for it, about what nobody else knows of. */
static void send_something(nodes *n, int node) {
    (void)nodes_batch(n, node); // ids that a batch gives out need not be looked for
    (void)nodes_insert(n, node, RT_JOB_SCHEDULED, 0);
    nodes_send(n, node);
}

static void must_be_alone(nodes *n, int node, int other) {
    const rt_doc doc = read_shared(n, node);
    send_something(n, other);
    nodes_must_wait(n, other, TURN_MS);
    write_shared(n, node, &doc);
    nodes_must_commit(n, node);
    assert_int_equal(nodes_await(n, other), RT_BATCH_DURABLE);
}

static void must_be_beside(nodes *n, int node, int other) {
    const rt_doc doc = read_shared(n, node);
    send_something(n, other);
    assert_int_equal(nodes_await(n, other), RT_BATCH_DURABLE);
    write_shared(n, node, &doc);
    nodes_must_commit(n, node);
}

static void postgres__who_was_overtaken_is_alone_the_next_time(void **state) {
    nodes *n = *state;
    write_shared_alone(n, 0);
    must_be_beside(n, 1, 0);
    overtake(n, 1, 0);
    must_be_alone(n, 1, 0);
    must_be_beside(n, 1, 0);
}

static void postgres__who_is_overtaken_again_soon_is_alone_for_longer(void **state) {
    nodes *n = *state;
    write_shared_alone(n, 0);
    overtake(n, 1, 0);
    must_be_alone(n, 1, 0);
    overtake(n, 1, 0);
    must_be_alone(n, 1, 0);
    must_be_alone(n, 1, 0);
    for (int i = 0; i < 3; i++) must_be_beside(n, 1, 0);
    overtake(n, 1, 0); // not soon
    must_be_alone(n, 1, 0);
    must_be_beside(n, 1, 0);
}

/* Its session holds the turn until the database ends it. */
static void postgres__a_node_that_stopped_in_its_turn_is_waited_for_once(void **state) {
    nodes *n = *state;
    write_shared_alone(n, 0);
    overtake(n, 1, 0);
    (void)read_shared(n, 1);
    rt_doc doc;
    assert_int_equal(rt_view_doc(nodes_batch(n, 0), RT_DOC_PROCESS, SHARED, &doc), RT_E_AGAIN);
    assert_int_equal(rt_store_load(n->store[0], &n->err), RT_E_UNAVAILABLE);
    assert_int_equal(nodes_commit(n, 0), RT_BATCH_CONFLICT);
    const int64_t began_ms = rt_mono_ms();
    for (int i = 0; i < 3; i++) write_shared_alone(n, 0);
    assert_true(rt_mono_ms() - began_ms < SOON_MS);
}

static rt_doc new_doc(const char *name) {
    return (rt_doc){.kind = RT_DOC_PROCESS, .name = rt_str_of(name), .version = 1, .value = RT_STR("value")};
}

static bool stop_at_once(void *ctx, const rt_queue *queue) {
    (void)ctx;
    (void)queue;
    return false;
}

/* Node 0 takes z away and changes m, which node 1 holds: it must not have z while it waits for m. */
static void postgres__documents_are_locked_in_one_order_whatever_becomes_of_them(void **state) {
    nodes *n = *state;
    write_shared_alone(n, 1);
    overtake(n, 0, 1);
    const rt_doc was[] = {new_doc("m"), new_doc("z")};
    nodes_must_apply(n, 0, OPS(OP_DOC(NULL, &was[0]), OP_DOC(NULL, &was[1])));
    nodes_must_commit(n, 0);
    rt_doc now[] = {was[0], was[1]};
    now[0].version = now[1].version = 2;
    nodes_must_apply(n, 1, OPS(OP_DOC(&was[0], &now[0])));
    nodes_need(rt_view_queues(nodes_batch(n, 1), 0, stop_at_once, NULL), &n->err); // sends what it has, to see all
    nodes_must_apply(n, 0, OPS(OP_DOC(&was[1], NULL), OP_DOC(&was[0], &now[0])));
    nodes_send(n, 0);
    nodes_must_wait(n, 0, TURN_MS);
    nodes_must_apply(n, 1, OPS(OP_DOC(&was[1], &now[1])));
    nodes_must_commit(n, 1);
    assert_int_equal(nodes_await(n, 0), RT_BATCH_CONFLICT);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, nodes_open, nodes_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(postgres__what_another_is_taking_is_not_waited_for),
        TEST(postgres__who_was_overtaken_is_alone_the_next_time),
        TEST(postgres__who_is_overtaken_again_soon_is_alone_for_longer),
        TEST(postgres__documents_are_locked_in_one_order_whatever_becomes_of_them),
        TEST(postgres__a_node_that_stopped_in_its_turn_is_waited_for_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
