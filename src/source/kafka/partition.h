/* partition.h: one partition of a source topic, from librdkafka's queue to the engine, a batch at a time.
 *
 *   COLLECT   takes records until a batch is full or nothing more is there, then hands it to the engine
 *   ENGINE    the engine decides
 *   LETTERS   some records can never be events: they go to the dead-letter topic first, then the batch again
 *             without them
 *   WAIT      the engine was full or the store in trouble: the same batch again at `retry_at_ms`
 *
 * While a batch is under way nothing more is taken from librdkafka's queue of this partition, which is
 * bounded: that is the backpressure, and no other partition feels it. The source's thread only. */
#ifndef RT_SOURCE_KAFKA_PARTITION_H
#define RT_SOURCE_KAFKA_PARTITION_H
#include "source/kafka/reading.h"
#include "source/kafka/source.h"

enum {
    RT_PARTITION_BATCH_BYTES = 4 << 20, /* taken together; one record may be larger */
    RT_PARTITION_RETRY_MS = 100,
    RT_PARTITION_LETTER_RETRY_MS = 1000,
    RT_LETTER_TEXT_MAX = 160
};

typedef enum rt_partition_state {
    RT_PARTITION_COLLECT,
    RT_PARTITION_ENGINE,
    RT_PARTITION_LETTERS,
    RT_PARTITION_WAIT
} rt_partition_state;

struct rt_partition;

/* What other threads send to the source's. */
typedef enum rt_note_kind { RT_NOTE_STOP, RT_NOTE_DECIDED, RT_NOTE_LETTER } rt_note_kind;
typedef struct rt_note {
    rt_note_kind kind;
    struct rt_partition *partition;
} rt_note;

/* A record on its way to the dead-letter topic. Owned by its note until that is read. */
typedef struct rt_letter {
    rt_note note; /* first member */
    uint32_t record;
    bool bare;       /* without the record's value, which the topic does not take */
    uint16_t status; /* as of an outcome: 200: written */
    char text[RT_LETTER_TEXT_MAX];
    struct rt_letter *before, *after;
} rt_letter;

typedef struct rt_partition {
    rt_note note; /* first member: sent when the engine has decided */
    rt_source *source;
    char topic[RT_TOPIC_NAME_MAX + 1];
    int32_t number;
    rt_str type;      /* of records that name none */
    rt_str log;       /* its name in the store; owned */
    rd_kafka_queue_t *queue;
    int64_t offset;   /* up to where it has been taken over, as far as we know; -1: nothing of it */
    int64_t next;     /* what is read next: behind the last record collected */
    int64_t told;     /* the last one that Kafka was told, for tools that show how far a group is; -1: none */
    rt_partition_state state;
    int64_t retry_at_ms; /* WAIT; monotonic */
    bool revoked;     /* no longer ours: goes when nothing of it is under way */
    struct rt_partition *before, *after;

    rt_intake intake; /* the batch */
    rt_intake_record records[RT_INTAKE_RECORDS_MAX];
    const char *refused[RT_INTAKE_RECORDS_MAX]; /* why it can be no event; NULL: it may be one */
    rd_kafka_message_t *messages[RT_INTAKE_RECORDS_MAX];
    uint32_t count;   /* of the records collected */
    uint32_t limit;   /* of the records asked for at once */
    uint32_t letters; /* not yet written or failed */
    bool letter_failed;
    size_t bytes;
    rt_arena arena;
} rt_partition;

/* Goes on as far as it can. */
void rt_partition_step(rt_partition *p, int64_t now_ms);
/* The engine has decided. */
void rt_partition_decided(rt_partition *p, int64_t now_ms);
/* Takes `letter`. */
void rt_partition_lettered(rt_partition *p, rt_letter *letter, int64_t now_ms);
/* Gives librdkafka back what it has lent. The engine has none of it. */
void rt_partition_clear(rt_partition *p);
/* No letter of it is on its way. */
void rt_partition_free(rt_partition *p);

#endif
