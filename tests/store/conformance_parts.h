/* conformance_parts.h: the suite's tests by subject. Each file ends in a table of them. */
#ifndef RT_TESTS_STORE_CONFORMANCE_PARTS_H
#define RT_TESTS_STORE_CONFORMANCE_PARTS_H
#include "store/kit.h"

typedef struct store_tests {
    const struct CMUnitTest *tests;
    size_t count;
} store_tests;

/* A row of such a table. */
#define STORE_TEST(function) \
    {.name = #function, .test_func = function, .setup_func = kit_setup, .teardown_func = kit_teardown}

store_tests store_tests_jobs(void);    /* indexes and listings of jobs */
store_tests store_tests_records(void); /* documents, queues, leases, events, bodies, expiry */
store_tests store_tests_changes(void); /* conditions, all or nothing, limits */
store_tests store_tests_batches(void); /* views, batches, restarts, ids */
store_tests store_tests_upkeep(void);  /* counters, history */
store_tests store_tests_import(void);  /* what a copy reads and writes; only of stores that can be copied */
store_tests store_tests_random(void);  /* random changes against a naive model */

#endif
