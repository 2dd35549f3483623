
#include "face/notifications/caller.h"
#include "face/notifications/confirmation.h"
#include "face/notifications/render.h"
#include "face/notifications/subscription_document.h"
#include "face/notifications/subscriptions.h"
#include "json/tree.h"

enum { TRIES_MAX = 5 };

static void set_location(rt_exchange *x, rt_str rest) {
    rt_exchange_set_header(x, RT_LOCATION, rt_arena_printf(rt_exchange_arena(x), "%.*s/subscriptions%.*s",
                                                          RT_STR_ARG(rt_about_path(x)), RT_STR_ARG(rest)));
}

static void refuse_unknown(rt_exchange *x) {
    rt_zaqar_not_found(x, "Subscription %.*s does not exist", RT_STR_ARG(rt_exchange_param(x, 1)));
}

/* ---- POST ---------------------------------------------------------------------------------------------- */

typedef struct creating {
    rt_subscription_create create; /* first: the command */
    const rt_api *api;
    rt_str path; /* rt_about_path */
} creating;

/* On the engine's thread. */
static void ask_to_confirm(rt_subscription_create *c, rt_id id, int64_t expires_ms, rt_arena *arena, rt_str *body) {
    const creating *own = (const creating *)c;
    const rt_confirmation asked = {RT_CONFIRMATION_ASK, c->tenant, c->queue, own->path, id, expires_ms};
    *body = rt_confirmation_write(own->api, &asked, arena);
}

static void post_done(rt_exchange *x, rt_command *cmd) {
    const rt_subscription_create *c = (const rt_subscription_create *)cmd;
    if (cmd->code == RT_OK) {
        const uint32_t tag = rt_engine_tag(rt_api_of(x)->engine);
        rt_buf body = {0};
        rt_buf_addf(&body, "{\"subscription_id\": \"%s\"}", rt_id_format(tag, c->id).s);
        set_location(x, RT_STR_EMPTY);
        rt_exchange_reply_buf(x, 201, "application/json", &body);
    } else if (cmd->code == RT_E_EXISTS) {
        set_location(x, RT_STR_EMPTY);
        rt_zaqar_refuse(x, 409, "Resource conflict",
                        RT_STR("Such subscription already exists.Subscriptions are unique by project + queue + "
                               "subscriber URI."));
    } else if (cmd->code == RT_E_TOO_LARGE) {
        rt_zaqar_bad_request(x, "%s", cmd->err.msg);
    } else {
        rt_zaqar_fail(x, cmd->code, "Subscription could not be created.");
    }
}

void rt_subscriptions_post(rt_exchange *x) {
    rt_caller caller;
    rt_subscription_document document;
    if (!rt_caller_admit(x, true, &caller) || !rt_subscription_document_take(x, true, &document)) return;
    creating *c = rt_arena_alloc(rt_exchange_arena(x), sizeof *c);
    if (c == NULL) {
        rt_zaqar_busy(x);
        return;
    }
    c->api = rt_api_of(x);
    c->path = rt_about_path(x);
    rt_subscription_create_init(&c->create);
    c->create.tenant = caller.project;
    c->create.queue = caller.queue;
    c->create.like = document.said;
    if (c->api->require_confirmation) c->create.confirm = ask_to_confirm;
    rt_api_submit(x, &c->create.cmd, sizeof *c + rt_exchange_body(x).len, post_done, rt_zaqar_busy);
}

/* ---- PATCH --------------------------------------------------------------------------------------------- */

/* A change under way: read, and written if nobody was faster, else once more. */
typedef struct patching {
    rt_subscription_patch patch; /* first: the command */
    rt_str project, queue;
    rt_id id;
    rt_subscription_document document;
    uint32_t tries;
} patching;

static void try_patch(rt_exchange *x, patching *p);

static void refuse_update(rt_exchange *x) {
    rt_zaqar_refuse(x, 400, "Unable to update subscription",
                    rt_arena_printf(rt_exchange_arena(x), "Subscription %.*s could not be updated.",
                                    RT_STR_ARG(rt_exchange_param(x, 1))));
}

static void patch_done(rt_exchange *x, rt_command *cmd) {
    patching *p = (patching *)cmd;
    if (cmd->code == RT_OK) {
        const rt_str id = rt_exchange_param(x, 1);
        set_location(x, rt_arena_printf(rt_exchange_arena(x), "/%.*s", RT_STR_ARG(id)));
        rt_render_no_content(x);
    } else if (cmd->code == RT_E_ABSENT) {
        refuse_unknown(x);
    } else if (cmd->code == RT_E_EXISTS) {
        rt_zaqar_refuse(x, 409, "Resource conflict",
                        RT_STR("Such subscription already exists. Subscriptions are unique by project + queue + "
                               "subscriber URI."));
    } else if (cmd->code == RT_E_TOO_LARGE) {
        rt_zaqar_bad_request(x, "%s", cmd->err.msg);
    } else if (cmd->code == RT_E_CONFLICT && p->tries < TRIES_MAX) {
        try_patch(x, p);
    } else {
        rt_zaqar_fail(x, cmd->code, "Subscription could not be updated.");
    }
}

/* The subscription and its version as they are now. */
static rt_code read_subscription(rt_exchange *x, rt_str project, rt_str queue_name, rt_id id, rt_subscription *out,
                                 uint64_t *version) {
    const rt_api *api = rt_api_of(x);
    rt_view *view;
    rt_err err;
    rt_code code = rt_engine_view(api->engine, &view, &err);
    if (code != RT_OK) return code;
    rt_metadata queue;
    code = rt_read_metadata(view, rt_exchange_arena(x), project, queue_name, &queue, version);
    if (code == RT_OK) {
        code = rt_read_subscription(view, rt_exchange_arena(x), queue.id, id, api->now_ms(), out, version);
    }
    rt_view_close(view);
    return code;
}

