/* The heap of things that wait: the earliest comes first, whatever was put in, moved or taken out before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/heap.h"
#include "base/rng.h"

enum { NODES = 500 };

static void assert_order(rt_heap *h, size_t count) {
    int64_t before = INT64_MIN;
    for (size_t i = 0; i < count; i++) {
        rt_heap_node *first = rt_heap_first(h);
        assert_non_null(first);
        assert_true(first->at_ms >= before);
        before = first->at_ms;
        rt_heap_remove(h, first);
        assert_int_equal(first->place, 0);
    }
    assert_null(rt_heap_first(h));
}

static void heap__gives_the_earliest_first(void **state) {
    (void)state;
    rt_heap h = {0};
    rt_heap_node nodes[NODES] = {{0}};
    rt_rng rng = rt_rng_seeded(1);
    for (size_t i = 0; i < NODES; i++) {
        assert_true(rt_heap_set(&h, &nodes[i], (int64_t)rt_rng_below(&rng, 100)));
    }
    for (size_t i = 0; i < NODES; i += 3) { // moved, in both directions
        assert_true(rt_heap_set(&h, &nodes[i], (int64_t)rt_rng_below(&rng, 100)));
    }
    for (size_t i = 0; i < NODES; i += 5) rt_heap_remove(&h, &nodes[i]);
    assert_order(&h, NODES - NODES / 5);
    rt_heap_deinit(&h);
}

static void heap__breaks_ties_by_number_not_by_address(void **state) {
    (void)state;
    rt_heap h = {0};
    rt_heap_node nodes[3] = {{.tie = 3}, {.tie = 1}, {.tie = 2}};
    for (size_t i = 0; i < 3; i++) assert_true(rt_heap_set(&h, &nodes[i], 7));
    for (uint64_t tie = 1; tie <= 3; tie++) {
        assert_int_equal(rt_heap_first(&h)->tie, tie);
        rt_heap_remove(&h, rt_heap_first(&h));
    }
    rt_heap_deinit(&h);
}

static void heap__forgets_a_node_that_is_not_in_it(void **state) {
    (void)state;
    rt_heap h = {0};
    rt_heap_node node = {0};
    rt_heap_remove(&h, &node);
    assert_null(rt_heap_first(&h));
    rt_heap_deinit(&h);
}

static void heap__hastens_all_but_never(void **state) {
    (void)state;
    rt_heap h = {0};
    rt_heap_node soon = {.tie = 1};
    rt_heap_node late = {.tie = 2};
    rt_heap_node never = {.tie = 3};
    assert_true(rt_heap_set(&h, &never, INT64_MAX));
    assert_true(rt_heap_set(&h, &late, 5000));
    assert_true(rt_heap_set(&h, &soon, 1000));
    rt_heap_hasten(&h, 3000);
    assert_int_equal(soon.at_ms, -2000);
    assert_int_equal(late.at_ms, 2000);
    assert_true(never.at_ms == INT64_MAX);
    assert_order(&h, 3);
    rt_heap_deinit(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heap__gives_the_earliest_first),
        cmocka_unit_test(heap__breaks_ties_by_number_not_by_address),
        cmocka_unit_test(heap__forgets_a_node_that_is_not_in_it),
        cmocka_unit_test(heap__hastens_all_but_never),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
