#include "store/lmdb/env.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "os/clock.h"
#include "store/lmdb/fault.h"

enum { READERS_MAX = RT_LMDB_VIEWS_MAX + 6 /* for backup tools */, LOOK_EVERY_MS = 1000 };

static const char META_KEY[] = "retryd";
static const char *const TREE_NAMES[RT_TREE_COUNT] = {
    [RT_TREE_JOBS] = "jobs",     [RT_TREE_BODIES] = "bodies", [RT_TREE_USERS] = "users",
    [RT_TREE_QUEUES] = "queues", [RT_TREE_LEASES] = "leases", [RT_TREE_EVENTS] = "events",
    [RT_TREE_READY] = "ready",   [RT_TREE_COUNTS] = "counts", [RT_TREE_DELTAS] = "deltas",
    [RT_TREE_DUE] = "due",       [RT_TREE_FREE] = "free",     [RT_TREE_ALL] = "all",
    [RT_TREE_DEAD] = "dead",     [RT_TREE_EXPIRY] = "expiry", [RT_TREE_DOCS] = "docs",
};

/* ---- errors -------------------------------------------------------------------------------------------- */

rt_code rt_lmdb_code(int rc) {
    switch (rc) {
    case MDB_SUCCESS: return RT_OK;
    case MDB_NOTFOUND: return RT_E_ABSENT;
    case MDB_KEYEXIST: return RT_E_EXISTS;
    case MDB_MAP_FULL:
    case MDB_TXN_FULL:
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return RT_E_FULL;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID: return RT_E_CORRUPT;
    case MDB_PANIC:
    case MDB_BAD_TXN:
    case MDB_READERS_FULL: return RT_E_UNAVAILABLE;
    case ENOMEM: return RT_E_NOMEM;
    default: return RT_E_IO;
    }
}

rt_code rt_lmdb_fail(rt_err *err, int rc, const char *what) {
    const rt_code code = rt_lmdb_code(rc);
    const int sys_errno = rc > 0 ? rc : 0;
    const char *hint = "";
    if (rc == MDB_MAP_FULL) hint = ": raise the store's map size";
    if (code == RT_E_FULL && rc > 0) hint = ": make room on the disk";
    if (code == RT_E_CORRUPT) hint = ": the data is damaged, or not retryd's; restore a backup";
    return rt_fail(err, code, sys_errno, "%s: %s%s", what, mdb_strerror(rc), hint);
}

/* ---- the directory ------------------------------------------------------------------------------------- */

/* An entry made in a directory is durable only once the directory is. */
static rt_code sync_parent(const rt_lmdb_env *env, rt_err *err) {
    const int parent = openat(env->dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0) return rt_fail(err, RT_E_IO, errno, "%s/..: %s", env->dir, strerror(errno));
    const int rc = fsync(parent) == 0 ? 0 : errno;
    (void)close(parent);
    return rc == 0 ? RT_OK : rt_fail(err, RT_E_IO, rc, "%s/..: %s", env->dir, strerror(rc));
}

static rt_code dir_fails(const rt_lmdb_env *env, const char *what, rt_err *err) {
    const int rc = errno;
    const char *hint = "";
    if (rc == EACCES || rc == EPERM) hint = "; whoever runs retryd must be allowed to write there";
    if (rc == ENOENT) hint = "; the folder that it shall be in is not there";
    return rt_fail(err, RT_E_IO, rc, "cannot %s the data folder %s: %s%s", what, env->dir, strerror(rc), hint);
}

