/* A line of the journal, as bytes, and which records it changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "store/kafka/lines/dirty.h"
#include "store/kafka/lines/entry.h"

static rt_buf line;
static rt_dirty dirty;

static int teardown(void **state) {
    (void)state;
    rt_buf_deinit(&line);
    rt_dirty_deinit(&dirty);
    return 0;
}

static rt_job job(rt_id id, uint64_t version, rt_id body, rt_job_state state) {
    return (rt_job){.id = id, .queue = 7, .version = version, .body = body, .state = (uint8_t)state, .due_ms = 5};
}

#define OPS(...) (const rt_op[]){__VA_ARGS__}, sizeof((const rt_op[]){__VA_ARGS__}) / sizeof(rt_op)

static void add_change(const rt_op *ops, size_t count) {
    rt_entry_add_change(&line, &(rt_change){.ops = ops, .ops_count = (uint32_t)count});
}

/* ---- heads --------------------------------------------------------------------------------------------- */

static const char HEAD[] = "\x01\x03\x88\x77\x66\x55\x44\x33\x22\x11\x02\0\0\0\x03\0\0\0\0\0\0\0"
                           "\x04\0\0\0\0\0\0\0\x05\0\0\0\x06\0\0";
_Static_assert(sizeof HEAD == RT_ENTRY_HEAD_BYTES, "the last byte is the literal's end");

static void head__stands_as_documented(void **state) {
    (void)state;
    const rt_entry_head head = {.kind = RT_ENTRY_BATCH,
                                .node = 0x1122334455667788,
                                .epoch = 2,
                                .no = 3,
                                .at_ms = 4,
                                .part = 5,
                                .parts = 6};
    rt_entry_write_head(&line, &head);
    assert_int_equal(line.len, RT_ENTRY_HEAD_BYTES);
    assert_memory_equal(line.ptr, HEAD, RT_ENTRY_HEAD_BYTES);
    rt_buf_add(&line, RT_STR("rest"));
    rt_str record = rt_buf_str(&line);
    rt_entry_head got;
    assert_true(rt_entry_read_head(&record, &got));
    assert_true(rt_str_eq(record, RT_STR("rest")));
    assert_true(got.kind == head.kind && got.node == head.node && got.epoch == 2 && got.no == 3 && got.at_ms == 4);
    assert_true(got.part == 5 && got.parts == 6);
}

static void head__of_somebody_else_is_refused(void **state) {
    (void)state;
    static const struct {
        size_t at;
        char value;
    } ROWS[] = {{0, 2}, {0, 0}, {1, 0}, {1, RT_ENTRY_KIND_END}, {30, 6}, {34, 5}};
    rt_entry_head got;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char bytes[RT_ENTRY_HEAD_BYTES];
        memcpy(bytes, HEAD, sizeof bytes);
        bytes[ROWS[i].at] = ROWS[i].value;
        rt_str record = {.ptr = bytes, .len = sizeof bytes};
        assert_false(rt_entry_read_head(&record, &got));
    }
    for (size_t len = 0; len < RT_ENTRY_HEAD_BYTES; len++) {
        rt_str record = {.ptr = HEAD, .len = len};
        assert_false(rt_entry_read_head(&record, &got));
    }
}

/* ---- items --------------------------------------------------------------------------------------------- */

static void change__stands_as_documented(void **state) {
    (void)state;
    const rt_guard guard = {.kind = RT_DOC_SETTING, .name = RT_STR("g"), .version = 7};
    const rt_job gone = job(9, 4, 6, RT_JOB_DEAD);
    const rt_op ops[] = {{.kind = RT_OP_BODY, .body = {.id = 8, .bytes = RT_STR("hi")}},
                         {.kind = RT_OP_JOB, .job = {.was = &gone}}};
    rt_entry_add_change(&line, &(rt_change){.guards = &guard, .guards_count = 1, .ops = ops, .ops_count = 2});
    static const char WANT[] = "C\x01\0\0\0\x02\0\0\0"
                               "\x05\x01\0\0\0g\x07\0\0\0\0\0\0\0"                                  // the guard
                               "\x04\x02\x08\0\0\0\0\0\0\0\x02\0\0\0hi"                             // there is a body now
                               "\x00\x01\x09\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0"; // there was a job
    _Static_assert(RT_DOC_SETTING == 5 && RT_OP_BODY == 4 && RT_OP_JOB == 0, "as written above");
    assert_int_equal(line.len, sizeof WANT - 1);
    assert_memory_equal(line.ptr, WANT, line.len);
}

