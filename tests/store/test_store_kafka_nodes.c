/* test_store_kafka_nodes.c: two nodes on the same topics. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "store/kafka_topics.h"
#include "store/kit.h"

enum { WAIT_MS = 10000, NAP_MS = 5, QUEUE = 7 };

typedef struct pair {
    kafka_topics topics;
    kit nodes[2];
} pair;

static int setup(void **state) {
    pair *p = calloc(1, sizeof *p);
    if (p == NULL || !kafka_topics_make(&p->topics)) return -1;
    p->topics.config.alone = false;
    for (int i = 0; i < 2; i++) {
        if (kafka_node_open(&p->topics, i, &p->nodes[i].store, &p->nodes[i].err) != RT_OK) {
            print_error("%s\n", p->nodes[i].err.msg);
            return -1;
        }
    }
    *state = p;
    return 0;
}

static int teardown(void **state) {
    pair *p = *state;
    for (int i = 0; i < 2; i++) rt_store_close(p->nodes[i].store);
    kafka_topics_remove(&p->topics);
    free(p);
    return 0;
}

/* Has it taken in a job of this version? */
static bool has(kit *k, rt_id id, uint64_t version) {
    rt_job job;
    uint64_t no;
    rt_batch_end end;
    (void)rt_store_poll(k->store, &no, &end, &k->err);
    rt_view *v = kit_view(k);
    const bool found = rt_view_job(v, id, &job) == RT_OK && job.version == version;
    rt_view_close(v);
    return found;
}

static void wait_for(kit *k, rt_id id, uint64_t version) {
    for (int ms = 0; !has(k, id, version); ms += NAP_MS) {
        if (ms > WAIT_MS) fail_msg("the other node's job did not come");
        (void)poll(NULL, 0, NAP_MS);
    }
}

static void nodes__have_one_name(void **state) {
    const pair *p = *state;
    assert_int_equal(p->nodes[0].store->tag, p->nodes[1].store->tag);
}

static void nodes__what_one_writes_the_other_shows(void **state) {
    pair *p = *state;
    const rt_job job = kit_insert(&p->nodes[0], QUEUE, RT_JOB_SCHEDULED, 0);
    kit_commit(&p->nodes[0]);
    wait_for(&p->nodes[1], job.id, 1);
    assert_true(rt_store_woken(p->nodes[1].store));
    rt_view *v = kit_view(&p->nodes[1]);
    kit_assert_job(v, &job);
    assert_int_equal(kit_counts(v, QUEUE).scheduled, 1);
    rt_view_close(v);
}

static void nodes__of_two_that_decide_on_the_same_one_decides_again(void **state) {
    pair *p = *state;
    rt_job first = kit_insert(&p->nodes[0], QUEUE, RT_JOB_SCHEDULED, 0);
    kit_commit(&p->nodes[0]);
    wait_for(&p->nodes[1], first.id, 1);
    rt_job second = first;
    rt_job now = kit_after(first);
    now.attempt = 1;
    (void)kit_batch(&p->nodes[1]); // begun before the other writes
    kit_replace(&p->nodes[1], &second, now);
    const rt_job also = kit_insert(&p->nodes[1], QUEUE, RT_JOB_SCHEDULED, 0);
    now.attempt = 2;
    kit_replace(&p->nodes[0], &first, now);
    kit_commit(&p->nodes[0]);
    assert_int_equal(kit_end(&p->nodes[1]), RT_BATCH_CONFLICT);
    for (int i = 0; i < 2; i++) { // refused whole, by both
        wait_for(&p->nodes[i], first.id, 2);
        rt_view *v = kit_view(&p->nodes[i]);
        kit_assert_job(v, &first);
        kit_assert_no_job(v, also.id);
        rt_view_close(v);
    }
}

static void nodes__what_does_not_meet_goes_through_at_both(void **state) {
    pair *p = *state;
    (void)kit_batch(&p->nodes[1]); // begun before the other writes
    const rt_job b = kit_insert(&p->nodes[1], QUEUE, RT_JOB_SCHEDULED, 0);
    const rt_job a = kit_insert(&p->nodes[0], QUEUE, RT_JOB_SCHEDULED, 0);
    kit_commit(&p->nodes[0]);
    kit_commit(&p->nodes[1]);
    for (int i = 0; i < 2; i++) {
        wait_for(&p->nodes[i], a.id, 1);
        wait_for(&p->nodes[i], b.id, 1);
    }
}

static void nodes__an_id_is_larger_than_all_that_were_seen(void **state) {
    pair *p = *state;
    rt_id last = 0;
    for (int i = 0; i < 6; i++) {
        const rt_job job = kit_insert(&p->nodes[i % 2], QUEUE, RT_JOB_SCHEDULED, 0);
        kit_commit(&p->nodes[i % 2]);
        wait_for(&p->nodes[(i + 1) % 2], job.id, 1);
        assert_true(job.id > last);
        last = job.id;
    }
}

static void nodes__a_batch_of_many_megabytes_is_one_line(void **state) {
    enum { BODIES = 5, BYTES = 1 << 20 };
    pair *p = *state;
    kit *k = &p->nodes[0];
    char *bytes = malloc(BYTES);
    assert_non_null(bytes);
    rt_job jobs[BODIES];
    for (int i = 0; i < BODIES; i++) {
        memset(bytes, 'a' + i, BYTES);
        jobs[i] = kit_job(k, QUEUE, RT_JOB_SCHEDULED, 0);
        jobs[i].body = jobs[i].id;
        jobs[i].body_bytes = BYTES;
        const rt_str body = {.ptr = bytes, .len = BYTES};
        kit_apply(k, OPS(OP_BODY(jobs[i].id, body), OP_JOB(NULL, &jobs[i])));
    }
    kit_commit(k);
    wait_for(&p->nodes[1], jobs[BODIES - 1].id, 1);
    rt_view *v = kit_view(&p->nodes[1]);
    for (int i = 0; i < BODIES; i++) {
        memset(bytes, 'a' + i, BYTES);
        kit_assert_body(v, jobs[i].id, (rt_str){.ptr = bytes, .len = BYTES});
    }
    rt_view_close(v);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nodes__have_one_name, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes__what_one_writes_the_other_shows, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes__of_two_that_decide_on_the_same_one_decides_again, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes__what_does_not_meet_goes_through_at_both, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes__an_id_is_larger_than_all_that_were_seen, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes__a_batch_of_many_megabytes_is_one_line, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
