#include "face/orders/parts.h"

/* A secret, or a container if `container`, with the order that made it (status 0: it is gone). False: replied. */
static bool find(rt_exchange *x, bool container, rt_secret *out, rt_order *order, rt_secret *holder) {
    const char *what = container ? "Container" : "Secret";
    rt_arena *arena = rt_exchange_arena(x);
    const rt_str tenant = rt_tenant_of(x);
    rt_id id;
    if (!rt_param_uuid(x, 0, what, &id)) return false;
    rt_view *v = rt_refusal_view(x);
    if (v == NULL) return false;
    *order = (rt_order){0};
    *holder = (rt_secret){0};
    rt_code code = rt_read_secret(v, arena, tenant, id, out);
    if (code == RT_OK && (out->content_type.len == 0) != container) code = RT_E_ABSENT;
    if (code == RT_OK && rt_read_order(v, arena, tenant, out->order, order) != RT_OK) *order = (rt_order){0};
    if (code == RT_OK && !container && order->container != 0 &&
        rt_read_secret(v, arena, tenant, order->container, holder) != RT_OK) {
        *holder = (rt_secret){0};
    }
    rt_view_close(v);
    if (code != RT_OK) rt_refusal_of(x, code, NULL, what);
    return code == RT_OK;
}

/* ---- secrets ------------------------------------------------------------------------------------------- */

/* What Barbican calls it. */
static const char *type_of(const rt_secret *s, const rt_order *o, const rt_secret *holder) {
    static const struct {
        const char *role, *type;
    } ROLES[] = {{"private_key", "private"},
                 {"public_key", "public"},
                 {"certificate", "certificate"},
                 {"intermediates", "certificate"},
                 {"private_key_passphrase", "passphrase"}};
    if (rt_str_eq(o->type, RT_STR("key"))) return "symmetric";
    for (uint32_t i = 0; i < holder->members_count; i++) {
        if (holder->members[i].secret != s->id) continue;
        for (size_t r = 0; r < sizeof ROLES / sizeof ROLES[0]; r++) {
            if (rt_str_eq(holder->members[i].role, rt_str_of(ROLES[r].role))) return ROLES[r].type;
        }
    }
    return "opaque";
}

static json_t *from_meta(const json_t *meta, const char *name) {
    json_t *value = json_object_get(meta, name);
    return value == NULL ? json_null() : json_incref(value);
}

void rt_page_secret_get(rt_exchange *x) {
    rt_secret secret, holder;
    rt_order order;
    if (!find(x, false, &secret, &order, &holder)) return;
    json_t *meta = rt_json_value(order.meta);
    json_t *json = json_pack(
        "{s:o, s:s, s:o, s:o, s:o, s:s, s:{s:o}, s:o, s:o, s:o, s:o}", "name", rt_json_str(secret.name),
        "status", "ACTIVE", "created", rt_show_time(secret.created_ms), "updated",
        rt_show_time(secret.created_ms), "secret_ref", rt_show_ref(x, "secrets", secret.id), "secret_type",
        type_of(&secret, &order, &holder), "content_types", "default", rt_json_str(secret.content_type),
        "algorithm", from_meta(meta, "algorithm"), "bit_length", from_meta(meta, "bit_length"), "mode",
        from_meta(meta, "mode"), "expiration", from_meta(meta, "expiration"));
    json_decref(meta);
    rt_reply_json(x, 200, json);
}

/* Does one of the ranges of an Accept header take `type`? Weights are passed over: there is only one type to choose. */
static bool admits(rt_str accept, rt_str type) {
    rt_str family, rest, range;
    (void)rt_str_cut(type, ';', &type, &rest);
    type = rt_str_trim(type);
    (void)rt_str_cut(type, '/', &family, &rest);
    bool more = true;
    while (more) {
        more = rt_str_cut(accept, ',', &range, &accept);
        (void)rt_str_cut(range, ';', &range, &rest);
        range = rt_str_trim(range);
        if (rt_str_eq(range, RT_STR("*/*")) || rt_str_eq_nocase(range, type)) return true;
        rt_str wanted;
        if (rt_str_cut(range, '/', &wanted, &rest) && rt_str_eq(rest, RT_STR("*")) &&
            rt_str_eq_nocase(wanted, family))
            return true;
    }
    return false;
}

void rt_page_secret_payload(rt_exchange *x) {
    rt_secret secret, holder;
    rt_order order;
    rt_str accept;
    if (!find(x, false, &secret, &order, &holder)) return;
    if (rt_exchange_header(x, "Accept", &accept) && accept.len > 0 && !admits(accept, secret.content_type)) {
        rt_refusal(x, 406, "This secret is %.*s.", RT_STR_ARG(secret.content_type));
        return;
    }
    const rt_str type = rt_arena_dup(rt_exchange_arena(x), secret.content_type); // with a NUL behind it
    if (type.ptr == NULL) {
        rt_refusal_of(x, RT_E_NOMEM, NULL, "Secret");
        return;
    }
    rt_exchange_set_header(x, "Cache-Control", RT_STR("no-store"));
    rt_exchange_reply(x, 200, type.ptr, secret.payload);
}

/* ---- containers ---------------------------------------------------------------------------------------- */

static bool has_role(const rt_secret *container, const char *role) {
    for (uint32_t i = 0; i < container->members_count; i++) {
        if (rt_str_eq(container->members[i].role, rt_str_of(role))) return true;
    }
    return false;
}

/* Barbican's client has a class of its own for each. */
static const char *container_type(const rt_secret *container, const rt_order *made_by) {
    if (has_role(container, "certificate") || rt_str_eq(made_by->type, RT_STR("certificate")))
        return "certificate";
    return has_role(container, "private_key") && has_role(container, "public_key") ? "rsa" : "generic";
}

void rt_page_container_get(rt_exchange *x) {
    rt_secret container, none;
    rt_order order;
    if (!find(x, true, &container, &order, &none)) return;
    json_t *refs = json_array();
    bool fine = true;
    for (uint32_t i = 0; i < container.members_count; i++) {
        json_t *member = json_pack("{s:o, s:o}", "name", rt_json_str(container.members[i].role), "secret_ref",
                                   rt_show_ref(x, "secrets", container.members[i].secret));
        fine = json_array_append_new(refs, member) == 0 && fine;
    }
    json_t *json = json_pack("{s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:[]}", "name", rt_json_str(container.name),
                             "type", container_type(&container, &order), "status", "ACTIVE", "created",
                             rt_show_time(container.created_ms), "updated",
                             rt_show_time(container.created_ms), "container_ref",
                             rt_show_ref(x, "containers", container.id), "secret_refs", refs, "consumers");
    if (!fine) json_decref(json);
    rt_reply_json(x, 200, fine ? json : NULL);
}
