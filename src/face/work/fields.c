#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "face/work/parts.h"
#include "json/policy_json.h"

rt_str rt_work_tenant(const rt_exchange *x) {
    rt_str tenant;
    if (!rt_exchange_header(x, "X-Project-ID", &tenant) || tenant.len == 0) return RT_STR("default");
    return tenant;
}

void *rt_work_new(rt_exchange *x, size_t bytes) {
    void *command = rt_arena_alloc(rt_exchange_arena(x), bytes);
    if (command == NULL) rt_problem_of(x, RT_E_NOMEM, NULL, "memory");
    return command;
}

/* ---- fields of a body ---------------------------------------------------------------------------------- */

static bool is_left_out(const json_t *field) { return field == NULL || json_is_null(field); }

/* A copy, since the body is released before the command is done. */
static bool copy(rt_exchange *x, const json_t *string, rt_str *out) {
    const rt_str text = {.ptr = json_string_value(string), .len = json_string_length(string)};
    *out = rt_arena_dup(rt_exchange_arena(x), text);
    if (out->ptr == NULL) rt_problem_of(x, RT_E_NOMEM, NULL, "memory");
    return out->ptr != NULL;
}

bool rt_field_text(rt_exchange *x, const json_t *body, const char *name, rt_need need, size_t max,
                   rt_str *out) {
    const json_t *field = json_object_get(body, name);
    *out = RT_STR_EMPTY;
    if (is_left_out(field) && need == RT_OPTIONAL) return true;
    if (!json_is_string(field) || json_string_length(field) > max) {
        rt_problem(x, 400, "\"%s\" must be a string of at most %zu bytes.", name, max);
        return false;
    }
    return copy(x, field, out);
}

bool rt_field_word(rt_exchange *x, const json_t *body, const char *name, rt_need need, rt_str *out) {
    const json_t *field = json_object_get(body, name);
    *out = RT_STR_EMPTY;
    if (is_left_out(field) && need == RT_OPTIONAL) return true;
    if (json_is_string(field) && rt_work_name_is_word(rt_str_of(json_string_value(field))))
        return copy(x, field, out);
    rt_problem(x, 400, "\"%s\" must be 1 to %d letters, digits, '_', '-' or '.'.", name, RT_PROCESS_NAME_MAX);
    return false;
}

bool rt_field_int(rt_exchange *x, const json_t *body, const char *name, int64_t low, int64_t high,
                  int64_t preset, int64_t *out) {
    const json_t *field = json_object_get(body, name);
    *out = preset;
    if (is_left_out(field)) return true;
    *out = json_integer_value(field);
    if (json_is_integer(field) && *out >= low && *out <= high) return true;
    rt_problem(x, 400, "\"%s\" must be a whole number from %" PRId64 " to %" PRId64 ".", name, low, high);
    return false;
}

bool rt_field_bool(rt_exchange *x, const json_t *body, const char *name, bool *out) {
    const json_t *field = json_object_get(body, name);
    *out = json_is_true(field);
    if (is_left_out(field) || json_is_boolean(field)) return true;
    rt_problem(x, 400, "\"%s\" must be true or false.", name);
    return false;
}

static bool is_name(const json_t *element, bool entities) {
    if (!json_is_string(element)) return false;
    const rt_str text = {.ptr = json_string_value(element), .len = json_string_length(element)};
    return entities ? rt_work_name_is_entity(text) : rt_work_name_is_word(text);
}

bool rt_field_names(rt_exchange *x, const json_t *body, const char *name, bool entities, uint32_t max,
                    const rt_str **out, uint32_t *count) {
    const json_t *field = json_object_get(body, name);
    *out = NULL;
    *count = 0;
    if (is_left_out(field)) return true;
    if (!json_is_array(field) || json_array_size(field) > max) {
        rt_problem(x, 400, "\"%s\" must be a list of at most %" PRIu32 " names.", name, max);
        return false;
    }
    rt_str *names = rt_work_new(x, (json_array_size(field) + 1) * sizeof *names);
    if (names == NULL) return false;
    for (size_t i = 0; i < json_array_size(field); i++) {
        const json_t *element = json_array_get(field, i);
        if (!is_name(element, entities)) {
            rt_problem(x, 400,
                       entities ? "\"%s\" must hold names of 1 to 128 bytes without control characters."
                                : "\"%s\" must hold names of 1 to 64 letters, digits, '_', '-' or '.'.",
                       name);
            return false;
        }
        if (!copy(x, element, &names[(*count)++])) return false;
    }
    *out = names;
    return true;
}

