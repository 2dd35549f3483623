/* Cutting fields out of JSON text: what is accepted is RFC 8259's, and values stay the text that came in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/utf8.h"
#include "json/scan.h"

static rt_arena arena;

static int setup(void **state) {
    (void)state;
    arena = (rt_arena){0};
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rt_arena_deinit(&arena);
    return 0;
}

static const rt_str FIELDS[] = {{"body", 4}, {"ttl", 3}};

static rt_json_scan list_scan(uint32_t rows_max) {
    return (rt_json_scan){
        .list = RT_STR("messages"), .fields = FIELDS, .fields_count = 2, .rows_max = rows_max, .arena = &arena};
}

static rt_json_scan object_scan(void) {
    return (rt_json_scan){.fields = FIELDS, .fields_count = 2, .arena = &arena};
}

static rt_json_fault check(const char *text) {
    rt_json_scan scan = {0};
    return rt_json_scan_text(&scan, rt_str_of(text));
}

static void assert_slice(const rt_json_slice *s, rt_json_kind kind, const char *text) {
    assert_int_equal(s->kind, kind);
    assert_int_equal(s->text.len, strlen(text));
    if (s->text.len > 0) assert_memory_equal(s->text.ptr, text, s->text.len);
}

static void scan__list_gives_each_value_as_the_text_it_came_in(void **state) {
    (void)state;
    static const char TEXT[] = " {\"x\": [{\"body\": 0}], \"messages\" : [ {\"ttl\":300 , \"body\" : {\"a\" : [1,2.50] } },"
                               "{\"body\":\"q\\\"\\u00e9\"},{\"body\":null},{\"body\":-0},{\"body\":1e400},{\"body\":true},"
                               "{\"body\":[ ]},{\"ttl\": 60}] } ";
    rt_json_scan scan = list_scan(100);
    assert_int_equal(rt_json_scan_text(&scan, rt_str_of(TEXT)), RT_JSON_FINE);
    assert_int_equal(scan.top, RT_JSON_OBJECT);
    assert_int_equal(scan.list_kind, RT_JSON_ARRAY);
    assert_false(scan.odd_rows);
    assert_int_equal(scan.rows_count, 8);
    assert_slice(&scan.rows[0], RT_JSON_OBJECT, "{\"a\" : [1,2.50] }");
    assert_slice(&scan.rows[1], RT_JSON_INT, "300");
    assert_int_equal(scan.rows[1].integer, 300);
    assert_slice(&scan.rows[2], RT_JSON_STRING, "\"q\\\"\\u00e9\"");
    assert_slice(&scan.rows[3], RT_JSON_ABSENT, "");
    assert_slice(&scan.rows[4], RT_JSON_NULL, "null");
    assert_slice(&scan.rows[6], RT_JSON_INT, "-0");
    assert_slice(&scan.rows[8], RT_JSON_REAL, "1e400");
    assert_slice(&scan.rows[10], RT_JSON_BOOL, "true");
    assert_int_equal(scan.rows[10].integer, 1);
    assert_slice(&scan.rows[12], RT_JSON_ARRAY, "[ ]");
    assert_slice(&scan.rows[14], RT_JSON_ABSENT, "");
    assert_slice(&scan.rows[15], RT_JSON_INT, "60");
}

static void scan__of_a_key_that_is_there_twice_the_last_counts(void **state) {
    (void)state;
    rt_json_scan scan = list_scan(100);
    assert_int_equal(rt_json_scan_text(&scan, RT_STR("{\"messages\": [{\"body\": 1}, {\"body\": 2}, 3], "
                                                     "\"messages\": [{\"ttl\": 5, \"ttl\": 6}]}")), RT_JSON_FINE);
    assert_int_equal(scan.rows_count, 1);
    assert_false(scan.odd_rows);
    assert_slice(&scan.rows[0], RT_JSON_ABSENT, "");
    assert_slice(&scan.rows[1], RT_JSON_INT, "6");
    assert_int_equal(rt_json_scan_text(&scan, RT_STR("{\"messages\": [{\"body\": 1}], \"messages\": 7}")), RT_JSON_FINE);
    assert_int_equal(scan.list_kind, RT_JSON_INT);
    assert_int_equal(scan.rows_count, 0);
}

static void scan__keys_are_compared_without_their_escapes_and_at_their_own_depth_only(void **state) {
    (void)state;
    rt_json_scan scan = object_scan();
    assert_int_equal(rt_json_scan_text(&scan, RT_STR("{\"a\": {\"ttl\": 1, \"body\": 2}, \"bo\\u0064y\": {\"body\": {}}, "
                                                     "\"b\": [{\"ttl\": 3}]}")), RT_JSON_FINE);
    assert_int_equal(scan.rows_count, 1);
    assert_slice(&scan.rows[0], RT_JSON_OBJECT, "{\"body\": {}}");
    assert_slice(&scan.rows[1], RT_JSON_ABSENT, "");
}

static void scan__names_the_first_member_that_is_no_field(void **state) {
    (void)state;
    const struct { const char *text, *stray; /* NULL: none */ } rows[] = {
        {"{\"messages\": [{\"body\": {\"odd\": 1}}], \"odd\": 2}", NULL},
        {"{\"messages\": [{\"body\": 1}, {\"o\\u0064d\": 1, \"other\": 2}]}", "odd"},
        {"{\"messages\": [{\"\": 1}]}", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_json_scan scan = list_scan(100);
        assert_int_equal(rt_json_scan_text(&scan, rt_str_of(rows[i].text)), RT_JSON_FINE);
        if (rows[i].stray == NULL) assert_null(scan.stray.ptr);
        else assert_string_equal(scan.stray.ptr, rows[i].stray);
    }
}