static void try_patch(rt_exchange *x, patching *p) {
    rt_subscription stored;
    uint64_t version;
    if (rt_exchange_moves(x)) return;
    const rt_code code = read_subscription(x, p->project, p->queue, p->id, &stored, &version);
    if (code != RT_OK) {
        if (code == RT_E_ABSENT) refuse_unknown(x);
        else rt_zaqar_fail(x, code, "Subscription could not be updated.");
        return;
    }
    p->tries++;
    rt_subscription_patch_init(&p->patch);
    p->patch.tenant = p->project;
    p->patch.queue = p->queue;
    p->patch.id = p->id;
    p->patch.version = version;
    p->patch.set_uri = p->document.has_uri;
    p->patch.set_ttl = p->document.has_ttl;
    p->patch.set_options = p->document.has_options;
    p->patch.with = p->document.said;
    rt_api_submit(x, &p->patch.cmd, sizeof *p + rt_exchange_body(x).len, patch_done, rt_zaqar_busy);
}

void rt_subscriptions_patch(rt_exchange *x) {
    rt_caller caller;
    patching *p = rt_arena_alloc(rt_exchange_arena(x), sizeof *p);
    if (!rt_caller_admit(x, true, &caller)) return;
    if (p == NULL) {
        rt_zaqar_busy(x);
        return;
    }
    const rt_subscription_document *document = &p->document;
    if (!rt_subscription_document_take(x, false, &p->document)) return;
    if (!document->has_uri && !document->has_ttl && !document->has_options) {
        refuse_update(x);
    } else if (!rt_id_parse(rt_engine_tag(rt_api_of(x)->engine), rt_exchange_param(x, 1), &p->id)) {
        refuse_unknown(x);
    } else {
        p->project = caller.project;
        p->queue = caller.queue;
        try_patch(x, p);
    }
}

/* ---- PUT …/confirm ------------------------------------------------------------------------------------- */

static void confirm_done(rt_exchange *x, rt_command *cmd) {
    if (cmd->code == RT_OK) {
        set_location(x, rt_arena_printf(rt_exchange_arena(x), "/%.*s/confirm", RT_STR_ARG(rt_exchange_param(x, 1))));
        rt_render_no_content(x);
    } else if (cmd->code == RT_E_ABSENT) {
        refuse_unknown(x);
    } else {
        rt_zaqar_fail(x, cmd->code, "Subscription could not be confirmed.");
    }
}

static bool take_confirmed(rt_exchange *x, bool *confirmed) {
    static const rt_str FIELD = {"confirmed", 9};
    rt_json_scan scan = {.fields = &FIELD, .fields_count = 1, .arena = rt_exchange_arena(x)};
    const rt_str body = rt_exchange_body(x);
    if (body.len > 0 && rt_zaqar_refuse_json(x, rt_json_scan_text(&scan, body))) return false;
    if (body.len > 0 && scan.top != RT_JSON_OBJECT && scan.top != RT_JSON_ARRAY) {
        (void)rt_zaqar_refuse_json(x, RT_JSON_MALFORMED);
        return false;
    }
    if (scan.top == RT_JSON_OBJECT && scan.rows[0].kind == RT_JSON_BOOL) {
        *confirmed = scan.rows[0].integer != 0;
        return true;
    }
    rt_zaqar_bad_request(x, "The 'confirmed' should be boolean.");
    return false;
}

/* What a subscriber is told that no longer wants to hear; only where confirmations are asked for at all. False: replied. */
static bool write_goodbye(rt_exchange *x, rt_subscription_confirm *c) {
    rt_subscription s;
    uint64_t version;
    rt_code code = read_subscription(x, c->tenant, c->queue, c->id, &s, &version);
    if (code == RT_E_ABSENT) {
        refuse_unknown(x);
        return false;
    }
    if (code == RT_OK) {
        const rt_confirmation said = {RT_CONFIRMATION_GOODBYE, c->tenant, c->queue, rt_about_path(x), c->id,
                                      s.created_ms + (int64_t)s.ttl_s * 1000};
        c->goodbye = rt_confirmation_write(rt_api_of(x), &said, rt_exchange_arena(x));
        if (c->goodbye.ptr == NULL) code = RT_E_NOMEM;
    }
    if (code != RT_OK) rt_zaqar_fail(x, code, "Subscription could not be confirmed.");
    return code == RT_OK;
}

void rt_subscriptions_confirm(rt_exchange *x) {
    rt_caller caller;
    bool confirmed;
    if (!rt_caller_admit(x, true, &caller) || !take_confirmed(x, &confirmed)) return;
    rt_id id;
    if (!rt_id_parse(rt_engine_tag(rt_api_of(x)->engine), rt_exchange_param(x, 1), &id)) {
        refuse_unknown(x);
        return;
    }
    rt_subscription_confirm *c = rt_arena_alloc(rt_exchange_arena(x), sizeof *c);
    if (c == NULL) {
        rt_zaqar_busy(x);
        return;
    }
    rt_subscription_confirm_init(c);
    c->tenant = caller.project;
    c->queue = caller.queue;
    c->id = id;
    c->confirmed = confirmed;
    c->goodbye = RT_STR_EMPTY;
    if (!confirmed && rt_api_of(x)->require_confirmation && !write_goodbye(x, c)) return;
    rt_api_submit(x, &c->cmd, sizeof *c + c->goodbye.len, confirm_done, rt_zaqar_busy);
}
