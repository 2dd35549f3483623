/* conformance.h: what every store must do, as tests that know nothing of the store they run on.
 *
 * A runner is a small program: it fills a store_factory and returns store_conformance_run(&factory) from
 * main. Each test gets a store of its own from `create`; tests run one after the other in one thread. */
#ifndef RT_TESTS_STORE_CONFORMANCE_H
#define RT_TESTS_STORE_CONFORMANCE_H
#include "port/store.h"

typedef struct store_factory {
    const char *name; /* for the report: "lmdb", "memory" */
    void *ctx;        /* handed to each function below */

    /* A new, empty store with these history bounds. Only one is open at a time. */
    rt_code (*create)(void *ctx, rt_retention retention, rt_store **out, rt_err *err);
    /* An orderly restart: closes *s (its open batch is lost) and opens the same data again as *s.
     * On error *s is NULL. */
    rt_code (*reopen)(void *ctx, rt_store **s, rt_err *err);
    /* The same for a process that died: nothing of the old one runs any more. NULL: the same as reopen. */
    rt_code (*crash)(void *ctx, rt_store **s, rt_err *err);
    /* Closes `s` (NULL: a restart failed) and removes its data. */
    void (*destroy)(void *ctx, rt_store *s);

    /* Makes the next commit of a batch with changes end as RT_BATCH_FAILED. NULL: cannot, those tests are
     * skipped. */
    void (*fail_next_commit)(void *ctx, rt_store *s);
} store_factory;

/* Returns the number of failed tests. Borrows `factory`. Commits are awaited by polling (with store->fd if it
 * has one), at most 10 s each. */
int store_conformance_run(const store_factory *factory);

#endif
