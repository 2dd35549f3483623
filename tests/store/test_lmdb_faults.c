/* test_lmdb_faults.c: full map, full disk, failing disk, a directory that is taken or not ours. */
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/disk.h"
#include "store/kit.h"
#include "store/lmdb_dir.h"

enum { Q = 7, SMALL_MAP = 1 << 20, BODY = 3000 };

static lmdb_dir dir; /* of the running test */
static store_factory factory;

static int setup(void **state) {
    dir = (lmdb_dir){0};
    factory = LMDB_FACTORY;
    factory.ctx = &dir;
    *state = &factory;
    return kit_setup(state);
}

static int setup_small(void **state) {
    dir = (lmdb_dir){.config.map_bytes = SMALL_MAP};
    factory = LMDB_FACTORY;
    factory.ctx = &dir;
    *state = &factory;
    return kit_setup(state);
}

/* A job with a body of its own, through a change that may or may not use the reserve. */
static rt_code add(kit *k, bool frees, rt_job *out) {
    static char bytes[BODY];
    *out = kit_job(k, Q, RT_JOB_READY, 0);
    out->body = rt_store_new_id(k->store);
    out->body_bytes = BODY;
    const rt_op ops[] = {OP_BODY(out->body, ((rt_str){.ptr = bytes, .len = BODY})), OP_JOB(NULL, out)};
    const rt_change change = {.ops = ops, .ops_count = 2, .frees = frees};
    return rt_store_apply(k->store, &change, &k->err);
}

static rt_code drop(kit *k, const rt_job *job) {
    const rt_op op = OP_JOB(job, NULL);
    const rt_change change = {.ops = &op, .ops_count = 1, .frees = true};
    return rt_store_apply(k->store, &change, &k->err);
}

/* Adds jobs, one a commit, until one is refused. */
static size_t fill(kit *k, rt_job *jobs, size_t max) {
    size_t n = 0;
    while (n < max && add(k, false, &jobs[n]) == RT_OK) {
        kit_commit(k);
        n++;
    }
    assert_true(n < max);
    return n;
}

/* ---- a full map ---------------------------------------------------------------------------------------- */

enum { JOBS_MAX = SMALL_MAP / BODY };

static void lmdb__a_nearly_full_map_takes_only_what_frees(void **state) {
    kit *k = *state;
    rt_job jobs[JOBS_MAX];
    const size_t n = fill(k, jobs, JOBS_MAX);
    assert_int_equal(k->err.code, RT_E_FULL);
    assert_non_null(strstr(k->err.msg, "map size"));
    assert_true(n > JOBS_MAX / 2);
    rt_view *v = kit_view(k); // reads go on
    assert_int_equal(kit_counts(v, Q).ready, n);
    rt_view_close(v);
    for (size_t i = 0; i < n; i++) { // all of it can be removed, one at a time
        assert_int_equal(drop(k, &jobs[i]), RT_OK);
        kit_commit(k);
    }
    assert_int_equal(kit_counts(kit_batch(k), Q).ready, 0);
    assert_true(fill(k, jobs, JOBS_MAX) + 5 >= n); // and the room is there again
}

static void lmdb__an_outcome_is_taken_when_the_map_is_nearly_full(void **state) {
    kit *k = *state;
    rt_job jobs[JOBS_MAX];
    (void)fill(k, jobs, JOBS_MAX);
    rt_job done = kit_after(jobs[0]);
    const rt_event event = kit_event(k, &done, 1);
    done.state = RT_JOB_DONE;
    done.last_event = event.seq;
    const rt_op ops[] = {OP_JOB(&jobs[0], &done), OP_EVENT(&event)};
    const rt_change change = {.ops = ops, .ops_count = 2, .frees = true};
    assert_int_equal(rt_store_apply(k->store, &change, &k->err), RT_OK);
    kit_commit(k);
    kit_assert_job(kit_batch(k), &done);
}

static void lmdb__a_full_map_fails_the_batch_and_no_more(void **state) {
    kit *k = *state;
    rt_job jobs[JOBS_MAX];
    const size_t n = fill(k, jobs, JOBS_MAX);
    rt_job extra;
    rt_code code = RT_OK;
    for (int i = 0; i < JOBS_MAX && code == RT_OK; i++) code = add(k, true, &extra);
    assert_int_equal(code, RT_E_UNAVAILABLE);
    assert_int_equal(add(k, true, &extra), RT_E_UNAVAILABLE); // nothing more goes into this batch
    assert_int_equal(kit_end(k), RT_BATCH_FAILED);
    assert_int_equal(k->err.code, RT_E_FULL);
    assert_non_null(strstr(k->err.msg, "map size"));
    kit_assert_no_job(kit_batch(k), extra.id);
    assert_int_equal(kit_counts(kit_batch(k), Q).ready, n);
    assert_int_equal(drop(k, &jobs[0]), RT_OK);
    kit_commit(k);
    kit_reopen(k);
    assert_int_equal(kit_counts(kit_batch(k), Q).ready, n - 1);
    kit_assert_job(kit_batch(k), &jobs[n - 1]);
}

