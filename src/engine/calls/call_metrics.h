/* call_metrics.h: events counted by type and, when they are scheduled, by reason. Written by the engine's
 * thread when what is counted is durable, read by any. Names beyond the bounds count together, so that no
 * client can fill memory with them. */
#ifndef RT_ENGINE_CALLS_CALL_METRICS_H
#define RT_ENGINE_CALLS_CALL_METRICS_H
#include <stdatomic.h>

#include "port/record.h"

enum { RT_CALL_TYPES_COUNTED = 64, RT_CALL_REASONS_COUNTED = 256, RT_CALL_REASON_NAME_MAX = 128 };

typedef enum rt_call_count {
    RT_CALL_SUCCEEDED, /* attempts */
    RT_CALL_FAILED,    /* attempts */
    RT_CALL_DIED,
    RT_CALL_COUNT_COUNT
} rt_call_count;

/* The last of each is for all that came later, with an empty name. Entry i is there for readers once the
 * number of them is above i. */
typedef struct rt_call_metrics {
    atomic_uint types, reasons;
    rt_id queues[RT_CALL_TYPES_COUNTED];
    char names[RT_CALL_TYPES_COUNTED + 1][RT_QUEUE_NAME_MAX + 1]; /* "PROJECT/TYPE" */
    uint32_t type_of[RT_CALL_REASONS_COUNTED + 1];
    char reason[RT_CALL_REASONS_COUNTED + 1][RT_CALL_REASON_NAME_MAX + 1];
    atomic_uint_fast64_t scheduled[RT_CALL_REASONS_COUNTED + 1];
    atomic_uint_fast64_t counts[RT_CALL_TYPES_COUNTED + 1][RT_CALL_COUNT_COUNT];
} rt_call_metrics;

/* Engine's thread. Counts of one batch. */
typedef struct rt_call_tally {
    uint32_t scheduled[RT_CALL_REASONS_COUNTED + 1];
    uint32_t counts[RT_CALL_TYPES_COUNTED + 1][RT_CALL_COUNT_COUNT];
    bool any; /* it is not all zero */
} rt_call_tally;

void rt_call_metrics_init(rt_call_metrics *m);
/* Engine's thread: the place of a queue's counters; RT_CALL_TYPES_COUNTED: not yet known, or one too many. */
uint32_t rt_call_metrics_find(const rt_call_metrics *m, rt_id queue);
/* Makes them, if there is room. */
uint32_t rt_call_metrics_add(rt_call_metrics *m, rt_id queue, rt_str name);
/* The place of the counter of `type` and `reason`. */
uint32_t rt_call_metrics_reason(rt_call_metrics *m, uint32_t type, rt_str reason);
/* The batch is durable. */
void rt_call_metrics_count(rt_call_metrics *m, const rt_call_tally *t);

#endif
