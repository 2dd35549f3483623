/* Records as they stand in the retry topic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/kafka/lines/rows.h"
#include "store/kafka/share.h"
#include "store/lmdb/store_lmdb.h"

/* ---- keys ---------------------------------------------------------------------------------------------- */

static void row__keys_are_text(void **state) {
    (void)state;
    static const struct {
        rt_dirty_key key;
        const char *text;
    } ROWS[] = {
        {{.kind = RT_OP_JOB, .key = 7}, "job/0000000000000007"},
        {{.kind = RT_OP_BODY, .key = 0xabcdef}, "body/0000000000abcdef"},
        {{.kind = RT_OP_QUEUE, .key = 1}, "queue/0000000000000001"},
        {{.kind = RT_OP_LEASE, .key = UINT64_MAX}, "lease/ffffffffffffffff"},
        {{.kind = RT_OP_EVENT, .key = 16}, "event/0000000000000010"},
        {{.kind = RT_OP_DOC, .doc_kind = RT_DOC_SETTING, .name = {"a/b", 3}}, "doc/5/a/b"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        rt_buf text = {0};
        rt_dirty_key got;
        rt_row_write_key(&text, &ROWS[i].key);
        assert_true(rt_str_eq(rt_buf_str(&text), rt_str_of(ROWS[i].text)));
        assert_true(rt_row_read_key(rt_buf_str(&text), &got));
        assert_true(got.kind == ROWS[i].key.kind && got.key == ROWS[i].key.key && got.doc_kind == ROWS[i].key.doc_kind);
        assert_true(rt_str_eq(got.name, ROWS[i].key.name));
        rt_buf_deinit(&text);
    }
}

static void row__keys_of_others_are_passed_over(void **state) {
    (void)state;
    static const char *const ROWS[] = {"",       "cut",     "job",     "job/",   "job/7", "job/0000000000000000",
                                       "job/00000000000000AB", "job/00000000000000071", "jobs/0000000000000007", "doc/5",
                                       "doc/5/", "doc/0/a", "doc/999/a", "doc/x/a", "/a"};
    rt_dirty_key got;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) assert_false(rt_row_read_key(rt_str_of(ROWS[i]), &got));
    char name[RT_DOC_NAME_MAX + 8];
    memset(name, 'a', sizeof name);
    memcpy(name, "doc/5/", 6);
    assert_true(rt_row_read_key((rt_str){.ptr = name, .len = 6 + RT_DOC_NAME_MAX}, &got));
    assert_false(rt_row_read_key((rt_str){.ptr = name, .len = 6 + RT_DOC_NAME_MAX + 1}, &got));
}

/* ---- values -------------------------------------------------------------------------------------------- */

typedef struct rig {
    char dir[64];
    rt_store *from, *to;
} rig;

static rt_store *open_store(const char *dir) {
    rt_store *store = NULL;
    rt_err err;
    const rt_store_lmdb_config cfg = {.dir = dir,
                                      .map_bytes = 1 << 24,
                                      .retention = {.age_ms = INT64_MAX, .events = UINT64_MAX},
                                      .no_sync = true};
    if (rt_store_lmdb_open(&cfg, &store, &err) != RT_OK) fail_msg("%s", err.msg);
    return store;
}

static const char *folder(const rig *r, const char *name) {
    static char path[96];
    (void)snprintf(path, sizeof path, "%s/%s", r->dir, name);
    return path;
}

static int setup(void **state) {
    rig *r = calloc(1, sizeof *r);
    if (r == NULL) return -1;
    (void)snprintf(r->dir, sizeof r->dir, "/tmp/retryd-rows-XXXXXX");
    if (mkdtemp(r->dir) == NULL) return -1;
    r->from = open_store(folder(r, "from"));
    r->to = open_store(folder(r, "to"));
    *state = r;
    return 0;
}

