/* order_patrol.h: looks after PENDING orders: each must have a live task.
 *
 * Tasks start by themselves when they are due; this is the retry scheduler of the original, which goes
 * round every schedule_period_seconds under a lock. All it finds to do is to give a task to an order that
 * has lost its own, which must never happen and is counted. A round looks at up to RT_PATROL_ROUND orders,
 * a slice a change, and the next one goes on behind them. */
#ifndef RT_ENGINE_ORDERS_ORDER_PATROL_H
#define RT_ENGINE_ORDERS_ORDER_PATROL_H
#include "engine/common/command.h"

enum { RT_PATROL_SLICE = 64, RT_PATROL_ROUND = 1024 };
#define RT_PATROL_LOCK "order_retry_scheduler"

/* One slice; with `ends`, the end of a round instead: gives the lock back. The lock is taken only where an
 * order is PENDING, and a slice that finds it held by another node does nothing. */
typedef struct rt_order_patrol {
    rt_command cmd;
    bool ends;
    char after[RT_DOC_NAME_MAX]; /* looked at up to here */
    size_t after_len;            /* 0: from the first */

    bool held;        /* out: the lock was taken, or renewed */
    bool barred;      /* out: another one has it */
    uint32_t count;   /* out: orders looked at; fewer than RT_PATROL_SLICE: those were the last */
    char seen[RT_DOC_NAME_MAX]; /* out: the last of them */
    size_t seen_len;
} rt_order_patrol;
/* For `after`, see above. */
void rt_order_patrol_init(rt_order_patrol *c);

#endif
