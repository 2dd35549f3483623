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

/* What became of it. NULL: no memory. */
static json_t *end_json(const rt_exchange *x, const rt_call_end *c) {
    const bool dead = c->verb == RT_CALL_FAIL && c->until_ms == 0;
    json_t *json =
        json_pack("{s:o, s:s}", "id", rt_json_id(x, c->id), "state", dead ? "dead" : STATES[c->verb]);
    if (json != NULL && c->verb == RT_CALL_FAIL)
        (void)json_object_set_new(json, "next_attempt", rt_json_time(c->until_ms));
    if (json != NULL && c->verb == RT_CALL_EXTEND)
        (void)json_object_set_new(json, "lease_until", rt_json_time(c->until_ms));
    return json;
}

static void ended(rt_exchange *x, rt_command *cmd) {
    if (cmd->code != RT_OK) rt_problem_event(x, cmd, "event", "not_holder");
    else rt_reply_json(x, 200, end_json(x, (const rt_call_end *)cmd));
}

#define TOKEN_MEMBER                                                                                         \
    { "token", JSON_STRING, "the string that the claim gave" }

#define ID_MEMBER                                                                                            \
    { "id", JSON_STRING, "the event's id" }

/* Which members each verb has; the id is there where there are many, and otherwise in the path. */
static bool members_are_right(rt_exchange *x, json_t *body, rt_call_verb verb, bool many) {
    static const rt_member TOKEN[] = {ID_MEMBER, TOKEN_MEMBER};
    static const rt_member FAIL[] = {ID_MEMBER,
                                     TOKEN_MEMBER,
                                     {"error", JSON_STRING, "a string"},
                                     {"reason", JSON_STRING, "a string"},
                                     {"retry_after_s", JSON_INTEGER, "a whole number"},
                                     {"give_up", JSON_TRUE, "true or false"}};
    static const rt_member EXTEND[] = {ID_MEMBER, TOKEN_MEMBER, {"lease_s", JSON_INTEGER, "a whole number"}};
    const size_t skip = many ? 0 : 1;
    if (verb == RT_CALL_FAIL)
        return rt_members_are_right(x, body, FAIL + skip, sizeof FAIL / sizeof *FAIL - skip);
    if (verb == RT_CALL_EXTEND)
        return rt_members_are_right(x, body, EXTEND + skip, sizeof EXTEND / sizeof *EXTEND - skip);
    return rt_members_are_right(x, body, TOKEN + skip, sizeof TOKEN / sizeof *TOKEN - skip);
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

/* False: replied with 400. A token that is none holds nothing: 0. */
static bool read_end(rt_exchange *x, json_t *body, rt_call_end *c, bool many) {
    rt_str token;
    int64_t lease_s;
    if (!members_are_right(x, body, c->verb, many)) return false;
    if (!rt_field_text(x, body, "token", RT_REQUIRED, 64, &token)) return false;
    if (c->verb == RT_CALL_FAIL && !read_failure(x, body, c)) return false;
    if (c->verb == RT_CALL_EXTEND) {
        if (!rt_field_int(x, body, "lease_s", 1, RT_CALL_LEASE_S_MAX, 60, &lease_s)) return false;
        c->lease_s = (uint32_t)lease_s;
    }
    if (!rt_hex_read_u64(token, &c->token)) c->token = 0;
    return true;
}

/* ---- one ----------------------------------------------------------------------------------------------- */

static void end(rt_exchange *x, rt_call_verb verb) {
    rt_call_end *c = RT_NEW(x, rt_call_end);
    if (c == NULL) return;
    rt_call_end_init(c);
    if (!rt_param_id(x, 0, "event", &c->id)) return;
    json_t *body = rt_body_json(x);
    if (body == NULL) return;
    c->verb = verb;
    const bool valid = read_end(x, body, c, false);
    json_decref(body);
    if (!valid) return;
    c->tenant = rt_tenant_of(x);
    rt_api_submit(x, &c->cmd, sizeof *c + c->error.len, ended, rt_problem_busy);
}

void rt_page_event_finish(rt_exchange *x) { end(x, RT_CALL_FINISH); }
void rt_page_event_fail(rt_exchange *x) { end(x, RT_CALL_FAIL); }
void rt_page_event_release(rt_exchange *x) { end(x, RT_CALL_RELEASE); }
void rt_page_event_extend(rt_exchange *x) { end(x, RT_CALL_EXTEND); }

/* ---- many ---------------------------------------------------------------------------------------------- */

static json_t *verdict_json(const rt_exchange *x, const rt_call_end *c, const char *id) {
    if (c->cmd.code == RT_OK) return end_json(x, c);
    return json_pack("{s:s, s:s}", "id", id, "code", c->cmd.code == RT_E_FENCED ? "not_holder" : "absent");
}

/* The ids as they were sent: one that is none is nobody's. */
typedef struct many {
    rt_call_ends ends; /* first member */
    rt_str *ids;
    size_t bytes;
} many;

static void many_ended(rt_exchange *x, rt_command *cmd) {
    const many *m = (const many *)cmd;
    if (cmd->code != RT_OK) {
        rt_problem_event(x, cmd, "event", "not_holder");
        return;
    }
    json_t *results = json_array();
    for (uint32_t i = 0; i < m->ends.count; i++) {
        if (json_array_append_new(results, verdict_json(x, &m->ends.ends[i], m->ids[i].ptr)) == 0) continue;
        json_decref(results);
        rt_problem_of(x, RT_E_NOMEM, NULL, "memory");
        return;
    }
    rt_reply_json(x, 200, json_pack("{s:o}", "results", results));
}

static bool read_one_of_many(rt_exchange *x, json_t *job, many *m, uint32_t at) {
    rt_call_end *c = &m->ends.ends[at];
    if (!json_is_object(job)) {
        rt_problem(x, 400, "\"jobs\" must be a list of objects.");
        return false;
    }
    if (!rt_field_text(x, job, "id", RT_REQUIRED, 64, &m->ids[at]) || !read_end(x, job, c, true))
        return false;
    if (!rt_id_parse(rt_engine_tag(rt_api_of(x)->engine), m->ids[at], &c->id)) c->id = 0;
    c->tenant = rt_tenant_of(x);
    m->bytes += sizeof *c + c->error.len;
    return true;
}

static bool read_many(rt_exchange *x, json_t *body, many *m, rt_call_verb verb) {
    static const rt_member MEMBERS[] = {{"jobs", JSON_ARRAY, "a list"}};
    if (!rt_members_are_right(x, body, MEMBERS, 1)) return false;
    const json_t *jobs = json_object_get(body, "jobs");
    const size_t count = json_array_size(jobs);
    if (count < 1 || count > RT_CALL_ENDS_MAX) {
        rt_problem(x, 400, "\"jobs\" must be a list of 1 to %d objects.", RT_CALL_ENDS_MAX);
        return false;
    }
    m->ends.ends = rt_new_of(x, count * sizeof *m->ends.ends);
    if (m->ends.ends == NULL) return false;
    m->ids = rt_new_of(x, count * sizeof *m->ids);
    if (m->ids == NULL) return false;
    for (uint32_t i = 0; i < count; i++) {
        rt_call_end_init(&m->ends.ends[i]);
        m->ends.ends[i].verb = verb;
        if (!read_one_of_many(x, json_array_get(jobs, i), m, i)) return false;
    }
    m->ends.count = (uint32_t)count;
    return true;
}

static void end_many(rt_exchange *x, rt_call_verb verb) {
    many *m = RT_NEW(x, many);
    if (m == NULL) return;
    *m = (many){.bytes = sizeof *m};
    rt_call_ends_init(&m->ends);
    json_t *body = rt_body_json(x);
    if (body == NULL) return;
    const bool valid = read_many(x, body, m, verb);
    json_decref(body);
    if (valid) rt_api_submit(x, &m->ends.cmd, m->bytes, many_ended, rt_problem_busy);
}

void rt_page_events_finish(rt_exchange *x) { end_many(x, RT_CALL_FINISH); }
void rt_page_events_fail(rt_exchange *x) { end_many(x, RT_CALL_FAIL); }
void rt_page_events_release(rt_exchange *x) { end_many(x, RT_CALL_RELEASE); }
void rt_page_events_extend(rt_exchange *x) { end_many(x, RT_CALL_EXTEND); }
