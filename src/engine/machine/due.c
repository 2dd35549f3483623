#include "engine/machine/machine.h"

rt_job_range rt_due_ready(const rt_engine *e) {
    return (rt_job_range){
        .index = RT_INDEX_READY,
        // Several owners: what others insert may have a lower id, and what was taken has left the FIFO.
        .after = e->store->sole_owner ? e->ready_after : 0,
        .to_take = true,
        .want = RT_TAKES_MAX / 2,
    };
}

/* The first one that is not due yet is wanted too: it says when to look again. */
rt_job_range rt_due_lane(const rt_lane *lane) {
    return (rt_job_range){.index = RT_INDEX_DUE,
                          .queue = lane->queue,
                          .until_ms = INT64_MAX,
                          .to_take = true,
                          .want = RT_LANE_QUANTUM + 1};
}
