#include "face/common/payload.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "json/tree.h"

rt_str rt_payload_from_base64(rt_arena *arena, rt_str text) {
    char *bytes = rt_arena_alloc(arena, text.len / 4 * 3 + 1);
    const size_t len = bytes == NULL ? SIZE_MAX : rt_base64_decode(text, bytes);
    return len == SIZE_MAX ? (rt_str){0} : (rt_str){.ptr = bytes, .len = len};
}

/* ---- showing --------------------------------------------------------------------------------------- */

/* Type and subtype without parameters. */
static rt_str media_type(rt_str content_type) {
    rt_str type, parameters;
    (void)rt_str_cut(content_type, ';', &type, &parameters);
    return rt_str_trim(type);
}

static bool ends_with(rt_str s, rt_str end) {
    return s.len >= end.len &&
           rt_str_eq_nocase((rt_str){.ptr = s.ptr + s.len - end.len, .len = end.len}, end);
}

static bool is_json(rt_str type) {
    return type.len == 0 || ends_with(type, RT_STR("/json")) || ends_with(type, RT_STR("+json"));
}

/* What curl sends unless told otherwise is text as well. */
static bool is_text(rt_str type) {
    const rt_str text = RT_STR("text/");
    if (is_json(type) || ends_with(type, RT_STR("/xml")) || ends_with(type, RT_STR("+xml"))) return true;
    if (rt_str_eq_nocase(type, RT_STR("application/x-www-form-urlencoded"))) return true;
    return type.len > text.len && rt_str_eq_nocase((rt_str){.ptr = type.ptr, .len = text.len}, text);
}

/* By its look. Nothing deeper than what is checked is parsed, since jansson does that by recursion. */
static bool looks_like_json(rt_str payload) {
    rt_json_scan scan = {.any_integer = true};
    return rt_json_scan_text(&scan, payload) == RT_JSON_FINE;
}

/* NULL: it is no JSON. */
static json_t *parse(rt_str payload) {
    if (!looks_like_json(payload)) return NULL;
    const size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL;
    json_t *json = json_loadb(payload.ptr, payload.len, flags, NULL);
    // Integers beyond 64 bits are shown as well as a double can; the bytes themselves are under …/body.
    return json != NULL ? json : json_loadb(payload.ptr, payload.len, flags | JSON_DECODE_INT_AS_REAL, NULL);
}

static json_t *base64(rt_str bytes) {
    char *text = malloc(RT_BASE64_LEN(bytes.len) + 1); // never of 0 bytes
    if (text == NULL) return NULL;
    json_t *json = json_stringn_nocheck(text, rt_base64_encode(bytes, text));
    free(text);
    return json;
}

bool rt_payload_show(json_t *object, rt_str content_type, rt_str payload) {
    const rt_str type = media_type(content_type);
    json_t *body = is_json(type) ? parse(payload) : NULL;
    if (body == NULL && is_text(type) && rt_utf8_is_valid(payload))
        body = json_stringn(payload.len > 0 ? payload.ptr : "", payload.len);
    if (body != NULL) return json_object_set_new(object, "body", body) == 0;
    return json_object_set_new(object, "body_base64", base64(payload)) == 0;
}

void rt_payload_write(rt_buf *out, rt_str content_type, rt_str payload) {
    const rt_str type = media_type(content_type);
    if (is_json(type) && looks_like_json(payload)) {
        rt_buf_add(out, RT_STR("\"body\": "));
        rt_buf_add(out, payload);
    } else if (is_text(type) && rt_utf8_is_valid(payload)) {
        rt_buf_add(out, RT_STR("\"body\": "));
        rt_json_write_str(out, payload);
    } else {
        char *text = malloc(RT_BASE64_LEN(payload.len) + 1);
        rt_buf_add(out, RT_STR("\"body_base64\": \""));
        if (text != NULL) rt_buf_add(out, (rt_str){.ptr = text, .len = rt_base64_encode(payload, text)});
        else out->failed = true;
        rt_buf_add_char(out, '"');
        free(text);
    }
}
