/* inside.h: what the files of this folder share: the store, its open batch, its connections.
 *
 *   link.c      connections: made, lost, made again; who says how a batch ended whose COMMIT was cut off
 *   listen.c    what other nodes shout
 *   schema.c    the tables
 *   known.c     records that the open batch has read or written
 *   load.c      fetching what is wanted
 *   habit.c     … and what will be
 *   turn.c      nodes that write the same let each other finish
 *   list.c      listings of the open batch: what the database has, overlaid with what the batch wrote
 *   apply.c     a change: compared, then noted
 *   flush.c     what was noted, as statements
 *   page.c      listings straight from the database, a page at a time
 *   view.c      readers' views
 *   tidy.c      history within its bounds
 *   store.c     opening, closing, the life of a batch */
#ifndef RT_STORE_POSTGRES_INSIDE_H
#define RT_STORE_POSTGRES_INSIDE_H
#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "store/postgres/pipe.h"
#include "store/postgres/store_postgres.h"

typedef struct rt_pg rt_pg;

/* Ids are a home (16 bits) and a number of the sequence that all nodes share. */
#define RT_PG_HOME (UINT64_C(1) << 48)
#define RT_PG_SEQUENCE_MASK (RT_PG_HOME - 1)

enum {
    RT_PG_SCHEMA = 1,          /* version of the tables that this retryd makes … */
    RT_PG_SCHEMA_OLDEST = 1,   /* … and the oldest retryd that may work on them */
    RT_PG_NUMBERS_BLOCK = 1024,
    RT_PG_BLOCKS_MAX = 32,
    RT_PG_ENDS_MAX = 8,
    RT_PG_SLOTS = 16,          /* rows of a queue's sums, at most */
    RT_PG_VIEW_WAIT_MS = 2000, /* for a connection, before a view is refused */
    RT_PG_TEXT_MAX = 1024      /* a URL */
};

/* ---- the database's clock ------------------------------------------------------------------------------ */

/* Ahead of this machine's CLOCK_BOOTTIME by so much; any thread. */
typedef struct rt_pg_clock {
    atomic_bool known;
    atomic_llong ahead_ms;
} rt_pg_clock;

/* The server said `server_ms` at some moment between the two of our own. */
void rt_pg_clock_note(rt_pg_clock *c, int64_t sent_boot_ms, int64_t received_boot_ms, int64_t server_ms);
int64_t rt_pg_clock_now(const rt_pg_clock *c);

/* ---- numbers for ids and events ------------------------------------------------------------------------ */

/* Blocks from a sequence: a node's numbers are its own. */
typedef struct rt_pg_numbers {
    struct {
        uint64_t next, end;
    } blocks[RT_PG_BLOCKS_MAX];
    uint32_t count, at;    /* blocks[at] is in use */
    uint32_t wants;        /* blocks that are fetched at a time */
    uint32_t taken, usual; /* numbers, by this batch and by the one before */
    uint64_t least;        /* none below: what was read is younger */
    struct {
        uint64_t from, end;
    } given[RT_PG_BLOCKS_MAX]; /* since the batch began: no record of the database can have them */
    uint32_t given_count;
    int64_t fetched_ms;    /* monotonic */
    bool failed;           /* a number was given out that is none: what it is for must not be stored */
} rt_pg_numbers;

bool rt_pg_numbers_low(const rt_pg_numbers *n); /* worth fetching along with something else */
void rt_pg_numbers_send(rt_pg *s);              /* adds it to the run */
uint64_t rt_pg_number(rt_pg *s); /* rising */
bool rt_pg_is_fresh(const rt_pg_numbers *n, uint64_t number); /* an id, or what else came out of rt_pg_number */
bool rt_pg_starts_fresh(const rt_pg_numbers *n, rt_str name); /* the document's name begins with such an id */
void rt_pg_numbers_seen(rt_pg_numbers *n, uint64_t number);

/* ---- what the open batch knows ------------------------------------------------------------------------- */

