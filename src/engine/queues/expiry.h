/* expiry.h: ends what is over: messages, claims, subscriptions. By an index, never by a scan. */
#ifndef RT_ENGINE_QUEUES_EXPIRY_H
#define RT_ENGINE_QUEUES_EXPIRY_H
#include "engine/common/command.h"

enum { RT_EXPIRY_SLICE = 64 }; /* ends in one change */

/* Ends up to RT_EXPIRY_SLICE of what is over at the step's time, oldest first: a message ends as `expired`, a
 * claim frees its messages, a subscription is removed as if it had been deleted, a session releases its work, a call
 * that is too old is dead, any other document goes. */
typedef struct rt_expiry_step {
    rt_command cmd;
    uint32_t count;  /* out: how many ended */
    int64_t next_ms; /* out: when the first of the others ends (<= now: more to do); INT64_MAX: none */
} rt_expiry_step;
void rt_expiry_step_init(rt_expiry_step *c);

#endif
