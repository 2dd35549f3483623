#include "face/events/batch.h"
#include "face/events/parts.h"

/* ---- the reply ----------------------------------------------------------------------------------------- */

static void refuse_item(rt_exchange *x, const rt_calls_schedule *c) {
    rt_command named = c->cmd;
    if (c->count > 1) {
        (void)rt_fail(&named.err, c->cmd.code, 0, "events[%u]: %s", (unsigned)c->bad_item, c->cmd.err.msg);
    }
    if (c->cmd.code == RT_E_ABSENT) rt_problem(x, 404, "%s", named.err.msg); // which one, among many
    else rt_problem_event(x, &named, "event type", "idempotency_conflict");
}

/* One that was scheduled before with the same key is acknowledged like a new one. */
static void one_done(rt_exchange *x, rt_command *cmd) {
    const rt_calls_schedule *c = (const rt_calls_schedule *)cmd;
    if (cmd->code != RT_OK) {
        refuse_item(x, c);
        return;
    }
    const rt_id_text id = rt_id_format(rt_engine_tag(rt_api_of(x)->engine), c->items[0].id);
    rt_buf body = {0};
    rt_buf_addf(&body, "{\"id\": \"%s\"%s}", id.s, c->items[0].existed ? ", \"existed\": true" : "");
    rt_exchange_reply_buf(x, 202, "application/json", &body);
}

static void many_done(rt_exchange *x, rt_command *cmd) {
    const rt_calls_schedule *c = (const rt_calls_schedule *)cmd;
    if (cmd->code != RT_OK) {
        refuse_item(x, c);
        return;
    }
    const uint32_t tag = rt_engine_tag(rt_api_of(x)->engine);
    rt_buf body = {0};
    uint32_t existed = 0;
    rt_buf_add(&body, RT_STR("{\"ids\": ["));
    for (uint32_t i = 0; i < c->count; i++) {
        const rt_id_text id = rt_id_format(tag, c->items[i].id);
        rt_buf_addf(&body, "%s\"%s\"", i == 0 ? "" : ", ", id.s);
        existed += c->items[i].existed;
    }
    rt_buf_addf(&body, "], \"existed\": %u}", (unsigned)existed);
    rt_exchange_reply_buf(x, 202, "application/json", &body);
}

static void submit(rt_exchange *x, rt_calls_schedule *c, rt_command_done_fn *done) {
    size_t bytes = sizeof *c;
    for (uint32_t i = 0; i < c->count; i++) bytes += sizeof *c->items + c->items[i].payload.len;
    rt_api_submit(x, &c->cmd, bytes, done, rt_problem_busy);
}

static rt_calls_schedule *new_schedule(rt_exchange *x) {
    rt_calls_schedule *c = RT_NEW(x, rt_calls_schedule);
    if (c == NULL) return NULL;
    rt_calls_schedule_init(c);
    c->tenant = rt_tenant_of(x);
    c->type = RT_STR_EMPTY;
    return c;
}

/* ---- one: headers say what the body does not ----------------------------------------------------------- */

static rt_str header(const rt_exchange *x, const char *name) {
    rt_str value;
    return rt_exchange_header(x, name, &value) ? rt_str_trim(value) : RT_STR_EMPTY;
}

/* False: replied. */
static bool read_delay(rt_exchange *x, int64_t *out_ms) {
    const rt_str delay = header(x, "Deliver-After");
    int64_t delay_s = 0;
    if (delay.len > 0 &&
        (!rt_str_to_i64(delay, &delay_s) || delay_s < 0 || delay_s > RT_EVENT_DELAY_S_MAX)) {
        rt_problem(x, 400, "Deliver-After must be a whole number of seconds from 0 to %d.",
                   RT_EVENT_DELAY_S_MAX);
        return false;
    }
    *out_ms = delay_s * 1000;
    return true;
}

void rt_page_event_post(rt_exchange *x) {
    rt_calls_schedule *c = new_schedule(x);
    rt_call_item *item = c == NULL ? NULL : RT_NEW(x, rt_call_item);
    if (item == NULL || !rt_param_type(x, 0, &c->type)) return;
    rt_err err = {0};
    *item = (rt_call_item){
        .type = RT_STR_EMPTY,
        .payload = rt_exchange_body(x),
        .content_type = header(x, "Content-Type"),
        .reason = header(x, "Retry-Reason"),
        .order_key = header(x, "Order-Key"),
        .key = header(x, "Idempotency-Key"),
    };
    c->items = item;
    c->count = 1;
    if (!read_delay(x, &item->delay_ms)) return;
    if (rt_event_item_check(item, &err) == RT_OK) submit(x, c, one_done);
    else rt_problem(x, 400, "%s", err.msg);
}

/* ---- many: JSON ---------------------------------------------------------------------------------------- */

static void post_many(rt_exchange *x, bool mixed) {
    rt_err err = {0};
    rt_calls_schedule *c = new_schedule(x);
    if (c == NULL || (!mixed && !rt_param_type(x, 0, &c->type))) return;
    const rt_code code =
        rt_event_batch_read(rt_exchange_body(x), mixed, rt_exchange_arena(x), &c->items, &c->count, &err);
    if (code == RT_OK) submit(x, c, many_done);
    else if (code == RT_E_INVALID) rt_problem(x, 400, "%s", err.msg);
    else rt_problem_of(x, code, &err, "event");
}

void rt_page_event_batch(rt_exchange *x) { post_many(x, false); }
void rt_page_event_mixed(rt_exchange *x) { post_many(x, true); }
