/* Merge patches: the examples of RFC 7396, appendix A, and what lies beyond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "json/merge.h"

static const struct {
    const char *target, *patch, *want;
} ROWS[] = {
    {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
    {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
    {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
    {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
    {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
    {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
    {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
    {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
    {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
    {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
    {"{\"a\":\"foo\"}", "null", "null"},
    {"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
    {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
    {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
    {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
};

static void merge__does_what_the_rfc_says(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        json_t *target = json_loads(ROWS[i].target, JSON_DECODE_ANY, NULL);
        json_t *patch = json_loads(ROWS[i].patch, JSON_DECODE_ANY, NULL);
        json_t *merged = rt_json_merge(target, patch);
        char *text = json_dumps(merged, JSON_COMPACT | JSON_ENCODE_ANY);
        assert_string_equal(text, ROWS[i].want);
        free(text);
        json_decref(merged);
        json_decref(patch);
        json_decref(target);
    }
}

/* `depth` objects, each in the other. */
static json_t *nested(size_t depth) {
    json_t *inner = json_object();
    for (size_t i = 1; i < depth; i++) inner = json_pack("{s:o}", "a", inner);
    return inner;
}

static void merge__has_a_depth(void **state) {
    (void)state;
    const size_t depths[] = {RT_JSON_DEPTH_MAX, RT_JSON_DEPTH_MAX + 1};
    for (size_t i = 0; i < 2; i++) {
        json_t *target = json_object();
        json_t *patch = nested(depths[i]);
        json_t *merged = rt_json_merge(target, patch);
        assert_int_equal(merged != NULL, i == 0);
        json_decref(merged);
        json_decref(patch);
        json_decref(target);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merge__does_what_the_rfc_says),
        cmocka_unit_test(merge__has_a_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