static void lmdb__a_larger_map_makes_room(void **state) {
    kit *k = *state;
    rt_job jobs[JOBS_MAX];
    (void)fill(k, jobs, JOBS_MAX);
    dir.config.map_bytes = 4 * SMALL_MAP;
    kit_reopen(k);
    rt_job job;
    assert_int_equal(add(k, false, &job), RT_OK);
    kit_commit(k);
}

/* ---- a full or failing disk ---------------------------------------------------------------------------- */

static void lmdb__low_disk_takes_only_what_frees(void **state) {
    kit *k = *state;
    rt_job there;
    assert_int_equal(add(k, false, &there), RT_OK);
    kit_commit(k);
    dir.config.disk_reserve_bytes = UINT64_MAX; // more than any disk has
    kit_reopen(k);
    rt_job job;
    assert_int_equal(add(k, false, &job), RT_E_FULL);
    assert_non_null(strstr(k->err.msg, "disk"));
    assert_int_equal(drop(k, &there), RT_OK);
    kit_commit(k);
    dir.config.disk_reserve_bytes = 1;
    kit_reopen(k);
    assert_int_equal(add(k, false, &job), RT_OK);
}

/* Whichever write or sync of a commit fails: the batch is not there, the store is as before, and the same
 * batch goes through once the disk is well. */
static void assert_survives(kit *k, disk_fault fault, int sys_errno) {
    rt_job kept;
    assert_int_equal(add(k, false, &kept), RT_OK);
    kit_commit(k);
    const rt_counts before = kit_counts(kit_batch(k), 0);
    rt_store_abandon(k->store);
    for (unsigned passes = 0; passes < 40; passes++) {
        rt_job job;
        assert_int_equal(add(k, false, &job), RT_OK);
        disk_fail(fault, sys_errno, passes, 1);
        const rt_batch_end end = kit_end(k);
        disk_heal();
        if (disk_failed_count() == 0) { // it took fewer calls than that: every one has failed once
            assert_int_equal(end, RT_BATCH_DURABLE);
            assert_true(passes > 0);
            return;
        }
        assert_int_equal(end, RT_BATCH_FAILED);
        assert_int_not_equal(k->err.msg[0], '\0');
        rt_view *v = kit_view(k);
        kit_assert_job(v, &kept);
        kit_assert_no_job(v, job.id);
        const rt_counts after = kit_counts(v, 0);
        assert_memory_equal(&before, &after, sizeof before);
        rt_view_close(v);
        kit_assert_no_job(kit_batch(k), job.id);
        rt_store_abandon(k->store);
    }
    fail_msg("the commit never ran out of calls to fail");
}

static void lmdb__no_space_at_any_write_loses_only_the_batch(void **state) {
    assert_survives(*state, DISK_FAULT_WRITE, ENOSPC);
}

static void lmdb__a_failing_write_loses_only_the_batch(void **state) {
    assert_survives(*state, DISK_FAULT_WRITE, EIO);
}

static void lmdb__a_short_write_loses_only_the_batch(void **state) { assert_survives(*state, DISK_FAULT_SHORT, 0); }
static void lmdb__a_failing_sync_loses_only_the_batch(void **state) { assert_survives(*state, DISK_FAULT_SYNC, EIO); }

static void lmdb__a_failing_last_write_loses_only_the_batch(void **state) {
    assert_survives(*state, DISK_FAULT_META, EIO);
}

static void lmdb__no_space_is_told_as_full(void **state) {
    kit *k = *state;
    rt_job job;
    assert_int_equal(add(k, false, &job), RT_OK);
    disk_fail(DISK_FAULT_WRITE, ENOSPC, 0, 1);
    assert_int_equal(kit_end(k), RT_BATCH_FAILED);
    assert_int_equal(k->err.code, RT_E_FULL);
    assert_int_equal(k->err.sys_errno, ENOSPC);
    assert_non_null(strstr(k->err.msg, "disk"));
}