typedef struct rt_pg_record {
    rt_pg_part part;
    bool known;   /* read, or written by the batch */
    bool there;
    bool wanted;  /* by the next load */
    bool touched; /* written by the batch */
    bool dirty;   /* … and not yet sent */
    bool guarded; /* a change rests on its version */
    bool looked;  /* habit.c has taken note of it */
    bool recalled; /* known from memory.c: to be compared at the commit */
    bool lone;    /* body: not read, but one job used it when it was last written */
    bool made;    /* body: by the batch, and not yet sent */
    bool coming, named; /* body, while a change is compared: brought by it, used by it */
    uint64_t was; /* its version in the database; 0: not there */
    struct rt_pg_record *same_hash; /* the next document of this hash */
    union {
        rt_job job;
        rt_queue queue;
        rt_lease lease;
        rt_doc doc;
        rt_event event;
        struct { rt_pg_body body; int64_t more; /* users, not yet sent */ };
        struct { rt_pg_sums sums; rt_pg_sums more_sums; /* … */ };
    };
} rt_pg_record;

typedef struct rt_pg_vector {
    rt_pg_record **at;
    size_t count, cap;
} rt_pg_vector;

/* A place in a listing's order, and what stands there. */
typedef struct rt_pg_row {
    uint64_t a, b, c;
    rt_str name;
    rt_pg_record *record; /* NULL: expiry, whose record may be unknown */
} rt_pg_row;

typedef enum rt_pg_list_kind { RT_PG_LIST_JOBS, RT_PG_LIST_DOCS, RT_PG_LIST_EXPIRIES } rt_pg_list_kind;

/* A listing as far as it was fetched. */
typedef struct rt_pg_list {
    struct rt_pg_list *next;
    rt_pg_list_kind kind;
    rt_job_range range;
    rt_doc_kind doc_kind;
    rt_str prefix, after;
    int64_t until_ms;
    rt_pg_row *rows;
    size_t count, cap;
    rt_pg_row last;    /* where the next page begins; valid once something was fetched */
    uint32_t limit;    /* of the next page */
    uint32_t asked;    /* rows, by those who want it in this load, together */
    rt_id front;       /* its first page began behind this; 0: at the start */
    bool looked_behind; /* from the start, where the front had too few */
    bool fetched, complete, wanted;
    rt_pg *store;
} rt_pg_list;

typedef struct rt_pg_batch {
    bool open;
    bool in_txn;  /* BEGIN is sent */
    bool dirty;   /* there is something to commit */
    bool broken;  /* it can only fail: `why` */
    bool shout;   /* other nodes may find something to do */
    bool holds;   /* others may wait for what it has locked */
    bool adopts;  /* it imports, and the store goes on where another one was: */
    uint32_t tag;
    uint64_t numbers_from; /* one sequence for ids and events: what both are below */
    rt_err why;
    rt_arena arena;
    rt_map records[RT_PG_PART_COUNT];
    rt_pg_vector touched[RT_PG_PART_COUNT], wanted[RT_PG_PART_COUNT];
    rt_pg_vector guarded, recalled;
    rt_pg_list *lists;
    uint32_t lists_wanted;
} rt_pg_batch;

/* known.c. NULL: out of memory. */
rt_pg_record *rt_pg_know(rt_pg_batch *b, rt_pg_part part, uint64_t key); /* finds or makes; not for documents */
rt_pg_record *rt_pg_find(const rt_pg_batch *b, rt_pg_part part, uint64_t key);
rt_pg_record *rt_pg_know_doc(rt_pg_batch *b, rt_doc_kind kind, rt_str name);
rt_pg_record *rt_pg_find_doc(const rt_pg_batch *b, rt_doc_kind kind, rt_str name);
bool rt_pg_push(rt_pg_vector *v, rt_pg_record *record);
bool rt_pg_touch(rt_pg_batch *b, rt_pg_record *record); /* it is about to be written */
bool rt_pg_want(rt_pg_batch *b, rt_pg_record *record);
void rt_pg_forget(rt_pg_batch *b);                      /* everything: the batch is over */
void rt_pg_known_deinit(rt_pg_batch *b);
void *rt_pg_value(rt_pg_record *record);                /* its job, queue, … */
uint64_t rt_pg_version(const rt_pg_record *record);
uint64_t rt_pg_key(const rt_pg_record *record); /* of documents: their kind */
/* Fills a record that was read; its columns begin at `first`. Older than what the batch wrote: ignored. */
rt_code rt_pg_take_row(rt_pg *s, rt_pg_part part, const PGresult *rows, int row, int first, rt_pg_record **out);

