/* test_postgres_nodes.c: several nodes on one PostgreSQL, trouble with it, and how its statements are planned. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/postgres_nodes.h"

/* ---- reading ------------------------------------------------------------------------------------------- */

static void postgres__what_is_not_known_is_wanted_and_comes_with_one_load(void **state) {
    nodes *n = *state;
    rt_job jobs[3];
    for (int i = 0; i < 3; i++) jobs[i] = nodes_insert(n, 0, RT_JOB_READY, 0);
    const rt_doc doc = {.kind = RT_DOC_SETTING, .name = RT_STR("d"), .version = 1, .value = RT_STR("v")};
    nodes_must_apply(n, 0, OPS(OP_DOC(NULL, &doc)));
    nodes_must_commit(n, 0);
    rt_view *v = nodes_batch(n, 0);
    rt_job job;
    rt_doc got;
    rt_str body;
    rt_counts counts;
    kit_ids ids = {0};
    const rt_job_range ready = {.index = RT_INDEX_READY};
    for (int i = 0; i < 3; i++) assert_int_equal(rt_view_job(v, jobs[i].id, &job), RT_E_AGAIN);
    assert_int_equal(rt_view_doc(v, doc.kind, doc.name, &got), RT_E_AGAIN);
    assert_int_equal(rt_view_doc(v, doc.kind, RT_STR("e"), &got), RT_E_AGAIN);
    assert_int_equal(rt_view_body(v, jobs[0].id, &body), RT_E_AGAIN);
    assert_int_equal(rt_view_counts(v, Q, &counts), RT_E_AGAIN);
    assert_int_equal(rt_view_jobs(v, &ready, nodes_keep_id, &ids), RT_E_AGAIN);
    assert_int_equal(ids.count, 0);
    nodes_need(rt_store_load(n->store[0], &n->err), &n->err);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rt_view_job(v, jobs[i].id, &job), RT_OK);
        assert_memory_equal(&job, &jobs[i], sizeof job);
    }
    assert_int_equal(rt_view_doc(v, doc.kind, doc.name, &got), RT_OK);
    kit_assert_str(got.value, doc.value);
    assert_int_equal(rt_view_doc(v, doc.kind, RT_STR("e"), &got), RT_E_ABSENT);
    assert_int_equal(rt_view_body(v, jobs[0].id, &body), RT_E_ABSENT);
    assert_int_equal(rt_view_counts(v, Q, &counts), RT_OK);
    assert_int_equal(counts.ready, 3);
    assert_int_equal(rt_view_jobs(v, &ready, nodes_keep_id, &ids), RT_OK);
    assert_int_equal(ids.count, 3);
}

static void postgres__what_has_just_come_into_being_is_not_asked_for(void **state) {
    nodes *n = *state;
    rt_view *v = nodes_batch(n, 0);
    const rt_id id = rt_store_new_id(n->store[0]);
    unsigned char name[8];
    for (int i = 0; i < 8; i++) name[i] = (unsigned char)(id >> (56 - 8 * i));
    rt_job job;
    rt_doc doc;
    kit_ids ids = {0};
    const rt_job_range range = {.index = RT_INDEX_FREE, .queue = id};
    assert_int_equal(rt_view_job(v, id, &job), RT_E_ABSENT);
    assert_int_equal(rt_view_doc(v, RT_DOC_CURSOR, (rt_str){.ptr = (char *)name, .len = 8}, &doc), RT_E_ABSENT);
    assert_int_equal(rt_view_jobs(v, &range, nodes_keep_id, &ids), RT_OK);
}

