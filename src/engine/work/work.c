#include "engine/work/work.h"

#include "engine/work/work_parts.h"

enum { FORMAT = 1 };

/* ---- stored forms ------------------------------------------------------------------------------------ */

rt_str rt_work_encode(rt_arena *arena, const rt_work *w) {
    rt_buf b = {0};
    rt_pack_u8(&b, FORMAT);
    rt_pack_u64(&b, w->id);
    rt_pack_u64(&b, w->session);
    rt_pack_u64(&b, w->token);
    rt_pack_str(&b, w->entity);
    rt_pack_str(&b, w->process);
    rt_pack_i64(&b, w->started_ms);
    rt_pack_u64(&b, w->previous_s);
    rt_pack_u8(&b, (uint8_t)w->end);
    rt_pack_i64(&b, w->ended_ms);
    rt_pack_i64(&b, w->until_ms);
    rt_pack_u64(&b, w->interval_s);
    return rt_pack_finish(&b, arena);
}

bool rt_work_decode(rt_str value, rt_work *out) {
    rt_unpack u = {.rest = value};
    if (rt_unpack_u8(&u) != FORMAT) return false;
    *out = (rt_work){.id = rt_unpack_u64(&u)};
    out->session = rt_unpack_u64(&u);
    out->token = rt_unpack_u64(&u);
    out->entity = rt_unpack_str(&u);
    out->process = rt_unpack_str(&u);
    out->started_ms = rt_unpack_i64(&u);
    out->previous_s = rt_unpack_u64(&u);
    const uint8_t end = rt_unpack_u8(&u);
    out->ended_ms = rt_unpack_i64(&u);
    out->until_ms = rt_unpack_i64(&u);
    out->interval_s = rt_unpack_u64(&u);
    if (u.failed || u.rest.len > 0 || end >= RT_EVENT_TYPE_COUNT) return false;
    out->end = (rt_event_type)end;
    return true;
}

rt_str rt_rest_encode(rt_arena *arena, const rt_rest *r) {
    rt_buf b = {0};
    rt_pack_u8(&b, FORMAT);
    rt_pack_i64(&b, r->until_ms);
    rt_pack_i64(&b, r->failed_ms);
    rt_pack_u64(&b, r->interval_s);
    rt_pack_u32(&b, r->failures);
    rt_pack_str(&b, r->cause);
    return rt_pack_finish(&b, arena);
}

bool rt_rest_decode(rt_str value, rt_rest *out) {
    rt_unpack u = {.rest = value};
    if (rt_unpack_u8(&u) != FORMAT) return false;
    *out = (rt_rest){.until_ms = rt_unpack_i64(&u)};
    out->failed_ms = rt_unpack_i64(&u);
    out->interval_s = rt_unpack_u64(&u);
    out->failures = rt_unpack_u32(&u);
    out->cause = rt_unpack_str(&u);
    return !u.failed && u.rest.len == 0;
}

/* ---- documents --------------------------------------------------------------------------------------- */

rt_code rt_work_load(rt_tx *tx, rt_doc_kind kind, rt_str name, rt_doc *doc, rt_work *out) {
    const rt_code code = rt_doc_load(tx, kind, name, doc);
    if (code != RT_OK) return code;
    return rt_work_decode(doc->value, out) ? RT_OK : rt_fail(tx->err, RT_E_CORRUPT, 0, "work cannot be read");
}

rt_code rt_rest_load(rt_tx *tx, const rt_entity *e, rt_str process, rt_doc *doc, rt_rest *out) {
    const rt_str name = rt_name_pair(tx->arena, e->tenant, process, e->name);
    const rt_code code = rt_doc_load(tx, RT_DOC_BACKOFF, name, doc);
    if (code != RT_OK) return code;
    return rt_rest_decode(doc->value, out) ? RT_OK
                                           : rt_fail(tx->err, RT_E_CORRUPT, 0, "a backoff cannot be read");
}

rt_code rt_backoff_remove(rt_tx *tx, rt_entity *e, rt_slot *slot) {
    if (slot->until_ms == 0) return RT_OK;
    rt_doc doc;
    rt_rest rest;
    const rt_code code = rt_rest_load(tx, e, slot->process, &doc, &rest);
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    if (code == RT_OK) rt_tx_put_doc(tx, &doc, NULL);
    slot->until_ms = 0;
    slot->changed = true;
    // Where no process is wanted, no job becomes free that would tell of it.
    rt_tx_tell(tx, rt_entity_topic(e->tenant, e->name));
    return RT_OK;
}

