/* world.h: one simulated machine room: a clock, a disk, nodes with an engine each, endpoints and clients.
 *
 * Time is virtual and jumps from one thing that happens to the next. Everything that happens stands in an
 * agenda; what it leads to is decided by generators that start from the seed, so that a seed always gives the
 * same run. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H
#include "base/heap.h"
#include "ledger.h"

typedef struct world world;
typedef struct appointment {
    rt_heap_node node; /* first: virtual time */
    void (*happen)(world *w, struct appointment *a);
    uint32_t number; /* of whatever it is about */
} appointment;

/* An attempt that an executor was given. */
typedef struct flight {
    appointment answer;  /* first: when its outcome is told */
    rt_attempt *attempt; /* NULL: the slot is free */
    uint32_t node;
    uint64_t life;               /* of the node that started it */
    int64_t started_ms, ends_ms; /* virtual; ends: no longer under way at the endpoint */
    uint32_t jumps;              /* clock jumps before it */
    rt_outcome outcome;
    bool answered;
} flight;
enum { FLIGHTS_MAX = 8192, CRASHES_AT_COMMIT_MAX = 4 };

typedef struct node {
    world *world;
    uint32_t number;
    uint64_t life; /* 0: down; otherwise rising over all nodes */
    rt_store *store;
    rt_engine *engine;
    int64_t wake_ms; /* virtual; INT64_MAX: nothing to do */
    bool input;      /* commands or outcomes since the last step */
    bool paused;
    bool stopping;    /* in good order: ends what is under way, starts nothing */
    uint32_t at_once; /* steps in a row that asked for another at once and changed nothing */
    uint64_t landed;  /* batches on the disk at the last step */
} node;

struct world {
    plan plan;
    trace trace;
    ledger ledger;
    rt_rng rng;
    int64_t now_ms;      /* virtual, from 0 */
    int64_t offset_ms;   /* wall = virtual + offset */
    int64_t wall_max_ms; /* the latest wall time that was ever shown */
    uint32_t jumps;
    int64_t back_ms;  /* how far the clock was set back, all jumps together */
    int64_t drain_ms; /* virtual time at which the faults stopped */
    uint64_t ties;
    rt_heap agenda;
    bool draining; /* faults have stopped */

    rt_memory_disk *disk;
    uint64_t landed;     /* batches that reached the disk */
    uint64_t counted;    /* of those: when the account was last taken */
    uint64_t last_event; /* highest number seen */
    struct landing *landing;
    uint64_t lives, steps, attempts, deliveries;
    uint32_t quiet_steps;                            /* in the hour after everything had ended */
    uint64_t crash_at_landed[CRASHES_AT_COMMIT_MAX]; /* batches behind which the node that wrote them dies */
    node nodes[NODES_MAX];

    flight **flights;
    uint32_t flights_count, flights_live;
    uint8_t moods[ENDPOINTS_MAX];
    struct client *client;
    uint32_t requests_open;
};

/* What happened in a world. */
typedef struct tally {
    uint64_t hash; /* of its trace */
    uint64_t steps, batches, messages, deliveries, attempts, crashes;
} tally;
/* Runs a seed to its end, checking every step; ends the program when something is wrong. */
tally world_run(uint64_t seed, bool verbose);

int64_t world_wall_ms(const world *w);
/* Puts `a` into the agenda, `in_ms` from now. */
void world_appoint(world *w, appointment *a, int64_t in_ms);

/* ---- node.c -------------------------------------------------------------------------------------------- */
void node_start(world *w, node *n);
/* Its memory is gone, and with it what the executor had under way; the disk stays. */
void node_crash(world *w, node *n);
/* … and it comes back after a while. */
void world_crash(world *w, node *n);
/* It stands still for a while, its executor with it. */
void world_pause(world *w, node *n);
void node_step(world *w, node *n);
void node_set_faults(world *w,
                     const rt_memory_faults *faults); /* of all nodes that run, and of those that will */
/* Asks it to end in good order; it comes back after a while. */
void node_stop(node *n);
/* Any node that takes requests, or NULL. */
node *node_any(world *w);

/* ---- endpoint.c ---------------------------------------------------------------------------------------- */
rt_executor endpoint_executor(node *n);
void endpoint_forget(world *w, const node *n); /* the node is gone, and its attempts with it */
void endpoint_change_mood(world *w);
void endpoint_deinit(world *w);

/* ---- client.c ------------------------------------------------------------------------------------------ */
void client_init(world *w);
void client_deinit(world *w);
void client_act(world *w);
/* Requests that a node has not answered. */
uint32_t client_waits_for(const world *w, uint32_t number);
/* Did its holder ask for the end of this claim? */
bool client_asked_release(world *w, rt_id claim);
/* Undoes what clients did that would keep things from ending: queues that are paused for good. True: nothing
 * was left. */
bool client_resume_all(world *w);

/* ---- check*.c ------------------------------------------------------------------------------------------ */
void check_init(world *w);
void check_deinit(world *w);
/* A batch reached the disk: every record that changed did so by the rules. */
void check_landed(void *ctx, rt_view *before, rt_view *after);
/* An attempt may start now. */
void check_start(world *w, const node *n, const rt_attempt *attempt);
/* A node that was stopped in good order leaves nothing behind: no request without an answer, no attempt it
 * waits for. */
void check_stopped(world *w, const node *n);
/* The account is even: acknowledged = pending + dead + delivered + expired + deleted. */
void check_account(world *w);
/* Nothing is under way or waiting any more. */
bool check_has_ended(world *w);
/* What waits has waited too long: faults stopped long ago. */
void check_in_time(world *w);
/* Faults have stopped and time has passed: everything has ended. */
void check_ended(world *w);

#endif
