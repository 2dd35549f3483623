/* inside.h: what one node knows; and the files of this folder, each of which uses only those below it.
 *
 *   store.c       the port's operations
 *   open.c        a node opens, and closes
 *   mend.c        a node's part in the work; away for too long, it gives it up and fills its copy again
 *   own.c         lines of ours, from being written to being known to count
 *   fill.c        the copy made what Kafka holds
 *   archive.c     the retry topic, written in cuts; restore.c: read up to the last one
 *   intake.c      the journal's lines, taken into the copy one after the other
 *   topics.c      the topics: there, and as they have to be
 *   words.c       what operators are told; clock.c: the time, as all nodes have it, and waiting
 *   inside.h      this
 *   view.c        views of the copy; gate.c: whether it may be looked at
 *   copy.c        all records on this node's disk
 *   share.c       which jobs are this node's to take
 *   journal.c     lines to Kafka and back
 *   lines/        what is written there, and what it makes of records: no broker, no thread, no clock */
#ifndef RT_STORE_KAFKA_INSIDE_H
#define RT_STORE_KAFKA_INSIDE_H
#include <pthread.h>
#include <stdatomic.h>

#include "store/kafka/copy.h"
#include "store/kafka/journal.h"
#include "store/kafka/lines/dirty.h"
#include "store/kafka/lines/parts.h"
#include "store/kafka/share.h"
#include "store/kafka/store_kafka.h"
#include "store/kafka/view.h"

/* What became of the line that we wrote last. */
typedef struct rt_ks_own {
    uint64_t no;       /* 0: none */
    bool seen;         /* it came back … */
    rt_batch_end end;  /* … and this is what it was */
    bool fence_seen;   /* all of it that comes now is too late */
    int64_t tried;     /* position that the copy has if it holds it; 0: not tried */
} rt_ks_own;

typedef enum rt_ks_stage {
    RT_KS_IDLE,
    RT_KS_SENT,    /* our line is on its way */
    RT_KS_FENCING  /* whether it arrived is not known: nothing of it may arrive later */
} rt_ks_stage;

typedef struct rt_ks {
    rt_store base; /* first */
    rt_store_kafka_config cfg; /* its strings are ours */
    rt_kafka kafka;
    char *brokers, *dir, *properties;
    char journal_topic[RT_TOPIC_NAME_MAX + 1], retry_topic[RT_TOPIC_NAME_MAX + 1];
    char dead_topic[RT_TOPIC_NAME_MAX + 1], audit_topic[RT_TOPIC_NAME_MAX + 1];
    char open_topic[RT_TOPIC_NAME_MAX + 1];
    uint32_t partitions;      /* that the retry topic has */
    uint64_t node;
    rt_share *share;          /* NULL: all is ours */

    /* Lines, taken in. */
    rt_journal journal;
    rt_parts parts;
    rt_copy copy;
    rt_arena arena;
    uint32_t slot;
    bool joined;
    int64_t note_below;       /* lines before are only read to know what they changed */
    int64_t cut_noted;        /* the last one that a line told */
    bool woken;               /* others have written */
    _Atomic int64_t at_ms;    /* the latest time that a node has written */

    /* The retry topic. */
    struct rt_archive *archive; /* NULL: not open */
    _Atomic int64_t cut;      /* everything before is there */
    pthread_mutex_t cut_lock; /* guards `dirty`, and that it fits what a view of the copy shows */
    rt_dirty dirty;

    /* The batch. */
    rt_ks_view batch_view;
    bool open;                /* there is one; the copy's is open too */
    bool wrote;               /* … with something in it */
    bool broken;              /* … that can only fail: `why` */
    bool cut_off;             /* the last line was lost: the next one is written even if it is empty */
    rt_buf line;              /* … as it goes to the journal */
    uint32_t new_tag;         /* the store's name behind it: an import brings one */
    uint64_t counter;         /* of the last number that was given out */

    /* Lines of ours, and the end of the batch. */
    uint32_t epoch;
    uint64_t line_no;
    rt_ks_stage stage;
    rt_ks_own own;
    int64_t fence_at_ms;      /* monotonic: when to write the fence again */
    uint64_t commit_no;
    bool ended;
    rt_batch_end end;
    rt_err why;

    /* Away for too long. */
    _Atomic int64_t looked_ms; /* monotonic: when the engine last came by */
    rt_gate gate;
    struct {
        pthread_t thread;
        bool begun;
        atomic_bool over, stop;
    } mend;

    struct {
        int64_t at_ms, pause_ms; /* when to say it next; 0: nothing is waited for */
    } wait;
} rt_ks;

#endif
