/* site.h: orders on simulated nodes: plugins and workers that do whatever a seed says, clients that create
 * and delete, nodes that crash at any commit or stand still beyond their leases, a clock that jumps.
 * Whenever a batch reaches the disk the books are compared with it (books.c): they know what must be from
 * what workers said and clients asked, not from what the engine wrote.
 *
 * Everything is decided by generators that start from the seed, so that a seed always gives the same run. */
#ifndef SIM_ORDERS_SITE_H
#define SIM_ORDERS_SITE_H
#include "engine/engine.h"
#include "engine/orders/order_read.h"
#include "store/memory/store_memory.h"

enum {
    NODES_MAX = 2,
    TYPES = 2, /* "plug": a plugin, told of deletions; "http": a worker, with a limit of attempts */
    ORDERS_MAX = 40,
    RUNS_MAX = 8192,
    LEASES_MAX = 4,
    TEXT_MAX = 1200,
    ACTIVE_MS = 90000, /* virtual; faults stop then */
    ANSWER_LIMIT_S = 10,
    LEASE_MS = 8000, /* of a run, until it is renewed */
    HTTP_ATTEMPTS_MAX = 4,
    PERIOD_MS = 3000,
    LOCK_TIMEOUT_MS = 9000
};
#define TENANT RT_STR("p")
#define TYPE_PLUG 0u
#define TYPE_HTTP 1u

typedef struct site site;

/* ---- what a worker says -------------------------------------------------------------------------------- */

typedef enum say {
    SAY_ANSWER,   /* `action`, as JSON with status 200 */
    SAY_NONSENSE, /* 200, and nobody understands it */
    SAY_STATUS,   /* `status`, with `retry_after_ms` */
    SAY_TIMEOUT,
    SAY_CRASH,
    SAY_ACCEPT,   /* 202; the answer comes by itself */
    SAY_NOTHING   /* its outcome is lost */
} say;

typedef struct words {
    say say;
    uint16_t status;
    int64_t retry_after_ms; /* -1: none */
    rt_run_action action;
    int64_t after_ms; /* -1: not said */
    const char *task, *args, *kwargs, *sub_status, *message, *code, *reason; /* NULL: not said */
    char state[24]; /* empty: not said */
    uint8_t made;   /* 0: nothing, 1: a secret, 2: a container of two, 3: a reference */
} words;

/* A run that an executor was given. */
typedef struct run {
    uint32_t order; /* its number */
    uint32_t node;
    uint64_t life, token;
    rt_id job;
    uint32_t attempt;
    bool cancel;
    int64_t started_wall_ms, accepted_wall_ms;
    uint32_t jumps; /* of the clock, before it */
    words words;
    bool said;     /* what it says may be known to an engine */
    bool consumed; /* it was taken: it made its order what it is */
    /* Virtual: when the outcome is told, and the result is put; INT64_MAX: never, or it has been. */
    int64_t tell_ms, put_ms;
    bool putting;            /* a result is on its way */
} run;

/* ---- what must be -------------------------------------------------------------------------------------- */

typedef struct order {
    bool asked, acknowledged, there, delete_asked, delete_acknowledged, gone;
    bool wake_asked; /* somebody may have made it due at once since the last look */
    uint32_t wakes_open;
    bool was_pending; /* when it went */
    uint32_t type;
    rt_id id, job;
    int64_t created_ms, due_ms;
    rt_order_status status;
    uint32_t retries, failures, attempts;
    uint64_t interval_s, last_event;
    bool has_sub_status;
    char sub_status[TEXT_MAX], message[TEXT_MAX], code[TEXT_MAX], reason[TEXT_MAX];
    char task[32], args[64], kwargs[64], state[24];
    uint8_t made;
    rt_job image;                 /* of its job, as last seen */
    uint64_t leases[LEASES_MAX];  /* tokens that the disk has shown, the last ones */
    uint32_t leases_count;
    uint32_t due_jumps, lease_jumps; /* clock jumps before it became due, and before its lease */
} order;