/* More than a page of them, of which the batch itself has taken some and added others. */
static void postgres__a_long_listing_goes_on_where_its_page_ended(void **state) {
    nodes *n = *state;
    enum { JOBS = 700 };
    static rt_job jobs[JOBS];
    for (int i = 0; i < JOBS; i++) jobs[i] = nodes_insert(n, 0, RT_JOB_FREE, RT_JOB_PULL);
    nodes_must_commit(n, 0);
    for (int i = 0; i < JOBS; i += 3) {
        rt_job job;
        nodes_need(nodes_read_job(n, 0, jobs[i].id, &job), &n->err);
        nodes_update(n, 0, &job, RT_JOB_LEASED);
    }
    const rt_job last = nodes_insert(n, 0, RT_JOB_FREE, RT_JOB_PULL);
    kit_ids ids = {0};
    nodes_list(n, 0, (rt_job_range){.index = RT_INDEX_FREE, .queue = Q}, &ids);
    size_t at = 0;
    for (int i = 0; i < JOBS; i++) {
        if (i % 3 != 0) assert_int_equal(ids.ids[at++], jobs[i].id);
    }
    assert_int_equal(ids.ids[at++], last.id);
    assert_int_equal(ids.count, at);
}

/* ---- two writers --------------------------------------------------------------------------------------- */

static void postgres__of_two_who_change_a_job_one_decides_again(void **state) {
    nodes *n = *state;
    const rt_job job = nodes_insert(n, 0, RT_JOB_READY, 0);
    nodes_must_commit(n, 0);
    rt_job read[NODES];
    for (int i = 0; i < NODES; i++) nodes_need(nodes_read_job(n, i, job.id, &read[i]), &n->err);
    nodes_update(n, 0, &read[0], RT_JOB_LEASED);
    nodes_update(n, 1, &read[1], RT_JOB_DEAD);
    const rt_job other = nodes_insert(n, 1, RT_JOB_READY, 0);
    nodes_must_commit(n, 0);
    assert_int_equal(nodes_commit(n, 1), RT_BATCH_CONFLICT);
    assert_int_not_equal(n->err.msg[0], '\0');
    rt_job got;
    assert_int_equal(nodes_read_job(n, 1, other.id, &got), RT_E_ABSENT); // nothing of the batch is there
    nodes_need(nodes_read_job(n, 1, job.id, &got), &n->err);
    nodes_update(n, 1, &got, RT_JOB_DEAD);
    nodes_must_commit(n, 1);
}

static void postgres__of_two_who_make_a_document_one_decides_again(void **state) {
    nodes *n = *state;
    const rt_doc doc = {.kind = RT_DOC_SETTING, .name = RT_STR("d"), .version = 1};
    for (int i = 0; i < NODES; i++) nodes_must_apply(n, i, OPS(OP_DOC(NULL, &doc)));
    nodes_must_commit(n, 0);
    assert_int_equal(nodes_commit(n, 1), RT_BATCH_CONFLICT);
    assert_int_equal(nodes_apply(n, 1, NULL, OPS(OP_DOC(NULL, &doc))), RT_E_EXISTS);
}

static void postgres__a_guard_holds_until_the_commit(void **state) {
    nodes *n = *state;
    rt_doc doc = {.kind = RT_DOC_SETTING, .name = RT_STR("d"), .version = 1, .value = RT_STR("1")};
    const rt_guard absent = {.kind = RT_DOC_SETTING, .name = doc.name, .version = 0};
    const rt_guard first = {.kind = RT_DOC_SETTING, .name = doc.name, .version = 1};
    const rt_job a = nodes_new_job(n, 1, RT_JOB_READY, 0);
    assert_int_equal(nodes_apply(n, 1, &absent, OPS(OP_JOB(NULL, &a))), RT_OK);
    nodes_must_apply(n, 0, OPS(OP_DOC(NULL, &doc)));
    nodes_must_commit(n, 0);
    assert_int_equal(nodes_commit(n, 1), RT_BATCH_CONFLICT); // it has come
    (void)nodes_insert(n, 1, RT_JOB_READY, 0);
    nodes_must_commit(n, 1); // its turn: alone
    assert_int_equal(nodes_apply(n, 1, &first, OPS(OP_JOB(NULL, &a))), RT_OK);
    const rt_doc was = doc;
    doc.version = 2;
    nodes_must_apply(n, 0, OPS(OP_DOC(&was, &doc)));
    nodes_must_commit(n, 0);
    assert_int_equal(nodes_commit(n, 1), RT_BATCH_CONFLICT); // it has changed
    const rt_guard second = {.kind = RT_DOC_SETTING, .name = doc.name, .version = 2};
    const rt_guard still_absent = {.kind = RT_DOC_SETTING, .name = RT_STR("e"), .version = 0};
    const rt_job b = nodes_new_job(n, 1, RT_JOB_READY, 0);
    assert_int_equal(nodes_apply(n, 1, &second, OPS(OP_JOB(NULL, &a))), RT_OK);
    assert_int_equal(nodes_apply(n, 1, &still_absent, OPS(OP_JOB(NULL, &b))), RT_OK);
    nodes_must_commit(n, 1);
    rt_doc got;
    rt_view *v = NULL;
    nodes_need(rt_store_view(n->store[1], &v, &n->err), &n->err);
    assert_int_equal(rt_view_doc(v, RT_DOC_SETTING, RT_STR("e"), &got), RT_E_ABSENT); // a guard leaves nothing
    rt_view_close(v);
}