static rt_code open_dir(rt_lmdb_env *env, rt_err *err) {
    const bool made = mkdir(env->dir, 0700) == 0;
    if (!made && errno != EEXIST) return dir_fails(env, "make", err);
    env->dir_fd = open(env->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (env->dir_fd < 0) return dir_fails(env, "open", err);
    return made ? sync_parent(env, err) : RT_OK;
}

/* LMDB itself would let a second process in, and two engines would then decide on the same jobs. */
static rt_code lock_dir(rt_lmdb_env *env, rt_err *err) {
    env->lock_fd = openat(env->dir_fd, "owner.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (env->lock_fd < 0) return dir_fails(env, "write to", err);
    if (flock(env->lock_fd, LOCK_EX | LOCK_NB) == 0) {
        // The number is for people who meet the lock; the lock itself is the kernel's, so failing here does
        // no harm.
        if (ftruncate(env->lock_fd, 0) == 0) (void)dprintf(env->lock_fd, "%ld\n", (long)getpid());
        return RT_OK;
    }
    const int rc = errno;
    if (rc != EWOULDBLOCK) return rt_fail(err, RT_E_IO, rc, "%s/owner.lock: %s", env->dir, strerror(rc));
    char owner[24] = {0};
    const ssize_t got = pread(env->lock_fd, owner, sizeof owner - 1, 0);
    owner[got > 0 ? strcspn(owner, "\n") : 0] = '\0';
    return rt_fail(err, RT_E_UNAVAILABLE, 0, "%s is in use by another retryd (process %s)", env->dir,
                   owner[0] != '\0' ? owner : "unknown");
}

/* ---- LMDB ---------------------------------------------------------------------------------------------- */

int rt_lmdb_write_meta(const rt_lmdb_env *env, MDB_txn *txn, const rt_stored_meta *meta) {
    MDB_val key = rt_lmdb_val(META_KEY, sizeof META_KEY - 1);
    MDB_val value = rt_lmdb_val(meta, sizeof *meta);
    return mdb_put(txn, env->meta, &key, &value, 0);
}

static rt_code make_meta(const rt_lmdb_env *env, MDB_txn *txn, rt_stored_meta *meta, rt_err *err) {
    MDB_stat stat;
    int rc = mdb_stat(txn, env->meta, &stat);
    if (rc != 0) return rt_lmdb_fail(err, rc, env->dir);
    if (stat.ms_entries != 0) {
        return rt_fail(err, RT_E_INVALID, 0, "%s holds an LMDB database that is not retryd's, or is damaged", env->dir);
    }
    *meta = (rt_stored_meta){.format = RT_STORED_FORMAT, .id_limit = 1, .seq_limit = 1};
    if (getrandom(&meta->tag, sizeof meta->tag, 0) != (ssize_t)sizeof meta->tag) {
        return rt_fail(err, RT_E_IO, errno, "getrandom: %s", strerror(errno));
    }
    rc = rt_lmdb_write_meta(env, txn, meta);
    return rc == 0 ? RT_OK : rt_lmdb_fail(err, rc, env->dir);
}

static rt_code read_meta(const rt_lmdb_env *env, MDB_txn *txn, rt_stored_meta *meta, rt_err *err) {
    MDB_val key = rt_lmdb_val(META_KEY, sizeof META_KEY - 1);
    MDB_val value;
    const int rc = mdb_get(txn, env->meta, &key, &value);
    if (rc == MDB_NOTFOUND) return make_meta(env, txn, meta, err);
    if (rc != 0) return rt_lmdb_fail(err, rc, env->dir);
    if (!rt_stored_read_meta(rt_lmdb_str(&value), meta)) {
        return rt_fail(err, RT_E_INVALID, 0, "%s has format %u; this retryd reads format %d only", env->dir,
                       meta->format, RT_STORED_FORMAT);
    }
    return RT_OK;
}

/* The largest key, or 0. */
static int last_number(MDB_txn *txn, MDB_dbi dbi, uint64_t *out) {
    MDB_cursor *cursor;
    int rc = mdb_cursor_open(txn, dbi, &cursor);
    if (rc != 0) return rc;
    MDB_val key;
    rc = mdb_cursor_get(cursor, &key, NULL, MDB_LAST);
    *out = 0;
    if (rc == 0 && key.mv_size == sizeof *out) memcpy(out, key.mv_data, sizeof *out);
    mdb_cursor_close(cursor);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

static rt_code open_trees(rt_lmdb_env *env, MDB_txn *txn, rt_stored_meta *meta, rt_err *err) {
    int rc = mdb_dbi_open(txn, NULL, 0, &env->meta);
    if (rc != 0) return rt_lmdb_fail(err, rc, env->dir);
    const rt_code code = read_meta(env, txn, meta, err);
    if (code != RT_OK) return code;
    for (int i = 0; i < RT_TREE_COUNT; i++) {
        const bool numbered = i < RT_TREE_NUMBERED_COUNT;
        rc = mdb_dbi_open(txn, TREE_NAMES[i], MDB_CREATE | (numbered ? MDB_INTEGERKEY : 0U), &env->trees[i]);
        if (rc == 0 && numbered) rc = last_number(txn, env->trees[i], &env->last[i]);
        if (rc != 0) return rt_lmdb_fail(err, rc, env->dir);
    }
    return RT_OK;
}

static rt_code open_mdb(rt_lmdb_env *env, rt_stored_meta *meta, rt_err *err) {
    int rc = mdb_env_create(&env->mdb);
    if (rc != 0) return rt_lmdb_fail(err, rc, env->dir);
    // Jobs are looked up in no order that the kernel could guess, so its read-ahead would only push out what
    // is in use.
    const unsigned flags = MDB_NOTLS | MDB_NORDAHEAD | (env->no_sync ? MDB_NOSYNC : 0U);
    rc = mdb_env_set_mapsize(env->mdb, env->map_bytes);
    if (rc == 0) rc = mdb_env_set_maxdbs(env->mdb, RT_TREE_COUNT);
    if (rc == 0) rc = mdb_env_set_maxreaders(env->mdb, READERS_MAX);
    if (rc == 0) rc = mdb_env_open(env->mdb, env->dir, flags, 0600);
    MDB_stat stat = {0};
    if (rc == 0) rc = mdb_env_stat(env->mdb, &stat);
    MDB_txn *txn = NULL;
    if (rc == 0) rc = mdb_txn_begin(env->mdb, NULL, 0, &txn);
    if (rc != 0) return rt_lmdb_fail(err, rc, env->dir);
    env->page_bytes = stat.ms_psize;
    const rt_code code = open_trees(env, txn, meta, err);
    if (code != RT_OK) {
        mdb_txn_abort(txn);
        return code;
    }
    rc = mdb_txn_commit(txn);
    return rc == 0 ? RT_OK : rt_lmdb_fail(err, rc, env->dir);
}

static void close_mdb(rt_lmdb_env *env) {
    if (env->mdb != NULL) mdb_env_close(env->mdb);
    env->mdb = NULL;
}

rt_code rt_lmdb_env_open(rt_lmdb_env *env, const rt_store_lmdb_config *cfg, rt_stored_meta *meta,
                         rt_err *err) {
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    *env = (rt_lmdb_env){
        .map_bytes = cfg->map_bytes != 0 ? cfg->map_bytes : RT_LMDB_MAP_BYTES_DEFAULT,
        .disk_reserve_bytes = cfg->disk_reserve_bytes,
        .no_sync = cfg->no_sync,
        .dir_fd = -1,
        .lock_fd = -1,
    };
    env->map_bytes -= env->map_bytes % page_bytes;
    env->dir = rt_str_dup(rt_str_of(cfg->dir));
    if (env->dir == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "store directory");
    rt_lmdb_fault_explain();
    rt_code code = open_dir(env, err);
    if (code == RT_OK) code = lock_dir(env, err);
    if (code == RT_OK) code = open_mdb(env, meta, err);
    if (code == RT_OK && fsync(env->dir_fd) != 0) {
        code = rt_fail(err, RT_E_IO, errno, "%s: %s", env->dir, strerror(errno));
    }
    if (code != RT_OK) rt_lmdb_env_close(env);
    return code;
}

rt_code rt_lmdb_env_refresh(rt_lmdb_env *env, rt_err *err) {
    close_mdb(env);
    rt_stored_meta meta;
    rt_code code = open_mdb(env, &meta, err);
    // The state that was found may be in the page cache only: fix it before anything is built on it.
    const int rc = code == RT_OK && !env->no_sync ? mdb_env_sync(env->mdb, 1) : 0;
    if (rc != 0) code = rt_lmdb_fail(err, rc, env->dir);
    if (code != RT_OK) close_mdb(env);
    return code;
}

void rt_lmdb_env_close(rt_lmdb_env *env) {
    close_mdb(env);
    if (env->lock_fd >= 0) (void)close(env->lock_fd);
    if (env->dir_fd >= 0) (void)close(env->dir_fd);
    free(env->dir);
    *env = (rt_lmdb_env){.dir_fd = -1, .lock_fd = -1};
}

/* ---- room ---------------------------------------------------------------------------------------------- */

/* What costs a system call is looked at once a second. */
static void look(rt_lmdb_env *env) {
    const int64_t now_ms = rt_mono_ms();
    if (env->looked_ms != 0 && now_ms - env->looked_ms < LOOK_EVERY_MS) return;
    env->looked_ms = now_ms;
    // A backup tool that was killed leaves a reader behind, for which pages would be kept until the next start.
    int dead_readers;
    (void)mdb_reader_check(env->mdb, &dead_readers);
    if (env->disk_reserve_bytes == 0) return;
    struct statvfs disk;
    if (fstatvfs(env->dir_fd, &disk) != 0) return;
    const uint64_t block_bytes = disk.f_frsize;
    env->disk_low = disk.f_bavail < env->disk_reserve_bytes / (block_bytes > 0 ? block_bytes : 1);
}

static uint64_t used_pages(const rt_lmdb_env *env, MDB_txn *txn) {
    enum { FREE_LIST = 0, META_PAGES = 2 };
    uint64_t pages = META_PAGES;
    for (int i = -2; i < RT_TREE_COUNT; i++) {
        const MDB_dbi dbi = i == -2 ? FREE_LIST : i == -1 ? env->meta : env->trees[i];
        MDB_stat stat;
        if (mdb_stat(txn, dbi, &stat) != 0) continue;
        pages += stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages;
    }
    return pages;
}

rt_code rt_lmdb_env_room(rt_lmdb_env *env, MDB_txn *txn, rt_err *err) {
    look(env);
    if (env->disk_low) {
        return rt_fail(err, RT_E_FULL, ENOSPC, "the disk of %s is nearly full: make room on it", env->dir);
    }
    const uint64_t pages_max = env->map_bytes / env->page_bytes * RT_LMDB_MAP_PERMILLE_MAX / 1000;
    // Pages are never given back to the file, so its end bounds what is used; the sum is needed only near the
    // limit.
    MDB_envinfo info;
    if (mdb_env_info(env->mdb, &info) == 0 && info.me_last_pgno < pages_max / 2) return RT_OK;
    if (used_pages(env, txn) < pages_max) return RT_OK;
    return rt_fail(err, RT_E_FULL, 0, "the store in %s is nearly full: raise its map size or remove jobs",
                   env->dir);
}
