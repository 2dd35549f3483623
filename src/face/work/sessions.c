#include "face/work/parts.h"

static json_t *session_json(const rt_exchange *x, const rt_session *s, int64_t deadline_ms) {
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:i}", "session", rt_json_id(x, s->id), "component",
                     rt_json_str(s->component), "runtime", rt_json_str(s->runtime), "created",
                     rt_json_time(s->created_ms), "deadline", rt_json_time(deadline_ms), "interval_s",
                     (int)s->interval_s);
}

/* ---- starting, living, ending -------------------------------------------------------------------------- */

static void started(rt_exchange *x, rt_command *cmd) {
    const rt_session_create *c = (const rt_session_create *)cmd;
    if (cmd->code != RT_OK) {
        rt_problem_of(x, cmd->code, &cmd->err, "session");
        return;
    }
    const rt_id_text id = rt_id_format(rt_engine_tag(rt_api_of(x)->engine), c->id);
    const rt_str location = rt_arena_printf(rt_exchange_arena(x), "/v1/sessions/%s", id.s);
    if (location.ptr != NULL) rt_exchange_set_header(x, "Location", location);
    rt_reply_json(x, 201,
                  json_pack("{s:o, s:o, s:i}", "session", rt_json_id(x, c->id), "deadline",
                            rt_json_time(c->deadline_ms), "interval_s", (int)c->interval_s));
}

void rt_page_session_post(rt_exchange *x) {
    rt_session_create *c = RT_NEW(x, rt_session_create);
    json_t *body = c == NULL ? NULL : rt_body_json(x);
    if (body == NULL) return;
    rt_session_create_init(c);
    int64_t interval_s;
    const bool valid =
        RT_MEMBERS_ARE_KNOWN(x, body, "component", "runtime", "interval_s") &&
        rt_field_text(x, body, "component", RT_OPTIONAL, RT_SESSION_TEXT_MAX, &c->component) &&
        rt_field_text(x, body, "runtime", RT_OPTIONAL, RT_SESSION_TEXT_MAX, &c->runtime) &&
        rt_field_int(x, body, "interval_s", 1, RT_SESSION_INTERVAL_MAX_S, RT_SESSION_INTERVAL_S, &interval_s);
    json_decref(body);
    if (!valid) return;
    c->tenant = rt_tenant_of(x);
    c->interval_s = (uint32_t)interval_s;
    rt_api_submit(x, &c->cmd, sizeof *c, started, rt_problem_busy);
}

static void beaten(rt_exchange *x, rt_command *cmd) {
    const rt_session_beat *c = (const rt_session_beat *)cmd;
    if (cmd->code != RT_OK) {
        rt_problem_work(x, cmd, RT_WORK_DEAD, "session");
        return;
    }
    rt_reply_json(
        x, 200,
        json_pack("{s:o, s:o}", "session", rt_json_id(x, c->id), "deadline", rt_json_time(c->deadline_ms)));
}

void rt_page_session_beat(rt_exchange *x) {
    rt_session_beat *c = RT_NEW(x, rt_session_beat);
    if (c == NULL) return;
    rt_session_beat_init(c);
    c->tenant = rt_tenant_of(x);
    if (!rt_id_parse(rt_engine_tag(rt_api_of(x)->engine), rt_exchange_param(x, 0), &c->id))
        rt_problem_dead(x);
    else rt_api_submit(x, &c->cmd, sizeof *c, beaten, rt_problem_busy);
}

static void closed(rt_exchange *x, rt_command *cmd) {
    if (cmd->code == RT_OK) rt_exchange_reply(x, 204, NULL, RT_STR_EMPTY);
    else rt_problem_of(x, cmd->code, &cmd->err, "session");
}

void rt_page_session_delete(rt_exchange *x) {
    rt_session_close *c = RT_NEW(x, rt_session_close);
    if (c == NULL) return;
    rt_session_close_init(c);
    c->tenant = rt_tenant_of(x);
    // One that cannot be is as closed as can be.
    if (!rt_id_parse(rt_engine_tag(rt_api_of(x)->engine), rt_exchange_param(x, 0), &c->id)) {
        rt_exchange_reply(x, 204, NULL, RT_STR_EMPTY);
        return;
    }
    rt_api_submit(x, &c->cmd, sizeof *c, closed, rt_problem_busy);
}

/* ---- showing ------------------------------------------------------------------------------------------- */

typedef struct listing {
    rt_exchange *x;
    json_t *array;
    int64_t left;
} listing;

static bool add_session(void *ctx, const rt_session *s, int64_t deadline_ms) {
    listing *l = ctx;
    return json_array_append_new(l->array, session_json(l->x, s, deadline_ms)) == 0 && --l->left > 0;
}

void rt_page_session_list(rt_exchange *x) {
    listing l = {.x = x};
    rt_id after;
    if (!rt_arg_int(x, "limit", 1, RT_WORK_PAGE_MAX, RT_WORK_PAGE_DEFAULT, &l.left)) return;
    if (!rt_arg_id(x, "marker", &after)) return;
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return;
    l.array = json_array();
    const rt_code code =
        rt_read_sessions(v, rt_tenant_of(x), after, rt_api_of(x)->now_ms(), add_session, &l);
    rt_view_close(v);
    if (code == RT_OK) {
        rt_reply_json(x, 200, l.array);
        return;
    }
    json_decref(l.array);
    rt_problem_of(x, code, NULL, "session");
}

static bool add_work(void *ctx, const rt_work *w, int64_t deadline_ms) {
    listing *l = ctx;
    (void)deadline_ms;
    return json_array_append_new(l->array, rt_json_work(l->x, w)) == 0 && --l->left > 0;
}

void rt_page_session_get(rt_exchange *x) {
    rt_id id;
    if (!rt_param_id(x, 0, "session", &id)) return;
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return;
    rt_session session;
    int64_t deadline_ms;
    const int64_t now_ms = rt_api_of(x)->now_ms();
    rt_arena *arena = rt_exchange_arena(x);
    listing l = {.x = x, .array = json_array(), .left = RT_WORK_PAGE_MAX};
    rt_code code = rt_read_session(v, arena, rt_tenant_of(x), id, now_ms, &session, &deadline_ms);
    if (code == RT_OK) code = rt_read_work(v, arena, rt_tenant_of(x), id, 0, 0, now_ms, add_work, &l);
    rt_view_close(v);
    if (code != RT_OK) {
        json_decref(l.array);
        rt_problem_of(x, code, NULL, "session");
        return;
    }
    json_t *json = session_json(x, &session, deadline_ms);
    if (json != NULL) (void)json_object_set_new(json, "work", l.array);
    rt_reply_json(x, 200, json);
}