static void postgres__who_takes_passes_over_what_another_is_taking(void **state) {
    nodes *n = *state;
    rt_job jobs[4];
    for (int i = 0; i < 4; i++) jobs[i] = nodes_insert(n, 0, RT_JOB_READY, 0);
    nodes_must_commit(n, 0);
    const rt_job_range two = {.index = RT_INDEX_READY, .to_take = true, .want = 2};
    kit_ids ids = {.stop_at = 2};
    nodes_list(n, 0, two, &ids);
    assert_int_equal(ids.ids[0], jobs[0].id);
    assert_int_equal(ids.ids[1], jobs[1].id);
    nodes_list(n, 1, two, &ids);
    assert_int_equal(ids.count, 2);
    assert_int_equal(ids.ids[0], jobs[2].id);
    assert_int_equal(ids.ids[1], jobs[3].id);
    rt_store_abandon(n->store[0]); // lets go of them
    rt_store_abandon(n->store[1]);
    (void)nodes_batch(n, 0); // the end of the transaction is not waited for, but by the next
    nodes_list(n, 1, two, &ids);
    assert_int_equal(ids.ids[0], jobs[0].id);
}

static void postgres__counters_of_all_nodes_are_one(void **state) {
    nodes *n = *state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < NODES; i++) {
            (void)nodes_insert(n, i, RT_JOB_READY, 0);
            nodes_must_commit(n, i);
        }
    }
    rt_view *v = NULL;
    nodes_need(rt_store_view(n->store[0], &v, &n->err), &n->err);
    assert_int_equal(kit_counts(v, Q).ready + kit_counts(v, 0).ready, 2 * 6);
    rt_view_close(v);
}

static void postgres__numbers_of_two_nodes_never_meet(void **state) {
    nodes *n = *state;
    rt_id last[NODES] = {0};
    for (int i = 0; i < 3000; i++) {
        for (int node = 0; node < NODES; node++) {
            const rt_id id = rt_store_new_id(n->store[node]);
            assert_true(id > last[node]);
            assert_true(id != last[1 - node]);
            last[node] = id;
        }
    }
}

static void postgres__an_event_is_younger_than_the_one_before_it_whoever_wrote_that(void **state) {
    nodes *n = *state;
    rt_job job = nodes_new_job(n, 0, RT_JOB_SCHEDULED, 0);
    (void)rt_store_new_seq(n->store[1]); // its numbers are from an earlier block
    for (int i = 0; i < 2000; i++) job.last_event = rt_store_new_seq(n->store[0]);
    nodes_must_apply(n, 0, OPS(OP_JOB(NULL, &job)));
    nodes_must_commit(n, 0);
    rt_job got;
    nodes_need(nodes_read_job(n, 1, job.id, &got), &n->err);
    assert_true(rt_store_new_seq(n->store[1]) > got.last_event);
}

static bool hears_within(nodes *n, int node, int ms) {
    for (; ms > 0; ms -= 10) {
        struct pollfd fd = {.fd = n->store[node]->fd, .events = POLLIN};
        (void)poll(&fd, 1, 10);
        uint64_t no;
        rt_batch_end end;
        (void)rt_store_poll(n->store[node], &no, &end, &n->err);
        if (rt_store_woken(n->store[node])) return true;
    }
    return false;
}

