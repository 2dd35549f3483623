/* record.h: the shapes of data that a store keeps. Everything durable is one of these.
 *
 *   document  a named value with a version: a queue's metadata, a subscription, a cursor, a key
 *   job       something to be tried, or a message to be claimed: state here, body apart (written once, shared)
 *   queue     identity, kind and brakes of a list of jobs
 *   lease     a holder of up to 20 jobs of one queue, with an end
 *   event     one line of history, chained backwards per job
 *
 * Times are Unix milliseconds (wall clock); 0 means "none" unless said otherwise. */
#ifndef RETRYD_RECORD_H
#define RETRYD_RECORD_H
#include <retryd/types.h>

enum {
    RT_DOC_NAME_MAX = 480,          /* bytes; LMDB's keys end at 511 */
    RT_DOC_VALUE_MAX = 1 << 20,
    RT_BODY_BYTES_MAX = 1 << 20,
    RT_LEASE_JOBS_MAX = 20,
    RT_EVENT_TEXT_MAX = 512,
    RT_QUEUE_NAME_MAX = 512
};

/* ---- job ---------------------------------------------------------------------------------------------------------- */

/* Where a job stands. The state alone says which index it is in, see retryd/store.h. */
typedef enum rt_job_state {
    RT_JOB_NONE = 0,
    RT_JOB_READY,     /* push: in the store's one FIFO, to be started at once */
    RT_JOB_SCHEDULED, /* not before `due_ms` (push: a retry or a backlog; pull: a delayed message) */
    RT_JOB_FREE,      /* pull: may be claimed */
    RT_JOB_LEASED,    /* held by `lease`; push: until `due_ms` at the latest */
    RT_JOB_DEAD,      /* given up in plain sight: `reason` says why; can be redriven or deleted */
    RT_JOB_DONE,      /* ended (`reason`); kept without its body until its history is trimmed */
    RT_JOB_STATE_COUNT
} rt_job_state;

/* Why a job is dead or done, and why an attempt failed. Stored: only ever add at the end. */
typedef enum rt_reason {
    RT_REASON_NONE = 0,
    RT_REASON_DELIVERED,       /* done: an attempt succeeded */
    RT_REASON_EXPIRED,         /* done: time to live over; dead: maximum_age over */
    RT_REASON_DELETED,         /* done: a client or operator deleted it */
    RT_REASON_UNSUBSCRIBED,    /* done: its subscription or queue is gone */
    RT_REASON_EXHAUSTED,       /* dead: the policy has no retry left */
    RT_REASON_REJECTED,        /* dead: an answer that is not retried (300-499) */
    RT_REASON_ADDRESS_REFUSED, /* dead: the target resolves to a network that is not allowed */
    RT_REASON_NO_MAIL_RELAY,   /* dead: mailto without mail.relay */
    RT_REASON_CLAIMS_EXCEEDED, /* moved to a dead-letter queue by _max_claim_count */
    RT_REASON_STATUS,          /* attempt: an answer that is retried */
    RT_REASON_TIMEOUT,         /* attempt: no answer in time */
    RT_REASON_CONNECT,         /* attempt: refused, unreachable, … */
    RT_REASON_RESOLVE,         /* attempt: the name has no address */
    RT_REASON_TLS,             /* attempt: handshake or certificate */
    RT_REASON_BROKEN,          /* attempt: closed early, reset, or not HTTP */
    RT_REASON_LOST,            /* attempt: its lease ran out without a word */
    RT_REASON_UNAVAILABLE,     /* attempt: a plugin or worker cannot do it now */
    RT_REASON_CRASHED,         /* attempt: the plugin's process ended */
    RT_REASON_NONSENSE,        /* attempt: an answer that nobody understands */
    RT_REASON_FAILED,          /* attempt: a worker says that it failed; order: it is in ERROR */
    RT_REASON_CIRCUIT_OPEN,    /* dead: its queue's circuit did not close in time */
    RT_REASON_NO_PLUGIN,       /* attempt: no plugin of that name */
    RT_REASON_COUNT
} rt_reason;

enum rt_job_flags {
    RT_JOB_PULL = 1,         /* claimed by clients; without it retryd pushes it */
    RT_JOB_CONFIRMATION = 2, /* asks a subscriber to confirm, or says good-bye */
    RT_JOB_WORK = 8,         /* PULL too: an (entity, process) that may be worked on, see engine/work/entity.h */
    RT_JOB_TASK = 16,        /* the next step of an order, see engine/orders/order.h */
    RT_JOB_CANCEL = 64,      /* TASK too: says that its order was deleted */
    RT_JOB_CALL = 32,        /* a failed call that was handed over, PULL too if workers fetch it, see engine/calls/call.h */
    RT_JOB_HOLDER = 4        /* keeps a body alive while its fan-out goes on: PULL and LEASED for good, never handed out */
};

