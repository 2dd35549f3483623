/* message_queue.h: commands on whole message queues. */
#ifndef RT_ENGINE_MESSAGES_MESSAGE_QUEUE_H
#define RT_ENGINE_MESSAGES_MESSAGE_QUEUE_H
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

#endif