static bool read_jitter(rt_exchange *x, const json_t *jitter, rt_jitter *out) {
    *out = RT_JITTER_NONE;
    if (is_left_out(jitter)) return true;
    const rt_str word = rt_str_of(json_string_value(jitter));
    for (int j = RT_JITTER_NONE; j <= RT_JITTER_EQUAL; j++) {
        if (!rt_str_eq(word, rt_str_of(rt_jitter_name((rt_jitter)j)))) continue;
        *out = (rt_jitter)j;
        return true;
    }
    rt_problem(x, 400, "backoff: jitter must be \"none\", \"full\" or \"equal\".");
    return false;
}

bool rt_field_backoff(rt_exchange *x, json_t *backoff, rt_backoff *out) {
    rt_err err = {0};
    *out = (rt_backoff){0};
    if (is_left_out(backoff)) return true;
    if (!read_jitter(x, json_object_get(backoff, "jitter"), &out->jitter)) return false;
    (void)json_object_del(backoff, "jitter"); // ours; the rest is as the document has it
    if (rt_work_backoff_from_json(backoff, &out->given, &out->descriptor, &err) == RT_OK) return true;
    rt_problem(x, 400, "%s", err.msg);
    return false;
}

bool rt_field_session(rt_exchange *x, const json_t *body, rt_id *out) {
    const json_t *field = json_object_get(body, "session");
    if (!json_is_string(field)) {
        rt_problem(x, 400, "\"session\" must be the id of a session.");
        return false;
    }
    if (rt_id_parse(rt_engine_tag(rt_api_of(x)->engine), rt_str_of(json_string_value(field)), out))
        return true;
    rt_problem_dead(x);
    return false;
}

/* ---- the rest of a request ----------------------------------------------------------------------------- */

bool rt_param_word(rt_exchange *x, size_t i, const char *what, rt_str *out) {
    *out = rt_exchange_param(x, i);
    if (rt_work_name_is_word(*out)) return true;
    rt_problem(x, 400, "A %s is 1 to %d letters, digits, '_', '-' or '.'.", what, RT_PROCESS_NAME_MAX);
    return false;
}

bool rt_param_entity(rt_exchange *x, size_t i, rt_str *out) {
    *out = rt_exchange_param(x, i);
    if (rt_work_name_is_entity(*out) && rt_utf8_is_valid(*out)) return true;
    rt_problem(x, 400, "An entity is 1 to %d bytes of UTF-8 without control characters.", RT_ENTITY_NAME_MAX);
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

json_t *rt_json_str(rt_str s) { return json_stringn(s.len > 0 ? s.ptr : "", s.len); }

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
    json_t *value = text.len == 0 ? NULL : json_loadb(text.ptr, text.len, JSON_DECODE_ANY, NULL);
    return value == NULL ? json_null() : value;
}

json_t *rt_json_work(const rt_exchange *x, const rt_work *w) {
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "work", rt_json_id(x, w->id), "session",
                     rt_json_id(x, w->session), "entity", rt_json_str(w->entity), "process",
                     rt_json_str(w->process), "started", rt_json_time(w->started_ms), "previous_interval_s",
                     w->previous_s == 0 ? json_null() : json_integer((json_int_t)w->previous_s));
}

json_t *rt_json_rest(rt_str entity, rt_str process, const rt_rest *r, int64_t now_ms) {
    return json_pack("{s:o, s:o, s:o, s:o, s:I, s:b, s:I, s:o}", "entity", rt_json_str(entity), "process",
                     rt_json_str(process), "until", rt_json_time(r->until_ms), "cause", rt_json_str(r->cause),
                     "last_interval_s", (json_int_t)r->interval_s, "active", r->until_ms > now_ms, "failures",
                     (json_int_t)r->failures, "failed", rt_json_time(r->failed_ms));
}

void rt_problem_dead(rt_exchange *x) {
    rt_problem_coded(x, 410, "session_expired", "The session has expired; start a new one.");
}

void rt_problem_work(rt_exchange *x, const rt_command *cmd, rt_work_refusal refusal, const char *what) {
    if (cmd->code != RT_E_FENCED) rt_problem_of(x, cmd->code, &cmd->err, what);
    else if (refusal == RT_WORK_DEAD) rt_problem_dead(x);
    else rt_problem_coded(x, 409, refusal == RT_WORK_BUSY ? "conflict" : "not_holder", cmd->err.msg);
}
