/* What is remembered beside the records of a journal: fences, slots, writers, and lines of several records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "store/kafka/lines/ledger.h"
#include "store/kafka/lines/parts.h"

static rt_ledger ledger; /* several KB */
static rt_parts parts;
static rt_buf buf;

static int setup(void **state) {
    (void)state;
    rt_ledger_init(&ledger);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rt_parts_deinit(&parts);
    rt_buf_deinit(&buf);
    return 0;
}

/* ---- the ledger ---------------------------------------------------------------------------------------- */

static void ledger__is_read_as_it_was_written(void **state) {
    (void)state;
    static rt_ledger got;
    ledger.tag = 0x5eed;
    ledger.position = 900;
    ledger.from = 890;
    ledger.cut = 880;
    ledger.at_ms = 1700000000000;
    ledger.counter = 12;
    ledger.joined = 3;
    rt_ledger_fence(&ledger, 7, 2);
    rt_ledger_count_line(&ledger, 8, 44);
    rt_ledger_encode(&ledger, &buf);
    // format, tag, 4 times, counter, joined, one fence, one writer
    assert_int_equal(buf.len, 1 + 4 + 4 * 8 + 8 + 4 + (4 + 12) + (4 + 16));
    assert_true(rt_ledger_decode(rt_buf_str(&buf), &got));
    assert_true(got.tag == 0x5eed && got.position == 900 && got.from == 890 && got.cut == 880 && got.joined == 3);
    assert_true(got.at_ms == 1700000000000 && got.counter == 12);
    assert_true(got.fences_count == 1 && got.fences[0].node == 7 && got.fences[0].epoch == 2);
    assert_true(got.writers_count == 1 && got.writers[0].node == 8 && got.writers[0].no == 44);
    for (size_t len = 0; len < buf.len; len++) assert_false(rt_ledger_decode((rt_str){.ptr = buf.ptr, .len = len}, &got));
    rt_buf_add_char(&buf, '\0');
    assert_false(rt_ledger_decode(rt_buf_str(&buf), &got));
}

static void ledger__that_cannot_be_is_refused(void **state) {
    (void)state;
    static rt_ledger got;
    static const struct {
        int64_t position, from, cut;
    } ROWS[] = {{5, 6, 5}, {5, 5, 6}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        ledger.position = ROWS[i].position;
        ledger.from = ROWS[i].from;
        ledger.cut = ROWS[i].cut;
        rt_buf_clear(&buf);
        rt_ledger_encode(&ledger, &buf);
        assert_false(rt_ledger_decode(rt_buf_str(&buf), &got));
    }
}

static void ledger__reading_begins_at_what_has_not_ended_or_is_in_no_cut(void **state) {
    (void)state;
    assert_int_equal(rt_ledger_start(&(rt_ledger){.position = 9, .from = 7, .cut = 8}), 7);
    assert_int_equal(rt_ledger_start(&(rt_ledger){.position = 9, .from = 9, .cut = 4}), 4);
}

static void ledger__fences_what_was_written_under_a_lower_epoch(void **state) {
    (void)state;
    rt_ledger_fence(&ledger, 7, 3);
    assert_true(rt_ledger_is_fenced(&ledger, 7, 2));
    assert_false(rt_ledger_is_fenced(&ledger, 7, 3));
    assert_false(rt_ledger_is_fenced(&ledger, 8, 0));
    rt_ledger_fence(&ledger, 7, 2); // a fence that comes late lowers nothing
    assert_true(rt_ledger_is_fenced(&ledger, 7, 2));
    rt_ledger_fence(&ledger, 7, 9);
    assert_true(rt_ledger_is_fenced(&ledger, 7, 8));
    assert_int_equal(ledger.fences_count, 1);
}

static void ledger__the_oldest_fence_goes(void **state) {
    (void)state;
    for (uint64_t node = 1; node <= RT_LEDGER_FENCES_MAX; node++) rt_ledger_fence(&ledger, node, 5);
    assert_true(rt_ledger_is_fenced(&ledger, 1, 4));
    rt_ledger_fence(&ledger, RT_LEDGER_FENCES_MAX + 1, 5);
    assert_int_equal(ledger.fences_count, RT_LEDGER_FENCES_MAX);
    assert_false(rt_ledger_is_fenced(&ledger, 1, 4));
    assert_true(rt_ledger_is_fenced(&ledger, 2, 4));
}

