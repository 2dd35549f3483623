/* counters.h: how many jobs of each state a queue has, exact in every view and cheap to keep.
 *
 * Rewriting a counter record per queue and commit costs a page each (with 100,000 queues more than half of
 * the throughput). So a commit writes one record with what it changed, and once there are enough of those
 * they are folded into the counter records, in key order, which touches each page once. A reader adds the few
 * that are not folded yet; the writer has their sum in memory. */
#ifndef RT_STORE_LMDB_COUNTERS_H
#define RT_STORE_LMDB_COUNTERS_H
#include "base/arena.h"
#include "base/map.h"
#include "store/lmdb/env.h"

typedef struct rt_counter {
    rt_id queue;                    /* 0: all together */
    rt_counts since;                /* durable, not folded yet */
    rt_counts batch;                /* of the open batch */
    struct rt_counter *next;        /* all of them, newest first */
    struct rt_counter *next_touched;/* those that the open batch changed */
    bool touched;
} rt_counter;

typedef struct rt_counters {
    rt_arena arena;
    rt_map by_queue;
    rt_counter *all, *touched;
    size_t all_count, touched_count;
    size_t unfolded;                /* entries in the delta records, durable ones */
    uint64_t next_commit;           /* key of the next delta record */
    bool folded;                    /* the open batch has folded: once it is durable nothing is pending */
} rt_counters;

/* Reads what is not folded yet. Starts from an all-zero *c. */
RT_MUST_USE int rt_counters_load(rt_counters *c, const rt_lmdb_env *env, MDB_txn *txn);
void rt_counters_deinit(rt_counters *c);

/* Takes `was` off and adds `now` (NULL: none). ENOMEM or 0. */
RT_MUST_USE int rt_counters_change(rt_counters *c, const rt_job *was, const rt_job *now);
/* Writes what the batch changed, folding when it is time. */
RT_MUST_USE int rt_counters_write(rt_counters *c, const rt_lmdb_env *env, MDB_txn *txn);
/* The batch is durable, or will never be. */
void rt_counters_settle(rt_counters *c, bool durable);

/* For the open batch: with what it changed. For any other view: from the trees alone. */
RT_MUST_USE rt_code rt_counters_read_batch(const rt_counters *c, const rt_lmdb_env *env, MDB_txn *txn,
                                           rt_id queue, rt_counts *out);
RT_MUST_USE rt_code rt_counters_read(const rt_lmdb_env *env, MDB_txn *txn, rt_id queue, rt_counts *out);

#endif
