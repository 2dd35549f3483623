/* farm.h: failed calls on simulated nodes: callers who schedule them, targets that are up and down, workers that die with a
 * lease in their hands, operators who turn every knob; a clock that jumps, nodes that crash, a store with faults.
 *
 * Everything is decided by generators that start from the seed. Each batch that reaches the disk is checked against what was
 * there before it (account.c); when the faults have stopped, everything must end. */
#ifndef SIM_CALLS_FARM_H
#define SIM_CALLS_FARM_H
#include "base/map.h"
#include "engine/calls/call_claim.h"
#include "engine/calls/circuit.h"
#include "engine/calls/line.h"
#include "engine/engine.h"
#include "engine/queues/queue.h"
#include "engine/queues/read.h"
#include "store/memory/store_memory.h"

enum {
    TYPES = 6,
    CALLERS = 4,
    WORKERS = 6,
    NODES_MAX = 2,
    ATTEMPTS_MAX = 512,
    CALLS_MAX = 4096,    /* jobs of one run */
    NUMBERS_MAX = 1024,  /* calls that callers want scheduled */
    ITEMS_MAX = 4,       /* of one request */
    RATED_TYPE = 3,
    RATE_PER_S = 5,
    MAXIMUM_AGE_S = 40, /* of some types */
    FETCHED_MAX = 64,
    LEARNED_MAX = 64,
    ACTIVE_MS = 60000    /* virtual; faults stop then */
};
#define TENANT RT_STR("p")

typedef struct farm farm;

/* ---- people -------------------------------------------------------------------------------------------- */

/* One request on its way. It outlives its owner's patience: the engine calls it done when it likes. */
typedef struct request {
    farm *farm;
    uint32_t who;    /* callers first, then workers */
    uint64_t life;   /* of the node that has it */
    uint64_t number; /* of its owner's request; another by now: nobody waits for this one */
    rt_arena arena;
    rt_call_item items[ITEMS_MAX];
    union {
        rt_command cmd;
        rt_calls_schedule schedule;
        rt_call_type_put put;
        rt_queue_circuit circuit;
        rt_queue_pause pause;
        rt_dead_redrive redrive;
        rt_dead_many many;
        rt_job_delete remove;
        rt_call_claim claim;
        rt_call_end end;
    } as;
} request;

typedef enum errand {
    ERRAND_NONE,
    ERRAND_SCHEDULE,
    ERRAND_PUT,
    ERRAND_CIRCUIT,
    ERRAND_PAUSE,
    ERRAND_REDRIVE,
    ERRAND_REDRIVE_MANY,
    ERRAND_REMOVE,
    ERRAND_CLAIM,
    ERRAND_END
} errand;

typedef struct person {
    errand errand;   /* asked for again until there is an answer */
    uint64_t number; /* of the request that it waits for */
    bool waiting;
    int64_t wake_ms; /* virtual */
    uint32_t type;
    /* A caller's items: numbers from `first` on; the same when it asks again. */
    uint32_t first, items;
    uint32_t keys[ITEMS_MAX]; /* order key; 0: none */
    int64_t delay_ms;
    rt_call_type put;
    rt_circuit_order order;
    int64_t pause_ms;
    rt_id id; /* of a job */
    /* A worker's. */
    rt_id jobs[RT_LEASE_JOBS_MAX];
    uint64_t tokens[RT_LEASE_JOBS_MAX];
    int64_t until_ms[RT_LEASE_JOBS_MAX]; /* wall */
    uint32_t held;
    rt_call_verb verb;
} person;

/* ---- nodes and targets --------------------------------------------------------------------------------- */

typedef struct node {
    farm *farm;
    uint64_t life; /* 0: down */
    rt_store *store;
    rt_engine *engine;
    int64_t wake_ms, up_ms; /* virtual */
} node;

/* One that a target has been sent. */
typedef struct attempt {
    rt_attempt *what;
    node *node;
    uint64_t life;
    int64_t answer_ms, started_ms; /* virtual */
    uint32_t generation;           /* of its job */
} attempt;

/* ---- what must be so ----------------------------------------------------------------------------------- */

typedef struct known_call {
    rt_job job;       /* as it was last durable */
    uint32_t number;  /* of its payload */
    rt_id past;
    bool moved;       /* it goes on as another */
    /* As its history tells it. */
    uint32_t attempt;
    rt_job_state state; /* SCHEDULED: it is alive; DEAD; DONE */
} known_call;

typedef enum lesson { LESSON_UNSURE, LESSON_WELL, LESSON_FAILED } lesson; /* UNSURE: somebody may not have heard of it */

