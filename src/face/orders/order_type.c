#include "engine/messages/subscription.h"
#include "face/common/target.h"
#include "face/orders/parts.h"

enum {
    RUN_LIMIT_S = 30,
    RUN_LIMIT_MAX_S = 3600,
    ANSWER_LIMIT_S = 3600,
    ANSWER_LIMIT_MAX_S = 30 * 24 * 3600,
    ATTEMPTS_MAX = 1000000,
    CONCURRENCY_MAX = 65536
};

static bool members_are_right(rt_exchange *x, json_t *body) {
    static const rt_member MEMBERS[] = {
        {"target", JSON_OBJECT, "an object"},        {"first_task", JSON_STRING, "a string"},
        {"backoff", JSON_OBJECT, "an object"},       {"max_attempts", JSON_INTEGER, "an integer"},
        {"run_limit_s", JSON_INTEGER, "an integer"}, {"answer_limit_s", JSON_INTEGER, "an integer"},
        {"concurrency", JSON_INTEGER, "an integer"}, {"cancel", JSON_TRUE, "true or false"},
    };
    static const rt_member OF_TARGET[] = {
        {"plugin", JSON_STRING, "a string"},
        {"url", JSON_STRING, "a string"},
        {"headers", JSON_OBJECT, "an object"},
    };
    json_t *target = json_object_get(body, "target");
    json_t *secret = json_incref(json_object_get(target, "secret")); // a string or a list: target.h knows
    (void)json_object_del(target, "secret");
    const bool right = rt_members_are_right(x, body, MEMBERS, sizeof MEMBERS / sizeof MEMBERS[0]) &&
                       rt_members_are_right(x, target, OF_TARGET, sizeof OF_TARGET / sizeof OF_TARGET[0]);
    if (secret != NULL) (void)json_object_set_new(target, "secret", secret);
    return right;
}

/* ---- the target ---------------------------------------------------------------------------------------- */

static bool take_plugin(rt_exchange *x, const json_t *target, rt_order_type *out) {
    rt_str name;
    if (json_object_size(target) != 1) {
        rt_problem(
            x, 400,
            "\"target\" has either \"plugin\" or \"url\"; \"headers\" and \"secret\" go with \"url\".");
        return false;
    }
    if (!rt_field_text(x, target, "plugin", RT_REQUIRED, RT_PLUGIN_NAME_MAX, &name)) return false;
    if (!rt_plugin_name_is_valid(name)) {
        rt_problem(x, 400, "\"target\": \"plugin\" must be 1 to %d of a-z, 0-9, '_' and '-'.",
                   RT_PLUGIN_NAME_MAX);
        return false;
    }
    out->target = rt_arena_printf(rt_exchange_arena(x), "plugin:%.*s", RT_STR_ARG(name));
    if (out->target.ptr == NULL) rt_problem_of(x, RT_E_NOMEM, NULL, "memory");
    return out->target.ptr != NULL;
}

static bool take_url(rt_exchange *x, const json_t *target, rt_order_type *out) {
    const rt_api *api = rt_api_of(x);
    rt_str host;
    if (!rt_field_text(x, target, "url", RT_REQUIRED, RT_URI_MAX, &out->target)) return false;
    if (!rt_target_host(out->target, &host)) {
        rt_problem(x, 400,
                   "\"target\": \"url\" must be an absolute http or https URL with a host, percent-encoded.");
        return false;
    }
    const char *why = api->refuse_target == NULL ? NULL : api->refuse_target(api->refuse_target_ctx, host);
    if (why != NULL) rt_problem(x, 400, "\"target\": \"url\": %s", why);
    if (why != NULL) return false;
    rt_arena *arena = rt_exchange_arena(x);
    rt_str trouble = RT_STR_EMPTY;
    rt_code code = rt_target_headers(json_object_get(target, "headers"), "target.headers", arena,
                                     &out->headers, &trouble);
    if (code == RT_OK)
        code = rt_target_secrets(json_object_get(target, "secret"), "target.secret", arena, out->secrets,
                                 &trouble);
    if (code == RT_E_INVALID) rt_problem(x, 400, "%.*s", RT_STR_ARG(trouble));
    else if (code != RT_OK) rt_problem_of(x, code, NULL, "memory");
    return code == RT_OK;
}

