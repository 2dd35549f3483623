/* store_kafka.h: Kafka holds everything; nodes share the work.
 *
 * Each batch is one line of a journal, a topic of one partition. Every node takes the lines in, in their
 * order, into a copy on its own disk (LMDB), and comes to the same records: a batch that rests on what an
 * earlier line has changed is refused by all of them alike. So nobody has to own anything for the records to
 * be right, and what a node writes that was given up on long ago has no effect. The copy is worth nothing: if
 * its folder is lost, it is made again. */
#ifndef RT_STORE_KAFKA_STORE_KAFKA_H
#define RT_STORE_KAFKA_STORE_KAFKA_H
#include "kafka/client.h"
#include "port/store.h"

enum { RT_STORE_KAFKA_PREFIX_MAX = 200, RT_STORE_KAFKA_PARTITIONS_MAX = 1024 };

typedef struct rt_store_kafka_config {
    const char *brokers;   /* as in kafka/client.h … */
    rt_str properties;
    const char *prefix;    /* topics are PREFIX.journal, PREFIX.retry, …; at most RT_STORE_KAFKA_PREFIX_MAX */
    const char *dir;       /* of the copy; made if missing (its parent must exist) */
    uint64_t map_bytes;    /* as in store_lmdb.h, of the copy … */
    uint64_t disk_reserve_bytes;
    rt_retention retention;
    uint32_t partitions;   /* of the retry topic, if it is made: nodes share the work by them; 1 to
                            * RT_STORE_KAFKA_PARTITIONS_MAX */
    uint32_t replication;  /* of topics that are made; 0: as the brokers have it */
    bool create_topics;
    int64_t kept_ms;       /* the journal keeps lines so long after they are in the retry topic: a node
                            * that is behind by more begins again from that topic */
    int64_t start_ms;      /* opening waits so long for brokers that do not answer */
    bool alone;            /* takes all jobs, without asking other nodes */
    bool shuns;            /* RT_E_UNAVAILABLE if there are others */
    /* Any thread: what operators should know, in words: what is waited for, what went wrong, what is done
     * about it. `grave`: somebody should look. NULL: nobody listens. */
    void (*say)(void *ctx, bool grave, rt_str text);
    /* While opening waits for brokers: is it to be given up? NULL: it is not. */
    bool (*give_up)(void *ctx);
    void *ctx;
} rt_store_kafka_config;

/* Borrows `cfg`. Waits until the copy has everything that was in Kafka. RT_OK: owned *out, closed by
 * rt_store_close. RT_E_UNAVAILABLE: no broker answers, or another process has the folder. RT_E_INVALID: a
 * topic is missing or is not what it has to be. */
RT_MUST_USE rt_code rt_store_kafka_open(const rt_store_kafka_config *cfg, rt_store **out, rt_err *err);

#endif
