#include "store/kafka/archive.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quote.h"
#include "os/clock.h"
#include "store/kafka/lines/rows.h"
#include "store/kafka/words.h"
#include "store/lmdb/store_lmdb.h"

enum {
    LOOK_MS = 100,
    CUT_EVERY_MS = 1000,
    PAUSE_MS = 1000,     /* after something went wrong */
    INIT_MS = 5000,
    COMMIT_MS = 10000,
    CUTS_KEPT = 64,
    SAY_AFTER_MS = 10000, /* it has not worked for so long: what passes by itself needs no words … */
    SAY_AGAIN_MS = 60000
};

struct rt_archive {
    rt_ks *store;
    rd_kafka_t *rk;        /* NULL: not the one who writes, or not yet */
    int64_t least;         /* no cut before the copy is here: a former writer may have been */
    uint32_t tag;          /* the store's name as of the cut */
    int64_t look_at_ms;
    int64_t say_at_ms;     /* that it does not work; 0: it does */
    char why[RT_ERR_MSG_MAX];
    struct {
        int64_t cut, at_ms;
    } cuts[CUTS_KEPT];     /* oldest first, about evenly over kept_ms */
    uint32_t cuts_count;
    rt_map open_queues;    /* of the cut: their ids */
    rt_buf key, value;
    atomic_bool stop;
    bool running;
    pthread_t thread;
};

static void note_why(rt_archive *a, const char *why) { (void)snprintf(a->why, sizeof a->why, "%s", why); }

static void close_client(rt_archive *a) {
    if (a->rk != NULL) rd_kafka_destroy(a->rk); // what it has not committed is aborted by the next one
    a->rk = NULL;
}

