/* schedule.h: which pushed job starts next. In memory only; bounded by the queues that have something to do.
 *
 * Three sources: the store's FIFO `ready` (fresh deliveries of queues that have room), a heap of queues by their next due
 * time, and queues that are due now and wait for their turn. Fairness:
 *  - turns: due queues are served round robin, a quantum each;
 *  - trust: a queue starts with room for a few attempts at once; each success doubles it up to its maximum, each failure
 *    halves it, down to one. An endpoint that hangs therefore holds few attempts;
 *  - two classes: queues whose last attempt failed share at most one in RT_SUSPECT_SHARE starts while a sound queue is
 *    busy (and a trickle by time), and at most half of all attempts under way. A thousand dead endpoints cannot slow
 *    down a healthy one by more than that. */
#ifndef RT_ENGINE_SCHEDULE_H
#define RT_ENGINE_SCHEDULE_H
#include "base/heap.h"
#include "base/map.h"
#include "port/record.h"

typedef struct rt_lane {
    rt_heap_node wake;      /* first: its queue's next due time, while it is not in turn */
    rt_id queue;
    struct rt_lane *turn_next; /* ring of those whose turn comes */
    int64_t paused_until_ms;
    uint32_t in_flight, room, room_max;
    bool in_turn;
    bool backlog;           /* has due jobs waiting: fresh deliveries line up behind them */
    bool suspect;           /* its last attempt failed */
    bool known;             /* its queue record was read */
} rt_lane;

#endif
