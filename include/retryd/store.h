/* store.h: the only place where durable facts live.
 *
 * The contract:
 * 1. The engine DECIDES (pure: what it read + a command + now -> a change); the store COMPARES AND WRITES.
 *    There is no policy in a store.
 * 2. A change is all or nothing. Every write carries the image it was decided on (`was`), and guards name documents that
 *    were only read. Another image in the store: RT_E_CONFLICT, nothing is written, the engine reads and decides again.
 *    A single writer (LMDB) never conflicts; PostgreSQL and Kafka do, and tell so at the batch's end.
 * 3. Changes are applied to the open BATCH. The batch's own view shows what was applied, so decisions of one batch see each
 *    other. rt_store_commit ends the batch; nothing is answered or started before that batch is known to be durable.
 * 4. Indexes, body users and counters belong to the store: it derives them from was -> now of a job:
 *
 *      state      push job            pull job (RT_JOB_PULL)
 *      READY      ready(id)           -
 *      SCHEDULED  due(queue,due,id)   due(queue,due,id), all(queue,id)
 *      FREE       -                   free(queue,id), all(queue,id)
 *      LEASED     due(queue,due,id)   all(queue,id); its lease's end is in expiry
 *      DEAD       dead(queue,id)      dead(queue,id)
 *      DONE       -                   -
 *      expires_ms > 0 and neither DEAD nor DONE: expiry(expires, job). Documents and leases with an end are in expiry too.
 *
 *    A pull job is never READY, a push job never FREE; DONE is for good; due_ms is never negative. A job keeps its
 *    body until it is DONE.
 *    A body lives as long as one job that is not DONE names it. A body that no job of its own change names, and a job
 *    that names a body which is not there, are RT_E_INVALID. So is a job that is DONE without a last_event: it would
 *    stay for ever.
 * 5. Ids and event numbers are given out by the store and rise within a home whatever the clock does; a batch that fails
 *    may leave gaps.
 *
 *              LMDB                            PostgreSQL                               Kafka
 *   batch      the write transaction           reads, overlay; written at commit        write transaction of the local copy
 *   view       read transaction                one statement on the reader pool         read transaction of the local copy
 *   commit     mdb_txn_commit, durable then    compare and write in one transaction     one line of the journal, read back
 *   AGAIN      never                           record wanted: fetched by rt_store_load  never
 *   in flight  one batch                       one a connection                         one
 *
 * Threads: everything that takes an rt_store is for the engine's thread alone, except rt_store_view (any thread).
 * A view belongs to the thread that opened it. Strings in records that are read are LENT: by a view until it is closed,
 * by the batch until the next apply, commit or abandon. */
#ifndef RETRYD_STORE_H
#define RETRYD_STORE_H
#include <retryd/record.h>

enum { RT_CHANGE_OPS_MAX = 8192, RT_CHANGE_GUARDS_MAX = 8 };

typedef struct rt_store rt_store;
typedef struct rt_view rt_view;

/* ---- a change: what one command or one outcome does ---------------------------------------------------------------- */

typedef enum rt_op_kind { RT_OP_JOB, RT_OP_QUEUE, RT_OP_LEASE, RT_OP_DOC, RT_OP_BODY, RT_OP_EVENT } rt_op_kind;

/* was NULL: insert (RT_E_EXISTS if the record is there). now NULL: delete. Both: replace; now->version = was->version + 1.
 * An inserted record has version 1. Events and bodies are only inserted (bodies go away by themselves, see 4).
 * A change writes a record at most once. Names and values beyond the limits of record.h: RT_E_TOO_LARGE (an event's text
 * is cut instead). Strings may be those that the batch's view lent, but for the bytes of a body. */
typedef struct rt_op {
    rt_op_kind kind;
    union {
        struct { const rt_job *was, *now; } job;
        struct { const rt_queue *was, *now; } queue;
        struct { const rt_lease *was, *now; } lease;
        struct { const rt_doc *was, *now; } doc;
        struct {
            rt_id id;
            rt_str bytes;
            uint64_t users; /* of an import only */
        } body; /* before the jobs that name it */
        const rt_event *event;
    };
} rt_op;

/* Read, not written, yet must hold when the change takes effect. version 0: must be absent. */
typedef struct rt_guard {
    rt_doc_kind kind;
    rt_str name;
    uint64_t version;
} rt_guard;