static void postgres__others_hear_of_new_work(void **state) {
    nodes *n = *state;
    bool heard = false;
    for (int tries = 0; !heard && tries < 20; tries++) { // until the listener has its connection
        (void)nodes_insert(n, 0, RT_JOB_READY, 0);
        nodes_must_commit(n, 0);
        heard = hears_within(n, 1, 500);
    }
    assert_true(heard);
    assert_false(rt_store_woken(n->store[0])); // but not of its own
}

/* ---- trouble ------------------------------------------------------------------------------------------- */

static rt_view *batch_after_a_while(nodes *n, int node) {
    for (int i = 0; i < 500; i++) {
        uint64_t no;
        rt_batch_end end;
        (void)rt_store_poll(n->store[node], &no, &end, &n->err);
        rt_view *v = rt_store_batch(n->store[node], &n->err);
        if (v != NULL) return v;
        assert_true(n->err.msg[0] != '\0');
        (void)nanosleep(&(const struct timespec){.tv_nsec = 20000000}, NULL);
    }
    fail_msg("the store does not come back: %s", n->err.msg);
    return NULL;
}

/* The commit waits for a lock when its session is ended. */
static void postgres__a_commit_that_was_cut_off_is_known_to_have_failed(void **state) {
    nodes *n = *state;
    const rt_job job = nodes_insert(n, 0, RT_JOB_READY, 0);
    nodes_must_commit(n, 0);
    rt_job read[NODES];
    for (int i = 0; i < NODES; i++) nodes_need(nodes_read_job(n, i, job.id, &read[i]), &n->err);
    const rt_job_range take = {.index = RT_INDEX_READY, .to_take = true};
    kit_ids ids = {0};
    nodes_list(n, 1, take, &ids); // holds the lock
    nodes_update(n, 0, &read[0], RT_JOB_LEASED);
    nodes_send(n, 0);
    while (postgres_run("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                        "WHERE wait_event_type = 'Lock'") == 0) {
    }
    assert_int_equal(nodes_await(n, 0), RT_BATCH_FAILED);
    rt_store_abandon(n->store[1]);
    (void)batch_after_a_while(n, 0);
    rt_job got;
    nodes_need(nodes_read_job(n, 0, job.id, &got), &n->err);
    assert_int_equal(got.state, RT_JOB_READY);
    nodes_update(n, 0, &got, RT_JOB_DEAD);
    nodes_must_commit(n, 0);
}

static void postgres__an_idle_store_finds_its_way_back(void **state) {
    nodes *n = *state;
    nodes_must_commit(n, 0);
    rt_view *v = NULL;
    nodes_need(rt_store_view(n->store[0], &v, &n->err), &n->err);
    rt_view_close(v);
    postgres_end_sessions();
    // A batch that was begun before it was noticed fails; the next one does not.
    bool back = false;
    for (int i = 0; !back && i < 5; i++) {
        (void)batch_after_a_while(n, 0);
        const rt_job job = nodes_new_job(n, 0, RT_JOB_READY, 0);
        (void)nodes_apply(n, 0, NULL, OPS(OP_JOB(NULL, &job)));
        back = nodes_commit(n, 0) == RT_BATCH_DURABLE;
    }
    assert_true(back);
    nodes_need(rt_store_view(n->store[0], &v, &n->err), &n->err);
    assert_int_equal(kit_counts(v, 0).ready, 1);
    rt_view_close(v);
}

static void postgres__a_database_that_takes_no_writes_says_so(void **state) {
    nodes *n = *state;
    nodes_must_commit(n, 0);
    (void)postgres_run("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
                       "'BEGIN RAISE EXCEPTION ''no room'' USING ERRCODE = ''disk_full''; END'");
    (void)postgres_run("CREATE TRIGGER refuse BEFORE INSERT ON retryd_jobs EXECUTE FUNCTION refuse()");
    const rt_job job = nodes_insert(n, 0, RT_JOB_READY, 0);
    assert_int_equal(nodes_commit(n, 0), RT_BATCH_FAILED);
    assert_int_equal(n->err.code, RT_E_FULL);
    assert_non_null(strstr(n->err.msg, "no room"));
    (void)postgres_run("DROP TRIGGER refuse ON retryd_jobs");
    nodes_must_apply(n, 0, OPS(OP_JOB(NULL, &job)));
    nodes_must_commit(n, 0);
}

static void postgres__an_address_is_never_repeated(void **state) {
    (void)state;
    static const char *const URLS[] = {"postgresql://u:s3cret@127.0.0.1:1/db", "postgresql://u:s3cret@[broken/db",
                                       "host=/nowhere password=s3cret", "postgresql://u:s3cret@h/d?nonsense=s3cret"};
    for (size_t i = 0; i < sizeof URLS / sizeof URLS[0]; i++) {
        rt_store_postgres_config config = postgres_config();
        config.url = URLS[i];
        rt_store *s = NULL;
        rt_err err = {0};
        assert_int_not_equal(rt_store_postgres_open(&config, &s, &err), RT_OK);
        assert_true(err.msg[0] != '\0');
        assert_null(strstr(err.msg, "s3cret"));
    }
}

static void postgres__tables_of_a_later_version_are_left_alone(void **state) {
    (void)state;
    rt_store_postgres_config config = postgres_config();
    rt_store *s = NULL;
    rt_err err;
    (void)postgres_run("UPDATE retryd_schema SET version = 2");
    nodes_need(rt_store_postgres_open(&config, &s, &err), &err); // it lets the one before work beside it
    rt_store_close(s);
    (void)postgres_run("UPDATE retryd_schema SET version = 3, oldest = 2");
    assert_int_equal(rt_store_postgres_open(&config, &s, &err), RT_E_INVALID);
    assert_non_null(strstr(err.msg, "version 3"));
}

static void postgres__the_clock_is_the_databases(void **state) {
    nodes *n = *state;
    const int64_t before = postgres_run("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)");
    const int64_t told = n->store[0]->ops->now_ms(n->store[0]);
    const int64_t after = postgres_run("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)");
    assert_in_range(told, before - 5, after + 5);
}

/* ---- for people ---------------------------------------------------------------------------------------- */

static void postgres__people_read_names_and_times(void **state) {
    nodes *n = *state;
    const rt_queue queue = {.id = Q, .version = 1, .kind = RT_QUEUE_MESSAGES, .name = RT_STR("p/q")};
    nodes_must_apply(n, 0, OPS(OP_QUEUE(NULL, &queue)));
    (void)nodes_insert(n, 0, RT_JOB_SCHEDULED, 0);
    nodes_must_commit(n, 0);
    assert_int_equal(postgres_run("SELECT count(*) FROM retryd_jobs_shown WHERE queue_name = 'p/q' AND "
                                  "state_name = 'scheduled' AND due = timestamptz '1970-01-01 00:00:02Z'"),
                     1);
    assert_int_equal(postgres_run("SELECT scheduled FROM retryd_queues_shown WHERE name = 'p/q'"), 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, nodes_open, nodes_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(postgres__what_is_not_known_is_wanted_and_comes_with_one_load),
        TEST(postgres__what_has_just_come_into_being_is_not_asked_for),
        TEST(postgres__a_long_listing_goes_on_where_its_page_ended),
        TEST(postgres__of_two_who_change_a_job_one_decides_again),
        TEST(postgres__of_two_who_make_a_document_one_decides_again),
        TEST(postgres__a_guard_holds_until_the_commit),
        TEST(postgres__who_takes_passes_over_what_another_is_taking),
        TEST(postgres__counters_of_all_nodes_are_one),
        TEST(postgres__numbers_of_two_nodes_never_meet),
        TEST(postgres__an_event_is_younger_than_the_one_before_it_whoever_wrote_that),
        TEST(postgres__others_hear_of_new_work),
        TEST(postgres__a_commit_that_was_cut_off_is_known_to_have_failed),
        TEST(postgres__an_idle_store_finds_its_way_back),
        TEST(postgres__a_database_that_takes_no_writes_says_so),
        TEST(postgres__an_address_is_never_repeated),
        TEST(postgres__tables_of_a_later_version_are_left_alone),
        TEST(postgres__the_clock_is_the_databases),
        TEST(postgres__people_read_names_and_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
