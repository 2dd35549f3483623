/* ledger.h: what clients were promised, and what was last seen of each job on the disk. */
#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H
#include "plan.h"
#include "trace.h"

/* An instant in the order of the run: each request sent and each answer got has one of its own. 0: never. */
typedef uint64_t instant;
#define NEVER_YET ((instant)0)

typedef enum promise {
    PROMISE_OPEN,    /* sent, no answer yet */
    PROMISE_KEPT,    /* answered RT_OK */
    PROMISE_REFUSED, /* answered with an error: nothing may have happened */
    PROMISE_UNKNOWN  /* the server went away before it answered: anything may have happened, once */
} promise;

typedef struct post {
    promise promise;
    uint32_t queue, first, count; /* messages [first, first + count) */
    instant sent, answered;
} post;

enum { DELIVERED_TO_MAX = 96 };
typedef struct message {
    uint32_t post;
    rt_id id;                             /* once it is known */
    uint32_t deletes;                     /* requests to delete it by its id that were not refused */
    bool popped;                          /* a pop returned it */
    rt_id delivered_to[DELIVERED_TO_MAX]; /* subscriptions that have a delivery of it */
    uint32_t deliveries;
} message;

typedef struct subscriber {
    promise promise;
    uint32_t queue;
    rt_id id;
    instant sent, answered;
    instant removal_sent; /* the first request that may have removed it */
    bool lasting;         /* its time to live is beyond the run */
} subscriber;

/* A request that takes away what a queue holds. */
typedef struct wipe {
    uint32_t queue;
    bool messages, subscriptions;
    promise promise;
    instant sent, answered;
} wipe;

/* An outcome that was handed to an engine. */
typedef struct told {
    uint32_t number;
    uint8_t reason;
    uint16_t status;
    int64_t retry_after_ms;
} told;
enum { TOLD_KEPT = 4 };

/* A job as it was last seen on the disk. */
typedef struct shadow {
    rt_job job;            /* id 0: never seen */
    bool gone;             /* its record was trimmed */
    int32_t message;       /* index; -1: none, or not known yet */
    int64_t not_before_ms; /* wall time before which no attempt may start */
    uint64_t last_event;   /* its history as the events told it */
    uint8_t ended_by;      /* type of the event that ended it, 0: none */
    told told[TOLD_KEPT];
    uint32_t told_count;        /* ever; the last ones are kept */
    uint64_t success_known_by;  /* engine (node life) that was told of a success in time; 0: none */
    uint32_t redrives, deletes; /* asked for by its id */
    bool popped;                /* deleted, and not by its id */
    bool moved;                 /* into a dead-letter queue */
    rt_id last_lease;
    instant made; /* when it was first seen */
} shadow;

typedef struct ledger {
    trace *trace;
    instant now;
    post *posts;
    message *messages;
    subscriber *subscribers;
    wipe *wipes;
    shadow *shadows; /* by sequence of their id */
    uint32_t posts_count, messages_count, subscribers_count, wipes_count, shadows_count;
    uint32_t deliveries_planned;
    uint32_t pops_open, pops_unknown;               /* without an answer; whose answer never came */
    uint32_t dead_many_redrives, dead_many_deletes; /* asked for */
    uint32_t states[RT_JOB_STATE_COUNT];            /* messages on the disk, by state */
    uint32_t deliveries_states[RT_JOB_STATE_COUNT];
    uint32_t holders;       /* on the disk */
    uint32_t gone_messages; /* trimmed after their end */
    uint32_t unnamed;       /* ended in the batch that made them: which ones they are is not known yet */
} ledger;

enum { POSTS_MAX = MESSAGES_MAX, SUBSCRIBERS_MAX = 256, WIPES_MAX = 256 };

void ledger_init(ledger *l, trace *t);
void ledger_deinit(ledger *l);
instant ledger_tick(ledger *l);

/* The shadow of a job, made when it is first asked for. */
shadow *ledger_shadow(ledger *l, rt_id id);
/* The message whose body this is or contains; -1: none. */
int32_t ledger_message_in(const ledger *l, rt_str body);
/* Its subscriber, or NULL. */
subscriber *ledger_subscriber(ledger *l, rt_id id);
/* Was the queue's content asked to be taken away by a request that was not answered before `since`? */
bool ledger_wiped(const ledger *l, uint32_t queue, bool messages, instant since);
void ledger_told(shadow *s, const told *t);
/* The last outcome told for this attempt that looks like the event; NULL: none. */
const told *ledger_was_told(const shadow *s, uint32_t number, uint16_t status);

#endif
