#include "json/run_json.h"

#include <string.h>

#include "base/base64.h"
#include "json/tree.h"

/* What is being read: each step returns false once `code` says why. */
typedef struct reading {
    const json_t *json;
    rt_arena *arena;
    rt_err *err;
    rt_code code;
} reading;

static bool refuse(reading *r, const char *what, const char *rule) {
    r->code = rt_fail(r->err, RT_E_INVALID, 0, "\"%s\" %s", what, rule);
    return false;
}

static bool no_memory(reading *r) {
    r->code = rt_fail(r->err, RT_E_NOMEM, 0, "no memory for an answer");
    return false;
}

/* NULL: left out. */
static const json_t *member(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

static bool copy(reading *r, rt_str text, rt_str *out) {
    *out = rt_arena_dup(r->arena, text);
    return out->ptr != NULL || no_memory(r);
}

/* Left out: empty, and *given (may be NULL) is false. */
static bool take_text(reading *r, const json_t *object, const char *name, size_t max, rt_str *out,
                      bool *given) {
    const json_t *value = member(object, name);
    *out = RT_STR_EMPTY;
    if (given != NULL) *given = value != NULL;
    if (value == NULL) return true;
    if (!json_is_string(value)) return refuse(r, name, "must be a string");
    const rt_str text = {.ptr = json_string_value(value), .len = json_string_length(value)};
    return text.len <= max ? copy(r, text, out) : refuse(r, name, "is too long");
}

/* ---- what follows -------------------------------------------------------------------------------------- */

static bool take_after(reading *r, rt_run_answer *out) {
    const json_t *after = member(r->json, "after_ms");
    out->after_ms = -1;
    if (after == NULL) return true;
    if (!json_is_integer(after) || json_integer_value(after) < 0)
        return refuse(r, "after_ms", "must be a whole number, 0 or more");
    out->after_ms = json_integer_value(after);
    return true;
}

/* An array or object, as text. */
static bool take_json(reading *r, const char *name, json_type type, rt_str *out, bool *given) {
    const json_t *value = member(r->json, name);
    *given = value != NULL;
    if (value == NULL) return true;
    if (json_typeof(value) != type)
        return refuse(r, name, type == JSON_ARRAY ? "must be an array" : "must be an object");
    rt_buf text = {0};
    rt_json_write(&text, value);
    const bool fine = text.failed                  ? no_memory(r)
                      : text.len > RT_RUN_ARGS_MAX ? refuse(r, name, "is too long")
                                                   : copy(r, rt_buf_str(&text), out);
    rt_buf_deinit(&text);
    return fine;
}

static bool take_next_task(reading *r, rt_run_answer *out) {
    if (!take_text(r, r->json, "task", RT_RUN_TASK_MAX, &out->task, &out->has_task)) return false;
    if (out->has_task && out->task.len == 0) return refuse(r, "task", "must not be empty");
    return take_json(r, "args", JSON_ARRAY, &out->args, &out->has_args) &&
           take_json(r, "kwargs", JSON_OBJECT, &out->kwargs, &out->has_kwargs);
}

static bool take_failure(reading *r, rt_run_answer *out) {
    const json_t *code = member(r->json, "code");
    if (!json_is_integer(code)) {
        if (!take_text(r, r->json, "code", RT_RUN_NAME_MAX, &out->code, NULL)) return false;
    } else {
        out->code = rt_arena_printf(r->arena, "%" JSON_INTEGER_FORMAT, json_integer_value(code));
        if (out->code.ptr == NULL) return no_memory(r);
    }
    return take_text(r, r->json, "reason", RT_RUN_ANSWER_MAX, &out->reason, NULL);
}

/* ---- what was made ------------------------------------------------------------------------------------- */

static bool take_payload(reading *r, const json_t *object, const char *role, rt_str *out) {
    const json_t *plain = member(object, "payload");
    const json_t *coded = member(object, "payload_base64");
    if ((plain == NULL) == (coded == NULL))
        return refuse(r, role, "must have either \"payload\" or \"payload_base64\"");
    if (plain != NULL) return take_text(r, object, "payload", RT_RUN_SECRET_MAX, out, NULL);
    rt_str text;
    if (!take_text(r, object, "payload_base64", RT_RUN_ANSWER_MAX, &text, NULL)) return false;
    const size_t bytes = rt_base64_decode(text, NULL);
    if (bytes == SIZE_MAX) return refuse(r, "payload_base64", "must be base64");
    if (bytes > RT_RUN_SECRET_MAX) return refuse(r, "payload_base64", "is too long");
    char *payload = rt_arena_alloc(r->arena, bytes + 1);
    if (payload == NULL) return no_memory(r);
    *out = (rt_str){.ptr = payload, .len = rt_base64_decode(text, payload)};
    return true;
}

static bool take_secret(reading *r, const json_t *object, const char *role, rt_run_answer *out) {
    if (!json_is_object(object)) return refuse(r, role, "must be an object");
    if (out->secrets_count == RT_RUN_SECRETS_MAX) return refuse(r, "container", "has too many secrets");
    if (role[0] == '\0' || strlen(role) > RT_RUN_NAME_MAX)
        return refuse(r, "container", "has a secret without a name, or with one that is too long");
    rt_run_secret *s = &out->secrets[out->secrets_count++];
    if (!copy(r, rt_str_of(role), &s->role) || !take_payload(r, object, role, &s->payload) ||
        !take_text(r, object, "name", RT_RUN_NAME_MAX, &s->name, NULL) ||
        !take_text(r, object, "content_type", RT_RUN_NAME_MAX, &s->content_type, NULL)) {
        return false;
    }
    for (size_t i = 0; i < s->content_type.len; i++) { // it becomes a header
        const unsigned char c = (unsigned char)s->content_type.ptr[i];
        if (c < 0x20 || c >= 0x7F) return refuse(r, "content_type", "must be printable ASCII");
    }
    if (s->content_type.len > 0) return true;
    s->content_type =
        member(object, "payload") != NULL ? RT_STR("text/plain") : RT_STR("application/octet-stream");
    return true;
}

static bool take_container(reading *r, const json_t *container, rt_run_answer *out) {
    const json_t *secrets = member(container, "secrets");
    if (!json_is_object(container)) return refuse(r, "container", "must be an object");
    if (secrets != NULL && !json_is_object(secrets))
        return refuse(r, "container", "must have an object as \"secrets\"");
    out->container = true;
    if (!take_text(r, container, "name", RT_RUN_NAME_MAX, &out->container_name, NULL)) return false;
    union {
        const json_t *in;
        json_t *out;
    } walked = {.in = secrets}; // jansson's iterators want it without const
    const char *role;
    json_t *secret;
    json_object_foreach(walked.out, role, secret) {
        if (!take_secret(r, secret, role, out)) return false;
    }
    return true;
}

static bool take_made(reading *r, rt_run_answer *out) {
    const json_t *secret = member(r->json, "secret");
    const json_t *container = member(r->json, "container");
    if (secret != NULL && container != NULL)
        return refuse(r, "container", "and \"secret\" exclude each other");
    if (secret != NULL && !take_secret(r, secret, "secret", out)) return false;
    if (container != NULL && !take_container(r, container, out)) return false;
    return take_text(r, r->json, "secret_ref", RT_RUN_REF_MAX, &out->secret_ref, NULL) &&
           take_text(r, r->json, "container_ref", RT_RUN_REF_MAX, &out->container_ref, NULL);
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

static bool take_action(reading *r, rt_run_action *out) {
    static const char *const ACTIONS[] = {
        [RT_RUN_DONE] = "done",
        [RT_RUN_FAILED] = "failed",
        [RT_RUN_RETRY] = "retry",
        [RT_RUN_UNAVAILABLE] = "unavailable",
    };
    const rt_str action = rt_str_of(json_string_value(member(r->json, "action")));
    for (size_t i = 0; i < sizeof ACTIONS / sizeof ACTIONS[0]; i++) {
        if (!rt_str_eq(action, rt_str_of(ACTIONS[i]))) continue;
        *out = (rt_run_action)i;
        return true;
    }
    return refuse(r, "action", "must be \"done\", \"failed\", \"retry\" or \"unavailable\"");
}

/* What goes with any action. */
static bool take_news(reading *r, rt_run_answer *out) {
    bool says_status, says_message;
    if (!take_text(r, r->json, "state", RT_RUN_STATE_MAX, &out->state, &out->has_state) ||
        !take_text(r, r->json, "sub_status", RT_RUN_ANSWER_MAX, &out->sub_status, &says_status) ||
        !take_text(r, r->json, "message", RT_RUN_ANSWER_MAX, &out->message, &says_message)) {
        return false;
    }
    out->has_progress = says_status || says_message;
    return true;
}

static bool take_all(reading *r, rt_run_answer *out) {
    if (!json_is_object(r->json)) return refuse(r, "action", "must be in a JSON object");
    if (!take_action(r, &out->action) || !take_news(r, out) || !take_after(r, out)) return false;
    switch (out->action) {
    case RT_RUN_DONE: return take_made(r, out);
    case RT_RUN_FAILED: return take_failure(r, out);
    case RT_RUN_RETRY: return take_next_task(r, out);
    case RT_RUN_UNAVAILABLE: break;
    }
    return true;
}

rt_code rt_run_from_text(rt_str text, rt_arena *arena, rt_run_answer *out, rt_err *err) {
    json_t *json = NULL;
    const rt_json_fault fault = rt_json_parse(text, &json);
    if (fault == RT_JSON_NOMEM) return rt_fail(err, RT_E_NOMEM, 0, "no memory for an answer");
    if (fault != RT_JSON_FINE) return rt_fail(err, RT_E_INVALID, 0, "the answer is not JSON");
    reading r = {.json = json, .arena = arena, .err = err, .code = RT_OK};
    *out = (rt_run_answer){.after_ms = -1};
    (void)take_all(&r, out);
    json_decref(json);
    return r.code;
}
