/* front.c: where the free jobs of a queue begin. Those that were taken stay in the index until the next vacuum: who
 * begins at its start passes over all of them, each time, and a million cost more than all else that a claim does.
 *
 * Others may give a job back behind the front, so it holds for a moment only, and whoever finds too few looks from the
 * start. */
#include "os/clock.h"
#include "store/postgres/inside.h"

enum { HOLDS_MS = 500 };

static rt_pg_front *front_of(rt_pg *s, rt_id queue) { return &s->fronts[rt_hash_u64(queue) % RT_PG_FRONTS]; }

rt_id rt_pg_front_after(rt_pg *s, rt_id queue) {
    const rt_pg_front *f = front_of(s, queue);
    return f->queue == queue && rt_mono_ms() < f->until_ms ? f->after : 0;
}

void rt_pg_front_found(rt_pg *s, rt_id queue, rt_id first, bool from_start) {
    rt_pg_front *f = front_of(s, queue);
    if (from_start) *f = (rt_pg_front){.queue = queue, .until_ms = rt_mono_ms() + HOLDS_MS};
    if (f->queue == queue) f->after = first - 1; // whether it is taken is not known yet
}

void rt_pg_front_freed(rt_pg *s, rt_id queue, rt_id id) {
    rt_pg_front *f = front_of(s, queue);
    if (f->queue == queue && f->after >= id) f->after = id - 1;
}
