#include "store/lmdb_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/disk.h"

bool lmdb_dir_make(lmdb_dir *dir) {
    (void)snprintf(dir->path, sizeof dir->path, "/tmp/retryd-store-XXXXXX");
    if (mkdtemp(dir->path) == NULL) return false;
    dir->config.dir = dir->path;
    // The default would not fit beside ThreadSanitizer's shadow memory.
    if (dir->config.map_bytes == 0) dir->config.map_bytes = 1 << 30;
    dir->config.retention = (rt_retention){.age_ms = INT64_MAX, .events = UINT64_MAX};
    return true;
}

void lmdb_dir_remove(const lmdb_dir *dir) {
    static const char *const FILES[] = {"data.mdb", "lock.mdb", "owner.lock"};
    char path[96];
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir->path, FILES[i]);
        (void)unlink(path);
    }
    (void)rmdir(dir->path);
}

static rt_code create(void *ctx, rt_retention retention, rt_store **out, rt_err *err) {
    lmdb_dir *dir = ctx;
    if (!lmdb_dir_make(dir)) return rt_fail(err, RT_E_IO, errno, "mkdtemp");
    dir->config.retention = retention;
    const rt_code code = rt_store_lmdb_open(&dir->config, out, err);
    if (code != RT_OK) lmdb_dir_remove(dir);
    return code;
}

static rt_code reopen(void *ctx, rt_store **s, rt_err *err) {
    const lmdb_dir *dir = ctx;
    rt_store_close(*s);
    *s = NULL;
    return rt_store_lmdb_open(&dir->config, s, err);
}

static void destroy(void *ctx, rt_store *s) {
    disk_heal();
    rt_store_close(s);
    lmdb_dir_remove(ctx);
}

static void fail_next_commit(void *ctx, rt_store *s) {
    (void)ctx;
    (void)s;
    disk_fail(DISK_FAULT_WRITE, EIO, 0, 1);
}

static lmdb_dir default_dir;

const store_factory LMDB_FACTORY = {
    .name = "lmdb",
    .ctx = &default_dir,
    .create = create,
    .reopen = reopen,
    .destroy = destroy,
    .fail_next_commit = fail_next_commit,
};