static void lmdb__a_commit_in_doubt_is_told_once_it_is_known(void **state) {
    kit *k = *state;
    rt_job kept;
    assert_int_equal(add(k, false, &kept), RT_OK);
    kit_commit(k);
    rt_job lost;
    assert_int_equal(add(k, false, &lost), RT_OK);
    disk_fail(DISK_FAULT_DEATH, EIO, 0, 0);
    rt_store_commit(k->store, ++k->batch_no);
    uint64_t no;
    rt_batch_end end;
    rt_view *v = NULL;
    assert_false(rt_store_poll(k->store, &no, &end, &k->err));
    assert_null(rt_store_batch(k->store, &k->err));
    assert_int_equal(k->err.code, RT_E_UNAVAILABLE);
    assert_int_equal(rt_store_view(k->store, &v, &k->err), RT_E_UNAVAILABLE);
    assert_false(rt_store_poll(k->store, &no, &end, &k->err));
    disk_heal();
    assert_true(rt_store_poll(k->store, &no, &end, &k->err));
    assert_int_equal(no, k->batch_no);
    assert_int_equal(end, RT_BATCH_FAILED);
    kit_assert_job(kit_batch(k), &kept);
    kit_assert_no_job(kit_batch(k), lost.id);
    kit_apply(k, OPS(OP_JOB(&kept, NULL)));
    kit_commit(k);
}

