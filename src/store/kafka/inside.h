/* inside.h: what the files of this folder share.
 *
 *   store.c      the life of a batch
 *   open.c       opening and closing
 *   mend.c       a copy that fell behind the journal's beginning, brought up to date
 *   intake.c     lines taken in, one after the other
 *   archive.c    the retry topic, written; restore.c: read
 *   topics.c     the topics: there, and as they have to be
 *   words.c      what operators are told
 *   view.c       views of the copy, and who shows which jobs to be taken
 *   gate.c       who may look at it
 *   copy.c       the copy on this node's disk
 *   share.c      which jobs are ours to take
 *   journal.c    lines to Kafka and back
 *   lines/       what lines say, and what they make of records: pure */
#ifndef RT_STORE_KAFKA_INSIDE_H
#define RT_STORE_KAFKA_INSIDE_H
#include <pthread.h>
#include <stdatomic.h>

#include "store/kafka/copy.h"
#include "store/kafka/journal.h"
#include "store/kafka/lines/dirty.h"
#include "store/kafka/lines/parts.h"
#include "store/kafka/view.h"

typedef struct rt_ks rt_ks;

/* ---- lines --------------------------------------------------------------------------------------------- */

/* What became of the line that we wrote last. */
typedef struct rt_ks_own {
    uint64_t no;       /* 0: none */
    bool seen;         /* it came back … */
    rt_batch_end end;  /* … and this is what it was */
    bool fence_seen;   /* all of it that comes now is too late */
    int64_t tried;     /* position that the copy has if it holds it; 0: not tried */
} rt_ks_own;

/* Ends the copy's open batch, the line at `offset` with these items, so that who cuts sees both or neither. */
RT_MUST_USE rt_code rt_ks_commit(rt_ks *s, const rt_ledger *next, rt_str items, int64_t offset, rt_err *err);
/* Everything before is in the retry topic. */
void rt_ks_note_cut(rt_ks *s, int64_t cut);
/* Takes in what has come, at most `max` lines. No batch of the copy is open. */
rt_code rt_ks_take_in(rt_ks *s, uint32_t max, rt_err *err);
/* Everything up to `high`. RT_E_UNAVAILABLE: for `stall_ms` nothing has come. */
RT_MUST_USE rt_code rt_ks_catch_up(rt_ks *s, int64_t high, int64_t stall_ms, rt_err *err);
/* Reads on from where the copy is. */
RT_MUST_USE rt_code rt_ks_read_on(rt_ks *s, rt_err *err);
void rt_ks_note_time(rt_ks *s, int64_t at_ms);
/* Has the engine step again soon. */
void rt_ks_wake(const rt_ks *s);
/* Until something may have come, or so many ms are over. */
void rt_ks_wait(rt_ks *s, int64_t wait_ms);

/* archive.c: writes the retry topic, if this node is the one to do it. */
typedef struct rt_archive rt_archive;
RT_MUST_USE rt_code rt_archive_open(rt_ks *s, rt_archive **out, rt_err *err);
void rt_archive_close(rt_archive *archive); /* NULL is a no-op */
/* restore.c: fills the empty copy from the retry topic, ledger and all. RT_E_ABSENT: there is no cut in it. */
RT_MUST_USE rt_code rt_ks_restore(rt_ks *s, rt_err *err);

/* mend.c: begins to see to the copy, in a thread of its own. Until it is over the engine's thread leaves alone what is here,
 * but for rt_mend_is_over. */
#define RT_KS_MENDING "this node was away for too long: its copy is being brought up to date"
/* Nobody has looked at the journal for so long that it may have been cut off behind us: the process was paused. */
bool rt_ks_is_away(const rt_ks *s);
void rt_mend_begin(rt_ks *s);
bool rt_mend_is_over(rt_ks *s); /* true: none is under way, or it has just come to its end */
void rt_mend_stop(rt_ks *s);    /* gives it up, if one is under way */

