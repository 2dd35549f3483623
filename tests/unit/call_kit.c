#include "call_kit.h"

rt_call_type call_type(void) {
    rt_call_type t = {
        .delivery = rt_delivery_policy_default(),
        .target = RT_STR("http://t/"),
        .circuit = rt_circuit_settings_default(),
        .pace = rt_pace_settings_default(),
        .buckets = 1,
        .json = RT_STR("{}"),
    };
    t.circuit.enabled = false;
    return t;
}

rt_call_type call_type_pull(void) {
    rt_call_type t = call_type();
    t.target = RT_STR_EMPTY;
    return t;
}

rt_code call_put(kit *k, const char *name, rt_call_type like) {
    rt_call_type_put c;
    rt_call_type_put_init(&c);
    c.tenant = RT_STR("p");
    c.name = rt_str_of(name);
    c.like = like;
    return kit_run(k, &c.cmd);
}

rt_call_type call_get(kit *k, const char *name) {
    rt_doc doc;
    rt_call_type type;
    const rt_str doc_name = rt_call_type_name(&k->out, RT_STR("p"), rt_str_of(name));
    assert_int_equal(rt_view_doc(kit_view(k), RT_DOC_CALL_TYPE, doc_name, &doc), RT_OK);
    assert_true(rt_call_type_decode(rt_arena_dup(&k->out, doc.value), &type));
    return type;
}

rt_queue call_queue(kit *k, const char *name) {
    const rt_id id = call_get(k, name).queue;
    rt_queue queue;
    assert_int_equal(rt_view_queue(kit_view(k), id, &queue), RT_OK);
    return queue;
}

rt_code call_schedule_item(kit *k, const char *type, rt_call_item *item) {
    rt_calls_schedule c;
    rt_calls_schedule_init(&c);
    c.tenant = RT_STR("p");
    c.type = rt_str_of(type);
    c.items = item;
    c.count = 1;
    return kit_run(k, &c.cmd);
}

rt_id call_schedule(kit *k, const char *type, const char *order_key) {
    rt_call_item item = {.payload = RT_STR("x"), .order_key = rt_str_of(order_key)};
    assert_int_equal(call_schedule_item(k, type, &item), RT_OK);
    return item.id;
}

rt_call_claim call_claim(kit *k, const char *type, uint32_t limit) {
    rt_call_claim c;
    rt_call_claim_init(&c);
    c.tenant = RT_STR("p");
    c.type = rt_str_of(type);
    c.limit = limit;
    c.lease_s = 60;
    c.arena = &k->out;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    return c;
}

static rt_code end(kit *k, rt_id id, uint64_t token, rt_call_verb verb) {
    rt_call_end c;
    rt_call_end_init(&c);
    c.tenant = RT_STR("p");
    c.id = id;
    c.token = token;
    c.verb = verb;
    return kit_run(k, &c.cmd);
}

rt_code call_finish(kit *k, rt_id id, uint64_t token) { return end(k, id, token, RT_CALL_FINISH); }
rt_code call_fail(kit *k, rt_id id, uint64_t token) { return end(k, id, token, RT_CALL_FAIL); }

/* ---- the machine --------------------------------------------------------------------------------------- */

typedef struct starting {
    rt_command cmd;
    rt_id id;
    rt_start start;
} starting;

static rt_code decide_start(rt_tx *tx, rt_command *cmd) {
    starting *c = (starting *)cmd;
    rt_job job;
    rt_attempt_free(c->start.attempt);
    c->start = (rt_start){.token = 7};
    const rt_code code = rt_view_job(tx->view, c->id, &job);
    return code == RT_OK ? rt_life_start(tx, &job, &c->start) : code;
}

bool call_start(kit *k, rt_id id, rt_attempt **attempt) {
    starting c = {.cmd = {.decide = decide_start}, .id = id};
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    const bool starts = c.start.due == RT_DUE_START;
    if (attempt != NULL) *attempt = c.start.attempt;
    else rt_attempt_free(c.start.attempt);
    return starts;
}

void call_settle_outcome(kit *k, const rt_outcome *o) {
    rt_settle s;
    rt_settle_init(&s, o, false);
    assert_int_equal(kit_run(k, &s.cmd), RT_OK);
}

void call_settle(kit *k, rt_id id, rt_reason reason, uint16_t status) {
    const rt_outcome o = {
        .job = id, .token = 7, .reason = reason, .status = status, .took_ms = 1, .retry_after_ms = -1};
    call_settle_outcome(k, &o);
}
