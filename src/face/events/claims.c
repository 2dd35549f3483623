#include <inttypes.h>

#include "face/common/payload.h"
#include "face/common/timestamp.h"
#include "face/events/batch.h"
#include "face/events/parts.h"
#include "json/tree.h"

enum { WAIT_MS_MAX = 60000, LEASE_S_PRESET = 60, WORKER_MAX = 128 };

/* A claim and how long its client waits; in the exchange's arena. */
typedef struct waiting_claim {
    rt_call_claim claim; /* first member */
    int64_t until_ms;    /* the client's patience */
    int64_t round_ms;    /* the engine's: within the time that the server gives a suspended request */
    bool waits;
} waiting_claim;

static void write_text(rt_buf *out, const char *name, rt_str text) {
    rt_buf_addf(out, ", \"%s\": ", name);
    if (text.len == 0) rt_buf_add(out, RT_STR("null"));
    else rt_json_write_str(out, text);
}

static void write_claimed(rt_buf *out, uint32_t tag, const rt_claimed_call *c) {
    rt_buf_addf(out, "{\"id\": \"%s\", \"token\": \"%016" PRIx64 "\"", rt_id_format(tag, c->job.id).s, c->token);
    write_text(out, "type", c->call.type);
    write_text(out, "content_type", c->call.content_type);
    write_text(out, "reason", c->call.reason);
    write_text(out, "order_key", c->call.order_key);
    rt_buf_addf(out, ", \"attempt\": %" PRIu32 ", \"lease_until\": \"%s.%03dZ\", ", c->job.attempt + 1,
                rt_timestamp_format(c->until_ms / 1000).s, (int)(c->until_ms % 1000));
    rt_payload_write(out, c->call.content_type, c->call.payload);
    rt_buf_add_char(out, '}');
}

static void reply_claimed(rt_exchange *x, const rt_call_claim *c) {
    const uint32_t tag = rt_engine_tag(rt_api_of(x)->engine);
    rt_buf out = {0};
    rt_buf_add(&out, RT_STR("{\"jobs\": ["));
    for (uint32_t i = 0; i < c->count; i++) {
        if (i > 0) rt_buf_add(&out, RT_STR(", "));
        write_claimed(&out, tag, &c->calls[i]);
    }
    rt_buf_add(&out, RT_STR("]}"));
    // Nothing may be missing: what is leased and not shown would count as a failed attempt.
    if (!out.failed) {
        rt_exchange_reply_buf(x, 200, "application/json", &out);
        return;
    }
    rt_buf_deinit(&out);
    rt_problem_of(x, RT_E_NOMEM, NULL, "memory");
}

static void claimed(rt_exchange *x, rt_command *cmd);

static void ask(rt_exchange *x, waiting_claim *w) {
    const int64_t now_ms = rt_api_of(x)->now_ms();
    const int64_t round_ends_ms = now_ms + w->round_ms;
    const int64_t until_ms = w->until_ms < round_ends_ms ? w->until_ms : round_ends_ms;
    w->claim.wait_until_ms = until_ms > now_ms ? until_ms : 0;
    rt_api_submit(x, &w->claim.cmd, sizeof *w, claimed, rt_problem_busy);
}

static void given_back(rt_exchange *x, rt_command *cmd) {
    (void)cmd; // if it failed, the leases run out
    rt_exchange_reply(x, 204, NULL, RT_STR_EMPTY);
}

static void claimed(rt_exchange *x, rt_command *cmd) {
    waiting_claim *w = (waiting_claim *)cmd;
    const bool stopping = rt_api_of(x)->stopping != NULL && atomic_load(rt_api_of(x)->stopping);
    const bool gone = w->waits && rt_exchange_is_gone(x);
    if (cmd->code != RT_OK) {
        rt_problem_event(x, cmd, "event type", "pushed");
    } else if (w->claim.count > 0 && gone) {
        // A worker that was stopped while it waited: its events are another's, now and untried.
        rt_call_claim_give_back(&w->claim);
        rt_api_submit(x, &w->claim.cmd, sizeof *w, given_back, rt_problem_busy);
    } else if (w->claim.count > 0) {
        reply_claimed(x, &w->claim);
    } else if (w->until_ms > rt_api_of(x)->now_ms() && !stopping && !gone) {
        ask(x, w);
    } else {
        rt_exchange_reply(x, 204, NULL, RT_STR_EMPTY);
    }
}

static bool read_claim(rt_exchange *x, json_t *body, rt_call_claim *c, int64_t *wait_ms) {
    static const rt_member MEMBERS[] = {{"worker", JSON_STRING, "a string"},
                                        {"limit", JSON_INTEGER, "a whole number"},
                                        {"lease_s", JSON_INTEGER, "a whole number"},
                                        {"wait_ms", JSON_INTEGER, "a whole number"}};
    int64_t limit, lease_s;
    if (!rt_members_are_right(x, body, MEMBERS, sizeof MEMBERS / sizeof *MEMBERS)) return false;
    if (!rt_field_text(x, body, "worker", RT_OPTIONAL, WORKER_MAX, &c->worker) ||
        !rt_field_int(x, body, "limit", 1, RT_LEASE_JOBS_MAX, 1, &limit) ||
        !rt_field_int(x, body, "lease_s", 1, RT_CALL_LEASE_S_MAX, LEASE_S_PRESET, &lease_s) ||
        !rt_field_int(x, body, "wait_ms", 0, WAIT_MS_MAX, 0, wait_ms)) {
        return false;
    }
    c->limit = (uint32_t)limit;
    c->lease_s = (uint32_t)lease_s;
    rt_err err = {0};
    if (rt_event_text_check("\"worker\"", c->worker, WORKER_MAX, &err) == RT_OK) return true;
    rt_problem(x, 400, "%s", err.msg);
    return false;
}

void rt_page_event_claim(rt_exchange *x) {
    waiting_claim *w = RT_NEW(x, waiting_claim);
    if (w == NULL) return;
    rt_call_claim_init(&w->claim);
    if (!rt_param_type(x, 0, &w->claim.type)) return;
    json_t *body = rt_body_json(x);
    if (body == NULL) return;
    int64_t wait_ms;
    const bool valid = read_claim(x, body, &w->claim, &wait_ms);
    json_decref(body);
    if (!valid) return;
    const rt_api *api = rt_api_of(x);
    w->claim.tenant = rt_tenant_of(x);
    w->claim.arena = rt_exchange_arena(x);
    w->waits = wait_ms > 0;
    w->until_ms = api->now_ms() + wait_ms;
    w->round_ms = api->deadline_ms > 0 ? api->deadline_ms / 2 : WAIT_MS_MAX;
    ask(x, w);
}
