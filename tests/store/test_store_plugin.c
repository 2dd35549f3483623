/* test_store_plugin.c: the conformance suite on a store that is loaded from a shared object:
 *
 *     test_store_plugin FILE REST EMPTY
 *
 * FILE is the shared object and REST what its `open` is given; EMPTY is a command for the shell that leaves nothing of what
 * the store has kept under REST. It runs before each test and after the last. */
#include <stdio.h>
#include <stdlib.h>

#include "store/conformance.h"
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
    return store_conformance_run(&factory) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
