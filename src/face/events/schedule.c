#include "face/common/payload.h"
#include "face/events/parts.h"
#include "json/tree.h"

enum { DELAY_S_MAX = 365 * 24 * 3600 };

/* ---- the reply ------------------------------------------------------------------------------------- */

static void refuse_item(rt_exchange *x, const rt_calls_schedule *c) {
    const rt_command *cmd = &c->cmd;
    if (c->count == 1 || cmd->code == RT_OK) {
        rt_problem_event(x, cmd, "event type", "idempotency_conflict");
        return;
    }
    rt_command named = *cmd;
    (void)rt_fail(&named.err, cmd->code, 0, "events[%u]: %s", (unsigned)c->bad_item, cmd->err.msg);
    rt_problem_event(x, &named, "event type", "idempotency_conflict");
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

/* ---- what both ways share -------------------------------------------------------------------------- */

static rt_calls_schedule *new_schedule(rt_exchange *x, uint32_t count) {
    rt_calls_schedule *c = RT_NEW(x, rt_calls_schedule);
    rt_call_item *items = c == NULL ? NULL : rt_new_of(x, count * sizeof *items);
    if (items == NULL) return NULL;
    rt_calls_schedule_init(c);
    c->tenant = rt_tenant_of(x);
    c->type = RT_STR_EMPTY;
    c->items = items;
    c->count = count;
    return c;
}

static void submit(rt_exchange *x, rt_calls_schedule *c, rt_command_done_fn *done) {
    size_t bytes = sizeof *c;
    for (uint32_t i = 0; i < c->count; i++) bytes += sizeof *c->items + c->items[i].payload.len;
    rt_api_submit(x, &c->cmd, bytes, done, rt_problem_busy);
}

static bool item_is_right(rt_exchange *x, const rt_call_item *item) {
    return rt_event_text_is_right(x, "A reason", item->reason, RT_CALL_REASON_MAX) &&
           rt_event_text_is_right(x, "An order key", item->order_key, RT_CALL_ORDER_KEY_MAX) &&
           rt_event_text_is_right(x, "An idempotency key", item->key, RT_CALL_KEY_MAX) &&
           rt_event_text_is_right(x, "A content type", item->content_type, RT_CALL_CONTENT_TYPE_MAX);
}

/* ---- one: headers say what the body does not ------------------------------------------------------- */

static rt_str header(const rt_exchange *x, const char *name) {
    rt_str value;
    return rt_exchange_header(x, name, &value) ? rt_str_trim(value) : RT_STR_EMPTY;
}

void rt_page_event_post(rt_exchange *x) {
    rt_calls_schedule *c = new_schedule(x, 1);
    if (c == NULL || !rt_param_type(x, 0, &c->type)) return;
    rt_call_item *item = &c->items[0];
    *item = (rt_call_item){
        .type = RT_STR_EMPTY,
        .payload = rt_exchange_body(x),
        .content_type = header(x, "Content-Type"),
        .reason = header(x, "Retry-Reason"),
        .order_key = header(x, "Order-Key"),
        .key = header(x, "Idempotency-Key"),
    };
    const rt_str delay = header(x, "Deliver-After");
    int64_t delay_s = 0;
    if (delay.len > 0 && (!rt_str_to_i64(delay, &delay_s) || delay_s < 0 || delay_s > DELAY_S_MAX)) {
        rt_problem(x, 400, "Deliver-After must be a whole number of seconds from 0 to %d.", DELAY_S_MAX);
        return;
    }
    item->delay_ms = delay_s * 1000;
    if (item_is_right(x, item)) submit(x, c, one_done);
}

/* ---- many: JSON ------------------------------------------------------------------------------------ */

enum member { TYPE, BODY, BODY_BASE64, CONTENT_TYPE, KEY, REASON, ORDER_KEY, DELAY, MEMBERS };
static const rt_str MEMBER_NAMES[MEMBERS] = {
    [TYPE] = {"type", 4},
    [BODY] = {"body", 4},
    [BODY_BASE64] = {"body_base64", 11},
    [CONTENT_TYPE] = {"content_type", 12},
    [KEY] = {"idempotency_key", 15},
    [REASON] = {"reason", 6},
    [ORDER_KEY] = {"order_key", 9},
    [DELAY] = {"deliver_after", 13},
};

/* False: replied. */
static bool scan_events(rt_exchange *x, rt_json_scan *scan) {
    *scan = (rt_json_scan){.list = RT_STR("events"),
                           .fields = MEMBER_NAMES,
                           .fields_count = MEMBERS,
                           .rows_max = RT_CALLS_PER_REQUEST_MAX,
                           .arena = rt_exchange_arena(x)};
    const rt_json_fault fault = rt_json_scan_text(scan, rt_exchange_body(x));
    if (fault == RT_JSON_NOMEM) rt_problem_of(x, RT_E_NOMEM, NULL, "memory");
    else if (fault == RT_JSON_TOO_MANY)
        rt_problem(x, 413, "A request has at most %d events.", RT_CALLS_PER_REQUEST_MAX);
    else if (fault != RT_JSON_FINE) rt_problem(x, 400, "The body is not JSON, or nested too deep.");
    else if (scan->top != RT_JSON_OBJECT || scan->list_kind != RT_JSON_ARRAY || scan->odd_rows ||
             scan->rows_count == 0)
        rt_problem(x, 400, "The body must be an object whose \"events\" is a list of at least one object.");
    else if (scan->stray.ptr != NULL)
        rt_problem(x, 400, "\"%.64s\" is no member of an event.", scan->stray.ptr);
    else return true;
    return false;
}

/* A string's value, in the arena; left out: empty. False: replied. */
static bool take_text(rt_exchange *x, const rt_json_slice *slice, enum member m, rt_str *out) {
    *out = RT_STR_EMPTY;
    if (slice->kind == RT_JSON_ABSENT || slice->kind == RT_JSON_NULL) return true;
    if (slice->kind != RT_JSON_STRING) {
        rt_problem(x, 400, "\"%s\" of an event must be a string.", MEMBER_NAMES[m].ptr);
        return false;
    }
    json_t *string = json_loadb(slice->text.ptr, slice->text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (string == NULL) { // \u0000 and halves of surrogates are all that the scan lets through
        rt_problem(x, 400, "\"%s\" of an event is no text.", MEMBER_NAMES[m].ptr);
        return false;
    }
    const bool copied = rt_field_copy(x, string, out);
    json_decref(string);
    return copied;
}

/* Exactly one of the two. Text that a string holds is sent as it is, anything else as its JSON. */
static bool take_payload(rt_exchange *x, const rt_json_slice row[MEMBERS], rt_call_item *out) {
    const bool encoded = row[BODY_BASE64].kind != RT_JSON_ABSENT;
    if (encoded == (row[BODY].kind != RT_JSON_ABSENT)) {
        rt_problem(x, 400, "An event has either a \"body\" or a \"body_base64\".");
        return false;
    }
    if (encoded) {
        rt_str text;
        if (!take_text(x, &row[BODY_BASE64], BODY_BASE64, &text)) return false;
        out->payload = rt_payload_from_base64(rt_exchange_arena(x), text);
        if (out->payload.ptr == NULL) rt_problem(x, 400, "\"body_base64\" is no base64.");
        if (out->content_type.len == 0) out->content_type = RT_STR("application/octet-stream");
        return out->payload.ptr != NULL;
    }
    const bool text = row[BODY].kind == RT_JSON_STRING;
    if (out->content_type.len == 0)
        out->content_type = text ? RT_STR("text/plain; charset=utf-8") : RT_STR("application/json");
    if (text) return take_text(x, &row[BODY], BODY, &out->payload);
    out->payload = row[BODY].text;
    return true;
}

static bool take_item(rt_exchange *x, const rt_json_slice row[MEMBERS], bool mixed, rt_call_item *out) {
    if (!take_text(x, &row[TYPE], TYPE, &out->type) ||
        !take_text(x, &row[CONTENT_TYPE], CONTENT_TYPE, &out->content_type) ||
        !take_text(x, &row[KEY], KEY, &out->key) || !take_text(x, &row[REASON], REASON, &out->reason) ||
        !take_text(x, &row[ORDER_KEY], ORDER_KEY, &out->order_key)) {
        return false;
    }
    if ((mixed || out->type.len > 0) && !rt_call_type_name_is_valid(out->type)) {
        rt_problem(x, 400, "\"type\" of an event must name an event type.");
        return false;
    }
    const rt_json_slice *delay = &row[DELAY];
    const bool left_out = delay->kind == RT_JSON_ABSENT || delay->kind == RT_JSON_NULL;
    if (!left_out && (delay->kind != RT_JSON_INT || delay->integer < 0 || delay->integer > DELAY_S_MAX)) {
        rt_problem(x, 400, "\"deliver_after\" must be a whole number of seconds from 0 to %d.", DELAY_S_MAX);
        return false;
    }
    out->delay_ms = left_out ? 0 : delay->integer * 1000;
    return take_payload(x, row, out) && item_is_right(x, out);
}

static void post_many(rt_exchange *x, bool mixed) {
    rt_json_scan scan;
    rt_str type = RT_STR_EMPTY;
    if ((!mixed && !rt_param_type(x, 0, &type)) || !scan_events(x, &scan)) return;
    rt_calls_schedule *c = new_schedule(x, scan.rows_count);
    if (c == NULL) return;
    c->type = type;
    for (uint32_t i = 0; i < scan.rows_count; i++) {
        if (!take_item(x, &scan.rows[(size_t)i * MEMBERS], mixed, &c->items[i])) return;
    }
    submit(x, c, many_done);
}

void rt_page_event_batch(rt_exchange *x) { post_many(x, false); }
void rt_page_event_mixed(rt_exchange *x) { post_many(x, true); }