/* ---- what batches use to read -------------------------------------------------------------------------- */

enum {
    RT_PG_HABIT_SETS = 64, /* each record has its place in one of them, by hash … */
    RT_PG_HABIT_WAYS = 8,  /* … which has room for so many */
    RT_PG_HABITS = RT_PG_HABIT_SETS * RT_PG_HABIT_WAYS,
    RT_PG_HABIT_NAME_MAX = 64 /* bytes; documents with longer names are read when they are asked for */
};

typedef struct rt_pg_habit {
    rt_pg_part part;
    rt_doc_kind kind;
    uint64_t key;
    uint32_t seen;  /* the last batch that read it */
    uint32_t times; /* of late; 0: a slot that is free */
    uint32_t name_len;
    char name[RT_PG_HABIT_NAME_MAX];
} rt_pg_habit;

typedef struct rt_pg_habits {
    rt_pg_habit of[RT_PG_HABITS];
    uint32_t batch;
} rt_pg_habits;

/* habit.c */
void rt_pg_habit_note(rt_pg_habits *all, rt_pg_record *record); /* a decision reads it */
void rt_pg_habits_want(rt_pg *s);                               /* for the batch's first load */
void rt_pg_habits_next(rt_pg_habits *all);                      /* a batch begins */

/* ---- nodes that write the same ------------------------------------------------------------------------- */

typedef struct rt_pg_turn {
    bool asked, given;   /* by this batch, to it */
    uint32_t alone;      /* batches that are made alone from here on */
    uint32_t length;     /* how many they were the last time … */
    uint32_t since;      /* … and how many were made beside others since */
    int64_t without_ms;  /* monotonic: until then nobody is asked */
} rt_pg_turn;

/* turn.c */
void rt_pg_turn_ask(rt_pg *s);                    /* adds it to the run that begins the transaction */
void rt_pg_turn_over(rt_pg *s, rt_batch_end end); /* the batch has ended */

/* ---- where free jobs begin ----------------------------------------------------------------------------- */

enum { RT_PG_FRONTS = 64 };

typedef struct rt_pg_front {
    rt_id queue, after; /* 0: none */
    int64_t until_ms;   /* monotonic */
} rt_pg_front;

/* front.c. 0: from the start. */
rt_id rt_pg_front_after(rt_pg *s, rt_id queue);
/* A full page of them began with `first`. */
void rt_pg_front_found(rt_pg *s, rt_id queue, rt_id first, bool from_start);
void rt_pg_front_freed(rt_pg *s, rt_id queue, rt_id id);

/* ---- what this node holds ------------------------------------------------------------------------------ */

typedef struct rt_pg_generation {
    rt_map jobs, leases;
    rt_arena arena;
    size_t count;
} rt_pg_generation;

typedef struct rt_pg_memory {
    rt_pg_generation younger, older;
} rt_pg_memory;

/* memory.c */
void rt_pg_remember(rt_pg *s);                  /* of the batch, which is about to be forgotten and may yet fail … */
void rt_pg_forget_all(rt_pg_memory *m);         /* … it did */
bool rt_pg_recall(rt_pg *s, rt_pg_record *r);   /* fills a record that the batch does not know. False: it cannot */
void rt_pg_memory_deinit(rt_pg_memory *m);

/* load.c */
rt_code rt_pg_load(rt_pg *s, rt_err *err);
void rt_pg_settle_absent(rt_pg_record *record); /* the database does not have it */
/* Begins the transaction, if there is none, as the first statements of a run. */
void rt_pg_begin(rt_pg *s);
/* Ends the run and waits. Not RT_OK: the batch is broken. */
rt_code rt_pg_finish(rt_pg *s);
void rt_pg_batch_break(rt_pg *s, const rt_err *why);

/* list.c: of the batch's view */
rt_code rt_pg_batch_jobs(rt_view *v, const rt_job_range *range, rt_each_job *each, void *ctx);
rt_code rt_pg_batch_docs(rt_view *v, rt_doc_kind kind, rt_str prefix, rt_str after, rt_each_doc *each, void *ctx);
rt_code rt_pg_batch_expiries(rt_view *v, int64_t until_ms, rt_each_expiry *each, void *ctx);
void rt_pg_list_send(rt_pg *s, rt_pg_list *list);

