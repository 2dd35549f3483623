/* command.h: what the engine is asked to do, and the one way in which anything is decided.
 *
 * A command is a struct of the caller with an rt_command as its first member; the caller's memory, lent to the engine
 * from rt_engine_submit until `done` is called, which happens exactly once, on the engine's thread, when the batch that
 * holds its change is durable or has failed. `decide` is pure: it reads through the rt_tx, adds writes to it and fills the
 * command's results. It may be called again (a record had to be loaded, a conflict): it starts from scratch each time. */
#ifndef RT_ENGINE_COMMON_COMMAND_H
#define RT_ENGINE_COMMON_COMMAND_H
#include "base/arena.h"
#include "base/rng.h"
#include "port/store.h"

typedef struct rt_tx rt_tx;
typedef struct rt_command rt_command;

typedef rt_code rt_decide_fn(rt_tx *tx, rt_command *cmd);

struct rt_command {
    rt_decide_fn *decide;
    void (*done)(rt_command *cmd);
    void *ctx;        /* the caller's */
    rt_code code;     /* out: RT_OK, or why nothing was changed */
    rt_err err;       /* out: in words, if code is not RT_OK */
    struct rt_wait *wait; /* set by decide: nothing is there yet, and it may wait for it (waiting.h); NULL: it is done */
    uint64_t woken_by;    /* the engine's: what it was told and no other who waits for it; 0: nothing */
    uint32_t tries;   /* the engine's, as the next two: */
    bool unsure;      /* it wrote nothing, and others write too: decided again in the next batch */
    bool confirmed;   /* and was */
    size_t answer_bytes; /* copied for its caller (answers.h) */
    rt_command *next; /* the engine's */
};

/* Commands in order of arrival. */
typedef struct rt_command_list {
    rt_command *first, *last;
    size_t count;
} rt_command_list;
void rt_command_list_push(rt_command_list *l, rt_command *cmd);
rt_command *rt_command_list_pop(rt_command_list *l); /* NULL: empty */
/* What is in `first` stands before all others; `first` is empty then. */
void rt_command_list_put_back(rt_command_list *l, rt_command_list *first);

/* ---- what a decision sees and writes. Only valid within `decide`. -------------------------------------- */

enum { RT_TX_TOPICS_MAX = 32 };

/* What an attempt taught of its queue's target. */
typedef struct rt_lesson {
    rt_id queue;
    bool failed;
    uint32_t took_ms;
    struct rt_lesson *next;
} rt_lesson;

struct rt_tx {
    rt_view *view;      /* the open batch: sees all decisions of this batch made before */
    int64_t now_ms;     /* Unix time of this step */
    rt_rng *rng;
    rt_arena *arena;    /* for images and names; lives until this decision is applied */
    rt_err *err;
    rt_store *store;
    const struct rt_engine_settings *settings;
    /* What the engine knows without the store; NULL: of no engine. */
    struct rt_flights *flights;
    struct rt_schedule *schedule;
    struct rt_waiting *waiting;
    struct rt_answers *answers;
    bool trial;         /* nothing comes of this decision but what it reads (warm.c) */

    rt_op *ops;         /* RT_CHANGE_OPS_MAX */
    rt_guard guards[RT_CHANGE_GUARDS_MAX];
    uint64_t topics[RT_TX_TOPICS_MAX]; /* told when the change is made, see waiting.h */
    uint32_t ops_count, guards_count, topics_count;
    rt_lesson *lessons; /* in the arena; for the circuits' windows, once the change is durable */
    bool frees;         /* see rt_change */
    bool overflow;      /* more than RT_CHANGE_OPS_MAX: the change is refused with RT_E_TOO_LARGE */
};

/* Writes. `was` and `now` are copied into the arena; strings inside them must outlive the decision (arena, command, view).
 * Versions are set here. */
void rt_tx_insert_job(rt_tx *tx, const rt_job *now);
void rt_tx_update_job(rt_tx *tx, const rt_job *was, const rt_job *now);
void rt_tx_remove_job(rt_tx *tx, const rt_job *was);
void rt_tx_put_queue(rt_tx *tx, const rt_queue *was, const rt_queue *now); /* was NULL: insert; now NULL: delete */
void rt_tx_put_lease(rt_tx *tx, const rt_lease *was, const rt_lease *now);
void rt_tx_put_doc(rt_tx *tx, const rt_doc *was, const rt_doc *now);
void rt_tx_put_body(rt_tx *tx, rt_id id, rt_str bytes);
/* Numbers and times the event, chains it to `job` (sets job->last_event): call before the job itself is written. */
void rt_tx_event(rt_tx *tx, rt_job *job, rt_event event);
/* What this change has written of a document, or of a queue, so far. NULL: nothing yet. */
rt_op *rt_tx_doc_op(rt_tx *tx, rt_doc_kind kind, rt_str name);
rt_op *rt_tx_queue_op(rt_tx *tx, rt_id id);
/* Changes it once more; a record is still written once. now NULL: it is deleted (not one that this change inserts). */
void rt_tx_change_doc(rt_tx *tx, rt_op *op, const rt_doc *now);
void rt_tx_change_queue(rt_tx *tx, rt_op *op, const rt_queue *now); /* not NULL */
/* The document was read (version 0: was absent) and the decision rests on it. */
void rt_tx_guard(rt_tx *tx, rt_doc_kind kind, rt_str name, uint64_t version);
/* It is about to be read, with those of other jobs: where reading takes a round trip, all of them come in one. */
void rt_tx_want_body(rt_tx *tx, rt_id body);
rt_id rt_tx_new_id(rt_tx *tx);
/* Commands that wait for `topic` may find something after this change. Too many of them: all are told. */
void rt_tx_tell(rt_tx *tx, uint64_t topic);
/* Whatever they wait for. */
void rt_tx_tell_all(rt_tx *tx);

#endif
