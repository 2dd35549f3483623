#include "base/utf8.h"
#include "face/orders/order_body.h"
#include "face/orders/parts.h"
#include "json/tree.h"

static void created(rt_exchange *x, rt_command *cmd) {
    const rt_order_create *c = (const rt_order_create *)cmd;
    if (cmd->code == RT_E_ABSENT) {
        rt_refusal(x, 400,
                   "Provided object does not match schema 'Order': there is no order type '%.*s'. "
                   "Invalid property: 'type'.",
                   RT_STR_ARG(c->type));
        return;
    }
    if (cmd->code != RT_OK) {
        rt_refusal_of(x, cmd->code, &cmd->err, "Order");
        return;
    }
    json_t *ref = rt_show_ref(x, "orders", c->id);
    if (ref != NULL) rt_exchange_set_header(x, "Location", rt_str_of(json_string_value(ref)));
    rt_reply_json(x, 202, json_pack("{s:o}", "order_ref", ref));
}

static bool is_json(rt_exchange *x) {
    rt_str type = RT_STR_EMPTY, params;
    (void)rt_exchange_header(x, "Content-Type", &type);
    (void)rt_str_cut(type, ';', &type, &params);
    if (rt_str_eq_nocase(rt_str_trim(type), RT_STR("application/json"))) return true;
    rt_refusal(x, 415, "Unexpected content type. Expected content types are: ['application/json']");
    return false;
}

/* For json_decref. NULL: replied. */
static json_t *take_body(rt_exchange *x) {
    json_t *body = NULL;
    const rt_json_fault fault = rt_json_parse(rt_exchange_body(x), &body);
    if (fault == RT_JSON_NOMEM) rt_refusal_of(x, RT_E_NOMEM, NULL, "Order");
    else if (fault == RT_JSON_TOO_DEEP) rt_refusal(x, 400, "The body is nested too deeply.");
    else if (fault == RT_JSON_INT_TOO_LARGE) rt_refusal(x, 400, "The body has an integer beyond 64 bits.");
    else if (fault != RT_JSON_FINE) rt_refusal(x, 400, "Malformed JSON");
    return fault == RT_JSON_FINE ? body : NULL;
}

static bool take_meta(rt_exchange *x, const json_t *body, rt_str *out) {
    rt_buf text = {0};
    rt_json_write(&text, json_object_get(body, "meta"));
    const bool fits = text.len <= RT_ORDER_META_MAX;
    *out = text.failed || !fits ? (rt_str){0} : rt_arena_dup(rt_exchange_arena(x), rt_buf_str(&text));
    rt_buf_deinit(&text);
    if (!fits) rt_refusal(x, 413, "The meta of an order has at most %d bytes.", RT_ORDER_META_MAX);
    else if (out->ptr == NULL) rt_refusal_of(x, RT_E_NOMEM, NULL, "Order");
    return out->ptr != NULL;
}

static bool take_order(rt_exchange *x, json_t *body, rt_order_create *c) {
    rt_err err = {0};
    const bool stripped = rt_order_body_strip(body);
    const rt_code code = stripped ? rt_order_body_check(body, rt_api_of(x)->now_ms(), &err) : RT_E_NOMEM;
    if (code == RT_E_INVALID) rt_refusal(x, 400, "%s", err.msg);
    else if (code != RT_OK) rt_refusal_of(x, code, &err, "Order");
    return code == RT_OK && rt_field_copy(x, json_object_get(body, "type"), &c->type) &&
           take_meta(x, body, &c->meta);
}

void rt_page_order_post(rt_exchange *x) {
    rt_order_create *c = RT_NEW(x, rt_order_create);
    if (c == NULL || !is_json(x)) return;
    rt_order_create_init(c);
    c->tenant = rt_tenant_of(x);
    if (!rt_exchange_header(x, "X-User-Id", &c->creator)) c->creator = RT_STR_EMPTY;
    if (!rt_utf8_is_valid(c->creator)) {
        rt_refusal(x, 400, "X-User-Id is not UTF-8.");
        return;
    }
    if (!rt_exchange_header(x, "Idempotency-Key", &c->key)) c->key = RT_STR_EMPTY;
    if (c->key.len > RT_ORDER_KEY_MAX) {
        rt_refusal(x, 400, "Idempotency-Key has at most %d bytes.", RT_ORDER_KEY_MAX);
        return;
    }
    json_t *body = take_body(x);
    if (body == NULL) return;
    const bool fine = take_order(x, body, c);
    json_decref(body);
    if (fine) rt_api_submit(x, &c->cmd, sizeof *c, created, rt_refusal_busy);
}
