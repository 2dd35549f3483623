/* walk.h: over all records of a store, in an order that is the same in every store; it can be left and gone on with.
 *
 * Bodies, queues, leases, jobs and events by id or number, then documents by kind and name. */
#ifndef RT_STORE_COPY_WALK_H
#define RT_STORE_COPY_WALK_H
#include "port/store.h"

enum { RT_WALK_RECORDS_MAX = 4096, RT_WALK_BYTES = 4 << 20 }; /* of one step; the last record may go beyond the bytes */

typedef enum rt_walk_part {
    RT_WALK_BODIES,
    RT_WALK_QUEUES,
    RT_WALK_LEASES,
    RT_WALK_JOBS,
    RT_WALK_EVENTS,
    RT_WALK_DOCS,
    RT_WALK_END
} rt_walk_part;

/* Where a walk stands. All zero: before the first record. */
typedef struct rt_walk {
    rt_walk_part part;
    rt_doc_kind kind;   /* of documents; RT_DOC_NONE: before the first kind */
    uint64_t after;     /* id or number of the last record of the part; 0: none yet */
    size_t name_len;    /* … the same for documents; 0: none of this kind yet */
    char name[RT_DOC_NAME_MAX];
} rt_walk;

/* What is not told: how far a copy into this store has come (copy.h). */
#define RT_WALK_NOTE_KIND RT_DOC_SETTING
#define RT_WALK_NOTE_NAME RT_STR("retryd.copy")

/* `record` is written as an insert, and lent for the call. False: stop behind it. */
typedef bool rt_walk_each(void *ctx, const rt_op *record);

/* Tells the records behind *at, as many as one step may, and moves *at. At the end at->part is RT_WALK_END. The view that it
 * reads from is closed when it returns. RT_E_INVALID: this store cannot be copied. */
RT_MUST_USE rt_code rt_walk_step(rt_walk *at, rt_store *store, rt_walk_each *each, void *ctx, rt_err *err);

#endif
