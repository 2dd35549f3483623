#include "face/work/parts.h"

enum { WAIT_MS_MAX = 60000 };

/* A claim and how long its client waits; in the exchange's arena. */
typedef struct waiting_claim {
    rt_work_claim claim; /* first member */
    int64_t until_ms;    /* the client's patience */
    int64_t round_ms;    /* the engine's: within the time that the server gives a suspended request */
} waiting_claim;

/* ---- claiming ------------------------------------------------------------------------------------------ */

static void reply_found(rt_exchange *x, const rt_work_claim *c) {
    json_t *json = rt_json_work(x, &c->work);
    if (json != NULL) {
        (void)json_object_set_new(json, "token", rt_json_token(c->work.token));
        (void)json_object_set_new(json, "value", rt_json_value(c->value));
    }
    rt_reply_json(x, 200, json);
}

static void claimed(rt_exchange *x, rt_command *cmd);

static void ask(rt_exchange *x, waiting_claim *w) {
    const int64_t now_ms = rt_api_of(x)->now_ms();
    const int64_t round_ends_ms = now_ms + w->round_ms;
    w->claim.wait_until_ms = w->until_ms < round_ends_ms ? w->until_ms : round_ends_ms;
    rt_api_submit(x, &w->claim.cmd, sizeof *w, claimed, rt_problem_busy);
}

static void claimed(rt_exchange *x, rt_command *cmd) {
    waiting_claim *w = (waiting_claim *)cmd;
    const bool stopping = rt_api_of(x)->stopping != NULL && atomic_load(rt_api_of(x)->stopping);
    if (cmd->code != RT_OK) rt_problem_work(x, cmd, w->claim.refusal, "process");
    else if (w->claim.found) reply_found(x, &w->claim);
    else if (w->until_ms > rt_api_of(x)->now_ms() && !stopping) ask(x, w);
    else rt_exchange_reply(x, 204, NULL, RT_STR_EMPTY);
}

static bool read_claim(rt_exchange *x, const json_t *body, rt_work_claim *c, int64_t *wait_ms) {
    if (!rt_field_session(x, body, &c->session)) return false;
    if (!rt_field_word(x, body, "process", RT_REQUIRED, &c->process)) return false;
    if (!rt_field_word(x, body, "kind", RT_OPTIONAL, &c->kind)) return false;
    if (!rt_field_names(x, body, "candidates", true, RT_CLAIM_CANDIDATES_MAX, &c->candidates,
                        &c->candidates_count)) {
        return false;
    }
    if (!rt_field_bool(x, body, "ignore_backoff", &c->ignore_backoff)) return false;
    if (!rt_field_bool(x, body, "strict", &c->strict)) return false;
    if (!rt_field_int(x, body, "wait_ms", 0, WAIT_MS_MAX, 0, wait_ms)) return false;
    if ((c->candidates == NULL) == (c->kind.len == 0)) {
        rt_problem(x, 400, "A claim names either \"candidates\" or a \"kind\".");
        return false;
    }
    rt_str key;
    if (!rt_exchange_header(x, "Idempotency-Key", &key) || key.len == 0) return true;
    if (key.len > RT_CLAIM_KEY_MAX) {
        rt_problem(x, 400, "Idempotency-Key has at most %d bytes.", RT_CLAIM_KEY_MAX);
        return false;
    }
    c->key = key;
    return true;
}

void rt_page_work_claim(rt_exchange *x) {
    waiting_claim *w = RT_NEW(x, waiting_claim);
    json_t *body = w == NULL ? NULL : rt_body_json(x);
    if (body == NULL) return;
    rt_work_claim_init(&w->claim);
    int64_t wait_ms;
    const bool valid = RT_MEMBERS_ARE_KNOWN(x, body, "session", "process", "kind", "candidates", "strict",
                                            "ignore_backoff", "wait_ms") &&
                       read_claim(x, body, &w->claim, &wait_ms);
    json_decref(body);
    if (!valid) return;
    const rt_api *api = rt_api_of(x);
    w->claim.tenant = rt_tenant_of(x);
    w->claim.arena = rt_exchange_arena(x);
    w->until_ms = api->now_ms() + wait_ms;
    w->round_ms = api->deadline_ms > 0 ? api->deadline_ms / 2 : WAIT_MS_MAX;
    ask(x, w);
}

/* ---- what is worked on --------------------------------------------------------------------------------- */

typedef struct listing {
    rt_exchange *x;
    json_t *array;
    rt_str process, entity;
    int64_t left;
} listing;

static bool add_work(void *ctx, const rt_work *w, int64_t deadline_ms) {
    listing *l = ctx;
    if (l->process.len > 0 && !rt_str_eq(l->process, w->process)) return true;
    if (l->entity.len > 0 && !rt_str_eq(l->entity, w->entity)) return true;
    json_t *json = rt_json_work(l->x, w);
    if (json != NULL) (void)json_object_set_new(json, "deadline", rt_json_time(deadline_ms));
    return json_array_append_new(l->array, json) == 0 && --l->left > 0;
}

/* "SESSION/WORK" of the last line. False: replied. */
static bool read_marker(rt_exchange *x, rt_id *session, rt_id *work) {
    rt_str text, first, second;
    *session = *work = 0;
    if (!rt_exchange_arg(x, "marker", &text) || text.len == 0) return true;
    const uint32_t tag = rt_engine_tag(rt_api_of(x)->engine);
    if (rt_str_cut(text, '/', &first, &second) && rt_id_parse(tag, first, session) &&
        rt_id_parse(tag, second, work)) {
        return true;
    }
    rt_problem(x, 400, "\"marker\" must be SESSION/WORK of the last line that was read.");
    return false;
}

void rt_page_work_list(rt_exchange *x) {
    listing l = {.x = x, .process = RT_STR_EMPTY, .entity = RT_STR_EMPTY};
    rt_id session, after_session, after;
    if (!rt_arg_int(x, "limit", 1, RT_WORK_PAGE_MAX, RT_WORK_PAGE_DEFAULT, &l.left)) return;
    if (!rt_arg_id(x, "session", &session) || !read_marker(x, &after_session, &after)) return;
    (void)rt_exchange_arg(x, "process", &l.process);
    (void)rt_exchange_arg(x, "entity", &l.entity);
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return;
    l.array = json_array();
    const rt_code code = rt_read_work(v, rt_exchange_arena(x), rt_tenant_of(x), session, after_session,
                                      after, rt_api_of(x)->now_ms(), add_work, &l);
    rt_view_close(v);
    if (code == RT_OK) {
        rt_reply_json(x, 200, l.array);
        return;
    }
    json_decref(l.array);
    rt_problem_of(x, code, NULL, "work");
}