static bool take_target(rt_exchange *x, const json_t *target, rt_order_type *out) {
    if (json_object_get(target, "plugin") != NULL) return take_plugin(x, target, out);
    if (json_object_get(target, "url") != NULL) return take_url(x, target, out);
    rt_problem(x, 400, "\"target\" must be {\"plugin\": NAME} or {\"url\": URL}.");
    return false;
}

/* ---- registering --------------------------------------------------------------------------------------- */

static bool take_type(rt_exchange *x, const json_t *body, rt_order_type *out) {
    int64_t attempts, run_s, answer_s, concurrency;
    if (!take_target(x, json_object_get(body, "target"), out) ||
        !rt_field_text(x, body, "first_task", RT_OPTIONAL, RT_RUN_TASK_MAX, &out->first_task) ||
        !rt_field_backoff(x, json_object_get(body, "backoff"), &out->backoff) ||
        !rt_field_int(x, body, "max_attempts", 0, ATTEMPTS_MAX, 0, &attempts) ||
        !rt_field_int(x, body, "run_limit_s", 1, RUN_LIMIT_MAX_S, RUN_LIMIT_S, &run_s) ||
        !rt_field_int(x, body, "answer_limit_s", 1, ANSWER_LIMIT_MAX_S, ANSWER_LIMIT_S, &answer_s) ||
        !rt_field_int(x, body, "concurrency", 0, CONCURRENCY_MAX, 0, &concurrency) ||
        !rt_field_bool(x, body, "cancel", &out->cancel)) {
        return false;
    }
    out->max_attempts = (uint32_t)attempts;
    out->run_limit_ms = (uint32_t)(run_s * 1000);
    out->answer_limit_s = (uint32_t)answer_s;
    out->concurrency = (uint32_t)concurrency;
    return true;
}

static bool take_name(rt_exchange *x, rt_str *out) {
    *out = rt_exchange_param(x, 0);
    if (rt_name_is_word(*out)) return true;
    rt_problem(x, 400, "An order type is 1 to %d letters, digits, '_', '-' or '.'.", RT_ORDER_TYPE_NAME_MAX);
    return false;
}

static void registered(rt_exchange *x, rt_command *cmd) {
    const rt_order_type_put *c = (const rt_order_type_put *)cmd;
    if (cmd->code == RT_OK)
        rt_reply_json(x, c->created ? 201 : 200, rt_show_order_type(c->tenant, c->name, &c->like));
    else rt_problem_of(x, cmd->code, &cmd->err, "order type");
}

void rt_page_order_type_put(rt_exchange *x) {
    rt_order_type_put *c = RT_NEW(x, rt_order_type_put);
    if (c == NULL) return;
    rt_order_type_put_init(c);
    c->tenant = rt_tenant_of(x);
    if (!take_name(x, &c->name)) return;
    json_t *body = rt_body_json(x);
    if (body == NULL) return;
    const bool fine = members_are_right(x, body) && take_type(x, body, &c->like);
    json_decref(body);
    if (fine) rt_api_submit(x, &c->cmd, sizeof *c, registered, rt_problem_busy);
}

static void deleted(rt_exchange *x, rt_command *cmd) {
    if (cmd->code == RT_OK) rt_exchange_reply(x, 204, NULL, RT_STR_EMPTY);
    else rt_problem_of(x, cmd->code, &cmd->err, "order type");
}

void rt_page_order_type_delete(rt_exchange *x) {
    rt_order_type_delete *c = RT_NEW(x, rt_order_type_delete);
    if (c == NULL) return;
    rt_order_type_delete_init(c);
    c->tenant = rt_tenant_of(x);
    if (take_name(x, &c->name)) rt_api_submit(x, &c->cmd, sizeof *c, deleted, rt_problem_busy);
}