static void scan__says_what_the_document_is(void **state) {
    (void)state;
    const struct { const char *text; rt_json_kind top, list; bool odd; uint32_t rows; } rows[] = {
        {"[]", RT_JSON_ARRAY, RT_JSON_ABSENT, false, 0},
        {"[[{\"body\": 1}]]", RT_JSON_ARRAY, RT_JSON_ABSENT, false, 0},
        {"{}", RT_JSON_OBJECT, RT_JSON_ABSENT, false, 0},
        {"{\"messages\": {}}", RT_JSON_OBJECT, RT_JSON_OBJECT, false, 0},
        {"{\"messages\": null}", RT_JSON_OBJECT, RT_JSON_NULL, false, 0},
        {"{\"messages\": []}", RT_JSON_OBJECT, RT_JSON_ARRAY, false, 0},
        {"{\"messages\": [[{\"body\": 1}]]}", RT_JSON_OBJECT, RT_JSON_ARRAY, true, 0},
        {"{\"messages\": [1]}", RT_JSON_OBJECT, RT_JSON_ARRAY, true, 0},
        {"{\"messages\": [{}]}", RT_JSON_OBJECT, RT_JSON_ARRAY, false, 1},
        {"5", RT_JSON_INT, RT_JSON_ABSENT, false, 0},
        {"\"text\"", RT_JSON_STRING, RT_JSON_ABSENT, false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_json_scan scan = list_scan(100);
        assert_int_equal(rt_json_scan_text(&scan, rt_str_of(rows[i].text)), RT_JSON_FINE);
        assert_int_equal(scan.top, rows[i].top);
        assert_int_equal(scan.list_kind, rows[i].list);
        assert_int_equal(scan.odd_rows, rows[i].odd);
        assert_int_equal(scan.rows_count, rows[i].rows);
    }
}

static void scan__integers_end_at_int64(void **state) {
    (void)state;
    assert_int_equal(check("[9223372036854775807, -9223372036854775808]"), RT_JSON_FINE);
    assert_int_equal(check("{\"deep\": [9223372036854775808]}"), RT_JSON_INT_TOO_LARGE);
    assert_int_equal(check("[-9223372036854775809]"), RT_JSON_INT_TOO_LARGE);
    assert_int_equal(check("[92233720368547758070.0]"), RT_JSON_FINE);
}

static void scan__nesting_ends_at_64(void **state) {
    (void)state;
    char text[2 * (RT_JSON_DEPTH_MAX + 1) + 1];
    for (size_t depth = RT_JSON_DEPTH_MAX; depth <= RT_JSON_DEPTH_MAX + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        text[2 * depth] = '\0';
        assert_int_equal(check(text), depth == RT_JSON_DEPTH_MAX ? RT_JSON_FINE : RT_JSON_TOO_DEEP);
    }
}

static void scan__rows_end_at_their_maximum(void **state) {
    (void)state;
    rt_json_scan scan = list_scan(3);
    assert_int_equal(rt_json_scan_text(&scan, RT_STR("{\"messages\": [{}, {}, {}]}")), RT_JSON_FINE);
    assert_int_equal(scan.rows_count, 3);
    assert_int_equal(rt_json_scan_text(&scan, RT_STR("{\"messages\": [{}, {}, {}, {}]}")), RT_JSON_TOO_MANY);
}

static void scan__hundreds_of_rows_keep_their_values(void **state) {
    (void)state;
    rt_buf text = {0};
    rt_buf_add(&text, RT_STR("{\"messages\": ["));
    for (int i = 0; i < 1000; i++) rt_buf_addf(&text, "%s{\"ttl\": %d, \"body\": [%d]}", i > 0 ? "," : "", i, i);
    rt_buf_add(&text, RT_STR("]}"));
    rt_json_scan scan = list_scan(1024);
    assert_int_equal(rt_json_scan_text(&scan, rt_buf_str(&text)), RT_JSON_FINE);
    assert_int_equal(scan.rows_count, 1000);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(scan.rows[2 * i + 1].integer, i);
        assert_int_equal(scan.rows[2 * i].kind, RT_JSON_ARRAY);
    }
    rt_buf_deinit(&text);
}

