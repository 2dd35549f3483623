/* inside.h: what the files of this folder share: the store, its open batch, its views. */
#ifndef RT_STORE_LMDB_INSIDE_H
#define RT_STORE_LMDB_INSIDE_H
#include <pthread.h>

#include "base/arena.h"
#include "base/map.h"
#include "store/lmdb/counters.h"
#include "store/lmdb/env.h"
#include "store/lmdb/keys.h"

typedef struct rt_lmdb rt_lmdb;

/* A read transaction, or the open batch. Its cursors are opened when first used and serve for single lookups;
 * a walk has a cursor of its own, so that its callback may look things up. */
typedef struct rt_lmdb_view {
    rt_view base; /* first, so that a rt_view * is one of these */
    rt_lmdb *store;
    MDB_txn *txn; /* batch: NULL while none is open. View: kept for reuse when closed */
    MDB_cursor *cursors[RT_TREE_COUNT];
    uint32_t bound; /* bit per tree: its cursor belongs to the transaction as it is now */
    bool is_batch, is_open;
} rt_lmdb_view;
_Static_assert(RT_TREE_COUNT <= 32, "a bit per tree");

/* Views are lent from a fixed set; everything here is guarded by `mutex`. */
typedef struct rt_lmdb_views {
    pthread_mutex_t mutex;
    pthread_cond_t all_closed;
    uint32_t open_count;
    bool refused; /* while the environment is being opened afresh, or could not be */
    rt_lmdb_view slots[RT_LMDB_VIEWS_MAX];
} rt_lmdb_views;

/* What a change does to the users of one body. */
typedef struct rt_body_use {
    rt_id body;
    int64_t delta;
    const rt_str *made; /* the bytes, if the change brings it; lent from the change */
} rt_body_use;
enum { RT_BODY_USES_MAX = 2 * RT_CHANGE_OPS_MAX };

struct rt_lmdb {
    rt_store base; /* first */
    rt_lmdb_env env;
    rt_retention retention;
    rt_stored_meta meta;   /* as stored … */
    rt_stored_meta meta_of_batch; /* … and as the ending batch stores it */
    uint64_t next_id, next_seq;
    rt_lmdb_view batch;
    bool dirty;            /* the open batch has written */
    bool broken;           /* … and cannot be committed any more: `why` */
    rt_err why;
    bool importing;        /* the change that is applied is an import */
    bool adopts;           /* the open batch imports, and `tag` comes with it */
    uint32_t tag;
    bool unsure;           /* a commit broke the environment: its end is known once that is open again */
    size_t unsure_txn;     /* LMDB's number of that transaction */
    bool ended;            /* a batch's end waits for rt_store_poll */
    uint64_t ended_no;
    rt_batch_end end;
    rt_counters counters;
    rt_arena scratch;      /* of one apply */
    rt_map use_of_body;    /* body -> rt_body_use, of one apply */
    rt_body_use *uses;
    uint32_t uses_count;
    rt_lmdb_views views;
    rt_lmdb_dropped *dropped; /* NULL: nobody wants to know what trimming takes away */
    void *dropped_ctx;
};

/* ---- lookup.c ------------------------------------------------------------------------------------------- */
/* The cursor of a tree, to be positioned. */
RT_MUST_USE int rt_lmdb_cursor(rt_lmdb_view *v, rt_tree tree, MDB_cursor **out);
/* The value under a number, lent; MDB_NOTFOUND. */
RT_MUST_USE int rt_lmdb_find(rt_lmdb_view *v, rt_tree tree, uint64_t number, rt_str *value);
RT_MUST_USE int rt_lmdb_find_job(rt_lmdb_view *v, rt_id id, rt_job *out); /* MDB_CORRUPTED: unreadable */

extern const rt_view_ops rt_lmdb_view_ops;
/* The listings of rt_view_ops (listing.c). */
rt_code rt_lmdb_list_jobs(rt_view *v, const rt_job_range *range, rt_each_job *each, void *ctx);
rt_code rt_lmdb_list_docs(rt_view *v, rt_doc_kind kind, rt_str prefix, rt_str after, rt_each_doc *each,
                          void *ctx);
rt_code rt_lmdb_list_queues(rt_view *v, rt_id after, rt_each_queue *each, void *ctx);
rt_code rt_lmdb_list_events(rt_view *v, uint64_t after_seq, rt_each_event *each, void *ctx);
rt_code rt_lmdb_list_expiries(rt_view *v, int64_t until_ms, rt_each_expiry *each, void *ctx);
rt_code rt_lmdb_list_leases(rt_view *v, rt_id after, rt_each_lease *each, void *ctx);
rt_code rt_lmdb_list_bodies(rt_view *v, rt_id after, rt_each_body *each, void *ctx);
rt_code rt_lmdb_list_wakes(rt_view *v, rt_id after_queue, rt_each_wake *each, void *ctx);

RT_MUST_USE rt_code rt_lmdb_views_init(rt_lmdb *s, rt_err *err);
void rt_lmdb_views_deinit(rt_lmdb *s);
RT_MUST_USE rt_code rt_lmdb_view_open(rt_lmdb *s, rt_view **out, rt_err *err);
/* Refuses new views, waits up to `wait_ms` for the open ones and lets go of LMDB. False: some are still
 * open. */
RT_MUST_USE bool rt_lmdb_views_release(rt_lmdb *s, uint32_t wait_ms);
void rt_lmdb_views_allow(rt_lmdb *s);

/* One write to a tree of the open batch. Inserts under a new number; MDB_RESERVE in `flags`: the caller fills *value. */
RT_MUST_USE int rt_lmdb_insert(rt_lmdb *s, rt_tree tree, uint64_t number, MDB_val *value, unsigned flags);
RT_MUST_USE int rt_lmdb_put_at(rt_lmdb *s, rt_tree tree, MDB_val key, MDB_val value);
/* What is to go must be there. */
RT_MUST_USE int rt_lmdb_remove(rt_lmdb *s, rt_tree tree, uint64_t number);
RT_MUST_USE int rt_lmdb_remove_at(rt_lmdb *s, rt_tree tree, MDB_val key);

/* Of the open batch (apply.c, job.c, tidy.c). A failing write leaves the batch broken. */
RT_MUST_USE rt_code rt_lmdb_apply(rt_lmdb *s, const rt_change *change, rt_err *err);
void rt_lmdb_break(rt_lmdb *s, int rc, const char *what);
/* State record, indexes and counters of one job; not its body. */
RT_MUST_USE int rt_lmdb_write_job(rt_lmdb *s, const rt_job *was, const rt_job *now);
bool rt_lmdb_tidy(rt_lmdb *s, int64_t now_ms, uint32_t ops_max);

#endif
