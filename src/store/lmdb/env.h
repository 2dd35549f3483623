/* env.h: the directory, its lock, LMDB's environment and the trees in it. */
#ifndef RT_STORE_LMDB_ENV_H
#define RT_STORE_LMDB_ENV_H
#include <lmdb.h>

#include "store/lmdb/store_lmdb.h"
#include "store/lmdb/stored.h"

/* Keyed by one number: JOBS, BODIES, QUEUES, LEASES (id), EVENTS (seq), READY, USERS (body), COUNTS (queue),
 * DELTAS (commit). The others have the keys of keys.h. */
typedef enum rt_tree {
    RT_TREE_JOBS,
    RT_TREE_BODIES,
    RT_TREE_USERS,  /* body -> number of jobs that share it, where that is not 1 */
    RT_TREE_QUEUES,
    RT_TREE_LEASES,
    RT_TREE_EVENTS,
    RT_TREE_READY,
    RT_TREE_COUNTS, /* queue -> its counters as of the last fold */
    RT_TREE_DELTAS, /* what each commit since then changed in them */
    RT_TREE_NUMBERED_COUNT,
    RT_TREE_DUE = RT_TREE_NUMBERED_COUNT,
    RT_TREE_FREE, /* -> the job's key_hash, so that an echo is passed over without reading the job */
    RT_TREE_ALL,
    RT_TREE_DEAD,
    RT_TREE_EXPIRY,
    RT_TREE_DOCS,
    RT_TREE_COUNT
} rt_tree;

typedef struct rt_lmdb_env {
    char *dir;
    uint64_t map_bytes, disk_reserve_bytes;
    bool no_sync;
    int dir_fd, lock_fd; /* -1: not open */
    MDB_env *mdb;        /* NULL: not open */
    MDB_dbi meta;        /* LMDB's unnamed tree; rt_stored_meta beside the list of named trees */
    MDB_dbi trees[RT_TREE_COUNT];
    uint64_t last[RT_TREE_NUMBERED_COUNT]; /* no key in the tree is larger: a larger one is new, and appended */
    uint32_t page_bytes;
    int64_t looked_ms; /* when rt_lmdb_env_room last looked at the disk and at readers; monotonic; 0: never */
    bool disk_low;
} rt_lmdb_env;

/* Opens or makes the directory. *meta: what the store says about itself (all new: made at random).
 * On error *env is as rt_lmdb_env_close leaves it. */
RT_MUST_USE rt_code rt_lmdb_env_open(rt_lmdb_env *env, const rt_store_lmdb_config *cfg, rt_stored_meta *meta,
                                     rt_err *err);
/* Closes LMDB and opens it again, when an error left its state in doubt. The lock stays held. No transaction
 * may be open. On error env->mdb is NULL: try again later. */
RT_MUST_USE rt_code rt_lmdb_env_refresh(rt_lmdb_env *env, rt_err *err);
void rt_lmdb_env_close(rt_lmdb_env *env);

/* Is there room for changes that take more than they give back? RT_E_FULL: no. `txn` is the open batch's. */
RT_MUST_USE rt_code rt_lmdb_env_room(rt_lmdb_env *env, MDB_txn *txn, rt_err *err);

int rt_lmdb_write_meta(const rt_lmdb_env *env, MDB_txn *txn, const rt_stored_meta *meta);

static inline rt_str rt_lmdb_str(const MDB_val *v) { return (rt_str){.ptr = v->mv_data, .len = v->mv_size}; }
/* LMDB takes non-const pointers to what it only reads. */
static inline MDB_val rt_lmdb_val(const void *bytes, size_t len) {
    return (MDB_val){.mv_size = len, .mv_data = (void *)(uintptr_t)bytes};
}

/* What an error of LMDB's means to us. */
rt_code rt_lmdb_code(int rc);
rt_code rt_lmdb_fail(rt_err *err, int rc, const char *what);

#endif
