/* queue.h: the records of queues of every kind. For decisions. */
#ifndef RT_ENGINE_COMMON_QUEUE_H
#define RT_ENGINE_COMMON_QUEUE_H
#include "engine/common/command.h"

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
