/* queue.h: what is done to queues of every kind. */
#ifndef RT_ENGINE_QUEUES_QUEUE_H
#define RT_ENGINE_QUEUES_QUEUE_H
#include "engine/common/cursor.h"

/* Pauses a queue of any kind until a time (INT64_MAX: until resumed) or resumes it (0). Attempts under way go on.
 * RT_E_ABSENT. */
typedef struct rt_queue_pause {
    rt_command cmd;
    rt_id id;
    int64_t until_ms;
} rt_queue_pause;
void rt_queue_pause_init(rt_queue_pause *c);

/* One slice of RT_CURSOR_DRAIN. */
rt_cursor_slice rt_drain_slice;

#endif
