#include "store/kafka/journal.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"

enum { CLOSE_MS = 1000, NAP_MS = 20, SEND_KBYTES = RT_JOURNAL_BYTES_MAX >> 10 };

static rt_code fail(rt_journal *j, rt_err *err, rt_code code, const char *what, rd_kafka_resp_err_t why) {
    (void)rt_fail(&j->why, code, 0, "Kafka: %s: %s", what, rd_kafka_err2str(why));
    return rt_fail(err, code, 0, "%s", j->why.msg);
}

/* ---- what librdkafka calls, from rd_kafka_poll --------------------------------------------------------- */

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque) {
    (void)rk;
    rt_journal *j = opaque;
    RT_ASSERT(j->sent.waits > 0);
    j->sent.waits--;
    if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        if (j->sent.first < 0 || m->offset < j->sent.first) j->sent.first = m->offset;
        if (m->offset > j->sent.last) j->sent.last = m->offset;
        return;
    }
    (void)fail(j, NULL, RT_E_UNAVAILABLE, "the journal cannot be written", m->err);
    if (rd_kafka_message_status(m) == RD_KAFKA_MSG_STATUS_NOT_PERSISTED) j->sent.lost++;
    else j->sent.unsure++;
}

static void on_error(rd_kafka_t *rk, int error, const char *text, void *opaque) {
    rt_journal *j = opaque;
    // That all are down says less than why the last one is.
    if (error != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || j->why.msg[0] == '\0')
        (void)rt_fail(&j->why, RT_E_UNAVAILABLE, 0, "%s", text);
    if (error == RD_KAFKA_RESP_ERR__FATAL && rk == j->writer) j->broken = true;
}

/* ---- clients ------------------------------------------------------------------------------------------- */

static rt_code open_client(rt_journal *j, rd_kafka_type_t type, const rt_kafka_property own[], size_t count,
                           rd_kafka_t **out, rt_err *err) {
    rd_kafka_conf_t *conf;
    const rt_code code = rt_kafka_conf(&j->kafka, own, count, &conf, err);
    if (code != RT_OK) return code;
    if (type == RD_KAFKA_PRODUCER) rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    rd_kafka_conf_set_error_cb(conf, on_error);
    return rt_kafka_new(type, conf, out, err);
}

static void wake_by(rd_kafka_queue_t *queue, int fd) {
    static const uint64_t ONE = 1;
    rd_kafka_queue_io_event_enable(queue, fd, &ONE, sizeof ONE);
}

static rt_code open_writer(rt_journal *j, rt_err *err) {
    char kbytes[16], timeout[16];
    (void)snprintf(kbytes, sizeof kbytes, "%d", SEND_KBYTES);
    (void)snprintf(timeout, sizeof timeout, "%d", RT_JOURNAL_SEND_MS);
    const rt_kafka_property own[] = {
        {"enable.idempotence", "true", false}, // parts stay in order, and none is there twice
        {"acks", "all", false},
        {"linger.ms", "0", false},
        {"queue.buffering.max.kbytes", kbytes, false},
        {"message.timeout.ms", timeout, false},
        {"retry.backoff.ms", "50", true},
        {"reconnect.backoff.max.ms", "1000", true},
    };
    const rt_code code = open_client(j, RD_KAFKA_PRODUCER, own, sizeof own / sizeof *own, &j->writer, err);
    if (code != RT_OK) return code;
    j->broken = false;
    j->writer_queue = rd_kafka_queue_get_main(j->writer);
    wake_by(j->writer_queue, j->fd);
    return RT_OK;
}