static void ledger__numbers_of_two_nodes_never_meet_and_rise(void **state) {
    (void)state;
    assert_int_equal(rt_ledger_join(&ledger), 0);
    assert_int_equal(rt_ledger_join(&ledger), 1);
    ledger.joined = 255;
    assert_int_equal(rt_ledger_join(&ledger), 255);
    assert_int_equal(rt_ledger_join(&ledger), 0);
    assert_int_equal(rt_ledger_number(1, 0), 256);
    assert_int_equal(rt_ledger_number(1, 255), 511);
    assert_int_equal(rt_ledger_number(2, 0), 512);
}

static void ledger__knows_the_last_line_of_each_writer(void **state) {
    (void)state;
    assert_int_equal(rt_ledger_has_counted(&ledger, 7, 1), RT_COUNTED_NOT);
    rt_ledger_count_line(&ledger, 7, 4);
    rt_ledger_count_line(&ledger, 8, 1);
    assert_int_equal(rt_ledger_has_counted(&ledger, 7, 4), RT_COUNTED);
    assert_int_equal(rt_ledger_has_counted(&ledger, 7, 5), RT_COUNTED_NOT);
    rt_ledger_count_line(&ledger, 7, 5);
    assert_int_equal(rt_ledger_has_counted(&ledger, 7, 5), RT_COUNTED);
    assert_int_equal(rt_ledger_has_counted(&ledger, 8, 1), RT_COUNTED);
    assert_int_equal(ledger.writers_count, 2);
}

static void ledger__forgets_who_has_written_nothing_for_longest(void **state) {
    (void)state;
    for (uint64_t node = 1; node <= RT_LEDGER_WRITERS_MAX; node++) rt_ledger_count_line(&ledger, node, 1);
    rt_ledger_count_line(&ledger, 1, 2); // now it is the second
    rt_ledger_count_line(&ledger, RT_LEDGER_WRITERS_MAX + 1, 1);
    assert_int_equal(ledger.writers_count, RT_LEDGER_WRITERS_MAX);
    assert_int_equal(rt_ledger_has_counted(&ledger, 1, 2), RT_COUNTED);
    assert_int_equal(rt_ledger_has_counted(&ledger, 2, 1), RT_COUNTED_FORGOTTEN);
    assert_int_equal(rt_ledger_has_counted(&ledger, 3, 1), RT_COUNTED);
}

/* ---- lines of several records -------------------------------------------------------------------------- */

static rt_str whole;

static rt_parts_end add(uint64_t node, uint64_t no, uint32_t part, uint32_t count, int64_t offset, const char *bytes) {
    const rt_entry_head head = {.kind = RT_ENTRY_BATCH, .node = node, .epoch = 1, .no = no, .part = part, .parts = count};
    return rt_parts_add(&parts, &head, offset, rt_str_of(bytes), &whole);
}

static void parts__one_record_is_a_line(void **state) {
    (void)state;
    assert_int_equal(add(1, 1, 0, 1, 10, "abc"), RT_PARTS_WHOLE);
    assert_true(rt_str_eq(whole, RT_STR("abc")));
    assert_int_equal(rt_parts_from(&parts, 11), 11);
}

static void parts__of_two_nodes_may_lie_between_each_other(void **state) {
    (void)state;
    assert_int_equal(add(1, 1, 0, 3, 10, "a"), RT_PARTS_MORE);
    assert_int_equal(add(2, 1, 0, 2, 11, "x"), RT_PARTS_MORE);
    assert_int_equal(add(1, 1, 1, 3, 12, "b"), RT_PARTS_MORE);
    assert_int_equal(rt_parts_from(&parts, 13), 10);
    assert_int_equal(add(1, 1, 2, 3, 13, "c"), RT_PARTS_WHOLE);
    assert_true(rt_str_eq(whole, RT_STR("abc")));
    assert_int_equal(rt_parts_from(&parts, 14), 11);
    assert_int_equal(add(2, 1, 1, 2, 14, "y"), RT_PARTS_WHOLE);
    assert_true(rt_str_eq(whole, RT_STR("xy")));
    assert_int_equal(rt_parts_from(&parts, 15), 15);
}

