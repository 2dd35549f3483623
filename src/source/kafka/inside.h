/* inside.h: what a source knows; and its files, each of which uses only those below it.
 *
 *   source.c      opening and closing, the loop
 *   client.c      the consumer: opening, topics, errors
 *   assign.c      partitions come and go
 *   notes.c       notes from other threads
 *   partition.c   one partition, from librdkafka's queue to the engine
 *   letter.c      records for the dead-letter topic
 *   tell.c        what is told to the log, and to Kafka of offsets
 *   inside.h      this
 *   reading.c     what a record says: pure */
#ifndef RT_SOURCE_KAFKA_INSIDE_H
#define RT_SOURCE_KAFKA_INSIDE_H
#include <pthread.h>

#include "base/ring.h"
#include "source/kafka/partition.h"

enum { RT_SOURCE_ASK_MS = 10000 }; /* for an answer of the brokers */

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

#endif
