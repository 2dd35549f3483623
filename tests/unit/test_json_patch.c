/* JSON patches of queue metadata, and Zaqar's words for what is wrong with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "json/patch.h"

static bool reserved(const char *key) { return strcmp(key, "_default_message_ttl") == 0; }

/* Patches `metadata` and writes the result, or what was said, to `out`. */
static rt_code patch(const char *metadata, const char *operations, char out[512]) {
    rt_arena arena = {0};
    json_t *json, *document;
    assert_int_equal(rt_json_parse(rt_str_of(metadata), &json), RT_JSON_FINE);
    assert_int_equal(rt_json_parse(rt_str_of(operations), &document), RT_JSON_FINE);
    rt_patch p;
    rt_str said = RT_STR_EMPTY;
    rt_code code = rt_patch_parse(document, &arena, &p, &said);
    if (code == RT_OK) code = rt_patch_apply(&p, json, reserved, &arena, &said);
    rt_buf text = {0};
    if (code == RT_OK) rt_json_write(&text, json);
    else rt_buf_add(&text, said);
    (void)snprintf(out, 512, "%.*s", RT_STR_ARG(rt_buf_str(&text)));
    rt_buf_deinit(&text);
    json_decref(json);
    json_decref(document);
    rt_arena_deinit(&arena);
    return code;
}

typedef struct row {
    const char *operations;
    rt_code code;
    const char *out;
} row;

static void assert_rows(const char *metadata, const row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char out[512];
        assert_int_equal(patch(metadata, rows[i].operations, out), rows[i].code);
        assert_string_equal(out, rows[i].out);
    }
}

static void patch__operations_apply_in_order(void **state) {
    (void)state;
    const row rows[] = {
        {"[]", RT_OK, "{\"a\": 1, \"b\": 2}"},
        {"[{\"op\": \"add\", \"path\": \"/metadata/c\", \"value\": null}]", RT_OK, "{\"a\": 1, \"b\": 2, \"c\": null}"},
        {"[{\"op\": \"add\", \"path\": \"/metadata/a\", \"value\": [3]}]", RT_OK, "{\"a\": [3], \"b\": 2}"},
        {"[{\"op\": \"replace\", \"path\": \"/Metadata/b\", \"value\": 4}]", RT_OK, "{\"a\": 1, \"b\": 4}"},
        {"[{\"op\": \"remove\", \"path\": \"/metadata/a\"}, "
         "{\"op\": \"add\", \"path\": \"/metadata/a\", \"value\": 5}]", RT_OK, "{\"b\": 2, \"a\": 5}"},
        {"[{\"op\": \"add\", \"path\": \"/metadata/x~1y~0z\", \"value\": 1}]", RT_OK, "{\"a\": 1, \"b\": 2, \"x/y~z\": 1}"},
        {"[{\"op\": \"remove\", \"path\": \"/anything/a\"}]", RT_OK, "{\"b\": 2}"},
    };
    assert_rows("{\"a\": 1, \"b\": 2}", rows, sizeof rows / sizeof *rows);
}

static void patch__absent_keys_conflict_unless_they_are_reserved(void **state) {
    (void)state;
    const row rows[] = {
        {"[{\"op\": \"remove\", \"path\": \"/metadata/k\"}]", RT_E_ABSENT, "Can't remove non-existent object k."},
        {"[{\"op\": \"replace\", \"path\": \"/metadata/k\", \"value\": 1}]", RT_E_ABSENT,
         "Can't replace non-existent object k."},
        {"[{\"op\": \"remove\", \"path\": \"/metadata/_default_message_ttl\"}]", RT_OK, "{}"},
        {"[{\"op\": \"replace\", \"path\": \"/metadata/_default_message_ttl\", \"value\": 60}]", RT_OK,
         "{\"_default_message_ttl\": 60}"},
    };
    assert_rows("{}", rows, sizeof rows / sizeof *rows);
}

static void patch__says_what_zaqar_says(void **state) {
    (void)state;
    const row rows[] = {
        {"{}", RT_E_INVALID, "Request body must be a JSON array of operation objects."},
        {"[1]", RT_E_INVALID, "Operations must be JSON objects."},
        {"[{}]", RT_E_INVALID,
         "Unable to find `op` in JSON Schema change. It must be one of the following: add, remove, replace."},
        {"[{\"op\": \"move\", \"path\": \"/metadata/a\"}]", RT_E_INVALID,
         "Invalid operation: `move`. It must be one of the following: add, remove, replace."},
        {"[{\"op\": \"add\"}]", RT_E_INVALID, "Unable to find 'path' in JSON Schema change"},
        {"[{\"op\": \"add\", \"path\": \"/metadata/a\"}]", RT_E_INVALID,
         "Operation \"add\" requires a member named \"value\"."},
        {"[{\"op\": \"add\", \"path\": \"/meta/a\", \"value\": 1}]", RT_E_INVALID,
         "The root of path must be metadata, e.g /metadata/key."},
        {"[{\"op\": \"add\", \"path\": \"/metadata/x/y\", \"value\": 1}]", RT_E_INVALID,
         "Invalid JSON pointer for this resource: '/metadata/x/y, e.g /metadata/key'"},
        {"[{\"op\": \"add\", \"path\": \"/metadata\", \"value\": 1}]", RT_E_INVALID,
         "Invalid JSON pointer for this resource: '/metadata, e.g /metadata/key'"},
        {"[{\"op\": \"add\", \"path\": \"x\", \"value\": 1}]", RT_E_INVALID, "Pointer `x` does not start with \"/\"."},
        {"[{\"op\": \"add\", \"path\": \"/metadata//a\", \"value\": 1}]", RT_E_INVALID,
         "Pointer `/metadata//a` contains adjacent \"/\"."},
        {"[{\"op\": \"add\", \"path\": \"/metadata/a/\", \"value\": 1}]", RT_E_INVALID,
         "Pointer `/metadata/a/` end with \"/\"."},
        {"[{\"op\": \"add\", \"path\": \"/metadata/a~2\", \"value\": 1}]", RT_E_INVALID,
         "Pointer `/metadata/a~2` contains \"~\" not part of a recognized escape sequence."},
        {"[{\"op\": \"add\", \"path\": \"/metadata/a~\", \"value\": 1}]", RT_E_INVALID,
         "Pointer `/metadata/a~` contains \"~\" not part of a recognized escape sequence."},
    };
    assert_rows("{\"a\": 1}", rows, sizeof rows / sizeof *rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patch__operations_apply_in_order),
        cmocka_unit_test(patch__absent_keys_conflict_unless_they_are_reserved),
        cmocka_unit_test(patch__says_what_zaqar_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
