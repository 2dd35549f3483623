#include "face/common/payload.h"

#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "json/tree.h"

/* libcrypto takes blanks, and padding for data. */
static bool is_base64(rt_str text) {
    size_t padding = 0;
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];
        const bool alnum = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (c == '=') padding++;
        else if (padding > 0 || (!alnum && c != '+' && c != '/')) return false;
    }
    return text.len % 4 == 0 && padding <= 2 && text.len <= INT_MAX;
}

rt_str rt_payload_from_base64(rt_arena *arena, rt_str text) {
    if (!is_base64(text)) return (rt_str){0};
    unsigned char *bytes = rt_arena_alloc(arena, text.len / 4 * 3 + 1);
    if (bytes == NULL) return (rt_str){0};
    const int len = EVP_DecodeBlock(bytes, (const unsigned char *)text.ptr, (int)text.len);
    if (len < 0) return (rt_str){0};
    size_t padding = 0;
    while (padding < 2 && padding < text.len && text.ptr[text.len - 1 - padding] == '=') padding++;
    return (rt_str){.ptr = (const char *)bytes, .len = (size_t)len - padding};
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

/* NULL: it is no JSON. Nothing deeper than what is checked is parsed, since jansson does that by recursion.
 * */
static json_t *parse(rt_str payload) {
    rt_json_scan scan = {0};
    if (rt_json_scan_text(&scan, payload) != RT_JSON_FINE) return NULL;
    return json_loadb(payload.ptr, payload.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
}

static json_t *base64(rt_str bytes) {
    char *text = bytes.len > INT_MAX / 2 ? NULL : malloc((bytes.len + 2) / 3 * 4 + 1);
    if (text == NULL) return NULL;
    (void)EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)bytes.ptr, (int)bytes.len);
    json_t *json = json_string(text);
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