/* How a store is filled with what another one holds (store/copy/copy.h), before anybody works on it. In a change with this,
 * inserts keep the versions that they have, at least 1, and are of what is not there (a store need not look); a body
 * needs no job in its change and brings the number of its users, at least 1; jobs count as no users. From then on the
 * store goes on where the other one was, and shows the same ids. */
typedef struct rt_import {
    uint32_t tag;       /* rt_store.tag when the store is next opened */
    rt_id ids_from;     /* smaller ids are not given out any more … */
    uint64_t seqs_from; /* … nor smaller numbers of events */
} rt_import;

typedef struct rt_change {
    const rt_guard *guards;
    uint32_t guards_count;
    const rt_op *ops;
    uint32_t ops_count;
    const rt_import *import; /* NULL: nothing is */
    bool frees; /* gives room back or records an outcome: may use the reserve that is kept when the store is nearly full */
} rt_change;

typedef enum rt_batch_end {
    RT_BATCH_DURABLE, /* all of it is on stable storage */
    RT_BATCH_FAILED,  /* none of it is; a store that cannot tell keeps the batch until it can */
    RT_BATCH_CONFLICT /* none of it is, because others wrote what it was decided on: decide it again */
} rt_batch_end;

/* ---- listings ------------------------------------------------------------------------------------------------------ */

typedef enum rt_job_index {
    RT_INDEX_READY,
    RT_INDEX_DUE,
    RT_INDEX_FREE,
    RT_INDEX_ALL,
    RT_INDEX_DEAD,
    RT_INDEX_EVERY
} rt_job_index;

/* Which jobs, in index order:
 *   READY  all queues, by id, after `after`
 *   DUE    of `queue`, by (due, id), due <= `until_ms`; `after`/`after_due_ms`: strictly behind (after_due_ms, after)
 *   FREE   of `queue`, by id, after `after`
 *   ALL    of `queue`, by id, after `after` (`backwards`: the last first, before `after`; after 0: from the end)
 *   DEAD   of `queue`, or with queue 0 of all queues by (queue, id), strictly behind (after_queue, after)
 *   EVERY  of every queue and state, DONE ones too, by id, after `after`
 * For FREE, a job whose key_hash equals `skip_hash` (not 0) is passed over without being read.
 * `to_take`: the caller means to take what it gets; a store with several writers locks them and skips locked ones. */
typedef struct rt_job_range {
    rt_job_index index;
    rt_id queue, after, after_queue;
    int64_t after_due_ms, until_ms;
    uint64_t skip_hash;
    bool backwards, to_take;
    uint32_t want; /* how many are wanted, about; 0: that is not known. What is fetched, or locked, at once */
} rt_job_range;

/* Called per record, which is lent for the call. False: enough, stop. It may read through the same view (listings too),
 * but not apply.
 * docs: by name, those that start with `prefix`, strictly behind `after` (empty: from the first).
 * queues: `gone` ones too. */
typedef bool rt_each_job(void *ctx, const rt_job *job);
typedef bool rt_each_doc(void *ctx, const rt_doc *doc);
typedef bool rt_each_queue(void *ctx, const rt_queue *queue);
typedef bool rt_each_event(void *ctx, const rt_event *event);
typedef bool rt_each_lease(void *ctx, const rt_lease *lease);
typedef bool rt_each_body(void *ctx, rt_id id, rt_str bytes, uint64_t users); /* users: jobs that keep it alive */

/* What is over at some moment: a job's or document's time to live, a lease. */
typedef enum rt_expiry_kind { RT_EXPIRY_JOB, RT_EXPIRY_LEASE, RT_EXPIRY_DOC } rt_expiry_kind;
typedef struct rt_expiry {
    int64_t at_ms;
    rt_expiry_kind kind;
    rt_id id;             /* job or lease */
    rt_doc_kind doc_kind; /* document */
    rt_str doc_name;
} rt_expiry;
typedef bool rt_each_expiry(void *ctx, const rt_expiry *expiry);

/* The first due time of each queue that has an entry in `due`. */
typedef struct rt_wake {
    rt_id queue;
    int64_t due_ms;
} rt_wake;
typedef bool rt_each_wake(void *ctx, const rt_wake *wake);

