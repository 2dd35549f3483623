#include "store/postgres/node/front.h"

#include "base/map.h"
#include "os/clock.h"

enum { HOLDS_MS = 500 };

static rt_pg_front *front_of(rt_pg_fronts *all, rt_id queue) {
    return &all->of[rt_hash_u64(queue) % RT_PG_FRONTS];
}

rt_id rt_pg_front_after(rt_pg_fronts *all, rt_id queue) {
    const rt_pg_front *f = front_of(all, queue);
    return f->queue == queue && rt_mono_ms() < f->until_ms ? f->after : 0;
}

void rt_pg_front_found(rt_pg_fronts *all, rt_id queue, rt_id first, bool from_start) {
    rt_pg_front *f = front_of(all, queue);
    if (from_start) *f = (rt_pg_front){.queue = queue, .until_ms = rt_mono_ms() + HOLDS_MS};
    if (f->queue == queue) f->after = first - 1; // whether it is taken is not known yet
}

void rt_pg_front_freed(rt_pg_fronts *all, rt_id queue, rt_id id) {
    rt_pg_front *f = front_of(all, queue);
    if (f->queue == queue && f->after >= id) f->after = id - 1;
}
