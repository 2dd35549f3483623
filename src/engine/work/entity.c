#include "engine/work/entity.h"

#include "engine/common/settings.h"
#include "engine/common/stored.h"

enum { FORMAT = 1 };

/* ---- stored form ------------------------------------------------------------------------------------- */

rt_str rt_entity_encode(rt_arena *arena, const rt_entity *e) {
    rt_buf b = {0};
    rt_pack_u8(&b, FORMAT);
    rt_pack_u64(&b, e->id);
    rt_pack_u64(&b, e->last_event);
    rt_pack_i64(&b, e->created_ms);
    rt_pack_i64(&b, e->changed_ms);
    rt_pack_u8(&b, e->gone);
    rt_pack_str(&b, e->kind);
    rt_pack_str(&b, e->value);
    rt_pack_u8(&b, (uint8_t)e->slots_count);
    for (uint32_t i = 0; i < e->slots_count; i++) {
        const rt_slot *s = &e->slots[i];
        rt_pack_str(&b, s->process);
        rt_pack_u8(&b, s->wanted);
        rt_pack_u64(&b, s->job);
        rt_pack_u64(&b, s->work);
        rt_pack_u64(&b, s->session);
        rt_pack_i64(&b, s->until_ms);
    }
    return rt_pack_finish(&b, arena);
}

bool rt_entity_decode(rt_str value, rt_entity *out) {
    rt_unpack u = {.rest = value};
    if (rt_unpack_u8(&u) != FORMAT) return false;
    *out = (rt_entity){.id = rt_unpack_u64(&u)};
    out->last_event = rt_unpack_u64(&u);
    out->created_ms = rt_unpack_i64(&u);
    out->changed_ms = rt_unpack_i64(&u);
    out->gone = rt_unpack_bool(&u);
    out->kind = rt_unpack_str(&u);
    out->value = rt_unpack_str(&u);
    out->slots_count = rt_unpack_u8(&u);
    if (out->slots_count > RT_ENTITY_SLOTS_MAX) return false;
    for (uint32_t i = 0; i < out->slots_count; i++) {
        rt_slot *s = &out->slots[i];
        s->process = rt_unpack_str(&u);
        s->wanted = rt_unpack_bool(&u);
        s->job = rt_unpack_u64(&u);
        s->work = rt_unpack_u64(&u);
        s->session = rt_unpack_u64(&u);
        s->until_ms = rt_unpack_i64(&u);
    }
    return !u.failed && u.rest.len == 0;
}

/* ---- loading ----------------------------------------------------------------------------------------- */

uint64_t rt_entity_topic(rt_str tenant, rt_str name) {
    return rt_hash_u64(rt_hash_str(tenant) ^ rt_hash_u64(rt_hash_str(name))) | 1;
}

uint64_t rt_entity_queue_topic(rt_str tenant, rt_str kind, rt_str process) {
    return rt_entity_topic(tenant, process) ^ rt_hash_u64(rt_hash_str(kind));
}

