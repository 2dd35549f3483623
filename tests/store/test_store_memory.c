/* The conformance suite on the memory store: the model obeys the rules that it is the model of. */
#include <stdlib.h>

#include "conformance.h"
#include "store/memory/store_memory.h"

typedef struct machine {
    rt_memory_disk *disk;
} machine;

static rt_code create(void *ctx, rt_retention retention, rt_store **out, rt_err *err) {
    machine *m = ctx;
    const rt_store_memory_config config = {.tag = 0x1234abcd, .sole_owner = true, .retention = retention};
    m->disk = rt_memory_disk_new(&config);
    if (m->disk == NULL) return rt_fail(err, RT_E_NOMEM, 0, "disk");
    return rt_store_memory_attach(m->disk, 1, out, err);
}

static rt_code reopen(void *ctx, rt_store **s, rt_err *err) {
    machine *m = ctx;
    rt_store_close(*s);
    *s = NULL;
    return rt_store_memory_attach(m->disk, 2, s, err);
}

static void destroy(void *ctx, rt_store *s) {
    machine *m = ctx;
    rt_store_close(s);
    rt_memory_disk_free(m->disk);
    m->disk = NULL;
}

static void fail_next_commit(void *ctx, rt_store *s) {
    (void)ctx;
    rt_store_memory_fail_next(s);
}

int main(void) {
    machine m = {0};
    const store_factory factory = {
        .name = "memory",
        .ctx = &m,
        .create = create,
        .reopen = reopen,
        .destroy = destroy,
        .fail_next_commit = fail_next_commit,
    };
    return store_conformance_run(&factory) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