static rt_entry_item first_item(rt_unpack *u) {
    rt_entry_item item;
    *u = (rt_unpack){.rest = rt_buf_str(&line)};
    assert_true(rt_entry_next(u, &item));
    return item;
}

static rt_entry_op next_op(rt_unpack *u, const rt_entry_item *item) {
    rt_entry_op op;
    assert_true(rt_entry_read_op(u, item, &op));
    return op;
}

static void change__every_kind_of_record_is_read_as_it_was_written(void **state) {
    (void)state;
    const rt_job job_was = job(9, 4, 6, RT_JOB_READY), job_now = job(9, 5, 6, RT_JOB_DEAD);
    const rt_queue queue = {.id = 7, .version = 1, .kind = RT_QUEUE_CALLS, .name = RT_STR("p/t")};
    const rt_lease lease = {.id = 3, .queue = 7, .version = 1, .until_ms = 50, .jobs_count = 1, .jobs = {9}};
    const rt_doc doc_was = {.kind = RT_DOC_SETTING, .version = 2, .name = RT_STR("n")};
    const rt_doc doc_now = {.kind = RT_DOC_SETTING, .version = 3, .name = RT_STR("n"), .value = RT_STR("v")};
    const rt_event event = {.seq = 12, .job = 9, .queue = 7, .at_ms = 3, .type = RT_EVENT_ATTEMPT, .text = RT_STR("why")};
    add_change(OPS({.kind = RT_OP_JOB, .job = {&job_was, &job_now}}, {.kind = RT_OP_QUEUE, .queue = {.now = &queue}},
                   {.kind = RT_OP_LEASE, .lease = {.now = &lease}}, {.kind = RT_OP_DOC, .doc = {&doc_was, &doc_now}},
                   {.kind = RT_OP_BODY, .body = {.id = 8, .bytes = RT_STR("hi")}}, {.kind = RT_OP_EVENT, .event = &event}));
    rt_unpack u;
    const rt_entry_item item = first_item(&u);
    assert_int_equal(item.ops, 6);
    rt_entry_op op = next_op(&u, &item);
    assert_true(op.kind == RT_OP_JOB && op.was && op.now && op.key == 9 && op.was_version == 4 && op.was_body == 6);
    assert_memory_equal(&op.job, &job_now, sizeof job_now);
    op = next_op(&u, &item);
    assert_true(op.kind == RT_OP_QUEUE && !op.was && op.now && op.key == 7 && rt_str_eq(op.queue.name, RT_STR("p/t")));
    op = next_op(&u, &item);
    assert_true(op.kind == RT_OP_LEASE && op.key == 3 && op.lease.until_ms == 50 && op.lease.jobs[0] == 9);
    op = next_op(&u, &item);
    assert_true(op.kind == RT_OP_DOC && op.doc_kind == RT_DOC_SETTING && rt_str_eq(op.name, RT_STR("n")));
    assert_true(op.was_version == 2 && op.doc.version == 3 && rt_str_eq(op.doc.value, RT_STR("v")));
    op = next_op(&u, &item);
    assert_true(op.kind == RT_OP_BODY && op.key == 8 && rt_str_eq(op.body.bytes, RT_STR("hi")));
    op = next_op(&u, &item);
    assert_true(op.kind == RT_OP_EVENT && op.key == 12 && op.event.job == 9 && rt_str_eq(op.event.text, RT_STR("why")));
    rt_entry_item other;
    assert_false(rt_entry_next(&u, &other));
    assert_false(u.failed);
}

static void change__a_version_that_is_not_the_next_one_is_refused(void **state) {
    (void)state;
    static const struct {
        uint64_t was, now; /* 0: there is none */
        bool read;
    } ROWS[] = {{0, 1, true}, {0, 2, false}, {4, 5, true}, {4, 4, false}, {4, 6, false}, {4, 1, false}, {4, 0, true}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const rt_job was = job(9, ROWS[i].was, 0, RT_JOB_READY), now = job(9, ROWS[i].now, 0, RT_JOB_READY);
        rt_buf_clear(&line);
        add_change(OPS({.kind = RT_OP_JOB, .job = {ROWS[i].was > 0 ? &was : NULL, ROWS[i].now > 0 ? &now : NULL}}));
        rt_unpack u;
        const rt_entry_item item = first_item(&u);
        rt_entry_op op;
        assert_int_equal(rt_entry_read_op(&u, &item, &op), ROWS[i].read);
        assert_int_equal(u.failed, !ROWS[i].read);
    }
}