/* words.c */
void rt_ks_say(const rt_ks *s, bool grave, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Called again and again while `what` does not come: says so after a second, then ever more rarely. False: nobody wants to
 * wait for it any more, and *err says so. */
RT_MUST_USE bool rt_ks_still_waits(rt_ks *s, const char *what, rt_err *err);
void rt_ks_came(rt_ks *s); /* … and it came */

/* open.c: makes the copy what Kafka holds. RT_E_ABSENT: lines that it needed went while it was at it. */
RT_MUST_USE rt_code rt_ks_fill(rt_ks *s, rt_err *err);
/* Takes a share of the work, and writes the retry topic if that is this node's part. May be tried again. */
RT_MUST_USE rt_code rt_ks_take_part(rt_ks *s, rt_err *err);

/* topics.c. Waits until the topics are there, and looks at them, and at who else is there if that matters; notes of what
 * the copy is a copy. */
RT_MUST_USE rt_code rt_ks_topics(rt_ks *s, rt_err *err);

/* ---- the store ----------------------------------------------------------------------------------------- */

typedef enum rt_ks_stage {
    RT_KS_IDLE,
    RT_KS_SENT,    /* our line is on its way */
    RT_KS_FENCING  /* whether it arrived is not known: nothing of it may arrive later */
} rt_ks_stage;

struct rt_ks {
    rt_store base; /* first */
    rt_store_kafka_config cfg; /* its strings are ours */
    rt_kafka kafka;
    char *brokers, *dir, *properties;
    char journal_topic[RT_TOPIC_NAME_MAX + 1], retry_topic[RT_TOPIC_NAME_MAX + 1];
    char dead_topic[RT_TOPIC_NAME_MAX + 1], audit_topic[RT_TOPIC_NAME_MAX + 1], open_topic[RT_TOPIC_NAME_MAX + 1];
    uint64_t node;
    uint32_t epoch;
    uint64_t line_no;
    rt_journal journal;
    rt_parts parts;
    rt_copy copy;
    rt_arena arena;
    uint64_t counter;         /* of the last number that was given out */
    uint32_t slot;
    bool joined;
    _Atomic int64_t cut;      /* everything before is in the retry topic */
    int64_t note_below;       /* lines before are only read to know what they changed */
    int64_t cut_noted;        /* the last one that a line told */
    pthread_mutex_t cut_lock; /* guards `dirty`, and that it fits what a view of the copy shows */
    rt_dirty dirty;
    rt_archive *archive;      /* NULL: not open */
    uint32_t partitions;      /* that the retry topic has */
    rt_ks_view batch_view;
    bool open;                /* a batch; the copy's is open too */
    bool wrote;               /* … with something in it */
    bool cut_off;             /* the last line was lost: the next batch finds out whether that is over, empty or not */
    bool broken;              /* … that can only fail: `why` */
    rt_buf line;              /* … as it goes to the journal */
    uint32_t new_tag;         /* the store's name behind it: an import brings one */
    rt_ks_stage stage;
    rt_ks_own own;
    uint64_t commit_no;
    int64_t fence_at_ms;      /* monotonic: when to write the fence again */
    bool ended;
    rt_batch_end end;
    rt_err why;
    bool woken;               /* others have written */
    _Atomic int64_t at_ms;    /* the latest time that a node has written */
    rt_share *share;          /* NULL: all is ours */
    rt_gate gate;
    _Atomic int64_t looked_ms; /* monotonic: when the engine last came by */
    struct {
        pthread_t thread;
        bool begun;
        atomic_bool over, stop;
    } mend;
    struct {
        int64_t at_ms, pause_ms; /* when to say it next; 0: nothing is waited for */
    } wait;
};

/* ---- store.c, for open.c ------------------------------------------------------------------------------- */

extern const rt_store_ops rt_ks_ops;
uint64_t rt_ks_write_line(rt_ks *s, rt_entry_kind kind, rt_str payload); /* its number */
void rt_ks_forget_batch(rt_ks *s);
int64_t rt_ks_now_ms(const rt_store *store);
void rt_ks_close(rt_store *store);

#endif
