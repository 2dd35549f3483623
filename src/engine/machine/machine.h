/* machine.h: the inside of the engine, shared by the files of this folder only.
 *
 *   engine.c   opening, inputs, the order of one step
 *   batch.c    decide -> apply -> commit, for every command alike
 *   settle.c   how it ended: answered, started, or undone
 *   warm.c     decisions tried beforehand, where reading takes round trips
 *   due.c      what there is to take
 *   take.c     due jobs -> attempts
 *   attempts.c attempts under way: their outcomes, their leases, and those that are lost
 *   circuits.c what attempts teach: circuits that open, other nodes that are told
 *   cursors.c  work that is too much for one commit, a slice after the other
 *   upkeep.c   what time brings: expiry, orders, what other nodes left; and the three above
 *   own.c      what the engine asks of itself, until it is durable */
#ifndef RT_ENGINE_MACHINE_MACHINE_H
#define RT_ENGINE_MACHINE_MACHINE_H
#include "engine/common/answers.h"
#include "engine/common/flight.h"
#include "engine/common/renew.h"
#include "engine/common/schedule.h"
#include "engine/common/waiting.h"
#include "engine/engine.h"
#include "engine/machine/lives.h"
#include "engine/orders/order_patrol.h"
#include "engine/queues/cursor_step.h"
#include "engine/queues/expiry.h"

enum {
    RT_DECIDE_TRIES_MAX = 12,   /* conflicts of one command before it is told "try again later" */
    RT_LOAD_ROUNDS_MAX = 1024,  /* loads of one step: a decision may come upon one record after the other */
    RT_TAKES_MAX = 1024,        /* attempts started in one step */
    RT_WAKES_SLICE = 4096,      /* queues whose wake time is read in one step after the start */
    RT_STORE_PAUSE_MS = 100,    /* after a failed batch, before the engine's own work goes on */
    RT_CORRUPT_PAUSE_MS = 60000, /* before a record that could not be read is looked at again */
    RT_POLL_MS = 250,           /* a store that others write too is looked at this often, */
    RT_POLL_LEAST_MS = 25,      /* if they say so, no sooner than this again, */
    RT_LOOK_MS = 1000,          /* and for what is due or over this often: what a node that is gone had under way */
    RT_WARM_MAX = 4096          /* commands tried beforehand, see warm.c */
};

/* What the changes of one batch did, counted when it is durable. */
typedef struct rt_tally {
    uint64_t posted, claimed, deleted, expired, created, delivered, started, redriven, changes;
    uint64_t failed[RT_REASON_COUNT], dead[RT_REASON_COUNT];
    uint64_t sessions_started, sessions_ended;
    uint32_t work[RT_WORK_COUNTED + 1][RT_WORK_COUNT_COUNT];
    bool worked; /* `work` is not all zero */
    uint64_t runs;
    uint32_t orders[RT_ORDER_COUNT_COUNT];
    rt_call_tally calls;
} rt_tally;

typedef struct rt_batch {
    uint64_t no;
    rt_command_list commands, own; /* decided in it: of callers, of the engine itself */
    rt_flight *flights;       /* to be started when it is durable */
    rt_tally tally;
    uint64_t begun_us;
    uint32_t writes;          /* of all changes in it */
    bool tidied;              /* upkeep of the store may have written */
    rt_id ready_from;         /* where the FIFO stood before */
    rt_lesson *lessons;       /* owned; for the circuits, when it is durable */
    struct rt_batch *next;
} rt_batch;

struct rt_engine {
    rt_store *store;
    rt_executor executor;
    rt_engine_settings settings;
    rt_rng rng;
    rt_metrics metrics;
    int64_t now_ms;

    rt_command_list inbox;    /* from callers */
    size_t batch_max;         /* commands decided in one step: fewer after a conflict … */
    bool callers_alone;       /* … and the first time nothing beside them */
    rt_command **warming;     /* RT_WARM_MAX; NULL: the store does not load */
    rt_command_list own;      /* outcomes and upkeep: decided first, kept until they are durable */
    rt_tx tx;                 /* of the decision that is being made */
    rt_arena arena;
    rt_err err;
    rt_batch *open;           /* NULL: none yet in this step */
    rt_batch *ended_first, *ended_last; /* submitted, not yet known to be durable, oldest first */
    size_t ended_count;
    uint64_t batch_no;

    rt_schedule schedule;
    rt_flights flights;
    rt_id ready_after;        /* the FIFO is taken up to here (sole owner) */
    bool ready_pending;       /* it may hold more */
    rt_id wakes_after;        /* queues up to here have their wake time */
    bool wakes_pending;
    int64_t poll_at_ms;       /* several owners: when to look for others' work … */
    int64_t polled_ms;        /* … when that was last done */
    int64_t look_at_ms;       /* … and when to look for what is due or over */