static int teardown(void **state) {
    static const char *const FILES[] = {"from/data.mdb", "from/lock.mdb", "from/owner.lock",
                                        "to/data.mdb",   "to/lock.mdb",   "to/owner.lock"};
    rig *r = *state;
    rt_store_close(r->from);
    rt_store_close(r->to);
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) (void)unlink(folder(r, FILES[i]));
    (void)rmdir(folder(r, "from"));
    (void)rmdir(folder(r, "to"));
    (void)rmdir(r->dir);
    free(r);
    return 0;
}

static void commit(rt_store *store, uint64_t no) {
    rt_batch_end end;
    rt_err err;
    rt_store_commit(store, no);
    assert_true(rt_store_poll(store, &no, &end, &err));
    assert_int_equal(end, RT_BATCH_DURABLE);
}

static rt_view *view_of(rt_store *store) {
    rt_view *view = NULL;
    rt_err err;
    assert_int_equal(rt_store_view(store, &view, &err), RT_OK);
    return view;
}

static const rt_queue QUEUE = {.id = 7, .version = 1, .kind = RT_QUEUE_CALLS, .name = {"p/t", 3}};
static const rt_job DEAD = {.id = 9, .queue = 7, .version = 1, .body = 9, .body_bytes = 2, .state = RT_JOB_DEAD,
                            .reason = RT_REASON_EXHAUSTED, .attempt = 3, .due_ms = 1234, .flags = RT_JOB_CALL};
static const rt_doc DOC = {.kind = RT_DOC_SETTING, .version = 1, .name = {"n", 1}, .value = {"v", 1}};
static const rt_lease LEASE = {.id = 3, .queue = 7, .version = 1, .until_ms = 50};
static const rt_event EVENT = {.seq = 12, .job = 9, .queue = 7, .at_ms = 3, .type = RT_EVENT_ATTEMPT, .text = {"why", 3}};

static void fill(rt_store *store) {
    const rt_op ops[] = {
        {.kind = RT_OP_QUEUE, .queue = {.now = &QUEUE}},
        {.kind = RT_OP_BODY, .body = {.id = 9, .bytes = RT_STR("hi")}},
        {.kind = RT_OP_JOB, .job = {.now = &DEAD}},
        {.kind = RT_OP_DOC, .doc = {.now = &DOC}},
        {.kind = RT_OP_LEASE, .lease = {.now = &LEASE}},
        {.kind = RT_OP_EVENT, .event = &EVENT},
    };
    rt_err err = {0};
    (void)rt_store_batch(store, &err);
    if (rt_store_apply(store, &(rt_change){.ops = ops, .ops_count = 6}, &err) != RT_OK) fail_msg("%s", err.msg);
    commit(store, 1);
}

static const rt_dirty_key KEYS[] = {
    {.kind = RT_OP_QUEUE, .key = 7}, {.kind = RT_OP_BODY, .key = 9},
    {.kind = RT_OP_JOB, .key = 9},   {.kind = RT_OP_DOC, .doc_kind = RT_DOC_SETTING, .name = {"n", 1}},
    {.kind = RT_OP_LEASE, .key = 3}, {.kind = RT_OP_EVENT, .key = 12},
};
enum { KEYS_COUNT = sizeof KEYS / sizeof *KEYS, PARTITIONS = 16 };

