#include "face/common/backoff_json.h"
#include "face/orders/parts.h"

static json_t *headers_json(rt_str lines) {
    json_t *headers = json_object();
    rt_str line, name, value;
    while (rt_str_cut(lines, '\n', &line, &lines)) {
        (void)rt_str_cut(line, ':', &name, &value);
        (void)json_object_setn_new(headers, name.ptr, name.len, rt_json_str(rt_str_trim(value)));
    }
    return headers;
}

/* Without its secret. */
static json_t *target_json(const rt_order_type *t) {
    rt_str scheme, name;
    (void)rt_str_cut(t->target, ':', &scheme, &name);
    if (rt_str_eq(scheme, RT_STR("plugin"))) return json_pack("{s:o}", "plugin", rt_json_str(name));
    return json_pack("{s:o, s:o, s:b}", "url", rt_json_str(t->target), "headers", headers_json(t->headers),
                     "signed", t->secrets[0].len > 0);
}

json_t *rt_show_order_type(rt_str tenant, rt_str name, const rt_order_type *t) {
    const rt_str first = t->first_task.len > 0 ? t->first_task : RT_STR("create_order");
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:b}", "type", rt_json_str(name),
                     "project", rt_json_str(tenant), "target", target_json(t), "first_task",
                     rt_json_str(first), "backoff", rt_json_backoff(&t->backoff), "max_attempts",
                     (json_int_t)t->max_attempts, "run_limit_s", (json_int_t)(t->run_limit_ms / 1000),
                     "answer_limit_s", (json_int_t)t->answer_limit_s, "concurrency",
                     (json_int_t)t->concurrency, "cancel", t->cancel);
}

void rt_page_order_type_get(rt_exchange *x) {
    rt_order_type type;
    rt_arena *arena = rt_exchange_arena(x);
    const rt_str name = rt_exchange_param(x, 0);
    rt_str tenant = rt_tenant_of(x);
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return;
    rt_code code = rt_read_order_type(v, arena, tenant, name, &type);
    if (code == RT_E_ABSENT) {
        tenant = RT_ORDER_EVERYBODY;
        code = rt_read_order_type(v, arena, tenant, name, &type);
    }
    rt_view_close(v);
    if (code == RT_OK) rt_reply_json(x, 200, rt_show_order_type(tenant, name, &type));
    else rt_problem_of(x, code, NULL, "order type");
}

/* ---- all that a project has ---------------------------------------------------------------------------- */

typedef struct listing {
    rt_str tenant; /* whose types these are */
    json_t *types; /* by name, those of the project itself first */
} listing;

static bool add_type(void *ctx, rt_str name, const rt_order_type *t) {
    const listing *l = ctx;
    if (json_object_getn(l->types, name.ptr, name.len) != NULL) return true; // the project has its own
    return json_object_setn_new(l->types, name.ptr, name.len, rt_show_order_type(l->tenant, name, t)) == 0;
}

void rt_page_order_type_list(rt_exchange *x) {
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return;
    listing l = {.tenant = rt_tenant_of(x), .types = json_object()};
    rt_code code = rt_read_order_types(v, l.tenant, add_type, &l);
    l.tenant = RT_ORDER_EVERYBODY;
    if (code == RT_OK) code = rt_read_order_types(v, l.tenant, add_type, &l);
    rt_view_close(v);
    json_t *array = json_array();
    const char *name;
    json_t *type;
    json_object_foreach(l.types, name, type)(void) json_array_append(array, type);
    json_decref(l.types);
    if (code == RT_OK) {
        rt_reply_json(x, 200, array);
        return;
    }
    json_decref(array);
    rt_problem_of(x, code, NULL, "order type");
}
