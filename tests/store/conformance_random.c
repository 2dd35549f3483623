/* conformance_random.c: thousands of random changes, with abandoned batches and restarts between them. */
#include <stdlib.h>

#include "store/conformance_parts.h"
#include "store/model.h"

enum { BATCHES = 600, SEED = 20240229 };

static void random_batch(kit *k, model *m, rt_rng *rng) {
    static model_change change;
    const uint64_t changes = 1 + rt_rng_below(rng, 8);
    for (uint64_t i = 0; i < changes; i++) {
        model_step(m, rng, k->store, &change);
        if (change.count > 0) kit_apply(k, change.ops, change.count);
    }
}

static void store__random_changes_agree_with_a_naive_model(void **state) {
    kit *k = *state;
    rt_rng rng = rt_rng_seeded(SEED);
    model *m = calloc(1, sizeof *m);
    model *before = calloc(1, sizeof *before);
    assert_non_null(m);
    assert_non_null(before);
    for (int i = 0; i < BATCHES; i++) {
        *before = *m;
        random_batch(k, m, &rng);
        model_assert_counts(m, kit_batch(k));
        if (i % 40 == 0) model_assert_same(m, kit_batch(k));
        if (rt_rng_below(&rng, 10) == 0) {
            rt_store_abandon(k->store);
            *m = *before;
        } else {
            kit_commit(k);
        }
        if (i % 97 == 0) kit_reopen(k);
        if (i % 131 == 0) kit_crash(k);
        if (i % 20 == 0) {
            rt_view *v = kit_view(k);
            model_assert_same(m, v);
            rt_view_close(v);
        }
    }
    free(before);
    free(m);
}

static const struct CMUnitTest TESTS[] = {STORE_TEST(store__random_changes_agree_with_a_naive_model)};

store_tests store_tests_random(void) {
    return (store_tests){.tests = TESTS, .count = sizeof TESTS / sizeof TESTS[0]};
}
