/* Whatever bytes stand in a store: reading a record or a key either refuses them or gives what writes back as the very
 * same bytes. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/lmdb/keys.h"
#include "store/lmdb/stored.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ID = 77 };

/* The input's ID, so that a job's record can be one that was stored under it. */
static rt_id id_in(rt_str value) {
    rt_id id = ID;
    if (value.len >= 1 + sizeof id) memcpy(&id, value.ptr + 1, sizeof id);
    return id;
}

/* Reserved bytes are written as zero, so a record is compared with itself after one round. */
#define ROUND(kind, read_again, record)                                                         \
    do {                                                                                        \
        const size_t bytes_ = rt_stored_##kind##_bytes(&(record));                              \
        unsigned char *out_ = malloc(bytes_);                                                   \
        if (out_ == NULL) abort();                                                              \
        rt_stored_write_##kind(out_, &(record));                                                \
        const rt_str again_ = {.ptr = (const char *)out_, .len = bytes_};                       \
        RT_ASSERT(bytes_ == value.len);                                                         \
        RT_ASSERT(read_again(again_));                                                          \
        free(out_);                                                                             \
    } while (0)

static bool reads_as_queue(rt_str value) {
    rt_queue queue;
    return rt_stored_read_queue(ID, value, &queue);
}

static bool reads_as_lease(rt_str value) {
    rt_lease lease;
    return rt_stored_read_lease(ID, value, &lease);
}

static bool reads_as_doc(rt_str value) {
    rt_doc doc;
    return rt_stored_read_doc(RT_DOC_SETTING, RT_STR("n"), value, &doc);
}

static bool reads_as_event(rt_str value) {
    rt_event event;
    return rt_stored_read_event(ID, value, &event);
}

static void read_records(rt_str value) {
    rt_job job;
    rt_queue queue;
    rt_lease lease;
    rt_doc doc;
    rt_event event;
    rt_str body;
    rt_counts counts;
    rt_stored_meta meta;
    if (rt_stored_read_job(id_in(value), value, &job)) {
        unsigned char out[RT_STORED_JOB_BYTES];
        rt_stored_write_job(out, &job);
        RT_ASSERT(value.len == sizeof out);
        RT_ASSERT(memcmp(out, value.ptr, sizeof out) == 0);
        RT_ASSERT(rt_job_state_name((rt_job_state)job.state) != NULL);
        RT_ASSERT(rt_reason_name((rt_reason)job.reason) != NULL);
    }
    if (rt_stored_read_queue(ID, value, &queue)) ROUND(queue, reads_as_queue, queue);
    if (rt_stored_read_lease(ID, value, &lease)) ROUND(lease, reads_as_lease, lease);
    if (rt_stored_read_doc(RT_DOC_SETTING, RT_STR("n"), value, &doc)) ROUND(doc, reads_as_doc, doc);
    if (rt_stored_read_event(ID, value, &event)) ROUND(event, reads_as_event, event);
    if (rt_stored_read_body(value, &body)) RT_ASSERT(rt_stored_body_bytes(body) == value.len);
    if (rt_stored_read_counts(value, &counts)) {
        unsigned char out[RT_STORED_COUNTS_BYTES];
        rt_stored_write_counts(out, &counts);
        RT_ASSERT(memcmp(out, value.ptr, sizeof out) == 0);
    }
    if (rt_stored_read_meta(value, &meta)) RT_ASSERT(meta.format == RT_STORED_FORMAT);
}

static void read_deltas(rt_str value) {
    size_t count;
    if (!rt_stored_deltas_count(value, &count)) return;
    RT_ASSERT(rt_stored_deltas_bytes(count) == value.len);
    unsigned char *out = calloc(1, value.len);
    if (out == NULL) abort();
    out[0] = RT_STORED_FORMAT;
    for (size_t i = 0; i < count; i++) {
        const rt_stored_delta delta = rt_stored_delta_at(value, i);
        rt_stored_write_delta(out, i, &delta);
    }
    RT_ASSERT(memcmp(out, value.ptr, value.len) == 0);
    free(out);
}

static void read_expiry(rt_str key) {
    rt_expiry expiry;
    if (!rt_key_read_expiry(key, &expiry)) return;
    rt_long_key doc_key;
    rt_long_key out;
    if (expiry.kind == RT_EXPIRY_DOC) {
        rt_key_doc(&doc_key, expiry.doc_kind, expiry.doc_name);
        rt_key_expiry_doc(&out, expiry.at_ms, (rt_str){.ptr = (const char *)doc_key.bytes, .len = doc_key.len});
    } else {
        rt_key_expiry_id(&out, expiry.at_ms, expiry.kind, expiry.id);
    }
    RT_ASSERT(out.len == key.len);
    RT_ASSERT(memcmp(out.bytes, key.ptr, key.len) == 0);
}

static void read_keys(rt_str key) {
    rt_id queue;
    rt_id id;
    int64_t due_ms;
    rt_doc_kind kind;
    rt_str name;
    rt_key out;
    rt_long_key doc_key;
    if (rt_key_read_place(key, &queue, &id)) {
        rt_key_place(&out, queue, id);
        RT_ASSERT(memcmp(out.bytes, key.ptr, key.len) == 0);
    }
    if (rt_key_read_due(key, &queue, &due_ms, &id)) {
        rt_key_due(&out, queue, due_ms, id);
        RT_ASSERT(memcmp(out.bytes, key.ptr, key.len) == 0);
    }
    if (rt_key_read_doc(key, &kind, &name)) {
        rt_key_doc(&doc_key, kind, name);
        RT_ASSERT(doc_key.len == key.len);
        RT_ASSERT(memcmp(doc_key.bytes, key.ptr, key.len) == 0);
    }
    read_expiry(key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const rt_str bytes = {.ptr = (const char *)data, .len = size};
    read_records(bytes);
    read_deltas(bytes);
    read_keys(bytes);
    return 0;
}
