/* stored.h: what the values in the trees look like: a format byte, a fixed part, then the bytes of its string
 * if any.
 *
 * All numbers are little endian. Reading survives any bytes: false means that we cannot have written them.
 * Pure functions; strings that are read are lent from `value`. */
#ifndef RT_STORE_LMDB_STORED_H
#define RT_STORE_LMDB_STORED_H
#include "port/store.h"

/* How many bytes each will take, and the writing of exactly so many to `out`. Limits were checked before. */
enum { RT_STORED_JOB_BYTES = 1 + sizeof(rt_job), RT_STORED_COUNTS_BYTES = 1 + sizeof(rt_counts) };
size_t rt_stored_queue_bytes(const rt_queue *queue);
size_t rt_stored_lease_bytes(const rt_lease *lease);
size_t rt_stored_doc_bytes(const rt_doc *doc);
size_t rt_stored_event_bytes(const rt_event *event); /* text beyond RT_EVENT_TEXT_MAX is cut */
size_t rt_stored_body_bytes(rt_str body);

void rt_stored_write_job(unsigned char *out, const rt_job *job);
void rt_stored_write_queue(unsigned char *out, const rt_queue *queue);
void rt_stored_write_lease(unsigned char *out, const rt_lease *lease);
void rt_stored_write_doc(unsigned char *out, const rt_doc *doc);
void rt_stored_write_event(unsigned char *out, const rt_event *event);
void rt_stored_write_body(unsigned char *out, rt_str body);
void rt_stored_write_counts(unsigned char *out, const rt_counts *counts);

/* The id, kind and name come from the key. */
RT_MUST_USE bool rt_stored_read_job(rt_id id, rt_str value, rt_job *out);
RT_MUST_USE bool rt_stored_read_queue(rt_id id, rt_str value, rt_queue *out);
RT_MUST_USE bool rt_stored_read_lease(rt_id id, rt_str value, rt_lease *out);
RT_MUST_USE bool rt_stored_read_doc(rt_doc_kind kind, rt_str name, rt_str value, rt_doc *out);
RT_MUST_USE bool rt_stored_read_event(uint64_t seq, rt_str value, rt_event *out);
RT_MUST_USE bool rt_stored_read_body(rt_str value, rt_str *out);
RT_MUST_USE bool rt_stored_read_counts(rt_str value, rt_counts *out);

/* One queue's share of what a commit changed in the counters. */
typedef struct rt_stored_delta {
    rt_id queue; /* 0: all queues together */
    int32_t ready, scheduled, free, leased, dead, done;
    int64_t bytes;
} rt_stored_delta;
_Static_assert(sizeof(rt_stored_delta) == 40, "stored as is");

size_t rt_stored_deltas_bytes(size_t count);
/* `out`: the whole value. */
void rt_stored_write_delta(unsigned char *out, size_t index, const rt_stored_delta *delta);
/* How many there are. False: these are no deltas. */
RT_MUST_USE bool rt_stored_deltas_count(rt_str value, size_t *out);
rt_stored_delta rt_stored_delta_at(rt_str value, size_t index); /* index below the count */

/* What the store says about itself; one record. Not behind a format byte: it has the format of all the
 * others. */
typedef struct rt_stored_meta {
    uint32_t format;
    uint32_t tag;
    uint64_t id_limit;  /* ids and seqs below these may have been given out */
    uint64_t seq_limit;
} rt_stored_meta;
_Static_assert(sizeof(rt_stored_meta) == 24, "stored as is");
enum { RT_STORED_FORMAT = 1 };
/* False: too short, or not the format that this program writes; then out->format alone is set (0:
 * unreadable). */
RT_MUST_USE bool rt_stored_read_meta(rt_str value, rt_stored_meta *out);

#endif
