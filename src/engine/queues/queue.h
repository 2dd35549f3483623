/* queue.h: commands on whole queues. */
#ifndef RT_ENGINE_QUEUES_QUEUE_H
#define RT_ENGINE_QUEUES_QUEUE_H
#include "engine/messages/metadata.h"

/* Creates a queue with metadata. RT_OK with `existed`: it was there, untouched. */
typedef struct rt_queue_create {
    rt_command cmd;
    rt_str tenant, queue;
    rt_metadata like; /* id and jobs are filled in */
    bool existed;     /* out */
} rt_queue_create;
void rt_queue_create_init(rt_queue_create *c);

/* Replaces the metadata if the document still has `version`. RT_E_ABSENT, RT_E_CONFLICT: read and try again. */
typedef struct rt_queue_replace {
    rt_command cmd;
    rt_str tenant, queue;
    uint64_t version;
    rt_metadata like; /* id and jobs are kept from what is stored */
} rt_queue_replace;
void rt_queue_replace_init(rt_queue_replace *c);

/* Deletes the queue with its messages and subscriptions. RT_OK also if absent. At once for every reader; the records
 * themselves go in slices afterwards (a cursor). */
typedef struct rt_queue_delete {
    rt_command cmd;
    rt_str tenant, queue;
} rt_queue_delete;
void rt_queue_delete_init(rt_queue_delete *c);

/* Removes what it names; the queue stays. RT_OK also if absent. */
typedef struct rt_queue_purge {
    rt_command cmd;
    rt_str tenant, queue;
    bool messages, subscriptions;
} rt_queue_purge;
void rt_queue_purge_init(rt_queue_purge *c);

/* Pauses a queue of any kind until a time (INT64_MAX: until resumed) or resumes it (0). Attempts under way go on.
 * RT_E_ABSENT. */
typedef struct rt_queue_pause {
    rt_command cmd;
    rt_id id;
    int64_t until_ms;
} rt_queue_pause;
void rt_queue_pause_init(rt_queue_pause *c);

/* ---- for decisions -------------------------------------------------------------------------------------------------- */

/* A queue's record whose name outlives the decision. RT_E_ABSENT. */
rt_code rt_queue_load(rt_tx *tx, rt_id id, rt_queue *out);
/* "TENANT/QUEUE" or, with a uri, "TENANT/QUEUE/URI", cut at a whole character to RT_QUEUE_NAME_MAX. ptr NULL: no memory. */
rt_str rt_queue_label(rt_arena *arena, rt_str tenant, rt_str queue, rt_str uri);
/* Nobody needs queue `id` any more: its jobs end with `reason` in slices (a cursor), then its record goes. With
 * `keep_dead` those that were given up stay, and the record (gone) as long as there are any, to name them. Fresh
 * deliveries in the FIFO end when their turn comes, since their subscription is gone. */
rt_code rt_queue_drain(rt_tx *tx, rt_id id, rt_reason reason, bool keep_dead);
/* This change removes `removed` dead jobs of queue `id`: if nothing else keeps the record of a gone queue, it goes too. */
rt_code rt_queue_forget(rt_tx *tx, rt_id id, uint32_t removed);
/* Is handing out of jobs held up by an operator: paused, or its circuit forced open? */
rt_code rt_queue_is_paused(rt_tx *tx, rt_id id, bool *paused);

#endif