/* Exact as of the view; read without a scan. */
typedef struct rt_counts {
    int64_t ready, scheduled, free, leased, dead, done; /* jobs by state */
    int64_t bytes; /* of the bodies of jobs that are not done; one that is shared counts for each of its jobs */
} rt_counts;

/* ---- the interface ------------------------------------------------------------------------------------------------- */

/* Functions that read return RT_OK, RT_E_ABSENT, RT_E_AGAIN (batch view only: wanted; call rt_store_load, then decide
 * again), RT_E_CORRUPT or RT_E_UNAVAILABLE; *out is untouched unless RT_OK. Listings return RT_OK also when empty. */
typedef struct rt_view_ops {
    rt_code (*job)(rt_view *v, rt_id id, rt_job *out);
    rt_code (*body)(rt_view *v, rt_id id, rt_str *out);
    rt_code (*queue)(rt_view *v, rt_id id, rt_queue *out);
    rt_code (*lease)(rt_view *v, rt_id id, rt_lease *out);
    rt_code (*doc)(rt_view *v, rt_doc_kind kind, rt_str name, rt_doc *out);
    rt_code (*event)(rt_view *v, uint64_t seq, rt_event *out);
    rt_code (*jobs)(rt_view *v, const rt_job_range *range, rt_each_job *each, void *ctx);
    rt_code (*docs)(rt_view *v, rt_doc_kind kind, rt_str prefix, rt_str after, rt_each_doc *each, void *ctx);
    rt_code (*queues)(rt_view *v, rt_id after, rt_each_queue *each, void *ctx);
    rt_code (*events)(rt_view *v, uint64_t after_seq, rt_each_event *each, void *ctx);
    rt_code (*expiries)(rt_view *v, int64_t until_ms, rt_each_expiry *each, void *ctx); /* by time */
    rt_code (*wakes)(rt_view *v, rt_id after_queue, rt_each_wake *each, void *ctx);     /* by queue */
    rt_code (*counts)(rt_view *v, rt_id queue, rt_counts *out); /* queue 0: all queues together */
    rt_code (*leases)(rt_view *v, rt_id after, rt_each_lease *each, void *ctx); /* by id, like the next: for copies.
     * NULL: the store can neither be copied nor be copied into. Only a reader's view is asked. */
    rt_code (*bodies)(rt_view *v, rt_id after, rt_each_body *each, void *ctx);
    void (*close)(rt_view *v);
} rt_view_ops;

struct rt_view {
    const rt_view_ops *ops;
};

typedef struct rt_store_ops {
    /* A snapshot of what is durable now; never waits for the engine. Close it before any wait. */
    rt_code (*view)(rt_store *s, rt_view **out, rt_err *err);
    /* The open batch as a view (begun here if there is none). Never closed by the caller. NULL: the store is unavailable. */
    rt_view *(*batch)(rt_store *s, rt_err *err);
    /* Fetches what the batch view answered RT_E_AGAIN for, in one round trip. */
    rt_code (*load)(rt_store *s, rt_err *err);
    /* Adds a change to the batch, or refuses it whole: CONFLICT, EXISTS, FULL, or UNAVAILABLE/IO (then commit will end
     * the batch as FAILED). Borrows everything for the call. */
    rt_code (*apply)(rt_store *s, const rt_change *change, rt_err *err);
    /* Ends the batch under a number that the caller raises by one each time. Its end is told by rt_store_poll.
     * Without an open batch, or with an empty one, that is DURABLE. */
    void (*commit)(rt_store *s, uint64_t batch_no);
    /* The next ended batch in order of submission: true and *batch_no, *end (*err says why one failed).
     * False: none has ended; where one cannot, because the store is in trouble, *err says so. */
    bool (*poll)(rt_store *s, uint64_t *batch_no, rt_batch_end *end, rt_err *err);
    /* Gives up the open batch as if it had never been. */
    void (*abandon)(rt_store *s);
    rt_id (*new_id)(rt_store *s);
    uint64_t (*new_seq)(rt_store *s);
    /* Upkeep within the open batch, at most `ops_max` writes: folds counters, drops history beyond its bounds together
     * with the DONE jobs whose last event goes. True: there is more to do. ops_max >= 2. Events go oldest (lowest seq)
     * first, while there are more than `events` of them or the oldest has at_ms <= now_ms - age_ms. */
    bool (*tidy)(rt_store *s, int64_t now_ms, uint32_t ops_max);
    void (*close)(rt_store *s);
    /* Unix time by the clock that all who share the store go by; any thread. NULL: the caller's own. */
    int64_t (*now_ms)(const rt_store *s);
    /* True: others have written since it was last asked; fd is readable then too. NULL: it cannot tell. */
    bool (*woken)(rt_store *s);
} rt_store_ops;

