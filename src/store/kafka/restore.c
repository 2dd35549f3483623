#include "store/kafka/restore.h"

#include <stdlib.h>

#include "os/clock.h"
#include "store/kafka/lines/rows.h"
#include "store/kafka/words.h"

enum { POLL_MS = 200, ASK_MS = 10000, STALL_MS = 90000, ROWS_A_COMMIT = 2000 };

typedef struct restoring {
    rt_ks *store;
    rd_kafka_t *rk;
    int64_t *at, *end; /* per partition: read to; to be read to */
    uint64_t rows;     /* that have come */
    uint32_t unsaved;
    bool has_cut;
    rt_ledger ledger;  /* of the last cut */
    int64_t until_ms;
} restoring;

/* ---- records ------------------------------------------------------------------------------------------- */

static uint64_t users_of(const rd_kafka_message_t *m) {
    rd_kafka_headers_t *headers;
    const void *text;
    size_t len;
    int64_t users;
    if (rd_kafka_message_headers(m, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return 1;
    if (rd_kafka_header_get_last(headers, "rtd-users", &text, &len) != RD_KAFKA_RESP_ERR_NO_ERROR) return 1;
    return rt_str_to_i64((rt_str){.ptr = text, .len = len}, &users) && users > 0 ? (uint64_t)users : 1;
}

static rt_code take_row(restoring *r, const rd_kafka_message_t *m, rt_err *err) {
    const rt_str key = {.ptr = m->key, .len = m->key_len};
    const rt_str value = {.ptr = m->payload, .len = m->len};
    rt_dirty_key row;
    r->rows++;
    if (rt_str_eq(key, RT_ROW_CUT)) {
        r->has_cut = rt_ledger_decode(value, &r->ledger);
        return r->has_cut ? RT_OK : rt_fail(err, RT_E_CORRUPT, 0, "a cut in the retry topic cannot be read");
    }
    if (!rt_row_read_key(key, &row)) return RT_OK; // somebody else's
    const rt_code code =
        rt_row_put(r->store->copy.local, &row, m->payload != NULL ? &value : NULL, users_of(m), err);
    if (code != RT_OK || ++r->unsaved < ROWS_A_COMMIT) return code;
    r->unsaved = 0;
    return rt_copy_save(&r->store->copy, err);
}

static rt_code take(restoring *r, rd_kafka_message_t *m, rt_err *err) {
    const bool known = m->partition >= 0 && (uint32_t)m->partition < r->store->partitions;
    if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        if (known && m->offset > r->at[m->partition]) r->at[m->partition] = m->offset;
        return RT_OK;
    }
    if (m->err != RD_KAFKA_RESP_ERR_NO_ERROR || !known) return RT_OK; // until it takes too long
    if (m->offset + 1 > r->at[m->partition]) r->at[m->partition] = m->offset + 1;
    r->until_ms = rt_mono_ms() + STALL_MS;
    return take_row(r, m, err);
}

/* ---- reading all of it --------------------------------------------------------------------------------- */

static rt_code assign(restoring *r, rt_err *err) {
    const rt_ks *s = r->store;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)s->partitions);
    for (uint32_t p = 0; p < s->partitions; p++)
        rd_kafka_topic_partition_list_add(list, s->retry_topic, (int32_t)p)->offset =
            RD_KAFKA_OFFSET_BEGINNING;
    const rd_kafka_resp_err_t error = rd_kafka_assign(r->rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return RT_OK;
    return rt_fail(err, RT_E_UNAVAILABLE, 0, "Kafka: %s: %s", s->retry_topic, rd_kafka_err2str(error));
}

static rt_code ask_ends(restoring *r, rt_err *err) {
    const rt_ks *s = r->store;
    for (uint32_t p = 0; p < s->partitions; p++) {
        int64_t low;
        // By the journal's client, which also sees what is not committed yet.
        const rd_kafka_resp_err_t error = rd_kafka_query_watermark_offsets(
            s->journal.writer, s->retry_topic, (int32_t)p, &low, &r->end[p], ASK_MS);
        if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
            return rt_fail(err, RT_E_UNAVAILABLE, 0, "Kafka: %s: %s", s->retry_topic,
                           rd_kafka_err2str(error));
    }
    return RT_OK;
}

static bool is_at_ends(const restoring *r) {
    for (uint32_t p = 0; p < r->store->partitions; p++) {
        if (r->at[p] < r->end[p]) return false;
    }
    return true;
}

/* Up to where each partition ends as this begins. */
static rt_code read_round(restoring *r, rt_err *err) {
    rt_code code = ask_ends(r, err);
    while (code == RT_OK && !is_at_ends(r)) {
        if (rt_mono_ms() > r->until_ms)
            return rt_fail(err, RT_E_UNAVAILABLE, 0, "Kafka: %s cannot be read to its end",
                           r->store->retry_topic);
        rd_kafka_message_t *m = rd_kafka_consumer_poll(r->rk, POLL_MS);
        if (m == NULL && !rt_ks_still_waits(r->store, r->store->retry_topic, err)) return RT_E_UNAVAILABLE;
        if (m == NULL) continue;
        rt_ks_came(r->store);
        code = take(r, m, err);
        rd_kafka_message_destroy(m);
    }
    return code;
}

static rt_code read_all(restoring *r, rt_err *err) {
    rt_code code = assign(r, err);
    uint64_t before = UINT64_MAX;
    while (code == RT_OK && before != r->rows) {
        before = r->rows;
        code = read_round(r, err);
    }
    if (code == RT_OK && !r->has_cut)
        code = rt_fail(err, RT_E_ABSENT, 0, "Kafka: there is nothing in %s to begin from",
                       r->store->retry_topic);
    if (code == RT_OK && rt_store_batch(r->store->copy.local, err) == NULL) code = RT_E_UNAVAILABLE;
    return code == RT_OK ? rt_copy_commit(&r->store->copy, &r->ledger, err) : code;
}

static rt_code open_client(restoring *r, rt_err *err) {
    rd_kafka_conf_t *conf;
    const rt_kafka_property own[] = {
        {"group.id", r->store->retry_topic, false}, // not joined: partitions are assigned by hand
        {"enable.auto.commit", "false", false},
        {"enable.partition.eof", "true", false},
        {"isolation.level", "read_committed", false},
        {"auto.offset.reset", "earliest", false},
    };
    const rt_code code = rt_kafka_conf(&r->store->kafka, own, sizeof own / sizeof *own, &conf, err);
    if (code != RT_OK) return code;
    return rt_kafka_new(RD_KAFKA_CONSUMER, conf, &r->rk, err);
}

rt_code rt_ks_restore(rt_ks *s, rt_err *err) {
    restoring r = {.store = s, .until_ms = rt_mono_ms() + STALL_MS};
    rt_ks_came(s);
    r.at = calloc(s->partitions, sizeof *r.at);
    r.end = calloc(s->partitions, sizeof *r.end);
    rt_code code = r.at != NULL && r.end != NULL ? RT_OK : rt_fail(err, RT_E_NOMEM, 0, "restoring");
    if (code == RT_OK) code = open_client(&r, err);
    if (code == RT_OK) code = read_all(&r, err);
    if (r.rk != NULL) {
        (void)rd_kafka_assign(r.rk, NULL);
        (void)rd_kafka_consumer_close(r.rk);
        rd_kafka_destroy(r.rk);
    }
    rt_store_abandon(s->copy.local);
    free(r.at);
    free(r.end);
    return code;
}
