/* journal.h: one topic of one partition, written by all nodes and read by all in the same order.
 *
 * One thread. Nothing here waits, but for what says so. */
#ifndef RT_STORE_KAFKA_JOURNAL_H
#define RT_STORE_KAFKA_JOURNAL_H
#include "kafka/client.h"
#include "port/executor.h"
#include "store/kafka/lines/entry.h"

enum {
    RT_JOURNAL_SEND_MS = 10000, /* librdkafka tries so long to write a record, then it has failed */
    RT_JOURNAL_BYTES_MAX = RT_ENTRY_BYTES_MAX + (16 << 20) /* of records that wait for the brokers */
};

typedef struct rt_journal {
    rt_kafka kafka; /* first member: the opaque of librdkafka's clients */
    char topic[RT_TOPIC_NAME_MAX + 1];
    int fd;         /* eventfd: there may be something to read, or an end to learn; not ours */
    rd_kafka_t *writer, *reader;     /* NULL: not open */
    rd_kafka_topic_t *reader_topic;
    rd_kafka_queue_t *writer_queue, *lines;
    bool reading;
    bool broken;    /* the writer is of no more use */
    rt_err why;     /* the last thing that went wrong */
    rt_buf head;
    struct {
        uint32_t waits, lost, unsure; /* records: without an end yet; not written; perhaps written */
        int64_t first, last;          /* offsets of those that are written */
    } sent;
} rt_journal;

/* Opens both clients; no broker has to answer. Error: as rt_journal_close leaves it. */
RT_MUST_USE rt_code rt_journal_open(rt_journal *j, const rt_kafka *kafka, const char *topic, int fd,
                                    rt_err *err);
void rt_journal_close(rt_journal *j);

/* Waits: what offsets there are, low <= offset < high. */
RT_MUST_USE rt_code rt_journal_range(rt_journal *j, int64_t *low, int64_t *high, int wait_ms, rt_err *err);
/* Reads on from there. */
RT_MUST_USE rt_code rt_journal_read_from(rt_journal *j, int64_t offset, rt_err *err);

/* The next record: RT_OK, and it is freed by rd_kafka_message_destroy. RT_E_AGAIN: none yet. RT_E_ABSENT: the
 * offset that was asked for is not there any more. RT_E_UNAVAILABLE: reading has to begin anew. */
RT_MUST_USE rt_code rt_journal_next(rt_journal *j, rd_kafka_message_t **out, rt_err *err);

/* Writes one line, of as many records as it takes: head->part and head->parts are filled in. `payload` is
 * copied. Only when the one before it has its end. */
void rt_journal_write(rt_journal *j, rt_entry_head head, rt_str payload);

typedef enum rt_sent {
    RT_SENT_WAITS,
    RT_SENT_WRITTEN, /* all of it: j->sent.first to j->sent.last */
    RT_SENT_LOST,    /* it will never be whole */
    RT_SENT_UNSURE   /* it may be, now or a little later */
} rt_sent;
rt_sent rt_journal_sent(rt_journal *j);

#endif