/* flush.c: adds all that is not yet sent to the run. */
rt_code rt_pg_flush(rt_pg *s, rt_err *err);
void rt_pg_flushed(rt_pg *s); /* … and that went well */
/* apply.c */
rt_code rt_pg_apply(rt_pg *s, const rt_change *change, rt_err *err);
/* Takes note of what a job's change does to the sums. */
rt_code rt_pg_count(rt_pg *s, const rt_job *was, const rt_job *now, rt_err *err);
rt_code rt_pg_count_events(rt_pg *s, int64_t more, rt_err *err);
/* tidy.c */
typedef struct rt_pg_history {
    bool looked;
    int64_t looked_ms;   /* monotonic */
    int64_t gone_seq;    /* none was left up to here … */
    int64_t gone_ms;     /* … a while ago; monotonic */
    int64_t oldest_ms;   /* of the oldest event there was; INT64_MAX: none */
    int64_t count;       /* about; with our own since */
} rt_pg_history;
bool rt_pg_tidy(rt_pg *s, int64_t now_ms, uint32_t ops_max);

/* ---- reading straight from the database ---------------------------------------------------------------- */

typedef struct rt_pg_reader {
    rt_pg_pipe *pipe;
    rt_pg_args args;
    rt_arena *arena; /* for strings that are lent until the view is closed */
    int64_t within_ms;
} rt_pg_reader;

rt_code rt_pg_page_jobs(rt_pg_reader *r, const rt_job_range *range, rt_each_job *each, void *ctx);
rt_code rt_pg_page_docs(rt_pg_reader *r, rt_doc_kind kind, rt_str prefix, rt_str after, rt_each_doc *each, void *ctx);
rt_code rt_pg_page_queues(rt_pg_reader *r, rt_id after, rt_each_queue *each, void *ctx);
rt_code rt_pg_page_events(rt_pg_reader *r, uint64_t after_seq, rt_each_event *each, void *ctx);
rt_code rt_pg_page_expiries(rt_pg_reader *r, int64_t until_ms, rt_each_expiry *each, void *ctx);
rt_code rt_pg_page_leases(rt_pg_reader *r, rt_id after, rt_each_lease *each, void *ctx);
rt_code rt_pg_page_bodies(rt_pg_reader *r, rt_id after, rt_each_body *each, void *ctx);
rt_code rt_pg_page_wakes(rt_pg_reader *r, rt_id after_queue, rt_each_wake *each, void *ctx);
/* The record of one key; documents: `kind` and `name`. RT_E_ABSENT. */
rt_code rt_pg_get(rt_pg_reader *r, rt_pg_part part, uint64_t key, rt_doc_kind kind, rt_str name, void *record);
/* Parameters of a listing of jobs, and its statement. */
int rt_pg_jobs_args(rt_pg_args *a, const rt_job_range *range, uint32_t limit);
void rt_pg_docs_args(rt_pg_args *a, rt_doc_kind kind, rt_str prefix, rt_str after, uint32_t limit);

/* ---- connections --------------------------------------------------------------------------------------- */

/* Made by a thread of its own, so that nobody waits for a server that does not answer. */
typedef struct rt_pg_link {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread, listener;
    bool started, listening;
    bool stop;
    bool wanted;          /* the engine has none */
    PGconn *fresh;        /* ready for it … */
    bool session;         /* … with a session of its own */
    bool unsure;          /* a batch whose end is to be found out */
    uint64_t unsure_no;
    bool told, durable;   /* … and what it was */
    rt_err why;           /* what stands in the way */
    int wake_fd;          /* eventfd: there is news for rt_store_poll */
    int stop_fd;          /* eventfd: the listener is to end */
    int shout_fd;         /* eventfd: … to tell other nodes that there is something for them */
    atomic_bool up;
    atomic_bool shouted;  /* another node wrote something */
} rt_pg_link;

