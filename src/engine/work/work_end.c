#include "engine/work/work_parts.h"

/* Work that is about to end, and everything it is part of. */
typedef struct ending {
    rt_doc doc; /* of the work */
    rt_work work;
    rt_entity *entity;
    rt_slot *slot;
} ending;

static rt_code refuse(rt_tx *tx, rt_work_end *c, rt_work_refusal why, const char *words) {
    c->refusal = why;
    return rt_fail(tx->err, RT_E_FENCED, 0, "%s", words);
}

/* Results outlive the decision. */
static rt_code keep(rt_tx *tx, rt_work_end *c, const rt_work *work) {
    c->work = *work;
    c->work.entity = rt_arena_dup(c->arena, work->entity);
    c->work.process = rt_arena_dup(c->arena, work->process);
    if (c->work.entity.ptr != NULL && c->work.process.ptr != NULL) return RT_OK;
    return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for the end of work");
}

/* ---- three ways to end ------------------------------------------------------------------------------- */

static rt_code finish(rt_tx *tx, rt_work_end *c, ending *o) {
    rt_entity *e = o->entity;
    rt_code code = rt_backoff_remove(tx, e, o->slot);
    if (code != RT_OK) return code;
    o->slot->wanted = false;
    for (uint32_t i = 0; i < c->processes_count; i++) {
        rt_slot *slot = rt_entity_slot_add(e, c->processes[i]);
        if (slot == NULL) return rt_fail(tx->err, RT_E_TOO_LARGE, 0, "The entity has too many processes.");
        if (slot->wanted) continue;
        slot->wanted = true;
        slot->changed = true;
    }
    if (c->patch == NULL) return RT_OK;
    code = c->patch(c->patch_ctx, tx->arena, e->value, &e->value, tx->err);
    if (code == RT_OK && e->value.len > RT_ENTITY_VALUE_MAX) {
        return rt_fail(tx->err, RT_E_TOO_LARGE, 0, "An entity's value has at most %d bytes.",
                       RT_ENTITY_VALUE_MAX);
    }
    return code;
}

static rt_code fail(rt_tx *tx, const rt_work_end *c, ending *o) {
    rt_backoff backoff = c->backoff;
    rt_code code = RT_OK;
    if (!c->own_backoff) {
        rt_process process;
        code = rt_process_load(tx, c->tenant, o->slot->process, &process);
        if (code == RT_OK) backoff = process.backoff;
    }
    if (code != RT_OK) return code;
    rt_doc was;
    rt_rest rest;
    code = rt_rest_load(tx, o->entity, o->slot->process, &was, &rest);
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    const uint32_t failures = code == RT_OK ? rest.failures : 0;
    int64_t rest_ms;
    o->work.interval_s = rt_backoff_next(&backoff, o->work.previous_s, tx->rng, &rest_ms);
    o->work.until_ms = tx->now_ms + rest_ms;
    const rt_rest now = {.until_ms = o->work.until_ms,
                         .failed_ms = tx->now_ms,
                         .interval_s = o->work.interval_s,
                         .failures = failures < UINT32_MAX ? failures + 1 : failures,
                         .cause = rt_cause_cut(c->cause)};
    rt_doc doc = was;
    doc.value = rt_rest_encode(tx->arena, &now);
    if (doc.value.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a backoff");
    rt_tx_put_doc(tx, was.version == 0 ? NULL : &was, &doc);
    o->slot->until_ms = o->work.until_ms;
    return RT_OK;
}

/* ---- who may ------------------------------------------------------------------------------------------ */

/* It is over: the same request again gets the same answer, whatever has become of its session. One whose session died
 * did not end it: it is told that it is dead, as it was before that was noticed. */
static rt_code answer_again(rt_tx *tx, rt_work_end *c) {
    rt_doc doc;
    rt_work work;
    const rt_code code =
        rt_work_load(tx, RT_DOC_WORK_END, rt_name_id(tx->arena, c->tenant, c->id), &doc, &work);
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    const bool known = code == RT_OK && work.token == c->token && work.session == c->session;
    const bool same = work.end == c->verb || (c->verb == RT_EVENT_CANCELED && work.end != RT_EVENT_EXPIRED);
    if (known && same) return keep(tx, c, &work);
    const rt_code alive = rt_session_alive(tx, c->tenant, c->session, NULL);
    if (alive == RT_E_FENCED) c->refusal = RT_WORK_DEAD;
    if (alive != RT_OK) return alive;
    return refuse(tx, c, RT_WORK_NOT_HELD,
                  known ? "The work has ended in another way." : "This token does not hold the work.");
}

static rt_code load(rt_tx *tx, rt_work_end *c, ending *o) {
    rt_code code = rt_work_load(tx, RT_DOC_WORK, rt_name_ids(tx->arena, c->tenant, c->session, c->id),
                                &o->doc, &o->work);
    if (code != RT_OK) return code;
    code = rt_session_alive(tx, c->tenant, c->session, NULL);
    if (code == RT_E_FENCED) c->refusal = RT_WORK_DEAD;
    if (code != RT_OK) return code;
    if (o->work.token != c->token)
        return refuse(tx, c, RT_WORK_NOT_HELD, "This token does not hold the work.");
    code = rt_entity_load(tx, c->tenant, o->work.entity, &o->entity);
    if (code != RT_OK) return code;
    o->slot = rt_entity_slot(o->entity, o->work.process);
    if (o->slot != NULL && o->slot->work == c->id) return RT_OK;
    return rt_fail(tx->err, RT_E_CORRUPT, 0, "an entity does not know of work on it");
}

static rt_code decide_end(rt_tx *tx, rt_command *cmd) {
    rt_work_end *c = (rt_work_end *)cmd;
    tx->frees = true;
    ending o;
    rt_code code = load(tx, c, &o);
    if (code == RT_E_ABSENT) return answer_again(tx, c);
    if (code != RT_OK) return code;
    o.work.end = c->verb;
    if (c->verb == RT_EVENT_FINISHED) code = finish(tx, c, &o);
    else if (c->verb == RT_EVENT_FAILED) code = fail(tx, c, &o);
    // Adding a process may have filled the list, never moved it: the slot is where it was.
    if (code == RT_OK) code = rt_work_over(tx, o.entity, o.slot, &o.doc, &o.work, c->cause);
    if (code == RT_OK) code = rt_entity_save(tx, o.entity);
    return code == RT_OK ? keep(tx, c, &o.work) : code;
}

void rt_work_end_init(rt_work_end *c) { *c = (rt_work_end){.cmd = {.decide = decide_end}}; }

/* ---- its session is dead ------------------------------------------------------------------------------ */

rt_code rt_work_drop_dead(rt_tx *tx, rt_entity *e, rt_slot *slot) {
    bool dead;
    rt_code code = rt_session_is_dead(tx, e->tenant, slot->session, &dead);
    if (code != RT_OK || !dead) return code;
    rt_doc doc;
    rt_work work;
    code = rt_work_load(tx, RT_DOC_WORK, rt_name_ids(tx->arena, e->tenant, slot->session, slot->work),
                        &doc, &work);
    if (code != RT_OK) return code == RT_E_ABSENT ? rt_fail(tx->err, RT_E_CORRUPT, 0, "work is lost") : code;
    work.end = RT_EVENT_EXPIRED;
    return rt_work_over(tx, e, slot, &doc, &work, RT_STR("session expired"));
}