static void scan__refuses_what_is_not_json(void **state) {
    (void)state;
    static const char *const TEXTS[] = {
        "", " ", "{", "[1,]", "{\"a\"}", "{\"a\":}", "[1 2]", "[01]", "[.5]", "[1.]", "[NaN]", "[Infinity]", "[-Infinity]",
        "['a']", "[\"\x01\"]", "[\"\t\"]", "[\"\\x\"]", "[\"\\u12\"]", "{} {}", "[] x", "[/* c */]", "nul", "[tru]", "{1:2}",
        "[\v1]", "[1,\f2]",
        "\xEF\xBB\xBF{}", "[\"\xFF\"]", "[\"\xC0\x80\"]", "[\"\xED\xA0\x80\"]", "[\"\xF4\x90\x80\x80\"]", "[\"\xE2\x82\"]"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        if (check(TEXTS[i]) != RT_JSON_MALFORMED) fail_msg("accepted: %s", TEXTS[i]);
    }
    rt_json_scan scan = {0};
    assert_int_equal(rt_json_scan_text(&scan, RT_STR("[\"a\0b\"]")), RT_JSON_MALFORMED);
}

static void utf8__ends_of_each_length(void **state) {
    (void)state;
    const struct { const char *text; bool valid; } rows[] = {
        {"", true}, {"abcdefgh\x7F", true}, {"\xC2\x80", true}, {"\xDF\xBF", true}, {"\xE0\xA0\x80", true},
        {"\xED\x9F\xBF", true}, {"\xEE\x80\x80", true}, {"\xEF\xBF\xBF", true}, {"\xF0\x90\x80\x80", true},
        {"\xF4\x8F\xBF\xBF", true}, {"12345678\xC3\xA9" "12345678", true},
        {"\x80", false}, {"\xC1\xBF", false}, {"\xE0\x9F\xBF", false}, {"\xED\xBF\xBF", false},
        {"\xF0\x8F\xBF\xBF", false}, {"\xF5\x80\x80\x80", false}, {"\xC3", false}, {"1234567\xC3", false},
        {"\xE2\x28\xA1", false}, {"\xF0\x90\x80", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(rt_utf8_is_valid(rt_str_of(rows[i].text)), rows[i].valid);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(scan__list_gives_each_value_as_the_text_it_came_in),
        TEST(scan__of_a_key_that_is_there_twice_the_last_counts),
        TEST(scan__keys_are_compared_without_their_escapes_and_at_their_own_depth_only),
        TEST(scan__names_the_first_member_that_is_no_field),
        TEST(scan__says_what_the_document_is),
        TEST(scan__integers_end_at_int64),
        TEST(scan__nesting_ends_at_64),
        TEST(scan__rows_end_at_their_maximum),
        TEST(scan__hundreds_of_rows_keep_their_values),
        TEST(scan__refuses_what_is_not_json),
        TEST(utf8__ends_of_each_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
