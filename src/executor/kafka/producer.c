#include "executor/kafka/producer.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/ring.h"
#include "executor/kafka/record.h"
#include "os/clock.h"

enum {
    INBOX_BATCH = 64,      /* attempts begun between two looks at librdkafka */
    SLEEP_MS_MAX = 1000,
    PURGE_MS_MAX = 2000,   /* librdkafka hands back at once what it is told to drop */
    REOPEN_MS = 1000,      /* between two tries to have a producer */
    ABANDONED_FACTOR = 2   /* records that librdkafka still holds although their attempts are over: as many again */
};
#define NEVER INT64_MAX

/* One attempt, from the inbox until librdkafka lets go of its record. */
typedef struct sending {
    rt_heap_node deadline; /* first member */
    rt_attempt *attempt;
    int64_t began_ms;
    struct sending *before, *after;
} sending;

struct rt_producer {
    rt_producer_config cfg; /* first member, and cfg.kafka is the first of that: the opaque of librdkafka */
    rt_ring *inbox;         /* attempts; the rt_producer itself among them means "stop" */
    int fd;                 /* an eventfd: librdkafka has something to tell */
    rd_kafka_t *rk;         /* NULL: none could be had */
    rd_kafka_queue_t *queue;
    rt_heap deadlines;      /* of those whose outcome is not told yet */
    sending *sends;            /* all whose record librdkafka may hold */
    int64_t stop_at_ms;     /* NEVER: not stopping */
    int64_t reopen_at_ms;
    bool broken;            /* a fatal error: this rd_kafka_t is of no more use */
    rd_kafka_resp_err_t down; /* why no broker can be reached; 0: one was, or nobody knows */
    char down_text[RT_EVENT_TEXT_MAX];
    bool running;
    pthread_t thread;
};
_Static_assert(offsetof(rt_producer, cfg) == 0, "librdkafka's callbacks get cfg.kafka and take it for the producer");
_Static_assert(offsetof(rt_producer_config, kafka) == 0, "the same");

/* ---- outcomes ------------------------------------------------------------------------------------------ */

static void deliver(rt_producer *p, const sending *s, rt_outcome *outcome) {
    outcome->job = s->attempt->job;
    outcome->token = s->attempt->token;
    outcome->took_ms = (uint32_t)(rt_mono_ms() - s->began_ms);
    outcome->retry_after_ms = -1;
    p->cfg.outcome(p->cfg.ctx, outcome);
}

static bool is_told(const sending *s) { return s->deadline.place == 0; }

static void tell(rt_producer *p, sending *s, rd_kafka_resp_err_t error, const char *detail) {
    rt_outcome outcome = {0};
    if (is_told(s)) return;
    rt_heap_remove(&p->deadlines, &s->deadline);
    rt_record_outcome(error, detail, &outcome);
    deliver(p, s, &outcome);
}

/* Nothing came in time: because no broker can be reached, if that is so. */
static void tell_timeout(rt_producer *p, sending *s) {
    if (p->down != 0) tell(p, s, p->down, p->down_text);
    else tell(p, s, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, "the brokers have not acknowledged it in time");
}

static void drop(rt_producer *p, sending *s) {
    if (s->before != NULL) s->before->after = s->after;
    else p->sends = s->after;
    if (s->after != NULL) s->after->before = s->before;
    rt_heap_remove(&p->deadlines, &s->deadline);
    rt_attempt_free(s->attempt);
    free(s);
}

/* ---- what librdkafka calls, from rd_kafka_poll --------------------------------------------------------- */

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque) {
    (void)rk;
    rt_producer *p = opaque;
    sending *s = m->_private;
    char where[64];
    if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        p->down = RD_KAFKA_RESP_ERR_NO_ERROR;
        (void)snprintf(where, sizeof where, "partition %" PRId32 ", offset %" PRId64, m->partition, m->offset);
        tell(p, s, m->err, where);
    } else if (m->err == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT) {
        tell_timeout(p, s);
    } else {
        tell(p, s, m->err, NULL);
    }
    drop(p, s);
}