rt_code rt_entity_load(rt_tx *tx, rt_str tenant, rt_str name, rt_entity **out) {
    rt_entity *e = rt_arena_alloc(tx->arena, sizeof *e);
    if (e == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for an entity");
    rt_doc doc;
    const rt_code code = rt_doc_load(tx, RT_DOC_ENTITY, rt_name(tx->arena, tenant, name), &doc);
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    if (code == RT_OK && !rt_entity_decode(doc.value, e)) {
        return rt_fail(tx->err, RT_E_CORRUPT, 0, "entity %.*s cannot be read", RT_STR_ARG(name));
    }
    if (code == RT_E_ABSENT) *e = (rt_entity){.id = rt_tx_new_id(tx), .created_ms = tx->now_ms};
    e->tenant = tenant;
    e->name = rt_name_rest(doc.name); // `name` may be lent by the batch
    e->was = doc;
    *out = e;
    return RT_OK;
}

rt_slot *rt_entity_slot(rt_entity *e, rt_str process) {
    for (uint32_t i = 0; i < e->slots_count; i++) {
        if (rt_str_eq(e->slots[i].process, process)) return &e->slots[i];
    }
    return NULL;
}

rt_slot *rt_entity_slot_add(rt_entity *e, rt_str process) {
    rt_slot *slot = rt_entity_slot(e, process);
    if (slot != NULL || e->slots_count == RT_ENTITY_SLOTS_MAX) return slot;
    slot = &e->slots[e->slots_count++];
    *slot = (rt_slot){.process = process, .changed = true};
    return slot;
}

void rt_entity_event(rt_tx *tx, rt_entity *e, rt_event event) {
    rt_job subject = {.id = e->id, .last_event = e->last_event};
    rt_tx_event(tx, &subject, event);
    e->last_event = subject.last_event;
}

/* ---- queues ------------------------------------------------------------------------------------------ */

static rt_code find_queue(rt_tx *tx, rt_str tenant, rt_str kind, rt_str process, rt_doc *doc, rt_id *out) {
    const rt_str name = rt_name_pair(tx->arena, tenant, kind, process);
    const rt_code code = rt_doc_load(tx, RT_DOC_WORK_QUEUE, name, doc);
    if (code != RT_OK) return code;
    if (doc->value.len != 8) return rt_fail(tx->err, RT_E_CORRUPT, 0, "a queue of work cannot be read");
    *out = rt_get_be64((const unsigned char *)doc->value.ptr);
    return RT_OK;
}

rt_code rt_entity_queue(rt_tx *tx, rt_str tenant, rt_str kind, rt_str process, rt_id *out) {
    rt_doc doc;
    return find_queue(tx, tenant, kind, process, &doc, out);
}

static rt_code find_or_make_queue(rt_tx *tx, const rt_entity *e, const rt_slot *slot, rt_id *out) {
    rt_doc doc;
    const rt_str kind = slot->wanted ? e->kind : RT_STR_EMPTY;
    const rt_code code = find_queue(tx, e->tenant, kind, slot->process, &doc, out);
    if (code != RT_E_ABSENT) return code;
    unsigned char *value = rt_arena_alloc(tx->arena, 8);
    const rt_str label =
        rt_arena_printf(tx->arena, "%.*s/%.*s/%.*s", RT_STR_ARG(e->tenant), kind.len > 0 ? (int)kind.len : 1,
                        kind.len > 0 ? kind.ptr : "-", RT_STR_ARG(slot->process));
    if (value == NULL || label.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a queue");
    *out = rt_tx_new_id(tx);
    rt_put_be64(value, *out);
    doc.value = (rt_str){.ptr = (const char *)value, .len = 8};
    const rt_queue queue = {.id = *out, .kind = RT_QUEUE_WORK, .name = label};
    rt_tx_put_doc(tx, NULL, &doc);
    rt_tx_put_queue(tx, NULL, &queue);
    rt_tx_tell(tx, rt_entity_queue_topic(e->tenant, kind, slot->process));
    return RT_OK;
}
_Static_assert(RT_TENANT_MAX + RT_KIND_NAME_MAX + RT_PROCESS_NAME_MAX + 2 <= RT_QUEUE_NAME_MAX,
               "a queue's name is never cut");

/* ---- saving ------------------------------------------------------------------------------------------ */

static bool is_idle(const rt_slot *s) { return !s->wanted && s->work == 0 && s->until_ms == 0; }

/* The job of a slot as it ought to be. `was` NULL: it has none yet. */
static rt_code shape_job(rt_tx *tx, const rt_entity *e, const rt_slot *slot, const rt_job *was, rt_job *now) {
    rt_id queue;
    const rt_code code = find_or_make_queue(tx, e, slot, &queue);
    if (code != RT_OK) return code;
    *now = was != NULL ? *was : (rt_job){.flags = RT_JOB_PULL | RT_JOB_WORK, .placed_ms = tx->now_ms};
    const bool was_held = was != NULL && was->state == RT_JOB_LEASED;
    const bool rests = slot->until_ms > tx->now_ms;
    now->queue = queue;
    now->key_hash = rt_entity_topic(e->tenant, e->name);
    now->lease = slot->work;
    now->due_ms = slot->work == 0 && rests ? slot->until_ms : 0;
    now->state = slot->work != 0 ? RT_JOB_LEASED : rests ? RT_JOB_SCHEDULED : RT_JOB_FREE;
    if (slot->work != 0 && (was == NULL || was->lease != slot->work)) now->claims++;
    if (was == NULL || (was_held && slot->work == 0)) { // it lines up anew
        now->id = rt_tx_new_id(tx);
        now->placed_ms = tx->now_ms;
    }
    return RT_OK;
}

static rt_code write_job(rt_tx *tx, const rt_entity *e, rt_slot *slot) {
    rt_job was, now;
    const bool had = slot->job != 0;
    rt_code code = had ? rt_view_job(tx->view, slot->job, &was) : RT_OK;
    if (code != RT_OK) {
        return code == RT_E_ABSENT ? rt_fail(tx->err, RT_E_CORRUPT, 0, "an entity has lost a job") : code;
    }
    if (is_idle(slot)) {
        if (had) rt_tx_remove_job(tx, &was);
        slot->job = 0;
        return RT_OK;
    }
    code = shape_job(tx, e, slot, had ? &was : NULL, &now);
    if (code != RT_OK) return code;
    if (!had) {
        now.body = now.id;
        now.body_bytes = (uint32_t)e->name.len;
        rt_tx_put_body(tx, now.body, e->name);
    }
    slot->job = now.id;
    if (had && was.id == now.id) {
        rt_tx_update_job(tx, &was, &now);
        return RT_OK;
    }
    rt_tx_insert_job(tx, &now);
    if (had) rt_tx_remove_job(tx, &was); // behind the new one, so that the body they share stays
    return RT_OK;
}

rt_code rt_entity_save(rt_tx *tx, rt_entity *e) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < e->slots_count; i++) {
        rt_slot *slot = &e->slots[i];
        if (slot->changed) {
            const rt_code code = write_job(tx, e, slot);
            if (code != RT_OK) return code;
            slot->changed = false;
        }
        if (slot->job != 0) e->slots[kept++] = *slot;
    }
    e->slots_count = kept;
    // Of what nobody has put and nobody works on, only the history is left to be kept.
    const bool forget = kept == 0 && (e->gone || e->kind.len == 0);
    rt_doc now = e->was;
    e->changed_ms = tx->now_ms;
    now.expires_ms = forget ? tx->now_ms + tx->settings->history_ms : 0;
    now.value = rt_entity_encode(tx->arena, e);
    if (now.value.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for an entity");
    rt_tx_put_doc(tx, e->was.version == 0 ? NULL : &e->was, &now);
    return RT_OK;
}

bool rt_entity_is_written(const rt_tx *tx, rt_str tenant, rt_str name) {
    for (uint32_t i = 0; i < tx->ops_count; i++) {
        const rt_doc *doc = tx->ops[i].kind == RT_OP_DOC ? tx->ops[i].doc.now : NULL;
        if (doc == NULL || doc->kind != RT_DOC_ENTITY) continue;
        if (rt_str_eq(rt_name_rest(doc->name), name) &&
            rt_str_eq(rt_name_tenant(doc->name), tenant)) {
            return true;
        }
    }
    return false;
}