rt_code rt_pg_link_init(rt_pg *s, rt_err *err);
rt_code rt_pg_link_start(rt_pg *s, rt_err *err); /* the threads */
void rt_pg_link_close(rt_pg *s);
/* A new connection, blocking, with all that is ours to say about it. NULL: *err. */
PGconn *rt_pg_connect(const rt_pg *s, const char *url, rt_err *err);
/* The engine's connection is gone. `unsure_no` > 0: with the commit of that batch on its way. */
void rt_pg_link_lost(rt_pg *s, uint64_t unsure_no, const rt_err *why);
/* True: the engine has a connection (again). */
bool rt_pg_link_ready(rt_pg *s, rt_err *err);
void rt_pg_link_why(rt_pg *s, rt_err *why); /* … or what stands in the way */
/* True: what became of the unsure batch is known. */
bool rt_pg_link_resolved(rt_pg *s, bool *durable);
void rt_pg_wake(const rt_pg *s);
bool rt_pg_has_session(PGconn *conn); /* no pooler in between */
void *rt_pg_listen(void *store);      /* listen.c: the listener's thread … */
void rt_pg_shout(const rt_pg *s);     /* … has other nodes look, soon */

/* store.c: the engine's connection is there, and nothing is on its way over it. */
bool rt_pg_ready(rt_pg *s, rt_err *err);

/* schema.c: no other session of this application_name is there; one of a process just killed is given time to end. */
rt_code rt_pg_wait_alone(PGconn *conn, rt_err *err);
/* … makes or migrates the tables; reads the tag. */
rt_code rt_pg_schema_open(PGconn *conn, uint32_t *tag, rt_err *err);

/* ---- views --------------------------------------------------------------------------------------------- */

typedef struct rt_pg_view {
    rt_view base; /* first */
    rt_pg *store;
    rt_pg_pipe pipe;
    rt_pg_reader reader;
    rt_arena arena;
    bool is_open;
} rt_pg_view;

typedef struct rt_pg_views {
    pthread_mutex_t lock;
    pthread_cond_t closed;
    uint32_t max;
    rt_pg_view slots[RT_PG_VIEWS_MAX];
} rt_pg_views;

rt_counts rt_pg_counts_of(const rt_pg_sums *sums);
rt_code rt_pg_views_init(rt_pg *s, rt_err *err);
void rt_pg_views_deinit(rt_pg *s);
rt_code rt_pg_view_open(rt_pg *s, rt_view **out, rt_err *err);

/* ---- the store ----------------------------------------------------------------------------------------- */

typedef struct rt_pg_batch_view {
    rt_view base; /* first */
    rt_pg *store;
} rt_pg_batch_view;

typedef struct rt_pg_end_of {
    uint64_t no;
    rt_batch_end end;
    rt_err why;
} rt_pg_end_of;

struct rt_pg {
    rt_store base; /* first */
    char url[RT_PG_TEXT_MAX], listen_url[RT_PG_TEXT_MAX];
    uint32_t connect_ms, statement_ms;
    rt_retention retention;
    bool eager;            /* the batch's view fetches by itself */
    rt_arena life;
    const char *texts[RT_SQL_COUNT];
    int64_t node;          /* random, > 0 */
    int16_t slot;          /* which row of a queue's sums is ours */
    rt_pg_clock clock;
    rt_pg_link link;
    rt_pg_pipe pipe;       /* the engine's connection */
    rt_pg_args args;
    int64_t sent_ms;       /* when the run was sent, boot time */
    rt_pg_numbers numbers;
    rt_pg_habits habits;
    rt_pg_turn turn;
    rt_pg_memory memory;
    rt_pg_front fronts[RT_PG_FRONTS]; /* by hash; of two queues the later */
    rt_pg_batch batch;
    rt_pg_batch_view batch_view;
    rt_pg_reader reader;   /* over the engine's connection, in the batch's transaction */
    rt_pg_history history;
    bool committing;       /* a commit is on its way */
    bool unsure;           /* … or was, and its end is being found out */
    uint64_t commit_no;    /* of either */
    rt_pg_end_of ends[RT_PG_ENDS_MAX]; /* wait for rt_store_poll, oldest first */
    uint32_t ends_count;
    bool pours;            /* the commit is larger than the socket takes at once */
    bool can_shout, can_turn;
    bool commit_shouts;    /* the batch of commit_no has something for other nodes */
    rt_pg_views views;
};

#endif
