#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "face/common/query.h"
#include "face/common/shown.h"
#include "face/common/target.h"
#include "face/events/parts.h"
#include "face/events/type_json.h"

/* ---- showing --------------------------------------------------------------------------------------- */

/* The settings, and what one wants to know with them. A PUT of the same object is understood. */
static json_t *shown(const rt_exchange *x, rt_str name, const rt_call_type *t, uint64_t version) {
    json_t *json = rt_type_to_json(t);
    if (json == NULL) return NULL;
    (void)json_object_set_new(json, "type", rt_json_str(name));
    (void)json_object_set_new(json, "version", json_integer((json_int_t)version));
    (void)json_object_set_new(json, "queue", rt_json_id(x, t->queue));
    (void)json_object_set_new(json, "changed", rt_json_time(t->changed_ms));
    return json;
}

static void set_etag(rt_exchange *x, uint64_t version) {
    char etag[32];
    (void)snprintf(etag, sizeof etag, "\"%" PRIu64 "\"", version);
    rt_exchange_set_header(x, "ETag", rt_str_of(etag));
}

/* How its events fare. */
static json_t *state_json(const rt_exchange *x, rt_view *v, rt_id queue) {
    rt_queue_line line;
    if (rt_read_queue_line(v, queue, &line) != RT_OK) return json_null();
    const rt_counts *c = &line.counts;
    return json_pack("{s:I, s:I, s:I, s:I, s:o, s:o}", "waiting",
                     (json_int_t)(c->ready + c->scheduled + c->free), "leased", (json_int_t)c->leased, "dead",
                     (json_int_t)c->dead, "done", (json_int_t)c->done, "circuit",
                     rt_json_circuit(x, v, &line.queue), "pace", rt_json_pace(&line.queue.brakes));
}

void rt_page_type_get(rt_exchange *x) {
    rt_str name;
    rt_call_type type;
    uint64_t version;
    if (!rt_param_type(x, 0, &name)) return;
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return;
    const rt_code code = rt_read_call_type(v, rt_exchange_arena(x), rt_tenant_of(x), name, &type, &version);
    json_t *json = code == RT_OK ? shown(x, name, &type, version) : NULL;
    if (json != NULL) (void)json_object_set_new(json, "state", state_json(x, v, type.queue));
    rt_view_close(v);
    if (code != RT_OK) {
        rt_problem_of(x, code, NULL, "event type");
        return;
    }
    set_etag(x, version);
    rt_reply_json(x, 200, json);
}

typedef struct listing {
    rt_exchange *x;
    json_t *array;
    rt_str last; /* in the arena */
    int64_t left;
} listing;

static bool add_type(void *ctx, rt_str name, const rt_call_type *t, uint64_t version) {
    listing *l = ctx;
    if (json_array_append_new(l->array, shown(l->x, name, t, version)) != 0) return false;
    if (--l->left > 0) return true;
    l->last = rt_arena_dup(rt_exchange_arena(l->x), name);
    return false;
}

void rt_page_type_list(rt_exchange *x) {
    listing l = {.x = x};
    rt_str after = RT_STR_EMPTY;
    if (!rt_arg_int(x, "limit", 1, RT_EVENT_TYPES_PAGE_MAX, RT_EVENT_TYPES_PAGE_DEFAULT, &l.left)) return;
    (void)rt_exchange_arg(x, "marker", &after);
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return;
    l.array = json_array();
    const rt_code code = rt_read_call_types(v, rt_tenant_of(x), after, add_type, &l);
    rt_view_close(v);
    if (code != RT_OK) {
        json_decref(l.array);
        rt_problem_of(x, code, NULL, "event type");
        return;
    }
    rt_reply_json(x, 200,
                  json_pack("{s:o, s:o}", "event_types", l.array, "next",
                            l.last.len > 0 ? rt_json_str(l.last) : json_null()));
}

/* ---- writing --------------------------------------------------------------------------------------- */

static void written(rt_exchange *x, rt_command *cmd) {
    const rt_call_type_put *c = (const rt_call_type_put *)cmd;
    rt_str match;
    if (cmd->code == RT_E_CONFLICT) {
        const bool header = c->only_new || rt_exchange_header(x, "If-Match", &match);
        rt_problem_coded(x, header ? 412 : 409, "version_conflict",
                         c->only_new     ? "There is an event type of this name."
                         : c->only_known ? "There is no event type of this name."
                                         : "The event type has another version now: read it and try again.");
    } else if (cmd->code != RT_OK) {
        rt_problem_event(x, cmd, "event type", "events_wait");
    } else {
        set_etag(x, c->version_now);
        rt_reply_json(x, c->created ? 201 : 200, shown(x, c->name, &c->like, c->version_now));
    }
}