typedef struct rt_job {
    rt_id id;
    rt_id queue;
    rt_id owner;         /* delivery: its message queue (its policy may govern); task: its order; otherwise 0 */
    rt_id body;          /* several jobs may share one body: a message and its deliveries */
    rt_id lease;         /* LEASED: the holder's lease id (pull), token (push) or the work's id */
    uint64_t version;    /* +1 with each write; compared when written */
    uint64_t last_event; /* head of the job's own history; each event holds the one before it. 0: none */
    uint64_t key_hash;   /* of the client that posted it (message: echo filter), its entity (work), its order key (call) */
    int64_t due_ms;      /* SCHEDULED: not before; LEASED: the lease's end when it was taken */
    int64_t placed_ms;   /* when it was posted */
    int64_t expires_ms;  /* 0: never */
    uint32_t attempt;    /* attempts that ended */
    uint32_t claims;     /* how often it was claimed */
    uint32_t interval_ms;/* the delay that was last waited */
    uint32_t ttl_s;      /* message: time to live as shown */
    uint32_t generation; /* how often it was redriven */
    uint32_t body_bytes;
    uint8_t state;       /* rt_job_state */
    uint8_t reason;      /* rt_reason */
    uint8_t flags;       /* enum rt_job_flags */
    uint8_t spare;       /* zero */
    uint16_t delay_s;    /* message on a queue with delays, and its deliveries: the delay it was posted with */
    uint16_t bucket;     /* call: which of its type's buckets, fixed when it was scheduled */
} rt_job;
_Static_assert(sizeof(rt_job) == 120, "stored as is, little endian");

/* ---- queue -------------------------------------------------------------------------------------------------------- */

typedef enum rt_queue_kind {
    RT_QUEUE_MESSAGES = 1,
    RT_QUEUE_DELIVERY = 2,
    RT_QUEUE_WORK = 3,  /* entities of one kind that want one process */
    RT_QUEUE_ORDERS = 4,/* tasks of orders of one type */
    RT_QUEUE_CALLS = 5  /* failed calls of one event type */
} rt_queue_kind;

/* What slows a queue down by itself: its circuit breaker (policy/circuit.h) and its pace (policy/pace.h). All zero: nothing
 * does. Which numbers govern it is in the document of its type. */
typedef struct rt_brakes {
    int64_t circuit_since_ms; /* when it came into this state */
    int64_t circuit_until_ms; /* OPEN: probes from then on */
    int64_t opened_ms;        /* when it left CLOSED; 0: it is closed */
    int64_t pace_until_ms;    /* no start before */
    uint32_t sleep_ms;        /* OPEN: how long it sleeps this time */
    uint32_t pace_ms;         /* the queue's own delay between two starts */
    uint8_t circuit;          /* rt_circuit_state */
    uint8_t forced;           /* by an operator: stays until "auto" */
    uint16_t probes;          /* HALF_OPEN: probes that succeeded */
    uint32_t spare;           /* zero */
} rt_brakes;
_Static_assert(sizeof(rt_brakes) == 48, "stored as is, little endian");

typedef struct rt_queue {
    rt_id id;
    rt_id owner;            /* delivery: the message queue that its subscription belongs to */
    uint64_t version;
    int64_t paused_until_ms;/* 0: not paused; INT64_MAX: until resumed */
    uint32_t in_flight_max; /* 0: the server's setting */
    uint8_t kind;           /* rt_queue_kind */
    uint8_t gone;           /* 1: deleted or purged, being emptied; not listed */
    rt_brakes brakes;
    rt_str name;            /* for people: "PROJECT/QUEUE", "PROJECT/QUEUE/URL"; at most RT_QUEUE_NAME_MAX */
} rt_queue;

/* ---- lease -------------------------------------------------------------------------------------------------------- */

typedef struct rt_lease {
    rt_id id, queue;
    uint64_t version;
    int64_t from_ms, until_ms; /* from: creation or last renewal */
    uint32_t ttl_s, grace_s;
    uint32_t jobs_count;
    rt_id jobs[RT_LEASE_JOBS_MAX]; /* as claimed; a job is held only while its own `lease` says so */
} rt_lease;

/* ---- document ----------------------------------------------------------------------------------------------------- */

