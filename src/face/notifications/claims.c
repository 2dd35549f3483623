#include "face/notifications/claims.h"

#include <inttypes.h>

#include "engine/messages/claim.h"
#include "face/notifications/caller.h"
#include "face/notifications/render.h"

/* ---- ttl and grace ------------------------------------------------------------------------------------- */

typedef struct terms {
    int64_t ttl_s, grace_s;
} terms;

static terms default_terms(const rt_exchange *x) {
    const rt_limits *limits = rt_limits_of(x);
    return (terms){(int64_t)limits->default_claim_ttl, (int64_t)limits->default_claim_grace};
}

/* Of the body; what it leaves out is the default. False: replied. */
static bool take_terms(rt_exchange *x, terms *out) {
    static const rt_str FIELDS[] = {{"ttl", 3}, {"grace", 5}};
    rt_json_scan scan = {.fields = FIELDS, .fields_count = 2, .arena = rt_exchange_arena(x)};
    if (rt_zaqar_refuse_json(x, rt_json_scan_text(&scan, rt_exchange_body(x)))) return false;
    if (scan.top == RT_JSON_ARRAY) {
        rt_zaqar_bad_body(x, "Document type not supported.");
        return false;
    }
    if (scan.top != RT_JSON_OBJECT) return !rt_zaqar_refuse_json(x, RT_JSON_MALFORMED);
    return rt_take_int_field(x, &scan.rows[0], "ttl", &out->ttl_s) &&
           rt_take_int_field(x, &scan.rows[1], "grace", &out->grace_s);
}

static bool is_in_range(rt_exchange *x, const char *name, int64_t seconds, uint64_t max) {
    if (seconds >= RT_TTL_S_MIN && (uint64_t)seconds <= max) return true;
    rt_zaqar_bad_request(x, "The %s for a claim may not exceed %" PRIu64 " seconds, and must be at least %d seconds long.",
                         name, max, RT_TTL_S_MIN);
    return false;
}

/* ---- POST ---------------------------------------------------------------------------------------------- */

static void post_done(rt_exchange *x, rt_command *cmd) {
    const rt_claim_create *c = (const rt_claim_create *)cmd;
    if (cmd->code != RT_OK) {
        rt_zaqar_fail(x, cmd->code, "Claim could not be created.");
        return;
    }
    if (c->count == 0) {
        rt_render_no_content(x);
        return;
    }
    const rt_message_place place = rt_message_place_of(x);
    const rt_str location = rt_arena_printf(rt_exchange_arena(x), "%.*s/claims/%s", RT_STR_ARG(place.path),
                                            rt_id_format(place.tag, c->lease.id).s);
    rt_exchange_set_header(x, RT_LOCATION, location);
    rt_buf body = {0};
    rt_buf_add(&body, RT_STR("{\"messages\": ["));
    for (uint32_t i = 0; i < c->count; i++) {
        if (i > 0) rt_buf_add(&body, RT_STR(", "));
        rt_render_message(&body, &place, &c->messages[i], c->lease.id);
    }
    rt_buf_add(&body, RT_STR("]}"));
    rt_exchange_reply_buf(x, 201, "application/json", &body);
}

void rt_claims_post(rt_exchange *x) {
    rt_caller caller;
    const rt_limits *limits = rt_limits_of(x);
    const uint64_t max = limits->max_messages_per_claim_or_pop;
    terms asked = default_terms(x);
    int64_t limit = rt_page_default(max);
    bool given;
    if (!rt_caller_admit(x, true, &caller) || !rt_take_int(x, "limit", &limit, &given)) return;
    if (rt_exchange_body(x).len > 0 && !take_terms(x, &asked)) return;
    if (!is_in_range(x, "TTL", asked.ttl_s, limits->max_claim_ttl)) return;
    if (!rt_is_page_size(limit, max)) {
        rt_zaqar_bad_request(x, "Limit must be at least 1 and may not be greater than %" PRIu64 ".", max);
        return;
    }
    if (!is_in_range(x, "grace", asked.grace_s, limits->max_claim_grace)) return;
    rt_claim_create *c = rt_arena_alloc(rt_exchange_arena(x), sizeof *c);
    if (c == NULL) {
        rt_zaqar_busy(x);
        return;
    }
    rt_claim_create_init(c);
    c->tenant = caller.project;
    c->queue = caller.queue;
    c->ttl_s = (uint32_t)asked.ttl_s;
    c->grace_s = (uint32_t)asked.grace_s;
    c->limit = (uint32_t)limit;
    c->arena = rt_exchange_arena(x);
    rt_api_submit(x, &c->cmd, sizeof *c, post_done, rt_zaqar_busy);
}

/* ---- one claim ----------------------------------------------------------------------------------------- */

static void refuse_unknown(rt_exchange *x, rt_str queue, rt_str project) {
    rt_zaqar_not_found(x, "Claim %.*s does not exist in queue %.*s for project %.*s",
                       RT_STR_ARG(rt_exchange_param(x, 1)), RT_STR_ARG(queue), RT_STR_ARG(project));
}

