#include <inttypes.h>

#include "base/utf8.h"
#include "face/work/parts.h"

static bool is_name(const json_t *element, bool entities) {
    if (!json_is_string(element)) return false;
    const rt_str text = rt_field_str(element);
    return entities ? rt_name_is_entity(text) : rt_name_is_word(text);
}

bool rt_field_names(rt_exchange *x, const json_t *body, const char *name, bool entities, uint32_t max,
                    const rt_str **out, uint32_t *count) {
    const json_t *field = json_object_get(body, name);
    *out = NULL;
    *count = 0;
    if (rt_field_is_left_out(field)) return true;
    if (!json_is_array(field) || json_array_size(field) > max) {
        rt_problem(x, 400, "\"%s\" must be a list of at most %" PRIu32 " names.", name, max);
        return false;
    }
    rt_str *names = rt_new_of(x, (json_array_size(field) + 1) * sizeof *names);
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
        if (!rt_field_copy(x, element, &names[(*count)++])) return false;
    }
    *out = names;
    return true;
}

bool rt_field_session(rt_exchange *x, const json_t *body, rt_id *out) {
    const json_t *field = json_object_get(body, "session");
    if (!json_is_string(field)) {
        rt_problem(x, 400, "\"session\" must be the id of a session.");
        return false;
    }
    if (rt_id_parse(rt_engine_tag(rt_api_of(x)->engine), rt_field_str(field), out))
        return true;
    rt_problem_dead(x);
    return false;
}

/* ---- the rest of a request ----------------------------------------------------------------------------- */

bool rt_param_word(rt_exchange *x, size_t i, const char *what, rt_str *out) {
    *out = rt_exchange_param(x, i);
    if (rt_name_is_word(*out)) return true;
    rt_problem(x, 400, "A %s is 1 to %d letters, digits, '_', '-' or '.'.", what, RT_PROCESS_NAME_MAX);
    return false;
}

bool rt_param_entity(rt_exchange *x, size_t i, rt_str *out) {
    *out = rt_exchange_param(x, i);
    if (rt_name_is_entity(*out) && rt_utf8_is_valid(*out)) return true;
    rt_problem(x, 400, "An entity is 1 to %d bytes of UTF-8 without control characters.", RT_ENTITY_NAME_MAX);
    return false;
}

/* ---- shown --------------------------------------------------------------------------------------------- */

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
