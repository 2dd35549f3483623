/* source.h: takes over events that any Kafka client produces to source topics, exactly once.
 *
 * One thread around one librdkafka consumer in a group, so that several nodes share the partitions. Which
 * record is the next is not Kafka's to say but the store's: an offset moves in the change that schedules the
 * events before it (engine/calls/intake.h), and every assignment begins there. Kafka is only told how far the
 * group is, for tools that show it, and for nodes with a store of their own: a partition that comes from one
 * of those begins where that node was. Records that can never be events (no such type, too large, …) go to
 * the dead-letter topic, and nobody waits for them. */
#ifndef RT_SOURCE_KAFKA_SOURCE_H
#define RT_SOURCE_KAFKA_SOURCE_H
#include <stdatomic.h>

#include "engine/engine.h"
#include "kafka/client.h"
#include "port/executor.h"

enum {
    RT_SOURCE_TOPICS_MAX = 64,
    RT_SOURCE_PARTITIONS_MAX = 4096,
    RT_SOURCE_LETTERS_MAX = 1024 /* on their way to the dead-letter topic at the same time */
};

typedef struct rt_source rt_source;

typedef enum rt_source_news {
    RT_SOURCE_ASSIGNED,  /* `offset`: where it begins */
    RT_SOURCE_REVOKED,
    RT_SOURCE_REFUSED,   /* a record went to the dead-letter topic; of a batch the first one is told */
    RT_SOURCE_LOST,      /* records before `offset` were deleted by Kafka before they were taken over */
    RT_SOURCE_FENCED,    /* another node has gone on with the partition */
    RT_SOURCE_TROUBLE    /* in words; topic may be empty */
} rt_source_news;

typedef struct rt_source_event {
    rt_source_news news;
    const char *topic;
    int32_t partition;
    int64_t offset;
    const char *text;    /* may be empty */
} rt_source_event;

/* Since the start; read by any thread. */
typedef struct rt_source_stats {
    atomic_uint_fast64_t taken, known, refused, lost, fenced;
} rt_source_stats;

/* Strings are borrowed until rt_source_close. */
typedef struct rt_source_config {
    rt_kafka kafka;
    const char *group;
    const char *instance;    /* of this node in the group: it is back at once after a restart; empty: none */
    const char *topics;      /* separated by commas; TOPIC:TYPE gives records without a type one */
    const char *dead_topic;  /* for what can never be an event */
    const char *project;     /* whose event types they are */
    const char *type_pointer, *reason_pointer, *key_pointer, *id_pointer; /* see reading.h; empty: none */
    bool order_by_key;
    bool create_topics;      /* those that are missing, with the brokers' defaults */
    rt_engine *engine;       /* for views */
    bool (*submit)(void *ctx, rt_command *cmd, size_t bytes); /* any thread; false: full */
    void *submit_ctx;
    void (*tell)(void *ctx, const rt_source_event *event); /* the source's thread */
    void *tell_ctx;
} rt_source_config;

/* Copies `cfg`. RT_E_INVALID: a setting is wrong. RT_OK: returns owned *out. Nothing runs yet. */
RT_MUST_USE rt_code rt_source_open(const rt_source_config *cfg, rt_source **out, rt_err *err);
/* What rt_source_open would say of the settings. */
RT_MUST_USE rt_code rt_source_check(const rt_source_config *cfg, rt_err *err);
/* For the executor that writes dead letters: at most RT_SOURCE_LETTERS_MAX at a time. `ctx`: the source. */
void rt_source_outcome(void *ctx, const rt_outcome *outcome);
/* Starts the thread. `dead_letters` makes attempts to kafka: targets; copied. Needs no broker yet. */
RT_MUST_USE rt_code rt_source_start(rt_source *s, const rt_executor *dead_letters, rt_err *err);
const rt_source_stats *rt_source_stats_of(const rt_source *s);

/* Takes no more, waits a little for what the engine and the brokers have of it, leaves the group, ends the
 * thread. The engine and the executor must still run. NULL, or never started: a no-op. */
void rt_source_stop(rt_source *s);
/* After the engine and the executor are closed. NULL is a no-op. */
void rt_source_close(rt_source *s);

#endif