static void import__brings_versions_and_users_along(void **state) {
    (void)state;
    const rt_import import = {.tag = 0x5eed, .ids_from = 1000, .seqs_from = 2000};
    const rt_job imported = job(9, 17, 8, RT_JOB_READY), none = job(9, 0, 8, RT_JOB_READY);
    const rt_op ops[] = {{.kind = RT_OP_BODY, .body = {.id = 8, .bytes = RT_STR("hi"), .users = 3}},
                         {.kind = RT_OP_JOB, .job = {.now = &imported}},
                         {.kind = RT_OP_JOB, .job = {.now = &none}}};
    rt_entry_add_change(&line, &(rt_change){.ops = ops, .ops_count = 3, .import = &import});
    assert_memory_equal(line.ptr, "I\xed\x5e\0\0\xe8\x03\0\0\0\0\0\0\xd0\x07\0\0\0\0\0\0\x03\0\0\0", 1 + 4 + 8 + 8 + 4);
    rt_unpack u;
    const rt_entry_item item = first_item(&u);
    assert_true(item.imports && item.guards == 0 && item.ops == 3);
    assert_true(item.import.tag == 0x5eed && item.import.ids_from == 1000 && item.import.seqs_from == 2000);
    rt_entry_op op = next_op(&u, &item);
    assert_true(op.key == 8 && op.body.users == 3 && rt_str_eq(op.body.bytes, RT_STR("hi")));
    op = next_op(&u, &item);
    assert_true(!op.was && op.job.version == 17);
    assert_false(rt_entry_read_op(&u, &item, &op)); // a version is at least 1
}