/* True: an error, told and freed. Whatever it was, a new client knows what became of the transaction. */
static bool failed(rt_archive *a, rd_kafka_error_t *error) {
    if (error == NULL) return false;
    note_why(a, rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
    close_client(a);
    return true;
}

/* The journal grows, and a new node has more and more to read, for as long as nothing can be written. */
static void say_trouble(rt_archive *a, bool good) {
    const int64_t now = rt_mono_ms();
    if (good) a->say_at_ms = 0;
    else if (a->say_at_ms == 0) a->say_at_ms = now + SAY_AFTER_MS;
    if (good || now < a->say_at_ms) return;
    a->say_at_ms = now + SAY_AGAIN_MS;
    rt_ks_say(a->store, true, "%s cannot be written: %s", a->store->retry_topic, a->why);
}

/* Fences whoever wrote before. */
static bool begin_writing(rt_archive *a) {
    rt_ks *s = a->store;
    char id[RT_TOPIC_NAME_MAX + 1];
    int64_t low;
    rt_err err;
    rd_kafka_conf_t *conf;
    (void)snprintf(id, sizeof id, "%s", s->retry_topic);
    const rt_kafka_property own[] = {
        {"transactional.id", id, false},
        {"transaction.timeout.ms", "60000", false},
        {"message.timeout.ms", "60000", false}, // at most the transaction's
        {"linger.ms", "5", true},
    };
    if (rt_kafka_conf(&s->kafka, own, sizeof own / sizeof *own, &conf, &err) != RT_OK ||
        rt_kafka_new(RD_KAFKA_PRODUCER, conf, &a->rk, &err) != RT_OK) {
        note_why(a, err.msg);
        return false;
    }
    if (failed(a, rd_kafka_init_transactions(a->rk, INIT_MS))) return false;
    if (rd_kafka_query_watermark_offsets(a->rk, s->journal_topic, 0, &low, &a->least, INIT_MS) == 0)
        return true;
    close_client(a);
    return false;
}

/* ---- records ------------------------------------------------------------------------------------------- */

typedef struct letter {
    const char *topic;
    int32_t partition;
    rt_str key;
    const rt_str *value;         /* NULL: a tombstone */
    rd_kafka_headers_t *headers; /* taken; NULL: none */
} letter;

static bool produce(rt_archive *a, const letter *l) {
    const bool there = l->value != NULL;
    rd_kafka_vu_t what[6] = {
        {.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = l->topic},
        {.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = l->partition},
        {.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {.ptr = (void *)(uintptr_t)l->key.ptr, .size = l->key.len}},
        {.vtype = RD_KAFKA_VTYPE_VALUE,
         .u.mem = {.ptr = there ? (void *)(uintptr_t)l->value->ptr : NULL,
                   .size = there ? l->value->len : 0}},
        {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
    };
    size_t count = 5;
    if (l->headers != NULL)
        what[count++] = (rd_kafka_vu_t){.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = l->headers};
    for (;;) {
        rd_kafka_error_t *error = rd_kafka_produceva(a->rk, what, count);
        if (error == NULL) return true;
        const bool full = rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__QUEUE_FULL;
        if (!full) note_why(a, rd_kafka_error_string(error));
        rd_kafka_error_destroy(error);
        if (!full || atomic_load(&a->stop)) break;
        (void)rd_kafka_poll(a->rk, LOOK_MS);
    }
    if (l->headers != NULL) rd_kafka_headers_destroy(l->headers);
    return false;
}

/* One record an attempt, for whoever wants to know how calls went. */
static bool tell_attempt(rt_archive *a, const rt_row *row) {
    const rt_event *e = &row->event;
    if (e->attempt == 0) return true;
    const rt_id_text id = rt_id_format(a->tag, e->job);
    rt_buf json = {0};
    rt_buf_addf(&json,
                "{\"id\": \"%s-%u\", \"job\": \"%s\", \"seq\": %" PRIu64 ", \"at_ms\": %" PRId64
                ", \"attempt\": %u, \"type\": \"%s\", \"reason\": \"%s\", \"status\": %u, \"took_ms\": %u, "
                "\"delay_ms\": %u, \"text\": ",
                id.s, e->attempt, id.s, e->seq, e->at_ms, e->attempt,
                rt_event_type_name((rt_event_type)e->type), rt_reason_name((rt_reason)e->reason), e->status,
                e->took_ms, e->delay_ms);
    rt_quote(&json, e->text);
    rt_buf_add_char(&json, '}');
    const rt_str value = rt_buf_str(&json);
    const bool good = !json.failed && produce(a, &(letter){.topic = a->store->audit_topic,
                                                           .partition = RD_KAFKA_PARTITION_UA,
                                                           .key = rt_str_of(id.s),
                                                           .value = &value});
    rt_buf_deinit(&json);
    return good;
}

/* A dead call: its body, and what became of it. */
static bool tell_dead(rt_archive *a, rt_view *view, const rt_dirty_key *key, const rt_row *row) {
    rt_str body;
    if (!row->there || row->job.state != RT_JOB_DEAD || !(row->job.flags & RT_JOB_CALL)) return true;
    if (rt_view_body(view, row->job.body, &body) != RT_OK) body = RT_STR_EMPTY;
    const rt_id_text id = rt_id_format(a->tag, row->job.id);
    rd_kafka_headers_t *headers = rt_row_headers(key, row, a->tag);
    if (headers == NULL) return false;
    const char *reason = rt_reason_name((rt_reason)row->job.reason);
    (void)rd_kafka_header_add(headers, "kafka_dlt-exception-message", -1, reason, -1);
    (void)rd_kafka_header_add(headers, "kafka_dlt-original-topic", -1, a->store->retry_topic, -1);
    return produce(a, &(letter){.topic = a->store->dead_topic,
                                .partition = RD_KAFKA_PARTITION_UA,
                                .key = rt_str_of(id.s),
                                .value = &body,
                                .headers = headers});
}

static bool is_open(const rt_queue *queue) { return queue->brakes.opened_ms != 0 && !queue->gone; }

/* Queues whose circuit is open, as long as it is. */
static bool tell_circuit(rt_archive *a, rt_view *view, const rt_queue *queue) {
    const rt_brakes *b = &queue->brakes;
    rt_counts counts = {0};
    rt_buf json = {0};
    if (rt_view_counts(view, queue->id, &counts) != RT_OK) counts.scheduled = 0;
    rt_buf_addf(&json,
                "{\"opened_ms\": %" PRId64 ", \"until_ms\": %" PRId64
                ", \"forced\": %s, \"parked\": %" PRId64 "}",
                b->opened_ms, b->circuit_until_ms, b->forced ? "true" : "false",
                counts.scheduled + counts.ready + counts.free);
    const rt_str value = rt_buf_str(&json);
    const bool good = !json.failed && produce(a, &(letter){.topic = a->store->open_topic,
                                                           .partition = RD_KAFKA_PARTITION_UA,
                                                           .key = queue->name,
                                                           .value = is_open(queue) ? &value : NULL});
    rt_buf_deinit(&json);
    return good;
}

/* Those whose circuit is open are told at the cut's end: how many wait changes with each of their jobs. */
static bool note_circuit(rt_archive *a, rt_view *view, const rt_dirty_key *key, const rt_row *row) {
    if (!row->there || row->queue.kind != RT_QUEUE_CALLS) return true;
    if (is_open(&row->queue)) return rt_map_put(&a->open_queues, row->queue.id, a);
    return key->kind != RT_OP_QUEUE || tell_circuit(a, view, &row->queue);
}

static bool tell_circuits(rt_archive *a, rt_view *view) {
    bool good = true;
    for (size_t i = 0; i < a->open_queues.cap && good; i++) {
        rt_queue queue;
        const uint64_t id = a->open_queues.slots[i].key;
        good = id == 0 || (rt_view_queue(view, id, &queue) == RT_OK && tell_circuit(a, view, &queue));
    }
    return good;
}

static bool write_row(rt_archive *a, rt_view *view, const rt_dirty_key *key) {
    rt_row row;
    rt_buf_clear(&a->key);
    rt_buf_clear(&a->value);
    rt_row_write_key(&a->key, key);
    if (rt_row_read(view, key, a->store->partitions, &a->value, &row) != RT_OK || a->key.failed) return false;
    const rt_str value = rt_buf_str(&a->value);
    const letter l = {.topic = a->store->retry_topic,
                      .partition = (int32_t)row.partition,
                      .key = rt_buf_str(&a->key),
                      .value = row.there ? &value : NULL,
                      .headers = rt_row_headers(key, &row, a->tag)};
    if (!produce(a, &l)) return false;
    if (key->kind == RT_OP_EVENT) return !row.there || tell_attempt(a, &row);
    if (key->kind == RT_OP_JOB && !tell_dead(a, view, key, &row)) return false;
    return (key->kind != RT_OP_JOB && key->kind != RT_OP_QUEUE) || note_circuit(a, view, key, &row);
}

/* ---- cuts ---------------------------------------------------------------------------------------------- */

static bool write_rows(rt_archive *a, rt_view *view, const rt_dirty *dirty, rt_str note) {
    rt_map_deinit(&a->open_queues);
    for (const rt_dirty_key *key = dirty->first; key != NULL; key = key->next) {
        if (atomic_load(&a->stop) || !write_row(a, view, key)) return false;
    }
    if (!tell_circuits(a, view)) return false;
    const letter l = {.topic = a->store->retry_topic, .partition = 0, .key = RT_ROW_CUT, .value = &note};
    return produce(a, &l);
}

static void note_cut(rt_archive *a, int64_t cut) {
    const int64_t now = rt_mono_ms();
    atomic_store(&a->store->cut, cut);
    if (a->cuts_count > 0 && now - a->cuts[a->cuts_count - 1].at_ms < a->store->cfg.kept_ms / (CUTS_KEPT / 2))
        return;
    if (a->cuts_count == CUTS_KEPT) {
        a->cuts_count--;
        memmove(&a->cuts[0], &a->cuts[1], a->cuts_count * sizeof a->cuts[0]);
    }
    a->cuts[a->cuts_count].cut = cut;
    a->cuts[a->cuts_count++].at_ms = now;
}

/* What `view` shows, and what of it is to be written: both as of the same line. */
static rt_code look(rt_archive *a, rt_view **view, rt_dirty *dirty, rt_err *err) {
    rt_ks *s = a->store;
    (void)pthread_mutex_lock(&s->cut_lock);
    const rt_code code = rt_store_view(s->copy.local, view, err);
    if (code == RT_OK) rt_dirty_add_since(dirty, &s->dirty, atomic_load(&s->cut));
    (void)pthread_mutex_unlock(&s->cut_lock);
    return code;
}

/* False: something went wrong, and the client is closed. */
static bool cut(rt_archive *a) {
    rt_view *view;
    rt_dirty dirty = {0};
    rt_ledger ledger;
    rt_str note;
    rt_err err;
    if (look(a, &view, &dirty, &err) != RT_OK) return true;
    bool good = true;
    const bool readable = rt_store_lmdb_note(view, &note) == RT_OK && rt_ledger_decode(note, &ledger);
    if (readable) a->tag = ledger.tag;
    if (readable && dirty.count > 0 && !dirty.incomplete && ledger.position >= a->least) {
        good = !failed(a, rd_kafka_begin_transaction(a->rk));
        if (good && !write_rows(a, view, &dirty, note)) {
            close_client(a);
            good = false;
        }
        good = good && !failed(a, rd_kafka_commit_transaction(a->rk, COMMIT_MS));
        if (good) note_cut(a, ledger.position);
    }
    rt_view_close(view);
    rt_dirty_deinit(&dirty);
    return good;
}

/* Lines that have been in the retry topic for long enough go. */
static void trim(rt_archive *a) {
    const int64_t now = rt_mono_ms();
    int64_t to = -1;
    while (a->cuts_count > 0 && now - a->cuts[0].at_ms >= a->store->cfg.kept_ms) {
        to = a->cuts[0].cut;
        a->cuts_count--;
        memmove(&a->cuts[0], &a->cuts[1], a->cuts_count * sizeof a->cuts[0]);
    }
    if (to <= 0) return;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, a->store->journal_topic, 0)->offset = to;
    rd_kafka_DeleteRecords_t *request = rd_kafka_DeleteRecords_new(list);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(a->rk);
    rd_kafka_DeleteRecords(a->rk, &request, 1, NULL, queue);
    rd_kafka_event_t *answer = rd_kafka_queue_poll(queue, INIT_MS);
    if (answer != NULL) rd_kafka_event_destroy(answer); // if it did not work, a later one does
    rd_kafka_queue_destroy(queue);
    rd_kafka_DeleteRecords_destroy(request);
    rd_kafka_topic_partition_list_destroy(list);
}

/* ---- the thread ---------------------------------------------------------------------------------------- */

static bool has_work(rt_ks *s) {
    (void)pthread_mutex_lock(&s->cut_lock);
    const bool work = s->dirty.count > 0;
    (void)pthread_mutex_unlock(&s->cut_lock);
    return work;
}

static void step(rt_archive *a) {
    rt_ks *s = a->store;
    const bool ours = s->share == NULL || rt_share_has(s->share, 0);
    if (!ours) {
        close_client(a);
        a->cuts_count = 0;
        a->say_at_ms = 0;
        return;
    }
    const bool good = a->rk != NULL ? cut(a) : !has_work(s) || (begin_writing(a) && cut(a));
    if (good && a->rk != NULL) trim(a);
    say_trouble(a, good);
    a->look_at_ms = rt_mono_ms() + (good ? CUT_EVERY_MS : PAUSE_MS);
}

static void *run(void *ctx) {
    rt_archive *a = ctx;
    while (!atomic_load(&a->stop)) {
        if (rt_mono_ms() >= a->look_at_ms) step(a);
        if (a->rk != NULL) (void)rd_kafka_poll(a->rk, LOOK_MS);
        else (void)poll(NULL, 0, LOOK_MS);
    }
    return NULL;
}

rt_code rt_archive_open(rt_ks *s, rt_archive **out, rt_err *err) {
    rt_archive *a = calloc(1, sizeof *a);
    if (a == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "archive");
    a->store = s;
    const int bad = pthread_create(&a->thread, NULL, run, a);
    a->running = bad == 0;
    if (bad != 0) {
        rt_archive_close(a);
        return rt_fail(err, RT_E_IO, bad, "the archive's thread: %s", strerror(bad));
    }
    *out = a;
    return RT_OK;
}

void rt_archive_close(rt_archive *a) {
    if (a == NULL) return;
    atomic_store(&a->stop, true);
    if (a->running) (void)pthread_join(a->thread, NULL);
    close_client(a);
    rt_map_deinit(&a->open_queues);
    rt_buf_deinit(&a->key);
    rt_buf_deinit(&a->value);
    free(a);
}
