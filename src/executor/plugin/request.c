#include "executor/plugin/request.h"

#include <stdlib.h>
#include <string.h>

static bool read_verb(const char *word, rt_verb *out) {
    static const char *const WORDS[] = {"run", "cancel", "validate"};
    for (int i = 0; word != NULL && i < 3; i++) {
        if (strcmp(word, WORDS[i]) != 0) continue;
        *out = (rt_verb)i;
        return true;
    }
    return false;
}

/* The member as text, or `preset` where there is none. NULL: of another type, or out of memory. */
static char *text_of(const json_t *root, const char *name, json_type type, const char *preset) {
    const json_t *value = json_object_get(root, name);
    if (value == NULL || json_is_null(value)) return rt_str_dup(rt_str_of(preset));
    return json_typeof(value) == type ? json_dumps(value, JSON_COMPACT) : NULL;
}

static const char *string_of(const json_t *root, const char *name) {
    const char *text = json_string_value(json_object_get(root, name));
    return text != NULL ? text : "";
}

rt_code rt_request_init(rt_request *q, rt_str text, rt_err *err) {
    json_error_t at;
    *q = (rt_request){.root = json_loadb(text.ptr, text.len, JSON_ALLOW_NUL, &at)};
    if (!json_is_object(q->root))
        return rt_fail(err, RT_E_INVALID, 0, "the run is no JSON object: %s", at.text);
    const json_t *verb = json_object_get(q->root, "verb");
    if (verb != NULL && !read_verb(json_string_value(verb), &q->verb)) {
        return rt_fail(err, RT_E_INVALID, 0, "the run's verb is none of run, cancel, validate");
    }
    q->meta = text_of(q->root, "meta", JSON_OBJECT, "{}");
    q->args = text_of(q->root, "args", JSON_ARRAY, "[]");
    q->kwargs = text_of(q->root, "kwargs", JSON_OBJECT, "{}");
    if (q->meta == NULL || q->args == NULL || q->kwargs == NULL) {
        return rt_fail(err, RT_E_INVALID, 0, "the run's meta, args or kwargs is of another type");
    }
    q->order = (struct retryd_order){
        .size = sizeof q->order,
        .id = string_of(q->root, "order"),
        .type = string_of(q->root, "type"),
        .meta = q->meta,
        .state = json_string_value(json_object_get(q->root, "state")),
    };
    q->task = (struct retryd_task){
        .size = sizeof q->task, .name = string_of(q->root, "task"), .args = q->args, .kwargs = q->kwargs};
    q->attempt = (uint32_t)json_integer_value(json_object_get(q->root, "attempt"));
    q->token = string_of(q->root, "token");
    q->deadline_ms = json_integer_value(json_object_get(q->root, "deadline"));
    return RT_OK;
}

void rt_request_deinit(rt_request *q) {
    free(q->meta);
    free(q->args);
    free(q->kwargs);
    json_decref(q->root);
    *q = (rt_request){0};
}

const json_t *rt_request_object(const rt_request *q, const char *json) {
    if (json == NULL || q->root == NULL) return NULL;
    if (json == q->meta) return json_object_get(q->root, "meta");
    return json == q->kwargs ? json_object_get(q->root, "kwargs") : NULL;
}