static void items__that_nobody_writes_are_refused(void **state) {
    (void)state;
#define ROW(text) {.ptr = (text), .len = sizeof(text) - 1}
    static const rt_str ROWS[] = {
        ROW("X"),
        ROW("C\0\0\0\0"),                   // cut off
        ROW("C\x09\0\0\0\0\0\0\0"),         // 9 guards
        ROW("C\0\0\0\0\x01\x20\0\0"),       // 8193 ops
        ROW("T\0\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0"), // ops_max 1
        ROW("T\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0"),   // kept for no time
        ROW("T\0\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),   // no events kept
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        rt_unpack u = {.rest = ROWS[i]};
        rt_entry_item item;
        assert_false(rt_entry_next(&u, &item));
        assert_true(u.failed);
    }
    static const rt_str OPS_ROWS[] = {
        ROW("\x06\x02\x01\0\0\0\0\0\0\0"),                               // no such kind
        ROW("\x00\x00\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),               // neither was nor is
        ROW("\x00\x04\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),               // no such flag
        ROW("\x01\x01\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0"),               // id 0
        ROW("\x01\x01\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),               // was, at version 0
        ROW("\x03\x01\0\x01\0\0\0n\x01\0\0\0\0\0\0\0"),                  // a document of no kind
        ROW("\x04\x03\x01\0\0\0\0\0\0\0\0\0\0\0"),                       // a body is never replaced
        ROW("\x04\x02\x01\0\0\0\0\0\0\0\x05\0\0\0hi"),                   // longer than there is
    };
    for (size_t i = 0; i < sizeof OPS_ROWS / sizeof *OPS_ROWS; i++) {
        rt_unpack u = {.rest = OPS_ROWS[i]};
        rt_entry_op op;
        assert_false(rt_entry_read_op(&u, &(rt_entry_item){.ops = 1}, &op));
    }
}

static void tidy__says_what_goes(void **state) {
    (void)state;
    rt_buf dropped = {0};
    rt_entry_add_dropped(&dropped, true, 9);
    rt_entry_add_dropped(&dropped, false, 12);
    rt_entry_add_tidy(&line, &(rt_retention){.age_ms = 3600000, .events = 100}, 77, 512, rt_buf_str(&dropped));
    rt_buf_deinit(&dropped);
    rt_unpack u;
    const rt_entry_item item = first_item(&u);
    assert_true(item.is_tidy && item.ops == 0 && item.guards == 0);
    assert_true(item.now_ms == 77 && item.ops_max == 512 && item.bounds.age_ms == 3600000 && item.bounds.events == 100);
    rt_unpack d = {.rest = item.dropped};
    bool is_job;
    uint64_t key;
    assert_true(rt_entry_next_dropped(&d, &is_job, &key) && is_job && key == 9);
    assert_true(rt_entry_next_dropped(&d, &is_job, &key) && !is_job && key == 12);
    assert_false(rt_entry_next_dropped(&d, &is_job, &key));
}

/* ---- which records it changes -------------------------------------------------------------------------- */

/* -1: it is not among them. */
static int64_t offset_of(rt_op_kind kind, uint64_t key) {
    for (const rt_dirty_key *k = dirty.first; k != NULL; k = k->next) {
        if (k->kind == kind && k->key == key) return k->offset;
    }
    return -1;
}

static void add_line(int64_t offset) {
    rt_dirty_add(&dirty, rt_buf_str(&line), offset);
    rt_buf_clear(&line);
}

static void dirty__a_body_is_written_again_when_who_needs_it_changes_not_with_each_attempt(void **state) {
    (void)state;
    const rt_job one = job(9, 1, 8, RT_JOB_READY), two = job(9, 2, 8, RT_JOB_SCHEDULED), done = job(9, 3, 8, RT_JOB_DONE);
    add_change(OPS({.kind = RT_OP_JOB, .job = {.now = &one}}));
    add_line(10);
    assert_int_equal(offset_of(RT_OP_JOB, 9), 10);
    assert_int_equal(offset_of(RT_OP_BODY, 8), 10);
    add_change(OPS({.kind = RT_OP_JOB, .job = {&one, &two}}));
    add_line(11);
    assert_int_equal(offset_of(RT_OP_JOB, 9), 11);
    assert_int_equal(offset_of(RT_OP_BODY, 8), 10);
    add_change(OPS({.kind = RT_OP_JOB, .job = {&two, &done}}));
    add_line(12);
    assert_int_equal(offset_of(RT_OP_BODY, 8), 12);
    assert_int_equal(dirty.count, 2);
}

static void dirty__each_record_is_there_once_with_its_last_line(void **state) {
    (void)state;
    const rt_doc a = {.kind = RT_DOC_SETTING, .version = 1, .name = RT_STR("a")};
    const rt_doc b = {.kind = RT_DOC_CURSOR, .version = 1, .name = RT_STR("a")}; // another kind
    const rt_queue queue = {.id = 9, .version = 1, .kind = RT_QUEUE_CALLS, .name = RT_STR("q")};
    const rt_lease lease = {.id = 9, .version = 1}; // the same number
    add_change(OPS({.kind = RT_OP_DOC, .doc = {.now = &a}}, {.kind = RT_OP_DOC, .doc = {.now = &b}},
                   {.kind = RT_OP_QUEUE, .queue = {.now = &queue}}, {.kind = RT_OP_LEASE, .lease = {.now = &lease}}));
    add_line(10);
    add_change(OPS({.kind = RT_OP_DOC, .doc = {.was = &a}}));
    add_line(20);
    assert_int_equal(dirty.count, 4);
    assert_int_equal(offset_of(RT_OP_QUEUE, 9), 10);
    assert_int_equal(offset_of(RT_OP_LEASE, 9), 10);
    rt_dirty rest = {0};
    rt_dirty_add_since(&rest, &dirty, 11);
    assert_int_equal(rest.count, 1);
    assert_true(rest.first->doc_kind == RT_DOC_SETTING && rt_str_eq(rest.first->name, RT_STR("a")));
    assert_int_equal(rest.first->offset, 20);
    rt_dirty_add_since(&rest, &dirty, 10);
    assert_int_equal(rest.count, 4);
    assert_false(rest.incomplete);
    rt_dirty_deinit(&rest);
}

static void dirty__what_trimming_took_away_is_among_them(void **state) {
    (void)state;
    rt_buf dropped = {0};
    rt_entry_add_dropped(&dropped, true, 9);
    rt_entry_add_dropped(&dropped, false, 9);
    rt_entry_add_tidy(&line, &(rt_retention){.age_ms = 1, .events = 1}, 0, 2, rt_buf_str(&dropped));
    rt_buf_deinit(&dropped);
    add_line(10);
    assert_int_equal(dirty.count, 2);
    assert_int_equal(offset_of(RT_OP_JOB, 9), 10);
    assert_int_equal(offset_of(RT_OP_EVENT, 9), 10);
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(head__stands_as_documented),
        TEST(head__of_somebody_else_is_refused),
        TEST(change__stands_as_documented),
        TEST(change__every_kind_of_record_is_read_as_it_was_written),
        TEST(change__a_version_that_is_not_the_next_one_is_refused),
        TEST(import__brings_versions_and_users_along),
        TEST(items__that_nobody_writes_are_refused),
        TEST(tidy__says_what_goes),
        TEST(dirty__a_body_is_written_again_when_who_needs_it_changes_not_with_each_attempt),
        TEST(dirty__each_record_is_there_once_with_its_last_line),
        TEST(dirty__what_trimming_took_away_is_among_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
