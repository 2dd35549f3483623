/* entry.h: what one line of the journal says, and its bytes. Pure.
 *
 * The journal is the order in which everything happened; each node takes it in, line by line, and comes to
 * the same records. A line is one record of Kafka, or several if it is large: it counts where its last one
 * stands.
 *
 *   record   u8 format, u8 kind, u64 node, u32 epoch, u64 no, i64 at_ms, u32 part, u32 parts, then its
 *            part of the payload:
 *   BIRTH    u32 tag                           the first one names the store; later ones say nothing
 *   JOIN     -                                 the node has its slot, which none of the next 255 to join has
 *   BATCH    u64 counter, i64 cut, then items  what one node decided; refused whole if it rests on what is no
 *                                              longer so. counter: of the last number that the node gave out;
 *                                              cut: everything before that offset is in the retry topic
 *   FENCE    -                                 what this node wrote under a lower epoch, and comes later,
 *                                              does not count
 *
 *   item     u8 'C', u32 guards, u32 ops, then those     a change
 *            u8 'I', u32 tag, u64 ids_from, u64 seqs_from, u32 ops, then those     a change with an import
 *            u8 'T', i64 now_ms, u32 ops_max, i64 age_ms, u64 events, str dropped     history is trimmed;
 *            dropped says what goes, for each a u8 (1: a job, 0: an event) and its u64
 *   guard    u8 kind, str name, u64 version
 *   op       u8 kind, u8 flags (1: there was one, 2: there is one now), then
 *            job, queue, lease: u64 id, u64 version of the one before, str the one now (store/lmdb/stored.h);
 *            of a job that was there before its body stands in between, as u64
 *            document: u8 kind, str name, u64 version of the one before, str the one now
 *            body: u64 id, of an import u64 users, str bytes; event: u64 seq, str
 * Numbers are little endian; str is a u32 length and the bytes. */
#ifndef RT_STORE_KAFKA_LINES_ENTRY_H
#define RT_STORE_KAFKA_LINES_ENTRY_H
#include "base/arena.h"
#include "base/pack.h"
#include "port/store.h"

enum {
    RT_ENTRY_FORMAT = 1,
    RT_ENTRY_HEAD_BYTES = 1 + 1 + 8 + 4 + 8 + 8 + 4 + 4,
    RT_ENTRY_PART_BYTES = 900 << 10, /* of payload in one record: brokers take 1 MB unless told otherwise */
    RT_ENTRY_BYTES_MAX = 128 << 20   /* of a whole payload */
};

typedef enum rt_entry_kind {
    RT_ENTRY_BIRTH = 1,
    RT_ENTRY_JOIN,
    RT_ENTRY_BATCH,
    RT_ENTRY_FENCE,
    RT_ENTRY_KIND_END
} rt_entry_kind;

typedef struct rt_entry_head {
    uint8_t kind;   /* rt_entry_kind */
    uint64_t node;  /* who wrote it: random, new with each start */
    uint32_t epoch; /* of that node; see FENCE */
    uint64_t no;    /* of the line, rising within the node */
    int64_t at_ms;  /* by the node's clock */
    uint32_t part, parts; /* part < parts */
} rt_entry_head;

void rt_entry_write_head(rt_buf *out, const rt_entry_head *head);
/* Takes the head off *record. False: this is no record of ours. */
RT_MUST_USE bool rt_entry_read_head(rt_str *record, rt_entry_head *out);

/* ---- writing a batch ----------------------------------------------------------------------------------- */

/* Out of memory shows in `out->failed`. */
void rt_entry_add_change(rt_buf *out, const rt_change *change);
enum { RT_ENTRY_DROPPED_BYTES = 1 + 8 };
void rt_entry_add_dropped(rt_buf *dropped, bool is_job, uint64_t key);
bool rt_entry_next_dropped(rt_unpack *u, bool *is_job, uint64_t *key); /* false: there is no other */
void rt_entry_add_tidy(rt_buf *out, const rt_retention *bounds, int64_t now_ms, uint32_t ops_max,
                       rt_str dropped);

/* ---- reading one --------------------------------------------------------------------------------------- */

typedef struct rt_entry_item {
    bool is_tidy;
    uint32_t guards, ops; /* a change's … */
    bool imports;
    rt_import import;
    rt_retention bounds;  /* the trimming's … */
    int64_t now_ms;
    uint32_t ops_max;
    rt_str dropped;
} rt_entry_item;

/* One op as it was written; `was` is known by its version only. Strings are lent from what is read. */
typedef struct rt_entry_op {
    rt_op_kind kind;
    bool was, now;
    uint64_t key, was_version; /* key: id or seq */
    rt_id was_body;            /* of a job */
    rt_doc_kind doc_kind;
    rt_str name;               /* document */
    union {                    /* as it is now */
        rt_job job;
        rt_queue queue;
        rt_lease lease;
        rt_doc doc;
        rt_event event;
        struct {
            rt_str bytes;
            uint64_t users; /* of an import only */
        } body;
    };
} rt_entry_op;

/* False: there is no further item, or it cannot be read: then u->failed is set. */
bool rt_entry_next(rt_unpack *u, rt_entry_item *out);
/* Exactly as many of these follow as the item says. False: not ours. */
RT_MUST_USE bool rt_entry_read_guard(rt_unpack *u, rt_guard *out);
RT_MUST_USE bool rt_entry_read_op(rt_unpack *u, const rt_entry_item *item, rt_entry_op *out);

#endif