/* Only an event type that is not there yet is to be written. Lists of tags make no sense here. False: replied. */
static bool read_only_new(rt_exchange *x, bool *out) {
    rt_str tags = RT_STR_EMPTY;
    *out = rt_exchange_header(x, "If-None-Match", &tags);
    if (!*out || rt_str_eq(rt_str_trim(tags), RT_STR("*"))) return true;
    rt_problem(x, 400, "If-None-Match can only be *: write nothing if the event type is there.");
    return false;
}

/* What the client thinks it changes: If-Match, or "version". All zero: whatever is there. False: replied. */
static bool read_version(rt_exchange *x, const json_t *body, rt_call_type_put *c) {
    const json_t *member = json_object_get(body, "version");
    rt_str match, inner, rest;
    int64_t version = json_is_integer(member) ? json_integer_value(member) : 0;
    bool fine = rt_field_is_left_out(member) || version > 0;
    const bool tagged = rt_exchange_header(x, "If-Match", &match);
    if (tagged) match = rt_str_trim(match);
    c->only_known = tagged && rt_str_eq(match, RT_STR("*"));
    if (tagged && !c->only_known) {
        if (rt_str_starts(match, RT_STR("\"")) && match.len > 2) {
            const rt_str behind = {.ptr = match.ptr + 1, .len = match.len - 1};
            match = rt_str_cut(behind, '"', &inner, &rest) && rest.len == 0 ? inner : RT_STR_EMPTY;
        }
        fine = rt_str_to_i64(match, &version) && version > 0;
    }
    c->version = fine ? (uint64_t)version : 0;
    if (!fine)
        rt_problem(x, 400,
                   "If-Match (or \"version\") must be the version of the event type, as its ETag has it.");
    return fine;
}

/* An object as the client gave it. False: replied. */
static bool keep_text(rt_exchange *x, const json_t *body, rt_str *out) {
    char *text = json_dumps(body, JSON_COMPACT);
    *out = text == NULL ? (rt_str){0} : rt_arena_dup(rt_exchange_arena(x), rt_str_of(text));
    free(text);
    if (out->ptr == NULL) rt_problem_of(x, RT_E_NOMEM, NULL, "memory");
    return out->ptr != NULL;
}

/* False: replied. */
static bool may_go_there(rt_exchange *x, const rt_call_type *t) {
    const rt_api *api = rt_api_of(x);
    rt_str host;
    if (api->refuse_target == NULL || !rt_target_host(t->target, &host)) return true;
    const char *why = api->refuse_target(api->refuse_target_ctx, host);
    if (why != NULL) rt_problem(x, 400, "target: url: %s", why);
    return why == NULL;
}

static bool read_type(rt_exchange *x, json_t *body, rt_call_type_put *c) {
    rt_err err = {0};
    const json_t *type = json_object_get(body, "type");
    if (type != NULL && !rt_str_eq(rt_field_str(type), c->name)) {
        rt_problem(x, 400, "\"type\" is not the one that the path names.");
        return false;
    }
    (void)json_object_del(body, "state"); // as GET shows it
    if (!read_only_new(x, &c->only_new) || !read_version(x, body, c) || !keep_text(x, body, &c->like.json)) return false;
    const rt_code code = rt_type_from_json(body, rt_exchange_arena(x), &c->like, &err);
    if (code == RT_E_INVALID) rt_problem(x, 400, "%s", err.msg);
    else if (code != RT_OK) rt_problem_of(x, code, &err, "event type");
    return code == RT_OK && may_go_there(x, &c->like);
}

void rt_page_type_put(rt_exchange *x) {
    rt_call_type_put *c = RT_NEW(x, rt_call_type_put);
    if (c == NULL) return;
    rt_call_type_put_init(c);
    if (!rt_param_type(x, 0, &c->name)) return;
    if (rt_exchange_body(x).len > RT_CALL_TYPE_JSON_MAX) {
        rt_problem(x, 413, "An event type has at most %d bytes.", RT_CALL_TYPE_JSON_MAX);
        return;
    }
    json_t *body = rt_body_json(x);
    if (body == NULL) return;
    const bool valid = read_type(x, body, c);
    json_decref(body);
    if (!valid) return;
    c->tenant = rt_tenant_of(x);
    rt_api_submit(x, &c->cmd, sizeof *c + c->like.json.len, written, rt_problem_busy);
}

static void deleted(rt_exchange *x, rt_command *cmd) {
    if (cmd->code == RT_OK) rt_exchange_reply(x, 204, NULL, RT_STR_EMPTY);
    else rt_problem_event(x, cmd, "event type", "events_wait");
}

void rt_page_type_delete(rt_exchange *x) {
    rt_str force;
    rt_call_type_delete *c = RT_NEW(x, rt_call_type_delete);
    if (c == NULL) return;
    rt_call_type_delete_init(c);
    if (!rt_param_type(x, 0, &c->name)) return;
    c->tenant = rt_tenant_of(x);
    c->force = rt_exchange_arg(x, "force", &force) && rt_query_parse_bool(force, &c->force) && c->force;
    rt_api_submit(x, &c->cmd, sizeof *c, deleted, rt_problem_busy);
}