struct rt_store {
    const rt_store_ops *ops;
    uint32_t tag;        /* random, made with the store; part of every id that is shown */
    bool loads;          /* reads of the batch cost a round trip: worth wanting many before rt_store_load */
    bool lags;           /* the batch may not show yet what others wrote a moment ago. What a decision found not to do is
                          * then decided again in the next batch; an empty change in this one says that the next has to
                          * show all that was there before */
    bool sole_owner;     /* nobody else takes jobs from it: leases of pushed jobs may live in the engine's memory */
    int fd;              /* readable when rt_store_poll has something; -1: commit itself waits for the end */
};

/* History bounds, first to come; both always apply. */
typedef struct rt_retention {
    int64_t age_ms;  /* >= 1 */
    uint64_t events; /* >= 1 */
} rt_retention;

/* ---- a store of one's own -------------------------------------------------------------------------------------------
 * A shared object with one function is a store, and `retryd serve --store plugin:FILE?REST` serves from it:
 *
 *     static const struct retryd_store_plugin plugin = RETRYD_STORE_PLUGIN("sqlite", open_store);
 *     RETRYD_STORE(plugin)
 *
 *     cc -shared -fPIC -o my_store.so my_store.c
 *
 * It is C11 against this header alone, and linked with nothing of retryd. It runs within the server: where it crashes,
 * the server does. docs/stores.md says how to write one and how to let the conformance suite run on it; examples/store
 * is one. */

/* Raised when what stands in this header changes its meaning. */
#define RETRYD_STORE_ABI 1u

/* Lent for the call of `open`. */
struct retryd_store_config {
    uint32_t size;               /* of this struct; fields are only ever added at its end */
    const char *rest;            /* what stands behind the '?', for the store to understand; "": nothing */
    rt_retention retention;
    uint64_t disk_reserve_bytes; /* with less free on its disk, a change that does not free is RT_E_FULL; 0: no reserve */
};

/* What both sides must agree on to the byte. */
#define RETRYD_STORE_STRUCTS(X) \
    X(rt_err) X(rt_job) X(rt_queue) X(rt_lease) X(rt_doc) X(rt_event) X(rt_op) X(rt_guard) X(rt_import) \
    X(rt_change) X(rt_job_range) X(rt_expiry) X(rt_wake) X(rt_counts) X(rt_view_ops) X(rt_store_ops) X(rt_store)
#define RETRYD_STORE_SIZE_FIELD(type) uint32_t type##_size;
#define RETRYD_STORE_SIZE_VALUE(type) .type##_size = sizeof(type),

struct retryd_store_plugin {
    uint32_t abi;     /* RETRYD_STORE_ABI */
    uint32_t size;    /* of this struct */
    const char *name; /* for people */
    /* RT_OK: an owned *out. Otherwise *err says what is wrong, in words for an operator: RT_E_INVALID with the REST that
     * was given, RT_E_UNAVAILABLE while somebody else owns the data, … */
    rt_code (*open)(const struct retryd_store_config *config, rt_store **out, rt_err *err);
    RETRYD_STORE_STRUCTS(RETRYD_STORE_SIZE_FIELD)
};

#define RETRYD_STORE_PLUGIN(name_, open_) \
    {.abi = RETRYD_STORE_ABI, .size = sizeof(struct retryd_store_plugin), .name = (name_), .open = (open_), \
     RETRYD_STORE_STRUCTS(RETRYD_STORE_SIZE_VALUE)}

/* The one symbol, and its body. */
__attribute__((visibility("default"))) const struct retryd_store_plugin *retryd_store_plugin_v1(void);
#define RETRYD_STORE(plugin) const struct retryd_store_plugin *retryd_store_plugin_v1(void) { return &(plugin); }

#endif
