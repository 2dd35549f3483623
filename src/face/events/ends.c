#include "base/hex.h"
#include "face/events/parts.h"

enum {
    ERROR_SENT_MAX = 65536,
    RETRY_AFTER_S_MAX = 365 * 24 * 3600
}; /* an error may be longer than what is kept of it */

static const char *const STATES[] = {[RT_CALL_FINISH] = "done",
                                     [RT_CALL_FAIL] = "scheduled",
                                     [RT_CALL_RELEASE] = "free",
                                     [RT_CALL_EXTEND] = "leased"};

static void ended(rt_exchange *x, rt_command *cmd) {
    const rt_call_end *c = (const rt_call_end *)cmd;
    if (cmd->code != RT_OK) {
        rt_problem_event(x, cmd, "event", "not_holder");
        return;
    }
    const bool dead = c->verb == RT_CALL_FAIL && c->until_ms == 0;
    json_t *json =
        json_pack("{s:o, s:s}", "id", rt_json_id(x, c->id), "state", dead ? "dead" : STATES[c->verb]);
    if (json != NULL && c->verb == RT_CALL_FAIL)
        (void)json_object_set_new(json, "next_attempt", rt_json_time(c->until_ms));
    if (json != NULL && c->verb == RT_CALL_EXTEND)
        (void)json_object_set_new(json, "lease_until", rt_json_time(c->until_ms));
    rt_reply_json(x, 200, json);
}

#define TOKEN_MEMBER                                                                                         \
    { "token", JSON_STRING, "the string that the claim gave" }

/* Which members each verb has. */
static bool members_are_right(rt_exchange *x, json_t *body, rt_call_verb verb) {
    static const rt_member TOKEN[] = {TOKEN_MEMBER};
    static const rt_member FAIL[] = {TOKEN_MEMBER,
                                     {"error", JSON_STRING, "a string"},
                                     {"reason", JSON_STRING, "a string"},
                                     {"retry_after_s", JSON_INTEGER, "a whole number"},
                                     {"give_up", JSON_TRUE, "true or false"}};
    static const rt_member EXTEND[] = {TOKEN_MEMBER, {"lease_s", JSON_INTEGER, "a whole number"}};
    if (verb == RT_CALL_FAIL) return rt_members_are_right(x, body, FAIL, sizeof FAIL / sizeof *FAIL);
    if (verb == RT_CALL_EXTEND) return rt_members_are_right(x, body, EXTEND, sizeof EXTEND / sizeof *EXTEND);
    return rt_members_are_right(x, body, TOKEN, 1);
}

/* "error" and "reason" say the same. */
static bool read_failure(rt_exchange *x, const json_t *body, rt_call_end *c) {
    const char *name = json_object_get(body, "error") != NULL ? "error" : "reason";
    int64_t retry_after_s;
    if (!rt_field_text(x, body, name, RT_OPTIONAL, ERROR_SENT_MAX, &c->error) ||
        !rt_field_bool(x, body, "give_up", &c->give_up) ||
        !rt_field_int(x, body, "retry_after_s", 0, RETRY_AFTER_S_MAX, -1, &retry_after_s)) {
        return false;
    }
    c->retry_after_ms = retry_after_s < 0 ? -1 : retry_after_s * 1000;
    return true;
}

static bool read_end(rt_exchange *x, json_t *body, rt_call_end *c) {
    rt_str token;
    int64_t lease_s;
    if (!members_are_right(x, body, c->verb)) return false;
    if (!rt_field_text(x, body, "token", RT_REQUIRED, 64, &token)) return false;
    if (c->verb == RT_CALL_FAIL && !read_failure(x, body, c)) return false;
    if (c->verb == RT_CALL_EXTEND) {
        if (!rt_field_int(x, body, "lease_s", 1, RT_CALL_LEASE_S_MAX, 60, &lease_s)) return false;
        c->lease_s = (uint32_t)lease_s;
    }
    if (rt_hex_read_u64(token, &c->token)) return true;
    rt_problem_coded(x, 409, "not_holder", "This token does not hold the event.");
    return false;
}

static void end(rt_exchange *x, rt_call_verb verb) {
    rt_call_end *c = RT_NEW(x, rt_call_end);
    if (c == NULL) return;
    rt_call_end_init(c);
    if (!rt_param_id(x, 0, "event", &c->id)) return;
    json_t *body = rt_body_json(x);
    if (body == NULL) return;
    c->verb = verb;
    c->retry_after_ms = -1;
    const bool valid = read_end(x, body, c);
    json_decref(body);
    if (!valid) return;
    c->tenant = rt_tenant_of(x);
    rt_api_submit(x, &c->cmd, sizeof *c + c->error.len, ended, rt_problem_busy);
}

void rt_page_event_finish(rt_exchange *x) { end(x, RT_CALL_FINISH); }
void rt_page_event_fail(rt_exchange *x) { end(x, RT_CALL_FAIL); }
void rt_page_event_release(rt_exchange *x) { end(x, RT_CALL_RELEASE); }
void rt_page_event_extend(rt_exchange *x) { end(x, RT_CALL_EXTEND); }