/* What all nodes together may do, see limits.c. */
typedef struct limits {
    int64_t fetched_ms[FETCHED_MAX]; /* wall: when calls of the type with a rate were fetched, the latest of them */
    uint32_t fetched;
    int64_t anew_ms; /* virtual: all of them since then */
    struct learned {
        int64_t at_ms[LEARNED_MAX];  /* virtual: the latest attempts that told something of the target … */
        lesson what[LEARNED_MAX];    /* … and what */
        uint32_t count;
        int64_t enough_ms;           /* virtual: since when that opens the circuit; 0: it does not */
        /* What is sure was learned while these were so, and not before `from_ms`. */
        uint64_t type_version;
        int64_t circuit_since_ms, shaken_ms, from_ms;
    } learned[TYPES];
} limits;

typedef struct account {
    rt_map by_id;
    known_call calls[CALLS_MAX];
    uint32_t count;
    uint32_t made[NUMBERS_MAX];    /* calls by number of their payload, those that go on from another left out */
    rt_id told[NUMBERS_MAX];       /* ids that callers were told; 0: none */
    limits limits;
    uint64_t last_seq;
    uint64_t counts[RT_EVENT_TYPE_COUNT];
    uint64_t hash; /* of all that happened */
} account;

struct farm {
    uint64_t seed;
    rt_rng rng;
    int64_t now_ms, offset_ms; /* virtual from 0; wall = virtual + offset */
    int64_t jump_ms, crash_ms, flip_ms; /* virtual: when next */
    int64_t jumped_ms;         /* virtual: when the clock last jumped */
    int64_t crashed_ms;        /* virtual: when a node last went down */
    int64_t latest_ms;         /* wall: when it jumped, at the latest */
    bool set_back;             /* it has been, at some time */
    bool calm;                 /* faults have stopped */
    rt_memory_disk *disk;
    node nodes[NODES_MAX];
    uint32_t nodes_count;
    uint64_t lives, requests_open;
    person people[CALLERS + WORKERS];
    uint32_t next_number;
    bool down[TYPES];          /* its target, or what its workers need */
    rt_id queues[TYPES];
    int64_t started_ms;        /* virtual: when a node last came up */
    attempt attempts[ATTEMPTS_MAX];
    uint32_t attempts_count;
    rt_arena arena; /* of targets' starts */
    account account;
};

/* Runs a seed to its end; aborts with words when an invariant breaks. Returns the hash of what happened. */
uint64_t farm_run(uint64_t seed);

int64_t farm_wall_ms(const farm *f);
bool farm_chance(farm *f, uint32_t permille);
int64_t farm_draw(farm *f, int64_t low, int64_t high);
extern const char *const TYPE_NAMES[TYPES];
bool type_is_pulled(uint32_t type);
rt_call_type type_like(uint32_t type);
/* Hands the request to a node that runs; false: none does. */
bool farm_submit(farm *f, request *r);

/* ---- people.c ------------------------------------------------------------------------------------------ */
void person_act(farm *f, uint32_t who);

/* ---- target.c ------------------------------------------------------------------------------------------ */
rt_executor target_executor(node *n);
void target_answer(farm *f);          /* what is due */
void target_forget(farm *f, node *n); /* its node has crashed */
int64_t target_next_ms(const farm *f);

/* ---- account.c ----------------------------------------------------------------------------------------- */
/* A batch has reached the disk. For rt_memory_disk_watch; ctx: the farm. */
void account_landed(void *ctx, rt_view *before, rt_view *after);
/* An attempt starts. */
void account_start(farm *f, const rt_attempt *a);
/* All faults are over and time has passed. */
void account_close(farm *f, rt_view *view);
known_call *account_call(farm *f, rt_id id); /* NULL: unknown */

/* ---- limits.c ------------------------------------------------------------------------------------------ */
/* A call of the type with a rate was fetched; wall. */
void limits_fetched(farm *f, int64_t at_ms);
/* A history says so. */
void limits_learned(farm *f, const known_call *c, const rt_event *e);
/* A batch has reached the disk. `taken`: calls of the type were started or fetched in it. */
void limits_landed(farm *f, rt_view *before, rt_view *after, uint32_t type, bool taken);

#define MUST(f, fact, ...) ((fact) ? (void)0 : account_failed((f), #fact, __VA_ARGS__))
_Noreturn void account_failed(const farm *f, const char *fact, const char *fmt, ...) RT_PRINTF(3, 4);

#endif
