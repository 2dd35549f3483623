/* fleet.h: simulated workers on simulated nodes: a clock that jumps, nodes that crash, replies that are
 * lost, workers that sleep longer than their session lives. After each step of a node the account is taken
 * anew (account.c).
 *
 * Everything is decided by generators that start from the seed, so that a seed always gives the same run. */
#ifndef SIM_WORK_FLEET_H
#define SIM_WORK_FLEET_H
#include "engine/engine.h"
#include "engine/work/work_read.h"
#include "store/memory/store_memory.h"

enum {
    WORKERS = 8,
    ENTITIES = 10,
    PROCESSES = 3, /* the first two exclude each other */
    NODES_MAX = 2,
    SESSIONS_MAX = 2048,
    ACTIVE_MS = 40000 /* virtual; faults stop then */
};
#define TENANT RT_STR("p")

typedef struct fleet fleet;
typedef struct worker worker;

/* One request on its way. It outlives its worker's patience: the engine calls it done when it likes. */
typedef struct request {
    fleet *fleet;
    uint32_t worker;
    uint64_t life;   /* of the node that has it */
    uint64_t number; /* of the worker's request; another by now: nobody waits for this one */
    bool resets;     /* puts or deletes `entity` */
    uint32_t entity;
    rt_arena arena;
    union {
        rt_command cmd;
        rt_session_create start;
        rt_session_beat beat;
        rt_work_claim claim;
        rt_work_end end;
        rt_entity_delete remove;
        rt_entity_put put;
    } as;
} request;

typedef enum stage { STAGE_NO_SESSION, STAGE_IDLE, STAGE_WORKING } stage;
typedef enum errand {
    ERRAND_NONE,
    ERRAND_START,
    ERRAND_BEAT,
    ERRAND_CLAIM,
    ERRAND_END,
    ERRAND_REMOVE,
    ERRAND_PUT
} errand;

struct worker {
    stage stage;
    errand errand;   /* what it asks for, again and again until it has an answer */
    uint64_t number; /* of the request that it waits for */
    bool waiting;
    int64_t wake_ms; /* virtual */
    rt_id session;
    rt_work work; /* with entity and process as indexes, below */
    uint32_t entity, process;
    rt_event_type verb;
    bool by_kind;
    uint64_t key; /* idempotency key of the claim */
    char key_text[24];
};

typedef struct node {
    uint64_t life; /* 0: down */
    rt_store *store;
    rt_engine *engine;
    int64_t wake_ms, up_ms; /* virtual */
} node;

/* What must be so, from the histories alone. */
typedef struct account_pair {
    rt_id open; /* work that was started and has not ended; 0: none */
    rt_id session;
    int64_t until_ms;
    uint32_t failures; /* since it last finished */
} account_pair;
typedef struct account_session {
    rt_id id;
    int64_t deadline_ms;
    bool dead;
} account_session;
typedef struct account {
    account_pair pairs[ENTITIES][PROCESSES];
    uint64_t last_event[ENTITIES];
    uint64_t finished[ENTITIES]; /* since it was last put or deleted */
    /* Somebody may have put or deleted it since the last look: its value and backoffs start anew. */
    uint32_t resets_open[ENTITIES];
    bool reset[ENTITIES];
    account_session sessions[SESSIONS_MAX];
    uint32_t sessions_count;
    uint64_t counts[RT_EVENT_TYPE_COUNT];
    uint64_t hash; /* of all that happened */
} account;

struct fleet {
    uint64_t seed;
    rt_rng rng;
    int64_t now_ms, offset_ms; /* virtual from 0; wall = virtual + offset */
    int64_t jump_ms, crash_ms; /* virtual: when next */
    bool calm;                 /* faults have stopped */
    const char *lmdb;          /* a folder; NULL: the memory store */
    rt_memory_disk *disk;
    node nodes[NODES_MAX];
    uint32_t nodes_count;
    uint64_t lives, requests_open;
    worker workers[WORKERS];
    account account;
};

/* Runs a seed to its end; aborts with words when an invariant breaks. Returns the hash of what happened. */
uint64_t fleet_run(uint64_t seed, const char *lmdb);

int64_t fleet_wall_ms(const fleet *f);
extern const char *const ENTITY_NAMES[ENTITIES];
extern const char *const PROCESS_NAMES[PROCESSES];
rt_backoff process_backoff(uint32_t process);

/* ---- account.c ----------------------------------------------------------------------------------------- */
/* A node has stepped: what is durable now must follow from what was before. */
void account_take(fleet *f, rt_view *view);
/* All faults are over, all workers are gone and time has passed: nothing is worked on any more. */
void account_close(fleet *f, rt_view *view);

#define MUST(f, fact, ...) ((fact) ? (void)0 : account_failed((f), #fact, __VA_ARGS__))
_Noreturn void account_failed(const fleet *f, const char *fact, const char *fmt, ...) RT_PRINTF(3, 4);

/* ---- worker.c ------------------------------------------------------------------------------------------ */
void worker_act(fleet *f, uint32_t number);
/* Hands the request to a node that runs; false: none does. */
bool fleet_submit(fleet *f, request *r);

#endif
