#include "store/conformance.h"

#include <stdlib.h>
#include <string.h>

#include "store/conformance_parts.h"

int store_conformance_run(const store_factory *factory) {
    const store_tests parts[] = {store_tests_jobs(),    store_tests_records(), store_tests_changes(),
                                 store_tests_batches(), store_tests_upkeep(),  store_tests_import(),  store_tests_random()};
    size_t count = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) count += parts[i].count;
    struct CMUnitTest *tests = calloc(count, sizeof *tests);
    if (tests == NULL) return -1;
    size_t at = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        memcpy(tests + at, parts[i].tests, parts[i].count * sizeof *tests);
        at += parts[i].count;
    }
    // cmocka hands the state to kit_setup, which only reads it.
    for (size_t i = 0; i < count; i++) tests[i].initial_state = (void *)(uintptr_t)factory;
    const int failed = _cmocka_run_group_tests(factory->name, tests, count, NULL, NULL);
    free(tests);
    return failed;
}