static void on_error(rd_kafka_t *rk, int error, const char *text, void *opaque) {
    rt_producer *p = opaque;
    rd_kafka_resp_err_t code = (rd_kafka_resp_err_t)error;
    char why[256] = "";
    if (code == RD_KAFKA_RESP_ERR__FATAL) {
        code = rd_kafka_fatal_error(rk, why, sizeof why);
        p->broken = true;
    }
    // Most of what comes here librdkafka has told `say` already.
    const bool news = p->broken || (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && p->down != code);
    p->down = code;
    (void)snprintf(p->down_text, sizeof p->down_text, "%s", why[0] != '\0' ? why : text);
    if (news && p->cfg.kafka.say != NULL) p->cfg.kafka.say(p->cfg.kafka.ctx, true, rt_str_of(p->down_text));
}

/* ---- from the inbox to librdkafka ---------------------------------------------------------------------- */

static rd_kafka_error_t *produce(rt_producer *p, sending *s) {
    const rt_attempt *a = s->attempt;
    rd_kafka_headers_t *headers = rt_record_headers(a);
    if (headers == NULL) return rd_kafka_error_new(RD_KAFKA_RESP_ERR__FAIL, "out of memory");
    // An empty key is none: all records without one would otherwise go to the same partition.
    void *key = a->key.len == 0 ? NULL : (void *)(uintptr_t)a->key.ptr;
    void *body = (void *)(uintptr_t)a->body.ptr; // lent: the attempt lives until the report
    const rd_kafka_vu_t what[] = {
        {.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = rt_record_topic(a)},
        {.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {.ptr = key, .size = a->key.len}},
        {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {.ptr = body, .size = a->body.len}},
        {.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers},
        {.vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = s},
    };
    rd_kafka_error_t *error = rd_kafka_produceva(p->rk, what, sizeof what / sizeof *what);
    if (error != NULL) rd_kafka_headers_destroy(headers); // otherwise they are librdkafka's
    return error;
}

static int64_t deadline_of(const rt_attempt *a, int64_t now_ms) {
    const uint32_t ms = a->timeout_ms;
    return now_ms + (ms < RT_PRODUCER_ATTEMPT_MS_MAX ? ms : RT_PRODUCER_ATTEMPT_MS_MAX);
}