/* Stored: only ever add at the end. */
typedef enum rt_doc_kind {
    RT_DOC_NONE = 0,
    RT_DOC_METADATA,     /* "<tenant>\0<queue>": a Zaqar queue */
    RT_DOC_SUBSCRIPTION, /* <message queue id, 8 bytes big endian><subscription id, 8 bytes big endian> */
    RT_DOC_SUBSCRIBER,   /* <message queue id, 8 bytes big endian><SHA-256 of the URI>: makes subscribers unique */
    RT_DOC_CURSOR,       /* <id, 8 bytes big endian>: work on many records, carried on step by step */
    RT_DOC_SETTING,      /* a name: signing key and the like */
    /* Of workers; ids are 8 bytes big endian. */
    RT_DOC_SESSION,      /* "<tenant>\0"<id>: ends at its deadline */
    RT_DOC_PROCESS,      /* "<tenant>\0<process>" */
    RT_DOC_ENTITY,       /* "<tenant>\0<entity>" */
    RT_DOC_WORK,         /* "<tenant>\0"<session><id>: is there as long as it is worked on */
    RT_DOC_WORK_END,     /* "<tenant>\0"<id>: how it ended, for who asks again; goes after a while */
    RT_DOC_WORK_KEY,     /* "<tenant>\0"<session><idempotency key>: the work that a claim got; goes after a while */
    RT_DOC_WORK_QUEUE,   /* "<tenant>\0<kind>\0<process>": the queue's id */
    RT_DOC_BACKOFF,      /* "<tenant>\0<process>\0<entity>" */
    /* Of orders. */
    RT_DOC_ORDER,        /* "<tenant>\0"<id>: it and the task that is live */
    RT_DOC_ORDER_TYPE,   /* "<tenant>\0<type>": who advances orders of it, and their queue */
    RT_DOC_SECRET,       /* "<tenant>\0"<id>: what an order made */
    RT_DOC_LOCK,         /* a name: for maintenance that one node does at a time */
    /* Of failed calls. */
    RT_DOC_CALL_TYPE,    /* "<tenant>\0<type>": policy, target, circuit, and the queue */
    RT_DOC_CALL_KEY,     /* <queue><idempotency key>: the job; goes after a while */
    RT_DOC_CALL_LINE,    /* <queue><hash of the order key>: how many are in line, so that decisions about it meet */
    RT_DOC_CALL_PLACE,   /* <queue><hash of the order key><job>: one that is in line */
    RT_DOC_CALL_DEAD,    /* <job><how often it was redriven>: a dead call, to be deleted when the document ends */
    RT_DOC_OFFSET,       /* "<cluster>\0<topic>\0<partition>": how far a partition of Kafka has been taken over */
    RT_DOC_CALL_STARTS,  /* <queue>: what limits starts, for all nodes together; goes when it has long been unused */
    RT_DOC_CALL_WINDOW,  /* <queue>: what attempts have taught all nodes of its target; goes after a while, too */
    RT_DOC_ORDER_KEY,    /* "<tenant>\0<idempotency key>": the order; goes after a while */
    RT_DOC_ORDER_COUNT,  /* "<tenant>\0"<number, 8 bytes big endian>: some of the tenant's orders, counted */
    RT_DOC_KIND_COUNT
} rt_doc_kind;

typedef struct rt_doc {
    rt_doc_kind kind;
    rt_str name;        /* 1..RT_DOC_NAME_MAX bytes; ordered bytewise, so that a listing is a range */
    uint64_t version;   /* +1 with each write */
    int64_t expires_ms; /* 0: never */
    rt_str value;
} rt_doc;

/* ---- event -------------------------------------------------------------------------------------------------------- */

/* Stored: only ever add at the end. */
typedef enum rt_event_type {
    RT_EVENT_NONE = 0,
    RT_EVENT_ATTEMPT,    /* an attempt failed and another follows after delay_ms */
    RT_EVENT_DELIVERED,  /* an attempt succeeded: the job's end */
    RT_EVENT_DEAD,       /* given up; `reason`. With status etc. when an attempt was the last straw */
    RT_EVENT_ENDED,      /* deleted, expired, unsubscribed: the job's end; `reason` */
    RT_EVENT_REDRIVEN,   /* a dead job starts afresh */
    RT_EVENT_MOVED,      /* to a dead-letter queue */
    /* Of an entity (`job` is its id): work on it. `text` as in engine/work/history.h. */
    RT_EVENT_STARTED,
    RT_EVENT_FINISHED,
    RT_EVENT_FAILED,
    RT_EVENT_CANCELED,
    RT_EVENT_EXPIRED,    /* its session was dead */
    RT_EVENT_PROGRESS,   /* an order's task ended and another follows */
    RT_EVENT_RELEASED,   /* a worker gave it back untried */
    RT_EVENT_CIRCUIT,    /* of a queue (`job` is the queue's id): `text` is the new state */
    RT_EVENT_CLAIMED,    /* a worker took it; `text`: its name */
    RT_EVENT_TYPE_COUNT
} rt_event_type;

typedef struct rt_event {
    uint64_t seq;      /* rising; given out by rt_store_new_seq */
    uint64_t prev;     /* the event of the same job before this one; 0: the first */
    rt_id job, queue;
    int64_t at_ms;
    uint32_t attempt;  /* number of the attempt, from 1; 0: no attempt */
    uint32_t took_ms;
    uint32_t delay_ms; /* ATTEMPT: how long the next one waits */
    uint16_t status;   /* HTTP; 0: no answer */
    uint8_t type;      /* rt_event_type */
    uint8_t reason;    /* rt_reason */
    rt_str text;       /* first bytes of the answer or of the error; at most RT_EVENT_TEXT_MAX */
} rt_event;

#endif
