/* inside.h: the source, shared by its own files only.
 *
 *   source.c      opening and closing, the loop
 *   client.c      the consumer: opening, topics, errors
 *   assign.c      partitions come and go
 *   notes.c       notes from other threads
 *   tell.c        what is told to the log, and to Kafka of offsets
 *   partition.c   one partition, from librdkafka's queue to the engine
 *   letter.c      records for the dead-letter topic
 *   reading.c     what a record says */
#ifndef RT_SOURCE_KAFKA_INSIDE_H
#define RT_SOURCE_KAFKA_INSIDE_H
#include <pthread.h>

#include "base/ring.h"
#include "source/kafka/partition.h"

enum {
    RT_SOURCE_ASK_MS = 10000,   /* for an answer of the brokers */
    RT_SOURCE_SETTLE_MS = 5000, /* for the engine when a partition goes */
    RT_SOURCE_REOPEN_MS = 1000,
    RT_SOURCE_TELL_MS = 5000    /* between two words to Kafka about offsets */
};
#define RT_NEVER_MS INT64_MAX

typedef struct rt_source_topic {
    const char *name;
    rt_str type;
} rt_source_topic;

struct rt_source {
    rt_source_config cfg; /* first member, and cfg.kafka is the first of that: librdkafka's opaque */
    rt_source_stats stats;
    rt_reading_rules rules;
    char *topics_text;    /* of the setting, cut up */
    rt_source_topic topics[RT_SOURCE_TOPICS_MAX];
    uint32_t topics_count;
    char tag[9];          /* of our store: what it told Kafka can be told from what other stores did */

    rt_ring *notes;
    int fd;               /* an eventfd: librdkafka has something */
    rt_executor dead_letters;
    uint32_t letters;     /* on their way */
    rt_letter *letters_out; /* those */
    rt_note stop_note;
    bool stopping, running;
    pthread_t thread;

    rd_kafka_t *rk;       /* NULL: none now */
    rd_kafka_queue_t *queue;   /* rebalances and errors */
    rd_kafka_queue_t *replies; /* to the request for topics; NULL: not asked, or answered */
    char *cluster;        /* id; librdkafka's memory */
    bool subscribed;
    int64_t subscribe_at_ms; /* whether or not topics were made by then */
    int64_t open_at_ms;
    bool reopen;          /* this client is of no more use */
    rd_kafka_resp_err_t trouble; /* the last one that was told */
    rt_partition *partitions;
    uint32_t partitions_count; /* those that are ours */
    int64_t tell_at_ms;
};

/* Begins afresh with a new consumer, soon. */
static inline void rt_source_reopen(rt_source *s) { s->reopen = true; }

/* ---- tell.c -------------------------------------------------------------------------------------------- */
/* Says it to who opened the source. `partition`, `offset`: -1 where they mean nothing. */
void rt_tell(rt_source *s, rt_source_news news, const char *topic, int32_t partition, int64_t offset, const char *text);
/* Tells Kafka how far partitions are that are revoked, or all of the others. */
void rt_tell_offsets(rt_source *s, bool revoked);

/* ---- notes.c ------------------------------------------------------------------------------------------- */
void rt_notes_take(rt_source *s);
/* Until there is a note, or librdkafka has something if `client`. */
void rt_notes_sleep(rt_source *s, bool client, int64_t wait_ms);
/* Waits until the engine has answered for partitions that are revoked, at most `wait_ms`. */
void rt_notes_settle(rt_source *s, int64_t wait_ms);

/* ---- client.c ------------------------------------------------------------------------------------------ */
/* Opens, asks for topics, subscribes, opens anew: whatever is to be done now. */
void rt_client_tend(rt_source *s, int64_t now_ms);
/* Rebalances and errors. */
void rt_client_poll(rt_source *s);
void rt_client_close(rt_source *s);

/* ---- assign.c ------------------------------------------------------------------------------------------ */
void rt_assign_on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t *list, void *opaque);
/* Frees what is revoked, except what the engine or the dead-letter topic still has. */
void rt_assign_sweep(rt_source *s);
void rt_assign_revoke_all(rt_source *s);

/* ---- letter.c ------------------------------------------------------------------------------------------ */
/* Sends record `i` of the batch to the dead-letter topic. False: no room now, or no memory. */
bool rt_letter_send(rt_partition *p, uint32_t i, bool bare);
/* Takes it off the list of those on their way and frees it. */
void rt_letter_free(rt_source *s, rt_letter *letter);

#endif
