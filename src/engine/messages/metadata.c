#include "engine/messages/metadata.h"

#include "engine/common/queue.h"

enum { FORMAT = 1 };
_Static_assert(RT_TENANT_MAX + 1 + RT_QUEUE_TITLE_MAX <= RT_DOC_NAME_MAX, "every queue has a document name");

/* ---- stored form ------------------------------------------------------------------------------------- */

rt_str rt_metadata_encode(rt_arena *arena, const rt_metadata *m) {
    rt_buf b = {0};
    rt_pack_u8(&b, FORMAT);
    rt_pack_u64(&b, m->id);
    rt_pack_u64(&b, m->jobs);
    rt_pack_u32(&b, m->max_post_bytes);
    rt_pack_u32(&b, m->default_ttl_s);
    rt_pack_u32(&b, m->default_delay_s);
    rt_pack_u32(&b, m->max_claim_count);
    rt_pack_u32(&b, m->dead_letter_ttl_s);
    rt_pack_str(&b, m->dead_letter_queue);
    rt_pack_u8(&b, m->has_policy);
    if (m->has_policy) rt_policy_pack(&b, &m->policy);
    rt_pack_str(&b, m->json);
    return rt_pack_finish(&b, arena);
}

bool rt_metadata_decode(rt_str value, rt_metadata *out) {
    rt_unpack u = {.rest = value};
    if (rt_unpack_u8(&u) != FORMAT) return false;
    *out = (rt_metadata){.id = rt_unpack_u64(&u)};
    out->jobs = rt_unpack_u64(&u);
    out->max_post_bytes = rt_unpack_u32(&u);
    out->default_ttl_s = rt_unpack_u32(&u);
    out->default_delay_s = rt_unpack_u32(&u);
    out->max_claim_count = rt_unpack_u32(&u);
    out->dead_letter_ttl_s = rt_unpack_u32(&u);
    out->dead_letter_queue = rt_unpack_str(&u);
    out->has_policy = rt_unpack_bool(&u);
    if (out->has_policy) rt_policy_unpack(&u, &out->policy);
    out->json = rt_unpack_str(&u);
    return !u.failed && u.rest.len == 0;
}

/* ---- in a decision ----------------------------------------------------------------------------------- */

rt_code rt_metadata_load(rt_tx *tx, rt_str tenant, rt_str queue, rt_doc *doc, rt_metadata *out) {
    const rt_str name = rt_name(tx->arena, tenant, queue);
    if (name.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a queue's name");
    *doc = (rt_doc){.kind = RT_DOC_METADATA, .name = name};
    rt_doc lent;
    const rt_code code = rt_view_doc(tx->view, RT_DOC_METADATA, name, &lent);
    if (code == RT_E_ABSENT) rt_tx_guard(tx, RT_DOC_METADATA, name, 0);
    if (code != RT_OK) return code;
    rt_tx_guard(tx, RT_DOC_METADATA, name, lent.version);
    doc->version = lent.version;
    doc->expires_ms = lent.expires_ms;
    doc->value = rt_arena_dup(tx->arena, lent.value);
    if (doc->value.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a queue's metadata");
    if (rt_metadata_decode(doc->value, out)) return RT_OK;
    return rt_fail(tx->err, RT_E_CORRUPT, 0, "the metadata of queue %.*s cannot be read", RT_STR_ARG(queue));
}

rt_code rt_metadata_create(rt_tx *tx, rt_str tenant, rt_str queue, const rt_metadata *like, rt_doc *doc,
                           rt_metadata *out) {
    RT_ASSERT(doc->version == 0);
    *out = *like;
    out->id = rt_tx_new_id(tx);
    out->jobs = rt_tx_new_id(tx);
    if (out->json.len == 0) out->json = RT_STR("{}");
    doc->value = rt_metadata_encode(tx->arena, out);
    const rt_queue list = {
        .id = out->jobs,
        .owner = out->id,
        .kind = RT_QUEUE_MESSAGES,
        .name = rt_queue_label(tx->arena, tenant, queue, RT_STR_EMPTY),
    };
    if (doc->value.ptr == NULL || list.name.ptr == NULL) {
        return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a queue");
    }
    rt_tx_put_doc(tx, NULL, doc);
    rt_tx_put_queue(tx, NULL, &list);
    doc->version = 1;
    return RT_OK;
}

rt_code rt_metadata_load_or_create(rt_tx *tx, rt_str tenant, rt_str queue, rt_doc *doc, rt_metadata *out) {
    const rt_code code = rt_metadata_load(tx, tenant, queue, doc, out);
    if (code != RT_E_ABSENT) return code;
    return rt_metadata_create(tx, tenant, queue, &(rt_metadata){0}, doc, out);
}

rt_code rt_metadata_update(rt_tx *tx, const rt_doc *was, const rt_metadata *now) {
    rt_doc doc = *was;
    doc.value = rt_metadata_encode(tx->arena, now);
    if (doc.value.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a queue's metadata");
    rt_tx_put_doc(tx, was, &doc);
    return RT_OK;
}