    rt_expiry_step expiry;
    bool expiry_busy;
    int64_t expiry_at_ms;
    rt_order_patrol patrol;
    bool patrol_busy;
    bool patrol_held;         /* its lock, and has yet to give it back */
    uint32_t patrol_count;    /* orders looked at in this round */
    int64_t patrol_at_ms;     /* INT64_MAX: there are no orders */
    size_t cursors_busy;      /* cursor steps submitted or sleeping */
    rt_heap cursors;          /* sleeping ones */
    bool cursors_pending;     /* not yet read from the store */
    bool tidy_pending;
    int64_t tidy_at_ms;       /* without other work */

    rt_waiting waiting;
    rt_answers answers;

    int64_t publish_at_ms;    /* metrics that cost a walk */

    rt_code trouble;
    rt_err trouble_why;
    int64_t store_pause_until_ms;
    bool draining;
};

/* ---- batch.c ------------------------------------------------------------------------------------------- */
/* Begins the step's batch if there is none. NULL: the store is unavailable. */
rt_batch *rt_batch_open(rt_engine *e);
/* A fresh decision against the open batch. NULL: no batch. */
rt_tx *rt_batch_tx(rt_engine *e);
/* Applies what was decided and takes note of it. */
rt_code rt_batch_apply(rt_engine *e, rt_tx *tx);
/* Decides and applies what callers wait for, at most `max` commands. */
void rt_batch_decide(rt_engine *e, size_t max);
/* … what the engine itself has to do. */
void rt_batch_decide_own(rt_engine *e);
/* Submits the open batch, if anything is in it. */
void rt_batch_submit(rt_engine *e);
/* Others wrote what it was decided on. False: it is to be decided again; true: that was enough, its code says so. */
bool rt_batch_overtaken(rt_command *cmd);
void rt_batch_free(rt_batch *b); /* NULL is a no-op */
/* Settles all batches that have ended: done, attempts started, or undone. */
void rt_batch_settle(rt_engine *e);

uint64_t rt_engine_us(const rt_engine *e); /* for durations */

/* ---- warm.c -------------------------------------------------------------------------------------------- */
void rt_warm_commands(rt_engine *e, size_t max); /* what waits, of callers at most `max` */
void rt_warm_takes(rt_engine *e);

/* ---- due.c, take.c ------------------------------------------------------------------------------------- */
rt_job_range rt_due_ready(const rt_engine *e);
rt_job_range rt_due_lane(const rt_lane *lane);
void rt_take_due(rt_engine *e);

/* ---- own.c --------------------------------------------------------------------------------------------- */
void rt_own_submit(rt_engine *e, rt_command *cmd);
/* For `done` of such a command: true: it is not durable, and asked again, as nobody else would. */
bool rt_own_repeat(rt_engine *e, rt_command *cmd);
/* What is durable, for a look at all of it. NULL: the store does not answer; asked again after a pause. */
rt_view *rt_own_view(rt_engine *e);

/* ---- attempts.c ---------------------------------------------------------------------------------------- */
void rt_attempts_outcome(rt_engine *e, const rt_outcome *o); /* an attempt has ended */
/* The attempt of `flight` is over or was never made: gives its room back. */
void rt_attempts_ended(rt_engine *e, rt_flight *flight, rt_lane_news news);
void rt_attempts_look(rt_engine *e); /* renews leases, gives up what is lost */
bool rt_attempts_drop(rt_command *cmd); /* at the end, here and below: frees it. False: it is not of this file */

/* ---- circuits.c ---------------------------------------------------------------------------------------- */
void rt_circuits_learn(rt_engine *e, const rt_lesson *lesson); /* durable: a circuit may open */
void rt_circuits_tell(rt_engine *e, rt_lane *lane);            /* what is known of it was read again */
void rt_circuits_ask(rt_engine *e, rt_id queue);               /* other nodes have all the places */
void rt_circuits_look(rt_engine *e);
bool rt_circuits_drop(rt_command *cmd);

/* ---- cursors.c ----------------------------------------------------------------------------------------- */
void rt_cursors_note(rt_engine *e, rt_id id); /* it was written */
void rt_cursors_find(rt_engine *e);
void rt_cursors_carry_on(rt_engine *e);
bool rt_cursors_drop(rt_command *cmd);
void rt_cursors_close(rt_engine *e);

/* ---- upkeep.c ------------------------------------------------------------------------------------------ */
void rt_upkeep(rt_engine *e); /* submits what is due */
int64_t rt_upkeep_next_ms(const rt_engine *e);
void rt_upkeep_close(rt_engine *e);

#endif
