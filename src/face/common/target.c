#include "face/common/target.h"

#include <string.h>

#include "base/base64.h"
#include "json/tree.h"

enum { SECRET_BYTES_MIN = 24, SECRET_BYTES_MAX = 64 };

static rt_str text_of(const json_t *s) { return (rt_str){.ptr = json_string_value(s), .len = json_string_length(s)}; }

static rt_str behind(rt_str s, size_t count) { return (rt_str){.ptr = s.ptr + count, .len = s.len - count}; }

bool rt_target_has_control(rt_str text) {
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7F) return true;
    }
    return false;
}

/* ---- URLs ---------------------------------------------------------------------------------------------- */

bool rt_target_has_odd_characters(rt_str uri) {
    for (size_t i = 0; i < uri.len; i++) {
        const unsigned char c = (unsigned char)uri.ptr[i];
        if (c <= 0x20 || c >= 0x7F || strchr("\\\"<>", c) != NULL) return true;
    }
    return false;
}

/* What stands before the first of `marks`. */
static rt_str until(rt_str s, const char *marks) {
    size_t len = 0;
    while (len < s.len && strchr(marks, s.ptr[len]) == NULL) len++;
    return (rt_str){.ptr = s.ptr, .len = len};
}

static bool is_port(rt_str text) {
    int64_t port;
    if (text.len == 0) return true; // "http://host:/"
    return text.ptr[0] >= '0' && text.ptr[0] <= '9' && rt_str_to_i64(text, &port) && port >= 1 && port <= 65535;
}

/* "[::1]:80" or "host:80", user and password taken off. False: neither. */
static bool take_host(rt_str authority, rt_str *host) {
    for (size_t i = authority.len; i > 0; i--) {
        if (authority.ptr[i - 1] != '@') continue;
        authority = behind(authority, i);
        break;
    }
    rt_str port = RT_STR_EMPTY;
    if (authority.len > 0 && authority.ptr[0] == '[') {
        rt_str rest;
        if (!rt_str_cut(behind(authority, 1), ']', host, &rest)) return false;
        if (rest.len > 0 && rest.ptr[0] != ':') return false;
        if (rest.len > 0) port = behind(rest, 1);
    } else {
        (void)rt_str_cut(authority, ':', host, &port);
    }
    return host->len > 0 && is_port(port);
}

bool rt_target_host(rt_str url, rt_str *host) {
    rt_str scheme, rest;
    if (!rt_str_cut(url, ':', &scheme, &rest) || rt_target_has_odd_characters(url)) return false;
    if (!rt_str_eq_nocase(scheme, RT_STR("http")) && !rt_str_eq_nocase(scheme, RT_STR("https"))) return false;
    return rt_str_starts(rest, RT_STR("//")) && take_host(until(behind(rest, 2), "/?#"), host);
}

/* ---- headers ------------------------------------------------------------------------------------------- */

static rt_code check_header(rt_arena *a, const char *field, rt_str name, const json_t *value, rt_str *why) {
    const rt_header_name kind = rt_attempt_header_name(name);
    if (kind == RT_HEADER_MALFORMED) {
        return rt_json_refuse(why, rt_arena_printf(a, "The name of a header in %s is not valid.", field));
    }
    if (kind == RT_HEADER_RESERVED) {
        return rt_json_refuse(why,
                              rt_arena_printf(a, "The header %.*s can not be set by %s.", RT_STR_ARG(name), field));
    }
    if (!json_is_string(value) || rt_target_has_control(text_of(value))) {
        return rt_json_refuse(why, rt_arena_printf(a, "The value of the header %.*s in %s must be a string without "
                                                      "control characters.", RT_STR_ARG(name), field));
    }
    return RT_OK;
}

rt_code rt_target_headers(const json_t *headers, const char *field, rt_arena *arena, rt_str *out, rt_str *why) {
    if (json_object_size(headers) > RT_TARGET_HEADERS_MAX) {
        return rt_json_refuse(why,
                              rt_arena_printf(arena, "%s may have %d headers at most.", field, RT_TARGET_HEADERS_MAX));
    }
    rt_buf lines = {0};
    rt_code code = RT_OK;
    union { const json_t *in; json_t *out; } walked = {.in = headers}; // jansson's iterators want it without const
    const char *name;
    json_t *value;
    json_object_foreach(walked.out, name, value) {
        code = check_header(arena, field, rt_str_of(name), value, why);
        if (code != RT_OK) break;
        rt_buf_addf(&lines, "%s: ", name);
        rt_buf_add(&lines, text_of(value));
        rt_buf_add_char(&lines, '\n');
    }
    if (code == RT_OK && lines.len > RT_TARGET_HEADERS_BYTES_MAX) {
        code = rt_json_refuse(why,
                              rt_arena_printf(arena, "%s may have %d bytes at most.", field, RT_TARGET_HEADERS_BYTES_MAX));
    }
    if (code == RT_OK) *out = lines.failed ? (rt_str){0} : rt_arena_dup(arena, rt_buf_str(&lines));
    rt_buf_deinit(&lines);
    return code == RT_OK && out->ptr == NULL ? RT_E_NOMEM : code;
}

/* ---- secrets ------------------------------------------------------------------------------------------- */

static bool is_secret(rt_str s) {
    const rt_str prefix = RT_STR("whsec_");
    if (!rt_str_starts(s, prefix)) return false;
    const size_t bytes = rt_base64_decode(behind(s, prefix.len), NULL);
    return bytes != SIZE_MAX && bytes >= SECRET_BYTES_MIN && bytes <= SECRET_BYTES_MAX;
}

rt_code rt_target_secrets(const json_t *secret, const char *field, rt_arena *arena, rt_str out[RT_SECRETS_MAX],
                          rt_str *why) {
    for (size_t i = 0; i < RT_SECRETS_MAX; i++) out[i] = RT_STR_EMPTY;
    if (secret == NULL || json_is_null(secret)) return RT_OK;
    const size_t count = json_is_array(secret) ? json_array_size(secret) : 1;
    bool fine = count <= RT_SECRETS_MAX;
    for (size_t i = 0; fine && i < count; i++) {
        const json_t *one = json_is_array(secret) ? json_array_get(secret, i) : secret;
        fine = json_is_string(one) && is_secret(text_of(one));
        if (!fine) break;
        out[i] = rt_arena_dup(arena, text_of(one));
        if (out[i].ptr == NULL) return RT_E_NOMEM;
    }
    if (fine) return RT_OK;
    return rt_json_refuse(why, rt_arena_printf(arena, "%s must be whsec_ followed by base64 of %d to %d bytes, or a list "
                                                      "of up to %d such strings.",
                                               field, SECRET_BYTES_MIN, SECRET_BYTES_MAX, RT_SECRETS_MAX));
}