static void parts__a_line_whose_node_begins_another_is_given_up(void **state) {
    (void)state;
    assert_int_equal(add(1, 1, 0, 2, 10, "a"), RT_PARTS_MORE);
    assert_int_equal(add(1, 2, 0, 2, 11, "b"), RT_PARTS_MORE);
    assert_int_equal(rt_parts_from(&parts, 12), 11);
    assert_int_equal(add(1, 1, 1, 2, 12, "a"), RT_PARTS_MORE); // the rest of what was given up says nothing
    assert_int_equal(add(1, 2, 1, 2, 13, "b"), RT_PARTS_MORE); // … and gave the other one up
    assert_int_equal(rt_parts_from(&parts, 14), 14);
}

static void parts__a_beginning_that_was_never_seen_makes_no_line(void **state) {
    (void)state;
    assert_int_equal(add(1, 1, 1, 3, 10, "b"), RT_PARTS_MORE);
    assert_int_equal(add(1, 1, 2, 3, 11, "c"), RT_PARTS_MORE);
    assert_int_equal(parts.count, 0);
    assert_int_equal(add(1, 2, 0, 3, 12, "a"), RT_PARTS_MORE);
    assert_int_equal(add(1, 2, 2, 3, 13, "c"), RT_PARTS_MORE); // a gap
    assert_int_equal(parts.count, 0);
}

static void parts__the_oldest_of_too_many_goes(void **state) {
    (void)state;
    for (uint64_t node = 1; node <= RT_PARTS_MAX; node++)
        assert_int_equal(add(node, 1, 0, 2, (int64_t)node, "a"), RT_PARTS_MORE);
    assert_int_equal(rt_parts_from(&parts, 100), 1);
    assert_int_equal(add(RT_PARTS_MAX + 1, 1, 0, 2, 50, "a"), RT_PARTS_MORE);
    assert_int_equal(rt_parts_from(&parts, 100), 2);
    assert_int_equal(add(1, 1, 1, 2, 51, "b"), RT_PARTS_MORE);
    assert_int_equal(add(2, 1, 1, 2, 52, "b"), RT_PARTS_WHOLE);
}

static void parts__what_does_not_end_in_time_never_does(void **state) {
    (void)state;
    assert_int_equal(add(1, 1, 0, 2, 10, "a"), RT_PARTS_MORE);
    assert_int_equal(add(2, 1, 0, 2, 11, "x"), RT_PARTS_MORE);
    assert_int_equal(add(1, 1, 1, 2, 10 + RT_PARTS_SPAN, "b"), RT_PARTS_MORE); // the first one that is too late
    assert_int_equal(add(2, 1, 1, 2, 10 + RT_PARTS_SPAN, "y"), RT_PARTS_WHOLE); // the last one that is not
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(ledger__is_read_as_it_was_written),
        TEST(ledger__that_cannot_be_is_refused),
        TEST(ledger__reading_begins_at_what_has_not_ended_or_is_in_no_cut),
        TEST(ledger__fences_what_was_written_under_a_lower_epoch),
        TEST(ledger__the_oldest_fence_goes),
        TEST(ledger__numbers_of_two_nodes_never_meet_and_rise),
        TEST(ledger__knows_the_last_line_of_each_writer),
        TEST(ledger__forgets_who_has_written_nothing_for_longest),
        TEST(parts__one_record_is_a_line),
        TEST(parts__of_two_nodes_may_lie_between_each_other),
        TEST(parts__a_line_whose_node_begins_another_is_given_up),
        TEST(parts__a_beginning_that_was_never_seen_makes_no_line),
        TEST(parts__the_oldest_of_too_many_goes),
        TEST(parts__what_does_not_end_in_time_never_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
