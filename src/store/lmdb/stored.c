#include "store/lmdb/stored.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are copied as they are");

/* The fixed parts. Declared so that they have no padding. */
typedef struct stored_queue {
    uint64_t owner, version;
    int64_t paused_until_ms;
    uint32_t in_flight_max;
    uint8_t kind, gone;
    uint8_t braked; /* 1: its brakes follow */
    uint8_t spare;
} stored_queue;
_Static_assert(sizeof(stored_queue) == 32, "no padding");

typedef struct stored_lease {
    uint64_t queue, version;
    int64_t from_ms, until_ms;
    uint32_t ttl_s, grace_s, jobs_count, spare;
} stored_lease;
_Static_assert(sizeof(stored_lease) == 48, "no padding");

typedef struct stored_doc {
    uint64_t version;
    int64_t expires_ms;
} stored_doc;
_Static_assert(sizeof(stored_doc) == 16, "no padding");

typedef struct stored_event {
    uint64_t prev, job, queue;
    int64_t at_ms;
    uint32_t attempt, took_ms, delay_ms;
    uint16_t status;
    uint8_t type, reason;
} stored_event;
_Static_assert(sizeof(stored_event) == 48, "no padding");

static unsigned char *put(unsigned char *out, const void *from, size_t bytes) {
    if (bytes > 0) memcpy(out, from, bytes);
    return out + bytes;
}

static unsigned char *put_fixed(unsigned char *out, const void *fixed, size_t bytes) {
    *out = RT_STORED_FORMAT;
    return put(out + 1, fixed, bytes);
}

/* Takes the first bytes off *value. */
static bool take(rt_str *value, void *into, size_t bytes) {
    if (value->len < bytes) return false;
    if (bytes > 0) memcpy(into, value->ptr, bytes);
    *value = (rt_str){.ptr = value->ptr + bytes, .len = value->len - bytes};
    return true;
}

/* Takes the format byte and the fixed part off *value. */
static bool take_fixed(rt_str *value, void *fixed, size_t bytes) {
    uint8_t format;
    return take(value, &format, 1) && format == RT_STORED_FORMAT && take(value, fixed, bytes);
}

/* ---- job ----------------------------------------------------------------------------------------------- */

void rt_stored_write_job(unsigned char *out, const rt_job *job) { put_fixed(out, job, sizeof *job); }

bool rt_stored_read_job(rt_id id, rt_str value, rt_job *out) {
    rt_job job;
    if (!take_fixed(&value, &job, sizeof job) || value.len != 0) return false;
    if (job.id != id || job.version == 0) return false;
    if (job.state == RT_JOB_NONE || job.state >= RT_JOB_STATE_COUNT) return false;
    if (job.reason >= RT_REASON_COUNT) return false;
    *out = job;
    return true;
}

/* ---- queue --------------------------------------------------------------------------------------------- */

static bool is_braked(const rt_brakes *b) {
    static const rt_brakes NONE;
    return memcmp(b, &NONE, sizeof NONE) != 0;
}

size_t rt_stored_queue_bytes(const rt_queue *queue) {
    return 1 + sizeof(stored_queue) + (is_braked(&queue->brakes) ? sizeof queue->brakes : 0) + queue->name.len;
}

void rt_stored_write_queue(unsigned char *out, const rt_queue *queue) {
    const stored_queue fixed = {
        .owner = queue->owner,
        .version = queue->version,
        .paused_until_ms = queue->paused_until_ms,
        .in_flight_max = queue->in_flight_max,
        .kind = queue->kind,
        .gone = queue->gone,
        .braked = is_braked(&queue->brakes),
    };
    unsigned char *at = put_fixed(out, &fixed, sizeof fixed);
    if (fixed.braked) at = put(at, &queue->brakes, sizeof queue->brakes);
    put(at, queue->name.ptr, queue->name.len);
}

bool rt_stored_read_queue(rt_id id, rt_str value, rt_queue *out) {
    stored_queue fixed;
    rt_brakes brakes = {0};
    if (!take_fixed(&value, &fixed, sizeof fixed)) return false;
    if (fixed.braked && !take(&value, &brakes, sizeof brakes)) return false;
    if (fixed.braked != is_braked(&brakes)) return false;
    if (fixed.version == 0 || fixed.gone > 1 || value.len > RT_QUEUE_NAME_MAX) return false;
    if (fixed.kind < RT_QUEUE_MESSAGES || fixed.kind > RT_QUEUE_CALLS) return false;
    *out = (rt_queue){
        .id = id,
        .owner = fixed.owner,
        .version = fixed.version,
        .paused_until_ms = fixed.paused_until_ms,
        .in_flight_max = fixed.in_flight_max,
        .kind = fixed.kind,
        .gone = fixed.gone,
        .brakes = brakes,
        .name = value,
    };
    return true;
}

/* ---- lease --------------------------------------------------------------------------------------------- */

size_t rt_stored_lease_bytes(const rt_lease *lease) {
    return 1 + sizeof(stored_lease) + lease->jobs_count * sizeof lease->jobs[0];
}

void rt_stored_write_lease(unsigned char *out, const rt_lease *lease) {
    const stored_lease fixed = {
        .queue = lease->queue,
        .version = lease->version,
        .from_ms = lease->from_ms,
        .until_ms = lease->until_ms,
        .ttl_s = lease->ttl_s,
        .grace_s = lease->grace_s,
        .jobs_count = lease->jobs_count,
    };
    put(put_fixed(out, &fixed, sizeof fixed), lease->jobs, lease->jobs_count * sizeof lease->jobs[0]);
}