/* Takes `attempt`. */
static void begin(rt_producer *p, rt_attempt *attempt, int64_t now_ms) {
    sending *s = calloc(1, sizeof *s);
    if (s == NULL || !rt_heap_set(&p->deadlines, &s->deadline, deadline_of(attempt, now_ms))) {
        sending lost = {.attempt = attempt, .began_ms = now_ms};
        rt_outcome outcome = {.reason = RT_REASON_BROKEN};
        rt_record_say(&outcome, "out of memory");
        deliver(p, &lost, &outcome);
        rt_attempt_free(attempt);
        free(s);
        return;
    }
    s->attempt = attempt;
    s->began_ms = now_ms;
    s->after = p->sends;
    if (s->after != NULL) s->after->before = s;
    p->sends = s;
    if (p->rk == NULL) { // on_error or open_client have said why
        tell(p, s, RD_KAFKA_RESP_ERR__TRANSPORT, p->down_text);
        drop(p, s);
        return;
    }
    rd_kafka_error_t *error = produce(p, s);
    if (error == NULL) return;
    const rd_kafka_resp_err_t code = rd_kafka_error_code(error);
    tell(p, s, code,
         code == RD_KAFKA_RESP_ERR__QUEUE_FULL ? "too many records wait for the brokers" : rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
    drop(p, s);
}

static void take_inbox(rt_producer *p) {
    void *items[INBOX_BATCH];
    const size_t count = rt_ring_take(p->inbox, items, INBOX_BATCH);
    const int64_t now_ms = rt_mono_ms();
    for (size_t i = 0; i < count; i++) {
        if (items[i] == p) p->stop_at_ms = now_ms + p->cfg.drain_ms;
        else begin(p, items[i], now_ms);
    }
}

static void expire(rt_producer *p) {
    const int64_t now_ms = rt_mono_ms();
    rt_heap_node *first;
    while ((first = rt_heap_first(&p->deadlines)) != NULL && first->at_ms <= now_ms) {
        tell_timeout(p, (sending *)(void *)first); // its record stays where it is until librdkafka reports it
    }
}

/* ---- the client ---------------------------------------------------------------------------------------- */

static rt_code make_conf(const rt_producer_config *cfg, rd_kafka_conf_t **out, rt_err *err) {
    char messages[24], kbytes[24], timeout[24];
    const uint64_t kb = cfg->bytes_max / 1024;
    (void)snprintf(messages, sizeof messages, "%" PRIu64, (uint64_t)cfg->attempts_max * ABANDONED_FACTOR);
    (void)snprintf(kbytes, sizeof kbytes, "%" PRIu64, kb == 0 ? 1 : kb);
    (void)snprintf(timeout, sizeof timeout, "%d", RT_PRODUCER_ATTEMPT_MS_MAX);
    const rt_kafka_property own[] = {
        {"enable.idempotence", "true", false},
        {"acks", "all", false},
        {"partitioner", "murmur2_random", false},
        {"queue.buffering.max.messages", messages, false},
        {"queue.buffering.max.kbytes", kbytes, false},
        {"message.timeout.ms", timeout, false},
    };
    return rt_kafka_conf(&cfg->kafka, own, sizeof own / sizeof *own, out, err);
}

rt_code rt_producer_check(const rt_producer_config *cfg, rt_err *err) {
    rd_kafka_conf_t *conf;
    const rt_code code = make_conf(cfg, &conf, err);
    return code == RT_OK ? rt_kafka_try(RD_KAFKA_PRODUCER, conf, err) : code;
}

static rt_code open_client(rt_producer *p, rt_err *err) {
    rd_kafka_conf_t *conf;
    rt_code code = make_conf(&p->cfg, &conf, err);
    if (code != RT_OK) return code;
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    rd_kafka_conf_set_error_cb(conf, on_error);
    rd_kafka_t *rk;
    code = rt_kafka_new(RD_KAFKA_PRODUCER, conf, &rk, err);
    if (code != RT_OK) return code;
    const uint64_t one = 1;
    p->rk = rk;
    p->broken = false;
    p->down = RD_KAFKA_RESP_ERR_NO_ERROR;
    p->queue = rd_kafka_queue_get_main(rk);
    rd_kafka_queue_io_event_enable(p->queue, p->fd, &one, sizeof one);
    return RT_OK;
}

/* All that it still holds comes back as reports. */
static void close_client(rt_producer *p) {
    if (p->rk == NULL) return;
    (void)rd_kafka_purge(p->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    const int64_t end_ms = rt_mono_ms() + PURGE_MS_MAX;
    while (rd_kafka_outq_len(p->rk) > 0 && rt_mono_ms() < end_ms) (void)rd_kafka_poll(p->rk, 10);
    rd_kafka_queue_destroy(p->queue);
    rd_kafka_destroy(p->rk);
    p->rk = NULL;
}

/* An idempotent producer that lost its place cannot go on; a new one can, and what was under way is tried again. */
static void mend_client(rt_producer *p) {
    if (p->broken) {
        p->broken = false;
        close_client(p);
        p->reopen_at_ms = rt_mono_ms();
    }
    if (p->rk != NULL || rt_mono_ms() < p->reopen_at_ms) return;
    rt_err why;
    if (open_client(p, &why) == RT_OK) return;
    (void)snprintf(p->down_text, sizeof p->down_text, "%s", why.msg);
    p->reopen_at_ms = rt_mono_ms() + REOPEN_MS;
}

/* ---- the loop ------------------------------------------------------------------------------------------ */

static int sleep_ms(const rt_producer *p) {
    const rt_heap_node *first = rt_heap_first(&p->deadlines);
    int64_t until = p->stop_at_ms;
    if (first != NULL && first->at_ms < until) until = first->at_ms;
    if (until == NEVER) return SLEEP_MS_MAX;
    const int64_t wait = until - rt_mono_ms();
    return wait <= 0 ? 0 : wait < SLEEP_MS_MAX ? (int)wait : SLEEP_MS_MAX;
}

static void wait_for_news(rt_producer *p) {
    struct pollfd fds[] = {{.fd = rt_ring_fd(p->inbox), .events = POLLIN}, {.fd = p->fd, .events = POLLIN}};
    int wait = sleep_ms(p);
    if (!rt_ring_sleep(p->inbox)) wait = 0;
    if (poll(fds, 2, wait) <= 0) return;
    uint64_t count;
    if (fds[0].revents != 0) rt_ring_woken(p->inbox);
    if (fds[1].revents != 0) (void)!read(p->fd, &count, sizeof count);
}

static bool at_end(const rt_producer *p) {
    if (p->stop_at_ms == NEVER) return false;
    return rt_heap_first(&p->deadlines) == NULL || p->stop_at_ms <= rt_mono_ms();
}

static void *run(void *ctx) {
    rt_producer *p = ctx;
    while (!at_end(p)) {
        wait_for_news(p);
        take_inbox(p);
        if (p->rk != NULL) (void)rd_kafka_poll(p->rk, 0);
        mend_client(p);
        expire(p);
    }
    return NULL;
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

static void start_attempt(void *ctx, rt_attempt *attempt) {
    rt_producer *p = ctx;
    const bool taken = rt_ring_push(p->inbox, attempt, 0);
    RT_ASSERT(taken); // the engine's bound is the ring's
}

rt_executor rt_producer_executor(rt_producer *producer) {
    return (rt_executor){.ctx = producer, .start = start_attempt};
}

rt_code rt_producer_open(const rt_producer_config *cfg, rt_producer **out, rt_err *err) {
    RT_ASSERT(cfg->attempts_max >= 1);
    rt_producer *p = calloc(1, sizeof *p);
    if (p == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "Kafka producer");
    p->cfg = *cfg;
    p->stop_at_ms = NEVER;
    p->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    rt_code code = p->fd < 0 ? rt_fail(err, RT_E_IO, errno, "eventfd") : RT_OK;
    if (code == RT_OK) code = rt_ring_open((size_t)cfg->attempts_max + 1, SIZE_MAX, &p->inbox, err);
    if (code == RT_OK) code = open_client(p, err);
    if (code == RT_OK) {
        const int bad = pthread_create(&p->thread, NULL, run, p);
        p->running = bad == 0;
        if (bad != 0) code = rt_fail(err, RT_E_IO, bad, "Kafka producer's thread: %s", strerror(bad));
    }
    if (code != RT_OK) {
        rt_producer_close(p);
        return code;
    }
    *out = p;
    return RT_OK;
}

static void nobody_listens(void *ctx, const rt_outcome *outcome) {
    (void)ctx;
    (void)outcome;
}

void rt_producer_close(rt_producer *producer) {
    rt_producer *p = producer;
    if (p == NULL) return;
    if (p->running) {
        const bool taken = rt_ring_push(p->inbox, p, 0);
        RT_ASSERT(taken);
        pthread_join(p->thread, NULL);
    }
    p->cfg.outcome = nobody_listens;
    close_client(p);
    while (p->sends != NULL) drop(p, p->sends);
    rt_heap_deinit(&p->deadlines);
    rt_ring_close(p->inbox);
    if (p->fd >= 0) (void)close(p->fd);
    free(p);
}