/* The real thing, by the kernel: no file may grow beyond a size. */
static void lmdb__a_file_size_limit_is_met_and_lifted(void **state) {
    kit *k = *state;
    rt_job kept;
    assert_int_equal(add(k, false, &kept), RT_OK);
    kit_commit(k);
    char path[96];
    (void)snprintf(path, sizeof path, "%s/data.mdb", dir.path);
    struct stat now;
    assert_int_equal(stat(path, &now), 0);
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    void (*old_handler)(int) = signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit = {.rlim_cur = (rlim_t)now.st_size + 20000, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    rt_job jobs[100];
    size_t durable = 0;
    rt_batch_end end = RT_BATCH_DURABLE;
    while (end == RT_BATCH_DURABLE && durable < 100) {
        assert_int_equal(add(k, false, &jobs[durable]), RT_OK);
        end = kit_end(k);
        if (end == RT_BATCH_DURABLE) durable++;
    }
    rt_view *v = kit_view(k);
    const int64_t counted = kit_counts(v, Q).ready;
    rt_view_close(v);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    (void)signal(SIGXFSZ, old_handler);
    assert_int_equal(end, RT_BATCH_FAILED);
    assert_int_equal(counted, durable + 1);
    kit_assert_no_job(kit_batch(k), jobs[durable].id);
    assert_int_equal(add(k, false, &jobs[durable]), RT_OK);
    kit_commit(k);
    kit_reopen(k);
    assert_int_equal(kit_counts(kit_batch(k), Q).ready, durable + 2);
}

/* ---- the directory ------------------------------------------------------------------------------------- */

static void lmdb__a_directory_has_one_owner(void **state) {
    kit *k = *state;
    rt_store *second = NULL;
    assert_int_equal(rt_store_lmdb_open(&dir.config, &second, &k->err), RT_E_UNAVAILABLE);
    assert_null(second);
    char pid[24];
    (void)snprintf(pid, sizeof pid, "process %ld", (long)getpid());
    assert_non_null(strstr(k->err.msg, pid));
    assert_non_null(strstr(k->err.msg, dir.path));
    kit_reopen(k); // its own lock is no hindrance
}

static void lmdb__a_missing_directory_is_made_for_the_owner_alone(void **state) {
    kit *k = *state;
    char path[96];
    (void)snprintf(path, sizeof path, "%s/made", dir.path);
    rt_store_lmdb_config config = dir.config;
    config.dir = path;
    rt_store *s = NULL;
    assert_int_equal(rt_store_lmdb_open(&config, &s, &k->err), RT_OK);
    rt_store_close(s);
    struct stat made;
    assert_int_equal(stat(path, &made), 0);
    assert_int_equal(made.st_mode & 0777, 0700);
    lmdb_dir inner = {0};
    (void)snprintf(inner.path, sizeof inner.path, "%.48s/made", dir.path);
    lmdb_dir_remove(&inner);
    config.dir = "/nowhere/at/all";
    assert_int_equal(rt_store_lmdb_open(&config, &s, &k->err), RT_E_IO);
    assert_non_null(strstr(k->err.msg, "/nowhere/at/all"));
}

/* Writes one record into LMDB's unnamed tree of the closed store. */
static void write_raw(const char *name, const void *bytes, size_t len) {
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_open(env, dir.path, 0, 0600), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    MDB_val key = {.mv_size = strlen(name), .mv_data = (void *)(uintptr_t)name};
    MDB_val value = {.mv_size = len, .mv_data = (void *)(uintptr_t)bytes};
    assert_int_equal(mdb_put(txn, dbi, &key, &value, 0), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

static void lmdb__another_format_is_refused(void **state) {
    kit *k = *state;
    rt_store_close(k->store);
    k->store = NULL;
    static const uint32_t NEXT_FORMAT[6] = {2};
    write_raw("retryd", NEXT_FORMAT, sizeof NEXT_FORMAT);
    assert_int_equal(rt_store_lmdb_open(&dir.config, &k->store, &k->err), RT_E_INVALID);
    assert_non_null(strstr(k->err.msg, "format 2"));
    write_raw("retryd", NEXT_FORMAT, 3);
    assert_int_equal(rt_store_lmdb_open(&dir.config, &k->store, &k->err), RT_E_INVALID);
}

static void lmdb__a_foreign_database_is_refused(void **state) {
    kit *k = *state;
    rt_store_close(k->store);
    k->store = NULL;
    lmdb_dir_remove(&dir);
    assert_int_equal(mkdir(dir.path, 0700), 0);
    write_raw("somebody", "else", 4);
    assert_int_equal(rt_store_lmdb_open(&dir.config, &k->store, &k->err), RT_E_INVALID);
    assert_non_null(strstr(k->err.msg, "not retryd's"));
}

static void lmdb__a_file_that_is_no_database_is_refused(void **state) {
    kit *k = *state;
    rt_store_close(k->store);
    k->store = NULL;
    char path[96];
    (void)snprintf(path, sizeof path, "%s/data.mdb", dir.path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 10000; i++) (void)fputc('x', file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rt_store_lmdb_open(&dir.config, &k->store, &k->err), RT_E_CORRUPT);
    assert_null(k->store);
}

static void lmdb__views_are_bounded(void **state) {
    kit *k = *state;
    rt_view *views[RT_LMDB_VIEWS_MAX];
    for (int i = 0; i < RT_LMDB_VIEWS_MAX; i++) views[i] = kit_view(k);
    rt_view *one_more = NULL;
    assert_int_equal(rt_store_view(k->store, &one_more, &k->err), RT_E_UNAVAILABLE);
    rt_view_close(views[3]);
    views[3] = kit_view(k);
    for (int i = 0; i < RT_LMDB_VIEWS_MAX; i++) rt_view_close(views[i]);
}

#define SMALL(function) \
    {.name = #function, .test_func = function, .setup_func = setup_small, .teardown_func = kit_teardown}
#define PLAIN(function) \
    {.name = #function, .test_func = function, .setup_func = setup, .teardown_func = kit_teardown}

int main(void) {
    const struct CMUnitTest tests[] = {
        SMALL(lmdb__a_nearly_full_map_takes_only_what_frees),
        SMALL(lmdb__an_outcome_is_taken_when_the_map_is_nearly_full),
        SMALL(lmdb__a_full_map_fails_the_batch_and_no_more),
        SMALL(lmdb__a_larger_map_makes_room),
        PLAIN(lmdb__low_disk_takes_only_what_frees),
        PLAIN(lmdb__no_space_at_any_write_loses_only_the_batch),
        PLAIN(lmdb__a_failing_write_loses_only_the_batch),
        PLAIN(lmdb__a_short_write_loses_only_the_batch),
        PLAIN(lmdb__a_failing_sync_loses_only_the_batch),
        PLAIN(lmdb__a_failing_last_write_loses_only_the_batch),
        PLAIN(lmdb__no_space_is_told_as_full),
        PLAIN(lmdb__a_commit_in_doubt_is_told_once_it_is_known),
        PLAIN(lmdb__a_file_size_limit_is_met_and_lifted),
        PLAIN(lmdb__a_directory_has_one_owner),
        PLAIN(lmdb__a_missing_directory_is_made_for_the_owner_alone),
        PLAIN(lmdb__another_format_is_refused),
        PLAIN(lmdb__a_foreign_database_is_refused),
        PLAIN(lmdb__a_file_that_is_no_database_is_refused),
        PLAIN(lmdb__views_are_bounded),
    };
    return cmocka_run_group_tests_name("lmdb faults", tests, NULL, NULL);
}
