#include "engine/orders/secret.h"

enum { FORMAT = 1 };

/* ---- stored form ------------------------------------------------------------------------------------- */

rt_str rt_secret_encode(rt_arena *arena, const rt_secret *s) {
    rt_buf b = {0};
    rt_pack_u8(&b, FORMAT);
    rt_pack_u64(&b, s->id);
    rt_pack_u64(&b, s->order);
    rt_pack_i64(&b, s->created_ms);
    rt_pack_str(&b, s->name);
    rt_pack_str(&b, s->content_type);
    rt_pack_str(&b, s->payload);
    rt_pack_u8(&b, (uint8_t)s->members_count);
    for (uint32_t i = 0; i < s->members_count; i++) {
        rt_pack_str(&b, s->members[i].role);
        rt_pack_u64(&b, s->members[i].secret);
    }
    return rt_pack_finish(&b, arena);
}

bool rt_secret_decode(rt_str value, rt_secret *out) {
    rt_unpack u = {.rest = value};
    if (rt_unpack_u8(&u) != FORMAT) return false;
    *out = (rt_secret){.id = rt_unpack_u64(&u)};
    out->order = rt_unpack_u64(&u);
    out->created_ms = rt_unpack_i64(&u);
    out->name = rt_unpack_str(&u);
    out->content_type = rt_unpack_str(&u);
    out->payload = rt_unpack_str(&u);
    out->members_count = rt_unpack_u8(&u);
    if (out->members_count > RT_RUN_SECRETS_MAX) return false;
    for (uint32_t i = 0; i < out->members_count; i++) {
        out->members[i].role = rt_unpack_str(&u);
        out->members[i].secret = rt_unpack_u64(&u);
    }
    return !u.failed && u.rest.len == 0;
}

/* ---- in decisions ------------------------------------------------------------------------------------ */

static rt_code no_memory(rt_tx *tx) { return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a secret"); }

static rt_code keep(rt_tx *tx, rt_str tenant, const rt_secret *s) {
    const rt_doc doc = {.kind = RT_DOC_SECRET,
                        .name = rt_name_id(tx->arena, tenant, s->id),
                        .value = rt_secret_encode(tx->arena, s)};
    if (doc.name.ptr == NULL || doc.value.ptr == NULL) return no_memory(tx);
    rt_tx_put_doc(tx, NULL, &doc);
    return RT_OK;
}

rt_code rt_secrets_keep(rt_tx *tx, rt_str tenant, rt_order *o, const rt_run_answer *answer) {
    RT_ASSERT(answer->secrets_count <= RT_RUN_SECRETS_MAX);
    RT_ASSERT(answer->container || answer->secrets_count <= 1);
    rt_secret container = {.order = o->id, .created_ms = tx->now_ms, .name = answer->container_name};
    for (uint32_t i = 0; i < answer->secrets_count; i++) {
        const rt_run_secret *made = &answer->secrets[i];
        const rt_secret secret = {
            .id = rt_tx_new_id(tx),
            .order = o->id,
            .created_ms = tx->now_ms,
            .name = made->name,
            .content_type = made->content_type,
            .payload = made->payload,
        };
        const rt_code code = keep(tx, tenant, &secret);
        if (code != RT_OK) return code;
        container.members[i].role = made->role;
        container.members[i].secret = secret.id;
    }
    container.members_count = answer->secrets_count;
    if (!answer->container) {
        if (answer->secrets_count == 1) o->secret = container.members[0].secret;
        return RT_OK;
    }
    container.id = o->container = rt_tx_new_id(tx);
    return keep(tx, tenant, &container);
}

/* *doc: its document, gone with this change. RT_OK also if there is none. */
static rt_code drop(rt_tx *tx, rt_str tenant, rt_id id, rt_doc *doc) {
    const rt_code code = rt_doc_load(tx, RT_DOC_SECRET, rt_name_id(tx->arena, tenant, id), doc);
    if (code == RT_OK) rt_tx_put_doc(tx, doc, NULL);
    return code == RT_E_ABSENT ? RT_OK : code;
}

rt_code rt_secrets_drop(rt_tx *tx, rt_str tenant, const rt_order *o) {
    rt_doc doc;
    if (o->secret != 0) return drop(tx, tenant, o->secret, &doc);
    if (o->container == 0) return RT_OK;
    rt_code code = drop(tx, tenant, o->container, &doc);
    if (code != RT_OK || doc.version == 0) return code;
    rt_secret container;
    if (!rt_secret_decode(doc.value, &container))
        return rt_fail(tx->err, RT_E_CORRUPT, 0, "a container of secrets cannot be read");
    for (uint32_t i = 0; i < container.members_count && code == RT_OK; i++)
        code = drop(tx, tenant, container.members[i].secret, &doc);
    return code;
}
