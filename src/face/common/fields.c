#include "face/common/fields.h"

#include <inttypes.h>
#include <string.h>

#include "engine/common/name.h"
#include "face/common/backoff_json.h"
#include "face/common/problem.h"
#include "face/common/query.h"
#include "json/scan.h"

void *rt_new_of(rt_exchange *x, size_t bytes) {
    void *command = rt_arena_alloc(rt_exchange_arena(x), bytes);
    if (command == NULL) rt_problem_of(x, RT_E_NOMEM, NULL, "memory");
    return command;
}

/* ---- a body -------------------------------------------------------------------------------------------- */

json_t *rt_body_json(rt_exchange *x) {
    const rt_str body = rt_str_trim(rt_exchange_body(x));
    if (body.len == 0) return json_object();
    rt_json_scan depth = {.rows_max = 1, .arena = rt_exchange_arena(x)};
    if (rt_json_scan_text(&depth, body) == RT_JSON_TOO_DEEP) {
        rt_problem(x, 400, "The body is more than %d levels deep.", RT_JSON_DEPTH_MAX);
        return NULL;
    }
    json_error_t why;
    json_t *json = json_loadb(body.ptr, body.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (json == NULL) {
        rt_problem(x, 400, "The body cannot be read as JSON: %s at line %d, column %d.", why.text, why.line, why.column);
        return NULL;
    }
    if (!json_is_object(json)) {
        json_decref(json);
        rt_problem(x, 400, "The body must be a JSON object.");
        return NULL;
    }
    return json;
}

static bool refuse_member(rt_exchange *x, const char *name) {
    rt_problem(x, 400, "\"%.64s\" is not known here.", name);
    return false;
}

bool rt_members_are_known(rt_exchange *x, json_t *object, const char *const names[], size_t count) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        size_t i = 0;
        while (i < count && strcmp(names[i], key) != 0) i++;
        if (i == count) return refuse_member(x, key);
    }
    return true;
}

bool rt_members_are_right(rt_exchange *x, json_t *object, const rt_member *members, size_t count) {
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(object, next, key, value) {
        const rt_member *m = members;
        while (m < members + count && strcmp(m->name, key) != 0) m++;
        if (m == members + count) return refuse_member(x, key);
        if (json_is_null(value)) {
            (void)json_object_del(object, key);
            continue;
        }
        if (json_typeof(value) == m->type || (m->type == JSON_TRUE && json_is_false(value))) continue;
        rt_problem(x, 400, "\"%s\" must be %s.", key, m->wanted);
        return false;
    }
    return true;
}

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

bool rt_field_backoff(rt_exchange *x, const json_t *backoff, rt_backoff *out) {
    rt_err err = {0};
    const rt_code code = rt_backoff_from_json(backoff, out, &err);
    if (code == RT_OK) return true;
    if (code == RT_E_NOMEM) rt_problem_of(x, code, &err, "memory");
    else rt_problem(x, 400, "%s", err.msg);
    return false;
}

/* ---- path and query ------------------------------------------------------------------------------------ */

bool rt_param_id(rt_exchange *x, size_t i, const char *what, rt_id *out) {
    if (rt_id_parse(rt_engine_tag(rt_api_of(x)->engine), rt_exchange_param(x, i), out)) return true;
    rt_problem(x, 404, "There is no such %s: ids have %d hex digits, as listings show them.", what, RT_ID_TEXT_LEN);
    return false;
}

bool rt_arg_int(rt_exchange *x, const char *name, int64_t low, int64_t high, int64_t preset, int64_t *out) {
    *out = preset;
    const rt_query found = rt_query_int(x, name, out);
    if (found == RT_QUERY_ABSENT || (found == RT_QUERY_FOUND && *out >= low && *out <= high)) return true;
    rt_problem(x, 400, "The query parameter \"%s\" must be a whole number from %lld to %lld.", name,
               (long long)low, (long long)high);
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
