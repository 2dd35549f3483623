/* JSON off the hot path: what comes in goes out as Python's json.dumps would write it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "json/tree.h"

static void assert_written(const char *in, const char *out) {
    json_t *json;
    assert_int_equal(rt_json_parse(rt_str_of(in), &json), RT_JSON_FINE);
    rt_buf text = {0};
    rt_json_write(&text, json);
    json_decref(json);
    assert_false(text.failed);
    rt_buf_add_char(&text, '\0');
    assert_string_equal(text.ptr, out);
    rt_buf_deinit(&text);
}

static void tree__is_written_like_pythons_json_dumps(void **state) {
    (void)state;
    assert_written("{}", "{}");
    assert_written("[ ]", "[]");
    assert_written("{\"b\":1,\"a\":[true,false,null,{\"x\":\"y\"},[]]}",
                   "{\"b\": 1, \"a\": [true, false, null, {\"x\": \"y\"}, []]}");
    assert_written("[\"\\u00e9\\n\\/\\\"\\\\\\u0001\"]", "[\"\xC3\xA9\\n/\\\"\\\\\\u0001\"]");
    assert_written("[\"a\\u0000b\"]", "[\"a\\u0000b\"]");
}

static void tree__keeps_the_place_of_a_key_and_its_last_value(void **state) {
    (void)state;
    assert_written("{\"z\": 1, \"a\": 2, \"z\": 3}", "{\"z\": 3, \"a\": 2}");
}

static void tree__reals_are_as_short_as_they_read_back(void **state) {
    (void)state;
    assert_written("[0.1, 1.0, 100.0, 0.30000000000000004, -2.5, 1e300]",
                   "[0.1, 1.0, 100.0, 0.30000000000000004, -2.5, 1e+300]");
}

static void tree__scalars_and_what_jansson_cannot_hold_are_malformed(void **state) {
    (void)state;
    static const char *const TEXTS[] = {"5", "\"a\"", "null", "", "{", "[1e400]", "{\"a\\u0000b\": 1}"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        json_t *json;
        assert_int_equal(rt_json_parse(rt_str_of(TEXTS[i]), &json), RT_JSON_MALFORMED);
    }
}

static void tree__deepest_text_is_written_whole(void **state) {
    (void)state;
    char text[2 * RT_JSON_DEPTH_MAX + 1];
    memset(text, '[', RT_JSON_DEPTH_MAX);
    memset(text + RT_JSON_DEPTH_MAX, ']', RT_JSON_DEPTH_MAX);
    text[2 * RT_JSON_DEPTH_MAX] = '\0';
    assert_written(text, text);
}

static void str__what_is_not_utf8_is_replaced(void **state) {
    (void)state;
    rt_buf text = {0};
    rt_json_write_str(&text, RT_STR("a\xFF\xC3\xA9\xE2\x82" "b\""));
    rt_buf_add_char(&text, '\0');
    assert_string_equal(text.ptr, "\"a\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD" "b\\\"\"");
    rt_buf_deinit(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tree__is_written_like_pythons_json_dumps),
        cmocka_unit_test(tree__keeps_the_place_of_a_key_and_its_last_value),
        cmocka_unit_test(tree__reals_are_as_short_as_they_read_back),
        cmocka_unit_test(tree__scalars_and_what_jansson_cannot_hold_are_malformed),
        cmocka_unit_test(tree__deepest_text_is_written_whole),
        cmocka_unit_test(str__what_is_not_utf8_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
