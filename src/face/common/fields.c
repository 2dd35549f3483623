#include "face/common/fields.h"

#include <inttypes.h>

#include "base/utf8.h"
#include "engine/common/name.h"
#include "face/common/problem.h"
#include "json/policy_json.h"
#include "json/tree.h"

rt_str rt_tenant_of(const rt_exchange *x) {
    rt_str tenant;
    if (!rt_exchange_header(x, "X-Project-ID", &tenant) || tenant.len == 0) return RT_STR("default");
    return tenant;
}

void *rt_new_of(rt_exchange *x, size_t bytes) {
    void *command = rt_arena_alloc(rt_exchange_arena(x), bytes);
    if (command == NULL) rt_problem_of(x, RT_E_NOMEM, NULL, "memory");
    return command;
}

/* ---- fields of a body ---------------------------------------------------------------------------------- */

rt_str rt_field_str(const json_t *string) {
    return (rt_str){.ptr = json_string_value(string), .len = json_string_length(string)};
}

bool rt_field_is_left_out(const json_t *field) { return field == NULL || json_is_null(field); }

/* A copy, since the body is released before the command is done. */
bool rt_field_copy(rt_exchange *x, const json_t *string, rt_str *out) {
    *out = rt_arena_dup(rt_exchange_arena(x), rt_field_str(string));
    if (out->ptr == NULL) rt_problem_of(x, RT_E_NOMEM, NULL, "memory");
    return out->ptr != NULL;
}

bool rt_field_text(rt_exchange *x, const json_t *body, const char *name, rt_need need, size_t max,
                   rt_str *out) {
    const json_t *field = json_object_get(body, name);
    *out = RT_STR_EMPTY;
    if (rt_field_is_left_out(field) && need == RT_OPTIONAL) return true;
    if (!json_is_string(field) || json_string_length(field) > max) {
        rt_problem(x, 400, "\"%s\" must be a string of at most %zu bytes.", name, max);
        return false;
    }
    return rt_field_copy(x, field, out);
}

bool rt_field_word(rt_exchange *x, const json_t *body, const char *name, rt_need need, rt_str *out) {
    const json_t *field = json_object_get(body, name);
    *out = RT_STR_EMPTY;
    if (rt_field_is_left_out(field) && need == RT_OPTIONAL) return true;
    if (json_is_string(field) && rt_name_is_word(rt_field_str(field)))
        return rt_field_copy(x, field, out);
    rt_problem(x, 400, "\"%s\" must be 1 to %d letters, digits, '_', '-' or '.'.", name, RT_PROCESS_NAME_MAX);
    return false;
}

bool rt_field_int(rt_exchange *x, const json_t *body, const char *name, int64_t low, int64_t high,
                  int64_t preset, int64_t *out) {
    const json_t *field = json_object_get(body, name);
    *out = preset;
    if (rt_field_is_left_out(field)) return true;
    *out = json_integer_value(field);
    if (json_is_integer(field) && *out >= low && *out <= high) return true;
    rt_problem(x, 400, "\"%s\" must be a whole number from %" PRId64 " to %" PRId64 ".", name, low, high);
    return false;
}

bool rt_field_bool(rt_exchange *x, const json_t *body, const char *name, bool *out) {
    const json_t *field = json_object_get(body, name);
    *out = json_is_true(field);
    if (rt_field_is_left_out(field) || json_is_boolean(field)) return true;
    rt_problem(x, 400, "\"%s\" must be true or false.", name);
    return false;
}

static rt_code read_jitter(const json_t *jitter, rt_jitter *out, rt_err *err) {
    *out = RT_JITTER_NONE;
    if (rt_field_is_left_out(jitter)) return RT_OK;
    const rt_str word = rt_field_str(jitter);
    for (int j = RT_JITTER_NONE; j <= RT_JITTER_EQUAL; j++) {
        if (!rt_str_eq(word, rt_str_of(rt_jitter_name((rt_jitter)j)))) continue;
        *out = (rt_jitter)j;
        return RT_OK;
    }
    return rt_fail(err, RT_E_INVALID, 0, "backoff: jitter must be \"none\", \"full\" or \"equal\".");
}

rt_code rt_backoff_from_json(const json_t *backoff, rt_backoff *out, rt_err *err) {
    rt_backoff read = {0};
    *out = read;
    if (rt_field_is_left_out(backoff)) return RT_OK;
    rt_code code = read_jitter(json_object_get(backoff, "jitter"), &read.jitter, err);
    if (code != RT_OK) return code;
    union { const json_t *in; json_t *out; } given = {.in = backoff}; // jansson copies only what may be changed
    json_t *rest = json_copy(given.out);
    if (rest == NULL) return rt_fail(err, RT_E_NOMEM, 0, "no memory for a backoff");
    (void)json_object_del(rest, "jitter"); // ours; the rest is as the document has it
    code = rt_work_backoff_from_json(rest, &read.given, &read.descriptor, err);
    json_decref(rest);
    if (code == RT_OK) *out = read;
    return code;
}

bool rt_field_backoff(rt_exchange *x, const json_t *backoff, rt_backoff *out) {
    rt_err err = {0};
    const rt_code code = rt_backoff_from_json(backoff, out, &err);
    if (code == RT_OK) return true;
    if (code == RT_E_NOMEM) rt_problem_of(x, code, &err, "memory");
    else rt_problem(x, 400, "%s", err.msg);
    return false;
}

bool rt_arg_id(rt_exchange *x, const char *name, rt_id *out) {
    rt_str text;
    *out = 0;
    if (!rt_exchange_arg(x, name, &text) || text.len == 0) return true;
    if (rt_id_parse(rt_engine_tag(rt_api_of(x)->engine), text, out)) return true;
    rt_problem(x, 400, "The query parameter \"%s\" must be an id.", name);
    return false;
}

/* ---- shown --------------------------------------------------------------------------------------------- */

json_t *rt_json_str(rt_str s) {
    json_t *json = json_stringn(s.len > 0 ? s.ptr : "", s.len);
    if (json != NULL) return json;
    rt_buf text = {0};
    rt_json_write_str(&text, s); // repairs what is not UTF-8
    if (!text.failed) json = json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    rt_buf_deinit(&text);
    return json;
}

json_t *rt_json_token(uint64_t token) { return json_sprintf("%016" PRIx64, token); }

/* Whole milliseconds as an integer. */
static json_t *json_ms(uint64_t ns) {
    if (ns % 1000000 == 0) return json_integer((json_int_t)(ns / 1000000));
    return json_real((double)ns / 1e6);
}

json_t *rt_json_backoff(const rt_backoff *b) {
    if (!b->given) return json_null();
    return json_pack("{s:o, s:o, s:f, s:s}", "initial_ms", json_ms(b->descriptor.initial_ns), "maximum_ms",
                     json_ms(b->descriptor.maximum_ns), "exponent", b->descriptor.exponent, "jitter",
                     rt_jitter_name(b->jitter));
}

json_t *rt_json_value(rt_str text) {
    json_t *value =
        text.len == 0 ? NULL : json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    return value == NULL ? json_null() : value;
}
