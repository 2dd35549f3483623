/* dead_filter.h: which dead jobs an operator means. */
#ifndef RT_ENGINE_COMMON_DEAD_FILTER_H
#define RT_ENGINE_COMMON_DEAD_FILTER_H
#include "port/record.h"

/* Which dead jobs: all that is given must hold. Strings are at most RT_DEAD_TEXT_MAX bytes. */
enum { RT_DEAD_TEXT_MAX = 256 };
typedef struct rt_dead_filter {
    rt_id queue;        /* 0: all queues */
    rt_id owner;        /* 0, or: of deliveries of this message queue */
    rt_reason reason;   /* why it died; RT_REASON_NONE: whatever the reason */
    rt_reason failure;  /* what its last attempt failed of, or why it died; RT_REASON_NONE: whatever */
    uint16_t status_low, status_high; /* the answer to its last attempt, inclusive; 0: whatever */
    int64_t after_ms, before_ms;      /* it died at or after, and before; 0: whenever */
    rt_str told;        /* a call: why it was scheduled; empty: whatever */
    rt_str text;        /* is in its body, or in the text of its last attempt; empty: whatever */
} rt_dead_filter;

#endif