static void row__every_record_comes_back_from_its_value_and_goes_with_its_tombstone(void **state) {
    rig *r = *state;
    rt_err err;
    fill(r->from);
    rt_view *from = view_of(r->from);
    for (size_t i = 0; i < KEYS_COUNT; i++) { // in this order: a job may come after its body, or before
        rt_buf value = {0}, again = {0};
        rt_row row, other;
        assert_int_equal(rt_row_read(from, &KEYS[i], PARTITIONS, &value, &row), RT_OK);
        assert_true(row.there && row.partition < PARTITIONS);
        const rt_str bytes = rt_buf_str(&value);
        for (uint64_t twice = 0; twice < 2; twice++) { // what was read before is written over
            assert_int_equal(rt_row_put(r->to, &KEYS[i], &bytes, row.users, &err), RT_OK);
            commit(r->to, 10 * i + twice + 1);
        }
        rt_view *to = view_of(r->to);
        assert_int_equal(rt_row_read(to, &KEYS[i], PARTITIONS, &again, &other), RT_OK);
        rt_view_close(to);
        assert_true(other.there && other.partition == row.partition && other.users == row.users);
        assert_true(rt_str_eq(bytes, rt_buf_str(&again)));
        rt_buf_deinit(&value);
        rt_buf_deinit(&again);
    }
    rt_view_close(from);
    for (size_t i = 0; i < KEYS_COUNT; i++) {
        rt_buf value = {0};
        rt_row row;
        assert_int_equal(rt_row_put(r->to, &KEYS[i], NULL, 0, &err), RT_OK);
        commit(r->to, 1000 + i);
        rt_view *to = view_of(r->to);
        assert_int_equal(rt_row_read(to, &KEYS[i], PARTITIONS, &value, &row), RT_OK);
        rt_view_close(to);
        assert_false(row.there);
        rt_buf_deinit(&value);
    }
}

static void row__values_that_cannot_be_read_are_refused(void **state) {
    rig *r = *state;
    rt_err err;
    const rt_str bad = RT_STR("x");
    for (size_t i = 0; i < KEYS_COUNT; i++) {
        if (KEYS[i].kind == RT_OP_BODY) continue; // any bytes are a body
        assert_int_not_equal(rt_row_put(r->to, &KEYS[i], &bad, 1, &err), RT_OK);
        rt_store_abandon(r->to);
    }
}

static void assert_header(rd_kafka_headers_t *headers, const char *name, const char *want) {
    const void *value;
    size_t size;
    if (rd_kafka_header_get_last(headers, name, &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR) fail_msg("no %s", name);
    assert_true(rt_str_eq((rt_str){.ptr = value, .len = size}, rt_str_of(want)));
}

static void row__headers_tell_other_tools_of_jobs_and_bodies(void **state) {
    rig *r = *state;
    fill(r->from);
    rt_view *from = view_of(r->from);
    for (size_t i = 0; i < KEYS_COUNT; i++) {
        rt_buf value = {0};
        rt_row row;
        assert_int_equal(rt_row_read(from, &KEYS[i], PARTITIONS, &value, &row), RT_OK);
        rd_kafka_headers_t *headers = rt_row_headers(&KEYS[i], &row, 0x5eed);
        if (KEYS[i].kind == RT_OP_JOB) {
            assert_header(headers, "rtd-id", "00005eed0000000000000009");
            assert_header(headers, "rtd-type", "p/t");
            assert_header(headers, "rtd-attempt", "3");
            assert_header(headers, "rtd-state", "dead");
            assert_header(headers, "rtd-due", "1234");
            assert_header(headers, "rtd-reason", "exhausted");
        } else if (KEYS[i].kind == RT_OP_BODY) {
            assert_header(headers, "rtd-users", "1");
        } else {
            assert_null(headers);
        }
        if (headers != NULL) rd_kafka_headers_destroy(headers);
        rt_buf_deinit(&value);
    }
    rt_view_close(from);
}

/* ---- shares -------------------------------------------------------------------------------------------- */

static void share__buckets_of_a_queue_lie_side_by_side(void **state) {
    (void)state;
    for (rt_id queue = 1; queue < 100; queue++) {
        const uint32_t first = rt_share_partition(queue, 0, PARTITIONS);
        assert_true(first < PARTITIONS);
        for (uint32_t bucket = 1; bucket < 40; bucket++)
            assert_int_equal(rt_share_partition(queue, bucket, PARTITIONS), (first + bucket) % PARTITIONS);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row__keys_are_text),
        cmocka_unit_test(row__keys_of_others_are_passed_over),
        cmocka_unit_test_setup_teardown(row__every_record_comes_back_from_its_value_and_goes_with_its_tombstone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(row__values_that_cannot_be_read_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(row__headers_tell_other_tools_of_jobs_and_bodies, setup, teardown),
        cmocka_unit_test(share__buckets_of_a_queue_lie_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