/* ---- the end of work, whatever it was ---------------------------------------------------------------- */

rt_code rt_work_over(rt_tx *tx, rt_entity *e, rt_slot *slot, const rt_doc *doc, rt_work *w, rt_str cause) {
    RT_ASSERT(slot->work == w->id);
    RT_ASSERT(w->end != RT_EVENT_NONE);
    w->ended_ms = tx->now_ms;
    const int64_t took_ms = tx->now_ms > w->started_ms ? tx->now_ms - w->started_ms : 0;
    const rt_history line = {.process = slot->process,
                             .session = w->session,
                             .work = w->id,
                             .interval_s = w->interval_s,
                             .cause = rt_cause_cut(cause)};
    const rt_str text = rt_history_write(tx->arena, &line);
    const rt_doc end = {.kind = RT_DOC_WORK_END,
                        .name = rt_name_id(tx->arena, e->tenant, w->id),
                        .expires_ms = tx->now_ms + RT_WORK_END_KEPT_MS,
                        .value = rt_work_encode(tx->arena, w)};
    if (text.ptr == NULL || end.name.ptr == NULL || end.value.ptr == NULL) {
        return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for the end of work");
    }
    rt_entity_event(tx, e,
                    (rt_event){.type = (uint8_t)w->end,
                               .took_ms = took_ms < UINT32_MAX ? (uint32_t)took_ms : UINT32_MAX,
                               .text = text});
    rt_tx_put_doc(tx, doc, NULL);
    rt_tx_put_doc(tx, NULL, &end);
    slot->work = 0;
    slot->session = 0;
    slot->changed = true;
    tx->frees = true;
    // Other processes may have waited for this one to be out of their way.
    rt_tx_tell(tx, rt_entity_topic(e->tenant, e->name));
    for (uint32_t i = 0; i < e->slots_count; i++) {
        rt_job job;
        if (&e->slots[i] == slot || !e->slots[i].wanted || e->slots[i].job == 0) continue;
        const rt_code code = rt_view_job(tx->view, e->slots[i].job, &job);
        if (code != RT_OK && code != RT_E_ABSENT) return code;
        if (code == RT_OK && job.state == RT_JOB_FREE) rt_tx_tell(tx, job.queue);
    }
    return RT_OK;
}

rt_code rt_work_release(rt_tx *tx, rt_str tenant, const rt_doc *doc, rt_event_type how, rt_str cause,
                        bool *released) {
    rt_work work;
    *released = false;
    if (!rt_work_decode(doc->value, &work)) return rt_fail(tx->err, RT_E_CORRUPT, 0, "work cannot be read");
    // A change writes a record once, and is not without bounds.
    if (tx->ops_count > RT_CHANGE_OPS_MAX / 2 || rt_entity_is_written(tx, tenant, work.entity)) return RT_OK;
    rt_entity *e;
    const rt_code code = rt_entity_load(tx, tenant, work.entity, &e);
    if (code != RT_OK) return code;
    rt_slot *slot = rt_entity_slot(e, work.process);
    if (slot == NULL || slot->work != work.id) {
        return rt_fail(tx->err, RT_E_CORRUPT, 0, "an entity does not know of work on it");
    }
    *released = true;
    work.end = how;
    const rt_code over = rt_work_over(tx, e, slot, doc, &work, cause);
    return over == RT_OK ? rt_entity_save(tx, e) : over;
}

/* ---- retry now --------------------------------------------------------------------------------------- */

static rt_code decide_clear(rt_tx *tx, rt_command *cmd) {
    rt_backoff_clear *c = (rt_backoff_clear *)cmd;
    tx->frees = true;
    rt_entity *e;
    rt_code code = rt_entity_load(tx, c->tenant, c->entity, &e);
    if (code != RT_OK) return code;
    rt_slot *slot = rt_entity_slot(e, c->process);
    if (slot == NULL || slot->until_ms == 0) return RT_OK;
    code = rt_backoff_remove(tx, e, slot);
    return code == RT_OK ? rt_entity_save(tx, e) : code;
}

void rt_backoff_clear_init(rt_backoff_clear *c) { *c = (rt_backoff_clear){.cmd = {.decide = decide_clear}}; }
