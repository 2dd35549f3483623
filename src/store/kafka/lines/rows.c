#include "store/kafka/lines/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "store/lmdb/store_lmdb.h"
#include "store/lmdb/stored.h"

static const char *const NAMES[] = {
    [RT_OP_JOB] = "job",   [RT_OP_QUEUE] = "queue", [RT_OP_LEASE] = "lease",
    [RT_OP_DOC] = "doc",   [RT_OP_BODY] = "body",   [RT_OP_EVENT] = "event",
};
enum { KINDS = sizeof NAMES / sizeof *NAMES };

/* ---- keys ---------------------------------------------------------------------------------------------- */

void rt_row_write_key(rt_buf *out, const rt_dirty_key *key) {
    if (key->kind != RT_OP_DOC) {
        rt_buf_addf(out, "%s/%016" PRIx64, NAMES[key->kind], key->key);
        return;
    }
    rt_buf_addf(out, "%s/%d/", NAMES[key->kind], (int)key->doc_kind);
    rt_buf_add(out, key->name);
}

bool rt_row_read_key(rt_str text, rt_dirty_key *out) {
    rt_str kind, rest, number;
    int64_t doc_kind;
    if (!rt_str_cut(text, '/', &kind, &rest)) return false;
    *out = (rt_dirty_key){.name = RT_STR_EMPTY};
    int at = 0;
    while (at < KINDS && !rt_str_eq(kind, rt_str_of(NAMES[at]))) at++;
    if (at == KINDS) return false;
    out->kind = (rt_op_kind)at;
    if (out->kind != RT_OP_DOC) return rt_hex_read_u64(rest, &out->key) && out->key != 0;
    if (!rt_str_cut(rest, '/', &number, &out->name) || !rt_str_to_i64(number, &doc_kind)) return false;
    if (doc_kind <= RT_DOC_NONE || doc_kind >= RT_DOC_KIND_COUNT) return false;
    out->doc_kind = (rt_doc_kind)doc_kind;
    return out->name.len >= 1 && out->name.len <= RT_DOC_NAME_MAX;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static unsigned char *room(rt_buf *out, size_t bytes) {
    const size_t at = out->len;
    for (size_t i = 0; i < bytes; i++) rt_buf_add_char(out, 0);
    return out->failed ? NULL : (unsigned char *)out->ptr + at;
}

#define STORE(bytes, write) \
    do { \
        unsigned char *to = room(out, (bytes)); \
        if (to == NULL) return RT_E_NOMEM; \
        write; \
    } while (0)

typedef struct body_read {
    rt_id id;
    rt_buf *out;
    uint64_t users;
} body_read;

static bool take_body(void *ctx, rt_id id, rt_str bytes, uint64_t users) {
    body_read *b = ctx;
    if (id != b->id) return false;
    rt_buf_add(b->out, bytes);
    b->users = users;
    return false;
}

static rt_code read_body(rt_view *view, rt_id id, rt_buf *out, uint64_t *users) {
    body_read b = {.id = id, .out = out};
    const rt_code code = rt_view_bodies(view, id - 1, take_body, &b);
    *users = b.users;
    if (code != RT_OK) return code;
    return b.users > 0 ? RT_OK : RT_E_ABSENT;
}

static rt_code read_job(rt_view *view, rt_id id, rt_buf *out, rt_row *row) {
    const rt_code code = rt_view_job(view, id, &row->job);
    if (code != RT_OK) return code;
    if (rt_view_queue(view, row->job.queue, &row->queue) != RT_OK) row->queue.name = RT_STR_EMPTY;
    STORE(RT_STORED_JOB_BYTES, rt_stored_write_job(to, &row->job));
    return RT_OK;
}

static rt_code read_value(rt_view *view, const rt_dirty_key *key, rt_buf *out, rt_row *row) {
    rt_lease lease;
    rt_doc doc;
    rt_code code = RT_E_ABSENT;
    switch (key->kind) {
    case RT_OP_JOB: return read_job(view, key->key, out, row);
    case RT_OP_BODY: return read_body(view, key->key, out, &row->users);
    case RT_OP_QUEUE:
        code = rt_view_queue(view, key->key, &row->queue);
        if (code == RT_OK) STORE(rt_stored_queue_bytes(&row->queue), rt_stored_write_queue(to, &row->queue));
        return code;
    case RT_OP_LEASE:
        code = rt_view_lease(view, key->key, &lease);
        if (code == RT_OK) STORE(rt_stored_lease_bytes(&lease), rt_stored_write_lease(to, &lease));
        return code;
    case RT_OP_DOC:
        code = rt_view_doc(view, key->doc_kind, key->name, &doc);
        if (code == RT_OK) STORE(rt_stored_doc_bytes(&doc), rt_stored_write_doc(to, &doc));
        return code;
    case RT_OP_EVENT:
        code = rt_view_event(view, key->key, &row->event);
        if (code == RT_OK) STORE(rt_stored_event_bytes(&row->event), rt_stored_write_event(to, &row->event));
        return code;
    }
    return code;
}

/* Always the same one, whether or not the record is still there: a job's is not that of its queue, which a
 * deleted one does not tell any more. */
static uint32_t partition_of(const rt_dirty_key *key, uint32_t partitions) {
    return (uint32_t)((rt_hash_u64(key->key) ^ rt_hash_str(key->name)) % partitions);
}

rt_code rt_row_read(rt_view *view, const rt_dirty_key *key, uint32_t partitions, rt_buf *out, rt_row *row) {
    *row = (rt_row){.partition = partition_of(key, partitions)};
    const rt_code code = read_value(view, key, out, row);
    row->there = code == RT_OK;
    return code == RT_E_ABSENT ? RT_OK : code;
}

/* ---- putting ------------------------------------------------------------------------------------------- */

static const rt_import IMPORT = {.tag = 1, .ids_from = 1, .seqs_from = 1};

static rt_code apply(rt_store *local, const rt_op *op, rt_err *err) {
    const rt_change change = {.ops = op, .ops_count = 1, .import = &IMPORT, .frees = true};
    return rt_store_apply(local, &change, err);
}

#define PUT(type, member, op_kind, found, parse) \
    do { \
        type was, now; \
        if ((found) == RT_OK) { \
            const rt_op gone = {.kind = (op_kind), .member = {.was = &was}}; \
            const rt_code code = apply(local, &gone, err); \
            if (code != RT_OK) return code; \
        } \
        if (value == NULL) return RT_OK; \
        if (!(parse)) \
            return rt_fail(err, RT_E_CORRUPT, 0, "a " #member " in the retry topic cannot be read"); \
        const rt_op put = {.kind = (op_kind), .member = {.now = &now}}; \
        return apply(local, &put, err); \
    } while (0)

rt_code rt_row_put(rt_store *local, const rt_dirty_key *key, const rt_str *value, uint64_t users,
                   rt_err *err) {
    rt_view *view = rt_store_batch(local, err);
    if (view == NULL) return RT_E_UNAVAILABLE;
    switch (key->kind) {
    case RT_OP_JOB:
        PUT(rt_job, job, RT_OP_JOB, rt_view_job(view, key->key, &was),
            rt_stored_read_job(key->key, *value, &now));
    case RT_OP_QUEUE:
        PUT(rt_queue, queue, RT_OP_QUEUE, rt_view_queue(view, key->key, &was),
            rt_stored_read_queue(key->key, *value, &now));
    case RT_OP_LEASE:
        PUT(rt_lease, lease, RT_OP_LEASE, rt_view_lease(view, key->key, &was),
            rt_stored_read_lease(key->key, *value, &now));
    case RT_OP_DOC:
        PUT(rt_doc, doc, RT_OP_DOC, rt_view_doc(view, key->doc_kind, key->name, &was),
            rt_stored_read_doc(key->doc_kind, key->name, *value, &now));
    case RT_OP_BODY:
        return rt_store_lmdb_put_body(local, key->key, value != NULL ? *value : RT_STR_EMPTY,
                                      value != NULL ? users : 0, err);
    case RT_OP_EVENT: return rt_store_lmdb_put_event(local, key->key, value, err);
    }
    return RT_OK;
}

/* ---- headers ------------------------------------------------------------------------------------------- */

static bool add(rd_kafka_headers_t *headers, const char *name, rt_str value) {
    return rd_kafka_header_add(headers, name, -1, value.ptr, (ssize_t)value.len) ==
           RD_KAFKA_RESP_ERR_NO_ERROR;
}

static bool add_number(rd_kafka_headers_t *headers, const char *name, int64_t value) {
    char text[24];
    const int len = snprintf(text, sizeof text, "%" PRId64, value);
    return add(headers, name, (rt_str){.ptr = text, .len = (size_t)len});
}

static bool add_job(rd_kafka_headers_t *headers, const rt_row *row, uint32_t tag) {
    const rt_job *job = &row->job;
    const rt_id_text id = rt_id_format(tag, job->id);
    const bool dead = job->state == RT_JOB_DEAD;
    return add(headers, "rtd-id", rt_str_of(id.s)) && add(headers, "rtd-type", row->queue.name) &&
           add_number(headers, "rtd-attempt", job->attempt) &&
           add(headers, "rtd-state", rt_str_of(rt_job_state_name((rt_job_state)job->state))) &&
           add_number(headers, "rtd-due", job->due_ms) &&
           (!dead || add(headers, "rtd-reason", rt_str_of(rt_reason_name((rt_reason)job->reason))));
}

rd_kafka_headers_t *rt_row_headers(const rt_dirty_key *key, const rt_row *row, uint32_t tag) {
    if (!row->there || (key->kind != RT_OP_JOB && key->kind != RT_OP_BODY)) return NULL;
    rd_kafka_headers_t *headers = rd_kafka_headers_new(8);
    const bool good = key->kind == RT_OP_JOB ? add_job(headers, row, tag)
                                             : add_number(headers, "rtd-users", (int64_t)row->users);
    if (good) return headers;
    rd_kafka_headers_destroy(headers);
    return NULL;
}
