#include <stdlib.h>

#include "face/work/parts.h"

/* ---- writing ------------------------------------------------------------------------------------------- */

static void written(rt_exchange *x, rt_command *cmd) {
    const rt_entity_put *c = (const rt_entity_put *)cmd;
    if (cmd->code != RT_OK) {
        rt_problem_of(x, cmd->code, &cmd->err, "entity");
        return;
    }
    rt_reply_json(x, c->created ? 201 : 200,
                  json_pack("{s:o, s:o, s:o}", "entity", rt_json_str(c->name), "kind", rt_json_str(c->kind),
                            "value", rt_json_value(c->value)));
}

static bool read_value(rt_exchange *x, const json_t *body, rt_str *out) {
    const json_t *value = json_object_get(body, "value");
    char *text = value == NULL ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    const rt_str copy = rt_arena_dup(rt_exchange_arena(x), text == NULL ? RT_STR("{}") : rt_str_of(text));
    free(text);
    *out = copy;
    if (copy.ptr == NULL) {
        rt_problem_of(x, RT_E_NOMEM, NULL, "memory");
        return false;
    }
    if (copy.len <= RT_ENTITY_VALUE_MAX) return true;
    rt_problem(x, 413, "\"value\" has at most %d bytes.", RT_ENTITY_VALUE_MAX);
    return false;
}

void rt_page_entity_put(rt_exchange *x) {
    rt_entity_put *c = RT_NEW(x, rt_entity_put);
    if (c == NULL) return;
    rt_entity_put_init(c);
    if (!rt_param_entity(x, 0, &c->name)) return;
    json_t *body = rt_body_json(x);
    if (body == NULL) return;
    const bool valid =
        RT_MEMBERS_ARE_KNOWN(x, body, "kind", "value", "processes") &&
        rt_field_word(x, body, "kind", RT_REQUIRED, &c->kind) && read_value(x, body, &c->value) &&
        rt_field_names(x, body, "processes", false, RT_ENTITY_SLOTS_MAX, &c->processes, &c->processes_count);
    json_decref(body);
    if (!valid) return;
    c->tenant = rt_tenant_of(x);
    rt_api_submit(x, &c->cmd, sizeof *c + c->value.len, written, rt_problem_busy);
}

static void deleted(rt_exchange *x, rt_command *cmd) {
    if (cmd->code == RT_OK || cmd->code == RT_E_ABSENT) rt_exchange_reply(x, 204, NULL, RT_STR_EMPTY);
    else if (cmd->code == RT_E_FENCED) rt_problem_coded(x, 409, "conflict", cmd->err.msg);
    else rt_problem_of(x, cmd->code, &cmd->err, "entity");
}

void rt_page_entity_delete(rt_exchange *x) {
    rt_entity_delete *c = RT_NEW(x, rt_entity_delete);
    if (c == NULL) return;
    rt_entity_delete_init(c);
    if (!rt_param_entity(x, 0, &c->name)) return;
    c->tenant = rt_tenant_of(x);
    rt_api_submit(x, &c->cmd, sizeof *c, deleted, rt_problem_busy);
}

/* ---- showing ------------------------------------------------------------------------------------------- */

static json_t *entity_json(const rt_exchange *x, rt_str name, const rt_entity *e) {
    json_t *processes = json_array();
    json_t *work = json_array();
    for (uint32_t i = 0; i < e->slots_count; i++) {
        const rt_slot *s = &e->slots[i];
        if (s->wanted) (void)json_array_append_new(processes, rt_json_str(s->process));
        if (s->work == 0) continue;
        (void)json_array_append_new(work,
                                    json_pack("{s:o, s:o, s:o}", "process", rt_json_str(s->process), "work",
                                              rt_json_id(x, s->work), "session", rt_json_id(x, s->session)));
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "entity", rt_json_str(name), "kind",
                     e->kind.len == 0 ? json_null() : rt_json_str(e->kind), "value", rt_json_value(e->value),
                     "processes", processes, "work", work, "created", rt_json_time(e->created_ms), "changed",
                     rt_json_time(e->changed_ms));
}

static json_t *backoffs_json(rt_exchange *x, rt_view *v, rt_str name, const rt_entity *e) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < e->slots_count; i++) {
        rt_rest rest;
        const rt_slot *s = &e->slots[i];
        if (s->until_ms == 0) continue;
        if (rt_read_rest(v, rt_exchange_arena(x), rt_tenant_of(x), name, s->process, &rest) != RT_OK)
            continue;
        (void)json_array_append_new(array, rt_json_rest(name, s->process, &rest, rt_api_of(x)->now_ms()));
    }
    return array;
}

