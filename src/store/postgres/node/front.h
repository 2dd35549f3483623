/* front.h: where the free jobs of a queue begin. Those that were taken stay in the index until the next
 * vacuum: who begins at its start passes over all of them, each time, and a million cost more than all else
 * that a claim does.
 *
 * Others may give a job back behind the front, so it holds for a moment only, and whoever finds too few looks
 * from the start. */
#ifndef RT_STORE_POSTGRES_NODE_FRONT_H
#define RT_STORE_POSTGRES_NODE_FRONT_H
#include "port/record.h"

enum { RT_PG_FRONTS = 64 };

typedef struct rt_pg_front {
    rt_id queue, after; /* 0: none */
    int64_t until_ms;   /* monotonic */
} rt_pg_front;

typedef struct rt_pg_fronts {
    rt_pg_front of[RT_PG_FRONTS]; /* by hash; of two queues the later */
} rt_pg_fronts;

rt_id rt_pg_front_after(rt_pg_fronts *all, rt_id queue); /* 0: from the start */
/* A full page of them began with `first`. */
void rt_pg_front_found(rt_pg_fronts *all, rt_id queue, rt_id first, bool from_start);
void rt_pg_front_freed(rt_pg_fronts *all, rt_id queue, rt_id id);

#endif