bool rt_stored_read_lease(rt_id id, rt_str value, rt_lease *out) {
    stored_lease fixed;
    if (!take_fixed(&value, &fixed, sizeof fixed)) return false;
    if (fixed.version == 0 || fixed.jobs_count > RT_LEASE_JOBS_MAX) return false;
    if (value.len != fixed.jobs_count * sizeof out->jobs[0]) return false;
    *out = (rt_lease){
        .id = id,
        .queue = fixed.queue,
        .version = fixed.version,
        .from_ms = fixed.from_ms,
        .until_ms = fixed.until_ms,
        .ttl_s = fixed.ttl_s,
        .grace_s = fixed.grace_s,
        .jobs_count = fixed.jobs_count,
    };
    if (value.len > 0) memcpy(out->jobs, value.ptr, value.len);
    return true;
}

/* ---- document ------------------------------------------------------------------------------------------ */

size_t rt_stored_doc_bytes(const rt_doc *doc) { return 1 + sizeof(stored_doc) + doc->value.len; }

void rt_stored_write_doc(unsigned char *out, const rt_doc *doc) {
    const stored_doc fixed = {.version = doc->version, .expires_ms = doc->expires_ms};
    put(put_fixed(out, &fixed, sizeof fixed), doc->value.ptr, doc->value.len);
}

bool rt_stored_read_doc(rt_doc_kind kind, rt_str name, rt_str value, rt_doc *out) {
    stored_doc fixed;
    if (!take_fixed(&value, &fixed, sizeof fixed)) return false;
    if (fixed.version == 0 || value.len > RT_DOC_VALUE_MAX) return false;
    *out = (rt_doc){
        .kind = kind,
        .name = name,
        .version = fixed.version,
        .expires_ms = fixed.expires_ms,
        .value = value,
    };
    return true;
}

/* ---- event --------------------------------------------------------------------------------------------- */

static size_t text_len(const rt_event *event) {
    return event->text.len < RT_EVENT_TEXT_MAX ? event->text.len : RT_EVENT_TEXT_MAX;
}

size_t rt_stored_event_bytes(const rt_event *event) { return 1 + sizeof(stored_event) + text_len(event); }

void rt_stored_write_event(unsigned char *out, const rt_event *event) {
    const stored_event fixed = {
        .prev = event->prev,
        .job = event->job,
        .queue = event->queue,
        .at_ms = event->at_ms,
        .attempt = event->attempt,
        .took_ms = event->took_ms,
        .delay_ms = event->delay_ms,
        .status = event->status,
        .type = event->type,
        .reason = event->reason,
    };
    put(put_fixed(out, &fixed, sizeof fixed), event->text.ptr, text_len(event));
}

bool rt_stored_read_event(uint64_t seq, rt_str value, rt_event *out) {
    stored_event fixed;
    if (!take_fixed(&value, &fixed, sizeof fixed)) return false;
    if (fixed.type >= RT_EVENT_TYPE_COUNT || fixed.reason >= RT_REASON_COUNT) return false;
    if (value.len > RT_EVENT_TEXT_MAX) return false;
    *out = (rt_event){
        .seq = seq,
        .prev = fixed.prev,
        .job = fixed.job,
        .queue = fixed.queue,
        .at_ms = fixed.at_ms,
        .attempt = fixed.attempt,
        .took_ms = fixed.took_ms,
        .delay_ms = fixed.delay_ms,
        .status = fixed.status,
        .type = fixed.type,
        .reason = fixed.reason,
        .text = value,
    };
    return true;
}

/* ---- body ---------------------------------------------------------------------------------------------- */

size_t rt_stored_body_bytes(rt_str body) { return 1 + body.len; }

void rt_stored_write_body(unsigned char *out, rt_str body) {
    put(put_fixed(out, NULL, 0), body.ptr, body.len);
}

bool rt_stored_read_body(rt_str value, rt_str *out) {
    if (!take_fixed(&value, NULL, 0)) return false;
    *out = value;
    return true;
}

/* ---- counters ------------------------------------------------------------------------------------------ */

_Static_assert(sizeof(rt_counts) == 56, "seven numbers, stored as is");

void rt_stored_write_counts(unsigned char *out, const rt_counts *counts) {
    put_fixed(out, counts, sizeof *counts);
}

bool rt_stored_read_counts(rt_str value, rt_counts *out) {
    return value.len == RT_STORED_COUNTS_BYTES && take_fixed(&value, out, sizeof *out);
}

size_t rt_stored_deltas_bytes(size_t count) { return 1 + count * sizeof(rt_stored_delta); }

void rt_stored_write_delta(unsigned char *out, size_t index, const rt_stored_delta *delta) {
    *out = RT_STORED_FORMAT;
    put(out + rt_stored_deltas_bytes(index), delta, sizeof *delta);
}

bool rt_stored_deltas_count(rt_str value, size_t *out) {
    if (!take_fixed(&value, NULL, 0) || value.len % sizeof(rt_stored_delta) != 0) return false;
    *out = value.len / sizeof(rt_stored_delta);
    return true;
}

rt_stored_delta rt_stored_delta_at(rt_str value, size_t index) {
    RT_ASSERT(rt_stored_deltas_bytes(index + 1) <= value.len);
    rt_stored_delta delta;
    memcpy(&delta, value.ptr + rt_stored_deltas_bytes(index), sizeof delta);
    return delta;
}

/* ---- meta ---------------------------------------------------------------------------------------------- */

bool rt_stored_read_meta(rt_str value, rt_stored_meta *out) {
    *out = (rt_stored_meta){0};
    if (value.len >= sizeof out->format) memcpy(&out->format, value.ptr, sizeof out->format);
    if (out->format != RT_STORED_FORMAT || value.len != sizeof *out) return false;
    memcpy(out, value.ptr, sizeof *out);
    return true;
}
