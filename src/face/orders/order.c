#include "base/hex.h"
#include "face/orders/parts.h"
#include "json/run_json.h"
#include "json/tree.h"

/* Opens a view and reads the order of the path, for rt_view_close. NULL: replied. */
static rt_view *find(rt_exchange *x, rt_order *out) {
    rt_id id;
    if (!rt_param_uuid(x, 0, "Order", &id)) return NULL;
    rt_view *v = rt_refusal_view(x);
    if (v == NULL) return NULL;
    const rt_code code = rt_read_order(v, rt_exchange_arena(x), rt_tenant_of(x), id, out);
    if (code == RT_OK) return v;
    rt_view_close(v);
    rt_refusal_of(x, code, NULL, "Order");
    return NULL;
}

void rt_page_order_get(rt_exchange *x) {
    rt_order order;
    rt_view *v = find(x, &order);
    if (v == NULL) return;
    rt_view_close(v);
    rt_reply_json(x, 200, rt_show_order(x, &order));
}

void rt_page_order_retries(rt_exchange *x) {
    rt_order order;
    rt_job task;
    rt_view *v = find(x, &order);
    if (v == NULL) return;
    const rt_code code = rt_read_order_task(v, &order, &task);
    rt_view_close(v);
    if (code == RT_OK) rt_reply_json(x, 200, json_pack("[o]", rt_show_task(x, &order, &task)));
    else if (code == RT_E_ABSENT) rt_reply_json(x, 200, json_array());
    else rt_refusal_of(x, code, NULL, "Order");
}

/* ---- changing it --------------------------------------------------------------------------------------- */

static void done(rt_exchange *x, rt_command *cmd) {
    if (cmd->code == RT_OK) rt_exchange_reply(x, 204, NULL, RT_STR_EMPTY);
    else rt_refusal_of(x, cmd->code, &cmd->err, "Order");
}

void rt_page_order_delete(rt_exchange *x) {
    rt_order_delete *c = RT_NEW(x, rt_order_delete);
    if (c == NULL) return;
    rt_order_delete_init(c);
    c->tenant = rt_tenant_of(x);
    if (rt_param_uuid(x, 0, "Order", &c->id)) rt_api_submit(x, &c->cmd, sizeof *c, done, rt_refusal_busy);
}

void rt_page_order_wake(rt_exchange *x) {
    rt_order_wake *c = RT_NEW(x, rt_order_wake);
    if (c == NULL) return;
    rt_order_wake_init(c);
    c->tenant = rt_tenant_of(x);
    if (rt_param_uuid(x, 0, "Order", &c->id)) rt_api_submit(x, &c->cmd, sizeof *c, done, rt_refusal_busy);
}

/* ---- what a worker says late --------------------------------------------------------------------------- */

static bool take_token(rt_exchange *x, uint64_t *out) {
    json_t *body = NULL;
    (void)rt_json_parse(rt_exchange_body(x), &body); // what is wrong with it is said below, in one way for all
    const bool found = rt_hex_read_u64(rt_field_str(json_object_get(body, "token")), out);
    if (!json_is_object(body)) rt_refusal(x, 400, "The body must be a JSON object.");
    else if (!found) rt_refusal(x, 400, "\"token\" must be the token that the run came with.");
    json_decref(body);
    return found;
}

void rt_page_order_result(rt_exchange *x) {
    rt_order_result *c = RT_NEW(x, rt_order_result);
    if (c == NULL) return;
    rt_order_result_init(c);
    c->tenant = rt_tenant_of(x);
    if (!rt_param_uuid(x, 0, "Order", &c->id) || !take_token(x, &c->token)) return;
    rt_err err = {0};
    const rt_code code = rt_run_from_text(rt_exchange_body(x), rt_exchange_arena(x), &c->answer, &err);
    if (code == RT_E_INVALID) rt_refusal(x, 400, "%s", err.msg);
    else if (code != RT_OK) rt_refusal_of(x, code, &err, "Order");
    else rt_api_submit(x, &c->cmd, sizeof *c, done, rt_refusal_busy);
}