/* All that it still holds comes back as reports. */
static void close_writer(rt_journal *j) {
    if (j->writer == NULL) return;
    (void)rd_kafka_purge(j->writer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    (void)rd_kafka_flush(j->writer, CLOSE_MS);
    rd_kafka_queue_destroy(j->writer_queue);
    rd_kafka_destroy(j->writer);
    j->writer = NULL;
}

static rt_code open_reader(rt_journal *j, rt_err *err) {
    const rt_kafka_property own[] = {
        {"enable.partition.eof", "false", false},
        {"enable.auto.commit", "false", false},
        {"fetch.error.backoff.ms", "100", true},
        {"reconnect.backoff.max.ms", "1000", true},
        {"queued.max.messages.kbytes", "32768", true},
        {"socket.timeout.ms", "2000", true}, // rd_kafka_query_watermark_offsets heeds no other
    };
    rt_code code = open_client(j, RD_KAFKA_CONSUMER, own, sizeof own / sizeof *own, &j->reader, err);
    if (code != RT_OK) return code;
    rd_kafka_topic_conf_t *conf = rd_kafka_topic_conf_new();
    char why[100];
    (void)rd_kafka_topic_conf_set(conf, "auto.offset.reset", "error", why, sizeof why);
    j->reader_topic = rd_kafka_topic_new(j->reader, j->topic, conf);
    j->lines = rd_kafka_queue_new(j->reader);
    if (j->reader_topic == NULL) return fail(j, err, RT_E_INVALID, j->topic, rd_kafka_last_error());
    wake_by(j->lines, j->fd);
    return RT_OK;
}

static void stop_reading(rt_journal *j) {
    if (j->reading) (void)rd_kafka_consume_stop(j->reader_topic, 0);
    j->reading = false;
}

static void close_reader(rt_journal *j) {
    if (j->reader == NULL) return;
    stop_reading(j);
    if (j->lines != NULL) rd_kafka_queue_destroy(j->lines);
    if (j->reader_topic != NULL) rd_kafka_topic_destroy(j->reader_topic);
    rd_kafka_destroy(j->reader);
    j->reader = NULL;
    j->lines = NULL;
    j->reader_topic = NULL;
}

rt_code rt_journal_open(rt_journal *j, const rt_kafka *kafka, const char *topic, int fd, rt_err *err) {
    *j = (rt_journal){.kafka = *kafka, .fd = fd};
    (void)snprintf(j->topic, sizeof j->topic, "%s", topic);
    rt_code code = open_writer(j, err);
    if (code == RT_OK) code = open_reader(j, err);
    if (code != RT_OK) rt_journal_close(j);
    return code;
}

void rt_journal_close(rt_journal *j) {
    close_writer(j);
    close_reader(j);
    rt_buf_deinit(&j->head);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

/* A topic that was just made is not known to all brokers at once. */
rt_code rt_journal_range(rt_journal *j, int64_t *low, int64_t *high, int wait_ms, rt_err *err) {
    const int64_t until_ms = rt_mono_ms() + wait_ms;
    rd_kafka_resp_err_t error;
    do {
        // The offsets' own question waits for brokers that are gone as long as it takes; this one does not.
        const struct rd_kafka_metadata *metadata = NULL;
        error = rd_kafka_metadata(j->reader, 0, j->reader_topic, &metadata, wait_ms);
        if (metadata != NULL) rd_kafka_metadata_destroy(metadata);
        if (error == RD_KAFKA_RESP_ERR_NO_ERROR)
            error = rd_kafka_query_watermark_offsets(j->reader, j->topic, 0, low, high, wait_ms);
        if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return RT_OK;
        (void)poll(NULL, 0, NAP_MS);
    } while (rt_mono_ms() < until_ms);
    return fail(j, err, RT_E_UNAVAILABLE, j->topic, error);
}

rt_code rt_journal_read_from(rt_journal *j, int64_t offset, rt_err *err) {
    stop_reading(j);
    rd_kafka_message_t *old; // of the reading before
    while ((old = rd_kafka_consume_queue(j->lines, 0)) != NULL) rd_kafka_message_destroy(old);
    if (rd_kafka_consume_start_queue(j->reader_topic, 0, offset, j->lines) != 0)
        return fail(j, err, RT_E_UNAVAILABLE, j->topic, rd_kafka_last_error());
    j->reading = true;
    return RT_OK;
}

rt_code rt_journal_next(rt_journal *j, rd_kafka_message_t **out, rt_err *err) {
    (void)rd_kafka_poll(j->reader, 0); // its errors
    rd_kafka_message_t *m = rd_kafka_consume_queue(j->lines, 0);
    if (m == NULL) return RT_E_AGAIN;
    if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        *out = m;
        return RT_OK;
    }
    const rd_kafka_resp_err_t error = m->err;
    rd_kafka_message_destroy(m);
    const bool gone =
        error == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET || error == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE;
    return fail(j, err, gone ? RT_E_ABSENT : RT_E_UNAVAILABLE, "the journal cannot be read", error);
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static void write_part(rt_journal *j, const rt_entry_head *head, rt_str part) {
    rt_buf_clear(&j->head);
    rt_entry_write_head(&j->head, head);
    rt_buf_add(&j->head, part);
    rd_kafka_error_t *error = NULL;
    if (!j->head.failed) {
        const rd_kafka_vu_t what[] = {
            {.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = j->topic},
            {.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = 0},
            {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {.ptr = j->head.ptr, .size = j->head.len}},
            {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
        };
        error = rd_kafka_produceva(j->writer, what, sizeof what / sizeof *what);
    }
    if (!j->head.failed && error == NULL) {
        j->sent.waits++;
        return;
    }
    j->sent.lost++;
    (void)fail(j, NULL, RT_E_UNAVAILABLE, "the journal cannot be written",
               error != NULL ? rd_kafka_error_code(error) : RD_KAFKA_RESP_ERR__FAIL);
    rd_kafka_error_destroy(error);
    j->head.failed = false;
}

void rt_journal_write(rt_journal *j, rt_entry_head head, rt_str payload) {
    RT_ASSERT(j->sent.waits == 0);
    RT_ASSERT(payload.len <= RT_ENTRY_BYTES_MAX);
    if (j->broken) close_writer(j); // an idempotent producer that lost its place cannot go on; a new one can
    j->sent.lost = j->sent.unsure = 0;
    j->sent.first = j->sent.last = -1;
    if (j->writer == NULL && open_writer(j, &j->why) != RT_OK) {
        j->sent.lost = 1;
        return;
    }
    head.parts =
        payload.len == 0 ? 1 : (uint32_t)((payload.len + RT_ENTRY_PART_BYTES - 1) / RT_ENTRY_PART_BYTES);
    for (head.part = 0; head.part < head.parts && j->sent.lost == 0; head.part++) {
        const size_t at = (size_t)head.part * RT_ENTRY_PART_BYTES;
        const size_t left = payload.len - at;
        const size_t len = left < RT_ENTRY_PART_BYTES ? left : RT_ENTRY_PART_BYTES;
        write_part(j, &head, (rt_str){.ptr = payload.ptr + at, .len = len});
    }
}

rt_sent rt_journal_sent(rt_journal *j) {
    if (j->writer != NULL) (void)rd_kafka_poll(j->writer, 0);
    if (j->sent.waits > 0) return RT_SENT_WAITS;
    if (j->sent.lost > 0) return RT_SENT_LOST;
    return j->sent.unsure > 0 ? RT_SENT_UNSURE : RT_SENT_WRITTEN;
}
