/* entity.h: what is worked on: one document with its kind, its data, and a slot for each process that has
 * to do with it.
 *
 * A slot says whether the process is wanted, who works on it, and until when it rests. Since all of that
 * is one document, exclusion, finish-with-patch and refused deletion are one compare-and-set.
 *
 * Each slot has one pull job (flag RT_JOB_WORK), which says the same to those who look for work: FREE,
 * SCHEDULED until its backoff ends, or LEASED while it is worked on. It stands in the queue of the
 * entity's kind and the process if the process is wanted, otherwise in the process's queue of the kind "",
 * where nobody looks for work. A job that comes to rest gets a new id: it lines up behind the others, so
 * that nothing that fails again and again is in anybody's way. */
#ifndef RT_ENGINE_WORK_ENTITY_H
#define RT_ENGINE_WORK_ENTITY_H
#include "engine/common/name.h"

enum {
    RT_ENTITY_SLOTS_MAX = 32,
    RT_ENTITY_VALUE_MAX = 64 * 1024 /* bytes; it is written with each start and end of work */
};

typedef struct rt_slot {
    rt_str process;
    bool wanted;         /* by claims of the entity's kind */
    bool changed;        /* not stored: its job has yet to follow */
    rt_id job;           /* 0: none yet */
    rt_id work, session; /* who works on it; 0: nobody */
    int64_t until_ms;    /* in backoff, or was; 0: its last outcome was no failure */
} rt_slot;

typedef struct rt_entity {
    rt_id id; /* its history's; stays when it is deleted and comes back */
    uint64_t last_event;
    int64_t created_ms, changed_ms;
    bool gone;    /* deleted: only its history is left */
    rt_str kind;  /* empty: nobody has said it yet; it was named by a claim only */
    rt_str value; /* JSON text */
    rt_slot slots[RT_ENTITY_SLOTS_MAX];
    uint32_t slots_count;

    /* Not stored. */
    rt_str tenant, name;
    rt_doc was; /* version 0: new */
} rt_entity;

/* Stored form. encode: into the arena; ptr NULL: out of memory. decode lends strings; false: corrupt. */
rt_str rt_entity_encode(rt_arena *arena, const rt_entity *e);
bool rt_entity_decode(rt_str value, rt_entity *out);

/* Creates or replaces kind and value. Processes: those that are wanted from now on; not given: those of
 * before, and for an entity that nobody has put before, all that are registered. */
typedef struct rt_entity_put {
    rt_command cmd;
    rt_str tenant, name, kind, value;
    const rt_str *processes; /* NULL: not given */
    uint32_t processes_count;
    bool created; /* out */
} rt_entity_put;
void rt_entity_put_init(rt_entity_put *c);

/* Drops its backoffs, keeps its history. RT_E_ABSENT; RT_E_FENCED: it is worked on. */
typedef struct rt_entity_delete {
    rt_command cmd;
    rt_str tenant, name;
} rt_entity_delete;
void rt_entity_delete_init(rt_entity_delete *c);

/* ---- for decisions: load, change slots and fields, save ------------------------------------------------ */

/* An owned copy in the arena of the decision; one that is not there is new, without anything. */
rt_code rt_entity_load(rt_tx *tx, rt_str tenant, rt_str name, rt_entity **out);
/* The slot of a process, or NULL. */
rt_slot *rt_entity_slot(rt_entity *e, rt_str process);
/* The same; added if there is none. NULL: it has RT_ENTITY_SLOTS_MAX. */
rt_slot *rt_entity_slot_add(rt_entity *e, rt_str process);
/* Chains an event to its history. */
void rt_entity_event(rt_tx *tx, rt_entity *e, rt_event event);
/* Writes it, has the jobs of slots that changed follow, and drops slots that say nothing any more. At most
 * once in a change. */
rt_code rt_entity_save(rt_tx *tx, rt_entity *e);
/* Was it written in this change already? Then it must wait for the next one. */
bool rt_entity_is_written(const rt_tx *tx, rt_str tenant, rt_str name);

/* The queue of entities of `kind` that want `process`. RT_E_ABSENT: none did so far. */
rt_code rt_entity_queue(rt_tx *tx, rt_str tenant, rt_str kind, rt_str process, rt_id *out);
/* Told when that queue comes into being. */
uint64_t rt_entity_queue_topic(rt_str tenant, rt_str kind, rt_str process);
/* What waits for an entity to be free listens to this. */
uint64_t rt_entity_topic(rt_str tenant, rt_str name);

#endif
