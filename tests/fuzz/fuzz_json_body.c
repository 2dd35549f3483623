/* Any bytes as a request's body: what is cut out lies in the text and is JSON of its own kind; what parses is written,
 * parsed again and equal. */
#include <stdint.h>

#include "json/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS_MAX = 64 };

/* A value by itself: wrapped, since a document may be no scalar for jansson, and checked one level deeper. */
static void check_slice(rt_str text, const rt_json_slice *s) {
    RT_ASSERT(s->text.ptr >= text.ptr);
    RT_ASSERT(s->text.ptr + s->text.len <= text.ptr + text.len);
    rt_json_scan alone = {0};
    RT_ASSERT(rt_json_scan_text(&alone, s->text) == RT_JSON_FINE);
    RT_ASSERT(alone.top == s->kind);
}

static void scan(rt_str text, rt_str list) {
    static const rt_str FIELDS[] = {{"body", 4}, {"ttl", 3}, {"delay", 5}};
    rt_arena arena = {0};
    rt_json_scan scan = {.list = list, .fields = FIELDS, .fields_count = 3, .rows_max = ROWS_MAX, .arena = &arena};
    if (rt_json_scan_text(&scan, text) == RT_JSON_FINE) {
        RT_ASSERT(scan.rows_count <= ROWS_MAX);
        for (size_t i = 0; i < (size_t)scan.rows_count * 3; i++) {
            if (scan.rows[i].kind != RT_JSON_ABSENT) check_slice(text, &scan.rows[i]);
        }
    }
    rt_arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const rt_str text = {.ptr = (const char *)data, .len = size};
    scan(text, RT_STR("messages"));
    scan(text, RT_STR_EMPTY);
    json_t *json, *again;
    if (rt_json_parse(text, &json) != RT_JSON_FINE) return 0;
    rt_buf written = {0};
    rt_json_write(&written, json);
    RT_ASSERT(!written.failed);
    RT_ASSERT(rt_json_parse(rt_buf_str(&written), &again) == RT_JSON_FINE);
    RT_ASSERT(json_equal(json, again));
    json_decref(json);
    json_decref(again);
    rt_buf_deinit(&written);
    return 0;
}
