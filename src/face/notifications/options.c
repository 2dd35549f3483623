#include "face/notifications/options.h"

#include "face/notifications/queue_metadata.h"
#include "json/tree.h"

enum { SECRET_BYTES_MIN = 24, SECRET_BYTES_MAX = 64 };

static rt_str text_of(const json_t *s) { return (rt_str){.ptr = json_string_value(s), .len = json_string_length(s)}; }

/* Either spelling. The one with an underscore is Zaqar's documentation, the other its source. */
static const json_t *either(const json_t *json, const char *name, const char *documented) {
    const json_t *v = json_object_get(json, name);
    return rt_json_is_truthy(v) ? v : json_object_get(json, documented);
}

static bool has_control(rt_str s) {
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7F) return true;
    }
    return false;
}

/* ---- headers -------------------------------------------------------------------------------------------------------- */

static rt_code check_header(rt_arena *a, rt_str name, const json_t *value, rt_str *why) {
    const rt_header_name kind = rt_attempt_header_name(name);
    if (kind == RT_HEADER_MALFORMED) {
        return rt_json_refuse(why, RT_STR("The name of a header in post_headers is not valid."));
    }
    if (kind == RT_HEADER_RESERVED) {
        return rt_json_refuse(why,
                              rt_arena_printf(a, "The header %.*s can not be set by post_headers.", RT_STR_ARG(name)));
    }
    if (!json_is_string(value) || has_control(text_of(value))) {
        return rt_json_refuse(why,
                              rt_arena_printf(a, "The value of the header %.*s in post_headers must be a string without "
                                              "control characters.", RT_STR_ARG(name)));
    }
    return RT_OK;
}

static rt_code take_headers(const json_t *json, rt_arena *a, rt_subscription *out, rt_str *why) {
    const json_t *headers = either(json, "post_headers", "_post_headers");
    out->headers = RT_STR_EMPTY;
    if (!rt_json_is_truthy(headers)) return RT_OK;
    if (!json_is_object(headers)) return rt_json_refuse(why, RT_STR("post_headers must be a dict."));
    if (json_object_size(headers) > RT_POST_HEADERS_MAX) {
        return rt_json_refuse(why,
                              rt_arena_printf(a, "post_headers may have %d headers at most.", RT_POST_HEADERS_MAX));
    }
    rt_buf lines = {0};
    rt_code code = RT_OK;
    union { const json_t *in; json_t *out; } walked = {.in = headers}; // jansson's iterators want it without const
    const char *name;
    json_t *value;
    json_object_foreach(walked.out, name, value) {
        code = check_header(a, rt_str_of(name), value, why);
        if (code != RT_OK) break;
        rt_buf_addf(&lines, "%s: ", name);
        rt_buf_add(&lines, text_of(value));
        rt_buf_add_char(&lines, '\n');
    }
    if (code == RT_OK && lines.len > RT_POST_HEADERS_BYTES_MAX) {
        code = rt_json_refuse(why,
                              rt_arena_printf(a, "post_headers may have %d bytes at most.", RT_POST_HEADERS_BYTES_MAX));
    }
    if (code == RT_OK) out->headers = lines.failed ? (rt_str){0} : rt_arena_dup(a, rt_buf_str(&lines));
    rt_buf_deinit(&lines);
    return code == RT_OK && out->headers.ptr == NULL ? RT_E_NOMEM : code;
}

static rt_code take_post_data(const json_t *json, rt_arena *a, rt_subscription *out, rt_str *why) {
    const json_t *data = either(json, "post_data", "_post_data");
    out->post_data = RT_STR_EMPTY;
    if (!rt_json_is_truthy(data)) return RT_OK;
    if (json_is_string(data)) {
        out->post_data = rt_arena_dup(a, text_of(data));
    } else if (json_is_object(data)) {
        rt_buf text = {0};
        rt_json_write(&text, data);
        out->post_data = text.failed ? (rt_str){0} : rt_arena_dup(a, rt_buf_str(&text));
        rt_buf_deinit(&text);
    } else {
        return rt_json_refuse(why, RT_STR("post_data must be a string."));
    }
    return out->post_data.ptr == NULL ? RT_E_NOMEM : RT_OK;
}

/* ---- secrets -------------------------------------------------------------------------------------------------------- */

