#include "engine/work/work.h"

static rt_code want(rt_tx *tx, rt_entity *e, const rt_str processes[], uint32_t count) {
    for (uint32_t i = 0; i < e->slots_count; i++) {
        e->slots[i].changed = true;
        e->slots[i].wanted = false;
    }
    for (uint32_t i = 0; i < count; i++) {
        rt_slot *slot = rt_entity_slot_add(e, processes[i]);
        if (slot == NULL) {
            return rt_fail(tx->err, RT_E_TOO_LARGE, 0, "An entity has at most %d processes.",
                           RT_ENTITY_SLOTS_MAX);
        }
        slot->wanted = true;
    }
    return RT_OK;
}

static rt_code decide_put(rt_tx *tx, rt_command *cmd) {
    rt_entity_put *c = (rt_entity_put *)cmd;
    RT_ASSERT(rt_name_is_entity(c->name));
    RT_ASSERT(rt_name_is_word(c->kind));
    rt_entity *e;
    rt_code code = rt_entity_load(tx, c->tenant, c->name, &e);
    if (code != RT_OK) return code;
    c->created = e->kind.len == 0 || e->gone;
    e->gone = false;
    e->kind = c->kind;
    e->value = c->value;
    if (c->processes != NULL) {
        code = want(tx, e, c->processes, c->processes_count);
    } else if (c->created) {
        rt_str all[RT_PROCESSES_MAX];
        uint32_t count;
        code = rt_process_names(tx, c->tenant, all, &count);
        if (code == RT_OK) code = want(tx, e, all, count);
    }
    for (uint32_t i = 0; i < e->slots_count; i++) e->slots[i].changed = true; // the kind may be another
    return code == RT_OK ? rt_entity_save(tx, e) : code;
}

void rt_entity_put_init(rt_entity_put *c) { *c = (rt_entity_put){.cmd = {.decide = decide_put}}; }

static rt_code decide_delete(rt_tx *tx, rt_command *cmd) {
    rt_entity_delete *c = (rt_entity_delete *)cmd;
    tx->frees = true;
    rt_entity *e;
    rt_code code = rt_entity_load(tx, c->tenant, c->name, &e);
    if (code != RT_OK) return code;
    if (e->was.version == 0 || e->gone) return RT_E_ABSENT;
    for (uint32_t i = 0; i < e->slots_count; i++) {
        rt_slot *slot = &e->slots[i];
        if (slot->work != 0) {
            code = rt_work_drop_dead(tx, e, slot);
            if (code != RT_OK) return code;
        }
        if (slot->work != 0) {
            return rt_fail(tx->err, RT_E_FENCED, 0, "The entity is worked on (%.*s).",
                           RT_STR_ARG(slot->process));
        }
        code = rt_backoff_remove(tx, e, slot);
        if (code != RT_OK) return code;
        slot->wanted = false;
        slot->changed = true;
    }
    e->gone = true;
    e->kind = RT_STR_EMPTY;
    e->value = RT_STR_EMPTY;
    return rt_entity_save(tx, e);
}

void rt_entity_delete_init(rt_entity_delete *c) { *c = (rt_entity_delete){.cmd = {.decide = decide_delete}}; }