typedef struct node {
    site *site;
    uint32_t number;
    uint64_t life; /* 0: down */
    char name[32];
    rt_store *store;
    rt_engine *engine;
    int64_t wake_ms, up_ms, paused_until_ms; /* virtual */
} node;

/* A client that walks through all orders, a page a time. */
typedef struct walk {
    bool on;
    rt_id after;
    uint8_t seen[ORDERS_MAX];
    bool must[ORDERS_MAX]; /* was there from the beginning */
} walk;

struct site {
    uint64_t seed;
    rt_rng rng;
    int64_t now_ms, offset_ms; /* virtual from 0; wall = virtual + offset */
    int64_t back_ms;           /* how far the clock was set back in all */
    int64_t jump_ms, crash_ms, pause_ms, act_ms; /* virtual: when next */
    uint32_t jumps;
    uint64_t landed, crash_at_landed; /* batches on the disk; the node that writes this one dies */
    bool calm;                        /* faults have stopped */
    const char *lmdb;                 /* a folder; NULL: the memory store */
    rt_memory_disk *disk;
    node nodes[NODES_MAX];
    uint32_t nodes_count;
    int64_t run_limit_ms;  /* shorter than a lease, or longer, so that leases are renewed */
    node *stepping;
    uint64_t lives, requests_open;
    rt_id queues[TYPES];
    order orders[ORDERS_MAX];
    uint32_t orders_count;
    run runs[RUNS_MAX];
    uint32_t runs_count, runs_first; /* those before have nothing to say any more */
    walk walk;
    rt_lock lock; /* as last seen; token 0: none */
    char lock_holder[32];
    uint64_t taken, lost; /* results; runs that nobody heard of */
    uint64_t hash; /* of all that happened */
};

/* Runs a seed to its end; aborts with words when an invariant breaks. Returns the hash of what happened. */
uint64_t site_run(uint64_t seed, const char *lmdb);
int64_t site_wall_ms(const site *s);
uint64_t site_below(site *s, uint64_t bound);
bool site_chance(site *s, uint32_t permille);
int64_t site_draw(site *s, int64_t low, int64_t high);
void site_mix(site *s, uint64_t what);
/* The store on disk has nobody who watches it: looks at it before its news are believed. */
void site_look(site *s);
/* A node that takes requests, or NULL. */
node *site_node(site *s);
extern const char *const TYPE_NAMES[TYPES];

/* ---- client.c ------------------------------------------------------------------------------------------ */
void client_set_up(site *s);
void client_act(site *s);
/* A worker puts the result of a run. False: no node takes it. */
bool client_put(site *s, run *r);

/* ---- worker.c ------------------------------------------------------------------------------------------ */
rt_executor worker_executor(node *n);
void worker_forget(site *s, const node *n); /* its node is gone */
void worker_act(site *s);
int64_t worker_next_ms(const site *s);
/* What it says as an answer. Strings are the run's, or last for ever. */
rt_run_answer worker_answer(const words *w);

/* ---- books.c, books_predict.c, books_run.c ------------------------------------------------------------ */
/* A batch has reached the disk. */
void books_look(site *s, rt_view *view);
/* A run may start now. Fills its order; checks what it was sent. */
void books_start(site *s, run *r, const rt_attempt *a);
/* Faults have stopped and time has passed: has every order ended? */
bool books_have_ended(const site *s);
void books_close(site *s, rt_view *view);
/* `o` as it must be after what `w` says; LOST for NULL. Returns how long its next run waits. */
int64_t books_predict(order *o, const words *w, rt_event_type *event);

#define MUST(s, fact, ...) ((fact) ? (void)0 : books_failed((s), #fact, __VA_ARGS__))
_Noreturn void books_failed(const site *s, const char *fact, const char *fmt, ...) RT_PRINTF(3, 4);

#endif