/* Bytes that base64 text stands for; SIZE_MAX: it is none. */
static size_t base64_bytes(rt_str s) {
    size_t digits = 0, padding = 0;
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        const bool alnum = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (c == '=') padding++;
        else if (padding > 0 || (!alnum && c != '+' && c != '/')) return SIZE_MAX;
        else digits++;
    }
    if (s.len % 4 != 0 || padding > 2) return SIZE_MAX;
    return digits * 6 / 8;
}

static bool is_secret(rt_str s) {
    const rt_str prefix = RT_STR("whsec_");
    if (!rt_str_starts(s, prefix)) return false;
    const size_t bytes = base64_bytes((rt_str){.ptr = s.ptr + prefix.len, .len = s.len - prefix.len});
    return bytes != SIZE_MAX && bytes >= SECRET_BYTES_MIN && bytes <= SECRET_BYTES_MAX;
}

static rt_code take_secrets(const json_t *json, rt_arena *a, rt_subscription *out, rt_str *why) {
    const json_t *secret = json_object_get(json, "secret");
    for (size_t i = 0; i < RT_SECRETS_MAX; i++) out->secrets[i] = RT_STR_EMPTY;
    if (secret == NULL || json_is_null(secret)) return RT_OK;
    const size_t count = json_is_array(secret) ? json_array_size(secret) : 1;
    bool fine = count <= RT_SECRETS_MAX;
    for (size_t i = 0; fine && i < count; i++) {
        const json_t *one = json_is_array(secret) ? json_array_get(secret, i) : secret;
        fine = json_is_string(one) && is_secret(text_of(one));
        if (!fine) break;
        out->secrets[i] = rt_arena_dup(a, text_of(one));
        if (out->secrets[i].ptr == NULL) return RT_E_NOMEM;
    }
    if (fine) return RT_OK;
    return rt_json_refuse(why,
                          rt_arena_printf(a, "secret must be whsec_ followed by base64 of %d to %d bytes, or a list of up "
                                          "to %d such strings.", SECRET_BYTES_MIN, SECRET_BYTES_MAX, RT_SECRETS_MAX));
}

/* ---- all of it ------------------------------------------------------------------------------------------------------ */

static rt_code take_mail_field(const json_t *json, const char *name, rt_arena *a, rt_str *out, rt_str *why) {
    const json_t *v = json_object_get(json, name);
    *out = RT_STR_EMPTY;
    if (!rt_json_is_truthy(v)) return RT_OK;
    if (!json_is_string(v) || json_string_length(v) > RT_MAIL_FIELD_MAX || has_control(text_of(v))) {
        return rt_json_refuse(why,
                              rt_arena_printf(a, "%s must be a string of at most %d bytes without control characters.",
                                              name, RT_MAIL_FIELD_MAX));
    }
    *out = rt_arena_dup(a, text_of(v));
    return out->ptr == NULL ? RT_E_NOMEM : RT_OK;
}

static rt_code keep_text(const json_t *json, rt_arena *a, rt_subscription *out, rt_str *why) {
    rt_buf text = {0};
    if (rt_json_is_truthy(json)) rt_json_write(&text, json);
    else rt_buf_add(&text, RT_STR("{}"));
    const bool fits = text.len <= RT_OPTIONS_BYTES_MAX;
    out->options_json = text.failed || !fits ? (rt_str){0} : rt_arena_dup(a, rt_buf_str(&text));
    const bool failed = text.failed;
    rt_buf_deinit(&text);
    if (!failed && !fits) {
        return rt_json_refuse(why, rt_arena_printf(a, "Options may have %d bytes at most.", RT_OPTIONS_BYTES_MAX));
    }
    return out->options_json.ptr == NULL ? RT_E_NOMEM : RT_OK;
}

rt_code rt_options_from_json(const json_t *json, rt_arena *arena, rt_subscription *out, rt_str *why) {
    if (rt_json_is_truthy(json) && !json_is_object(json)) {
        return rt_json_refuse(why, RT_STR("Options must be a dict."));
    }
    rt_code code = rt_retry_policy_take(json, arena, &out->has_policy, &out->policy, why);
    if (code == RT_OK) code = take_headers(json, arena, out, why);
    if (code == RT_OK) code = take_post_data(json, arena, out, why);
    if (code == RT_OK) code = take_secrets(json, arena, out, why);
    if (code == RT_OK) code = take_mail_field(json, "subject", arena, &out->subject, why);
    if (code == RT_OK) code = take_mail_field(json, "from", arena, &out->from, why);
    if (code == RT_OK) code = keep_text(json, arena, out, why);
    return code;
}
