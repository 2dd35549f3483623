/* plan.h: what a seed decides beforehand: how large its world is, how long it lasts, and what goes wrong in
 * it. */
#ifndef SIM_PLAN_H
#define SIM_PLAN_H
#include "base/rng.h"
#include "engine/engine.h"
#include "store/memory/store_memory.h"

enum {
    NODES_MAX = 2,
    QUEUES_MAX = 3,
    ENDPOINTS_MAX = 6,
    MESSAGES_MAX = 600,   /* posted in one run */
    DELIVERIES_MAX = 1000 /* made in one run, about */
};

typedef struct plan {
    uint64_t seed;
    uint32_t nodes;
    uint32_t queues, endpoints;
    uint32_t actions;      /* of clients, spread over the active time */
    int64_t active_ms;     /* then all faults stop and everything must end */
    bool many_subscribers; /* more than fit into the post's own change */
    bool dead_letters;     /* queues with _max_claim_count */
    int64_t ttl_max_s;     /* of messages */
    uint32_t delay_max_s;  /* of policies */

    rt_store_memory_config disk;
    rt_memory_faults faults;
    uint32_t fault_spells; /* times in which the store fails altogether or is full */
    uint32_t crashes, stops, pauses, jumps;
    uint32_t crashes_at_commit; /* right behind a batch that reached the disk */
    uint32_t bursts;            /* in permille: actions that come with others in the same moment */
    bool one_stays_down;        /* of two nodes: it never comes back, and the other ends what it began */
    uint32_t lost, late, lies;  /* outcomes, in permille */
    uint32_t failing;           /* answers that are not 2xx, in permille */
    rt_engine_settings settings;
} plan;

plan plan_of(uint64_t seed);

/* Uniform in [low, high]. */
uint64_t draw(rt_rng *rng, uint64_t low, uint64_t high);
bool chance(rt_rng *rng, uint32_t permille);

#endif
