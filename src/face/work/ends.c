#include <stdlib.h>

#include "base/hex.h"
#include "face/work/parts.h"
#include "json/merge.h"

enum { CAUSE_SENT_MAX = 65536 }; /* longer than what is kept: a worker need not cut its own */

/* An end and the patch that comes with it, which is read again with each decision. */
typedef struct patched_end {
    rt_work_end end; /* first member */
    rt_str patch;
} patched_end;

/* ---- the entity's value -------------------------------------------------------------------------------- */

/* RFC 7396. On the engine's thread; patches and values are small, see RT_ENTITY_VALUE_MAX. */
static rt_code apply_patch(void *ctx, rt_arena *arena, rt_str value, rt_str *out, rt_err *err) {
    const patched_end *p = ctx;
    const size_t any = JSON_DECODE_ANY | JSON_ALLOW_NUL;
    json_t *patch = json_loadb(p->patch.ptr, p->patch.len, any, NULL);
    json_t *target = value.len == 0 ? json_object() : json_loadb(value.ptr, value.len, any, NULL);
    json_t *merged = patch == NULL || target == NULL ? NULL : rt_json_merge(target, patch);
    char *text = merged == NULL ? NULL : json_dumps(merged, JSON_COMPACT | JSON_ENCODE_ANY);
    if (text != NULL) *out = rt_arena_dup(arena, rt_str_of(text));
    const bool done = text != NULL && out->ptr != NULL;
    free(text);
    json_decref(merged);
    json_decref(target);
    json_decref(patch);
    return done ? RT_OK : rt_fail(err, RT_E_NOMEM, 0, "no memory for a patch");
}

static bool read_patch(rt_exchange *x, const json_t *body, patched_end *p) {
    const json_t *patch = json_object_get(body, "entity_patch");
    if (patch == NULL || json_is_null(patch)) return true;
    if (!json_is_object(patch)) {
        rt_problem(x, 400,
                   "\"entity_patch\" must be an object: a merge patch (RFC 7396) of the entity's value.");
        return false;
    }
    json_t *trial = rt_json_merge(NULL, patch); // fails in the decision if it does here
    json_decref(trial);
    if (trial == NULL) {
        rt_problem(x, 400, "\"entity_patch\" is more than %d levels deep.", RT_JSON_DEPTH_MAX);
        return false;
    }
    char *text = json_dumps(patch, JSON_COMPACT);
    p->patch = text == NULL ? (rt_str){0} : rt_arena_dup(rt_exchange_arena(x), rt_str_of(text));
    free(text);
    if (p->patch.ptr == NULL) {
        rt_problem_of(x, RT_E_NOMEM, NULL, "memory");
        return false;
    }
    p->end.patch = apply_patch;
    p->end.patch_ctx = p;
    return true;
}

/* ---- three requests ------------------------------------------------------------------------------------ */

static void ended(rt_exchange *x, rt_command *cmd) {
    const rt_work_end *c = (const rt_work_end *)cmd;
    if (cmd->code != RT_OK) {
        rt_problem_work(x, cmd, c->refusal, "process");
        return;
    }
    json_t *json =
        json_pack("{s:o, s:s}", "work", rt_json_id(x, c->work.id), "event", rt_event_type_name(c->work.end));
    if (json != NULL && c->work.end == RT_EVENT_FAILED) {
        (void)json_object_set_new(json, "until", rt_json_time(c->work.until_ms));
        (void)json_object_set_new(json, "interval_s", json_integer((json_int_t)c->work.interval_s));
    }
    rt_reply_json(x, 200, json);
}

/* Of work and token that cannot be: nobody holds them. */
static void refuse_strange(rt_exchange *x) {
    rt_problem_coded(x, 409, "not_holder", "This token does not hold the work.");
}

static bool read_holder(rt_exchange *x, const json_t *body, rt_work_end *c) {
    rt_str token;
    if (!rt_field_session(x, body, &c->session)) return false;
    if (!rt_field_text(x, body, "token", RT_REQUIRED, 64, &token)) return false;
    if (rt_id_parse(rt_engine_tag(rt_api_of(x)->engine), rt_exchange_param(x, 0), &c->id) &&
        rt_hex_read_u64(token, &c->token)) {
        return true;
    }
    refuse_strange(x);
    return false;
}

static bool read_failure(rt_exchange *x, json_t *body, rt_work_end *c) {
    if (!rt_field_text(x, body, "cause", RT_REQUIRED, CAUSE_SENT_MAX, &c->cause)) return false;
    json_t *backoff = json_object_get(body, "backoff");
    c->own_backoff = backoff != NULL; // null too: no descriptor
    return backoff == NULL || rt_field_backoff(x, backoff, &c->backoff);
}

static bool is_known(rt_exchange *x, json_t *body, rt_event_type verb) {
    if (verb == RT_EVENT_FINISHED)
        return RT_MEMBERS_ARE_KNOWN(x, body, "session", "token", "entity_patch", "processes");
    if (verb == RT_EVENT_FAILED) return RT_MEMBERS_ARE_KNOWN(x, body, "session", "token", "cause", "backoff");
    return RT_MEMBERS_ARE_KNOWN(x, body, "session", "token", "cause");
}

static void end(rt_exchange *x, rt_event_type verb) {
    patched_end *p = RT_NEW(x, patched_end);
    json_t *body = p == NULL ? NULL : rt_body_json(x);
    if (body == NULL) return;
    rt_work_end *c = &p->end;
    rt_work_end_init(c);
    c->verb = verb;
    bool valid = is_known(x, body, verb) && read_holder(x, body, c);
    if (valid && verb == RT_EVENT_FINISHED) {
        valid = read_patch(x, body, p) && rt_field_names(x, body, "processes", false, RT_ENTITY_SLOTS_MAX,
                                                         &c->processes, &c->processes_count);
    }
    if (valid && verb == RT_EVENT_FAILED) valid = read_failure(x, body, c);
    if (valid && verb == RT_EVENT_CANCELED) {
        valid = rt_field_text(x, body, "cause", RT_OPTIONAL, CAUSE_SENT_MAX, &c->cause);
    }
    json_decref(body);
    if (!valid) return;
    c->tenant = rt_tenant_of(x);
    c->arena = rt_exchange_arena(x);
    rt_api_submit(x, &c->cmd, sizeof *p + p->patch.len, ended, rt_problem_busy);
}

void rt_page_work_finish(rt_exchange *x) { end(x, RT_EVENT_FINISHED); }
void rt_page_work_fail(rt_exchange *x) { end(x, RT_EVENT_FAILED); }
void rt_page_work_cancel(rt_exchange *x) { end(x, RT_EVENT_CANCELED); }
