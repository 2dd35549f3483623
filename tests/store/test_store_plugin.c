/* test_store_plugin.c: the conformance suite on a store that is loaded from a shared object:
 *
 *     test_store_plugin FILE REST EMPTY
 *
 * FILE is the shared object and REST what its `open` is given; EMPTY is a command for the shell that leaves nothing of what
 * the store has kept under REST. It runs before each test and after the last. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "store/conformance_parts.h"
#include "store/plugin/store_plugin.h"

typedef struct subject {
    rt_store_plugin_config config;
    const char *empty;
} subject;

static rt_code make_empty(const subject *s, rt_err *err) {
    // Whoever starts the suite is whose command it is. NOLINTNEXTLINE(cert-env33-c)
    return system(s->empty) == 0 ? RT_OK : rt_fail(err, RT_E_IO, 0, "this failed: %s", s->empty);
}

static rt_code create(void *ctx, rt_retention retention, rt_store **out, rt_err *err) {
    subject *s = ctx;
    s->config.retention = retention;
    const rt_code code = make_empty(s, err);
    return code == RT_OK ? rt_store_plugin_open(&s->config, out, err) : code;
}

static rt_code reopen(void *ctx, rt_store **s, rt_err *err) {
    const subject *kept = ctx;
    rt_store_close(*s);
    *s = NULL;
    return rt_store_plugin_open(&kept->config, s, err);
}

static void destroy(void *ctx, rt_store *s) {
    rt_err err;
    rt_store_close(s);
    if (make_empty(ctx, &err) != RT_OK) (void)fprintf(stderr, "%s\n", err.msg);
}

/* ---- what only a store that writes files can be asked -------------------------------------------------- */

/* Commits while no file may grow. False: its end is not told yet. */
static bool commit_without_room(kit *k, rt_batch_end *end) {
    struct rlimit usual;
    uint64_t no;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    rt_store_commit(k->store, ++k->batch_no);
    const bool told = rt_store_poll(k->store, &no, end, &k->err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
    return told;
}

static void store__a_commit_that_cannot_be_written_is_never_there(void **state) {
    kit *k = *state;
    const rt_job kept = kit_insert(k, 7, RT_JOB_READY, 0);
    kit_commit(k);
    const rt_job lost = kit_insert(k, 7, RT_JOB_READY, 0);
    rt_batch_end end = RT_BATCH_DURABLE;
    uint64_t no;
    const bool told = commit_without_room(k, &end);
    if (!told && k->store->fd >= 0) skip(); // it waits for somebody who may have room
    if (!told) assert_true(rt_store_poll(k->store, &no, &end, &k->err)); // now it can find out
    if (end == RT_BATCH_DURABLE) skip(); // it writes no files
    kit_assert_no_job(kit_batch(k), lost.id);
    kit_crash(k);
    kit_assert_no_job(kit_batch(k), lost.id);
    kit_assert_job(kit_batch(k), &kept);
    kit_apply(k, OPS(OP_JOB(NULL, &lost)));
    kit_commit(k);
    kit_assert_job(kit_batch(k), &lost);
}

static int run_on_files(const store_factory *factory) {
    struct CMUnitTest tests[] = {STORE_TEST(store__a_commit_that_cannot_be_written_is_never_there)};
    tests[0].initial_state = (void *)(uintptr_t)factory; // kit_setup only reads it
    (void)signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        (void)fputs("usage: test_store_plugin FILE REST EMPTY\n", stderr);
        return 2;
    }
    subject s = {.config = {.path = argv[1], .rest = argv[2]}, .empty = argv[3]};
    const store_factory factory = {
        .name = "plugin",
        .ctx = &s,
        .create = create,
        .reopen = reopen,
        .destroy = destroy,
    };
    const int failed = store_conformance_run(&factory) + run_on_files(&factory);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