/* The claim that the path names; false: it is no id. */
static bool take_claim_id(const rt_exchange *x, rt_id *out) {
    return rt_id_parse(rt_engine_tag(rt_api_of(x)->engine), rt_exchange_param(x, 1), out);
}

static rt_code read_claim(rt_exchange *x, rt_view *view, const rt_caller *caller, int64_t now_ms, rt_lease *lease,
                          rt_message messages[RT_LEASE_JOBS_MAX], uint32_t *count) {
    rt_id id;
    rt_metadata metadata;
    uint64_t version;
    if (!take_claim_id(x, &id)) return RT_E_ABSENT;
    const rt_code code =
        rt_read_metadata(view, rt_exchange_arena(x), caller->project, caller->queue, &metadata, &version);
    if (code != RT_OK) return code;
    return rt_read_claim(view, rt_exchange_arena(x), metadata.jobs, id, now_ms, lease, messages, count);
}

void rt_claims_get(rt_exchange *x) {
    static const char WHAT[] = "Claim could not be queried.";
    rt_caller caller;
    rt_view *view;
    if (!rt_caller_admit(x, true, &caller) || !rt_take_view(x, WHAT, &view)) return;
    const rt_message_place place = rt_message_place_of(x);
    rt_lease lease;
    rt_message messages[RT_LEASE_JOBS_MAX];
    uint32_t count;
    const rt_code code = read_claim(x, view, &caller, place.now_ms, &lease, messages, &count);
    rt_view_close(view);
    if (code != RT_OK) {
        if (code == RT_E_ABSENT) refuse_unknown(x, caller.queue, caller.project);
        else rt_zaqar_fail(x, code, WHAT);
        return;
    }
    const int64_t age_ms = place.now_ms > lease.from_ms ? place.now_ms - lease.from_ms : 0;
    rt_buf body = {0};
    rt_buf_addf(&body, "{\"age\": %" PRId64 ", \"ttl\": %" PRIu32 ", \"messages\": [", age_ms / 1000, lease.ttl_s);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0) rt_buf_add(&body, RT_STR(", "));
        rt_render_message(&body, &place, &messages[i], lease.id);
    }
    rt_buf_addf(&body, "], \"href\": \"%.*s/claims/%s\"}", RT_STR_ARG(place.path),
                rt_id_format(place.tag, lease.id).s);
    rt_render_json(x, &body);
}

static void patch_done(rt_exchange *x, rt_command *cmd) {
    const rt_claim_renew *c = (const rt_claim_renew *)cmd;
    if (cmd->code == RT_OK) rt_render_no_content(x);
    else if (cmd->code == RT_E_ABSENT) refuse_unknown(x, c->queue, c->tenant);
    else rt_zaqar_fail(x, cmd->code, "Claim could not be updated.");
}

void rt_claims_patch(rt_exchange *x) {
    rt_caller caller;
    const rt_limits *limits = rt_limits_of(x);
    terms asked = default_terms(x);
    if (!rt_caller_admit(x, true, &caller)) return;
    if (!rt_exchange_has_body(x)) {
        rt_zaqar_bad_body(x, "Request body can not be empty");
        return;
    }
    if (!take_terms(x, &asked) || !is_in_range(x, "TTL", asked.ttl_s, limits->max_claim_ttl)) return;
    // Zaqar takes any grace here; more than its own maximum elsewhere makes no sense.
    if (asked.grace_s < 0) asked.grace_s = 0;
    if ((uint64_t)asked.grace_s > limits->max_claim_grace) asked.grace_s = (int64_t)limits->max_claim_grace;
    rt_id id;
    if (!take_claim_id(x, &id)) {
        refuse_unknown(x, caller.queue, caller.project);
        return;
    }
    rt_claim_renew *c = rt_arena_alloc(rt_exchange_arena(x), sizeof *c);
    if (c == NULL) {
        rt_zaqar_busy(x);
        return;
    }
    rt_claim_renew_init(c);
    c->tenant = caller.project;
    c->queue = caller.queue;
    c->id = id;
    c->ttl_s = (uint32_t)asked.ttl_s;
    c->grace_s = (uint32_t)asked.grace_s;
    rt_api_submit(x, &c->cmd, sizeof *c, patch_done, rt_zaqar_busy);
}

static void delete_done(rt_exchange *x, rt_command *cmd) {
    if (cmd->code == RT_OK) rt_render_no_content(x);
    else rt_zaqar_fail(x, cmd->code, "Claim could not be deleted.");
}

void rt_claims_delete(rt_exchange *x) {
    rt_caller caller;
    if (!rt_caller_admit(x, true, &caller)) return;
    rt_id id;
    if (!take_claim_id(x, &id)) {
        rt_render_no_content(x); // no such claim: that is what was asked for
        return;
    }
    rt_claim_release *c = rt_arena_alloc(rt_exchange_arena(x), sizeof *c);
    if (c == NULL) {
        rt_zaqar_busy(x);
        return;
    }
    rt_claim_release_init(c);
    c->tenant = caller.project;
    c->queue = caller.queue;
    c->id = id;
    rt_api_submit(x, &c->cmd, sizeof *c, delete_done, rt_zaqar_busy);
}