void rt_page_entity_get(rt_exchange *x) {
    rt_str name;
    rt_entity *e = RT_NEW(x, rt_entity);
    if (e == NULL || !rt_param_entity(x, 0, &name)) return;
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return;
    rt_code code = rt_read_entity(v, rt_exchange_arena(x), rt_tenant_of(x), name, e);
    if (code == RT_OK && e->gone) code = RT_E_ABSENT;
    json_t *json = code == RT_OK ? entity_json(x, name, e) : NULL;
    if (json != NULL) (void)json_object_set_new(json, "backoffs", backoffs_json(x, v, name, e));
    rt_view_close(v);
    if (code == RT_OK) rt_reply_json(x, 200, json);
    else rt_problem_of(x, code, NULL, "entity");
}

typedef struct listing {
    rt_exchange *x;
    json_t *array;
    rt_str kind;
    int64_t left;
} listing;

static bool add_entity(void *ctx, rt_str name, const rt_entity *e) {
    listing *l = ctx;
    if (l->kind.len > 0 && !rt_str_eq(l->kind, e->kind)) return true;
    return json_array_append_new(l->array, entity_json(l->x, name, e)) == 0 && --l->left > 0;
}

static void reply_array(rt_exchange *x, rt_code code, json_t *array) {
    if (code == RT_OK) {
        rt_reply_json(x, 200, array);
        return;
    }
    json_decref(array);
    rt_problem_of(x, code, NULL, "entity");
}

void rt_page_entity_list(rt_exchange *x) {
    listing l = {.x = x, .kind = RT_STR_EMPTY};
    rt_str after = RT_STR_EMPTY;
    if (!rt_arg_int(x, "limit", 1, RT_WORK_PAGE_MAX, RT_WORK_PAGE_DEFAULT, &l.left)) return;
    (void)rt_exchange_arg(x, "kind", &l.kind);
    if (rt_exchange_arg(x, "marker", &after) && after.len > 0 && !rt_name_is_entity(after)) {
        rt_problem(x, 400, "\"marker\" must be the last entity that was read.");
        return;
    }
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return;
    l.array = json_array();
    const rt_code code = rt_read_entities(v, rt_exchange_arena(x), rt_tenant_of(x), after, add_entity, &l);
    rt_view_close(v);
    reply_array(x, code, l.array);
}

static bool add_line(void *ctx, const rt_event *event, const rt_history *h) {
    listing *l = ctx;
    json_t *json = json_pack("{s:I, s:o, s:o, s:s, s:o, s:o, s:o, s:I}", "seq", (json_int_t)event->seq,
                             "time", rt_json_time(event->at_ms), "process", rt_json_str(h->process), "event",
                             rt_event_type_name(event->type), "cause",
                             h->cause.len == 0 ? json_null() : rt_json_str(h->cause), "session",
                             rt_json_id(l->x, h->session), "work", rt_json_id(l->x, h->work), "took_ms",
                             (json_int_t)event->took_ms);
    if (json != NULL && event->type == RT_EVENT_FAILED) {
        (void)json_object_set_new(json, "interval_s", json_integer((json_int_t)h->interval_s));
    }
    return json_array_append_new(l->array, json) == 0 && --l->left > 0;
}

/* Of an entity that nobody knows: empty, as of one on which nobody has worked. */
void rt_page_entity_history(rt_exchange *x) {
    listing l = {.x = x};
    rt_str name;
    int64_t before;
    rt_entity *e = RT_NEW(x, rt_entity);
    if (e == NULL || !rt_param_entity(x, 0, &name)) return;
    if (!rt_arg_int(x, "limit", 1, RT_WORK_PAGE_MAX, RT_WORK_PAGE_DEFAULT, &l.left)) return;
    if (!rt_arg_int(x, "before", 0, INT64_MAX, 0, &before)) return;
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return;
    l.array = json_array();
    rt_code code = rt_read_entity(v, rt_exchange_arena(x), rt_tenant_of(x), name, e);
    if (code == RT_OK) code = rt_read_history(v, e, (uint64_t)before, add_line, &l);
    rt_view_close(v);
    reply_array(x, code == RT_E_ABSENT ? RT_OK : code, l.array);
}
