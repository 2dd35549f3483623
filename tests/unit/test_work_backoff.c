/* Work backoff. The expected values are worked out by hand from the original document's rules. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "retryd/policy.h"

#define S UINT64_C(1000000000)
#define MS UINT64_C(1000000)
#define LONGEST ((uint64_t)INT64_MAX)

enum { SEQUENCE_MAX = 20, RANDOM_SETS = 200000 };

typedef struct sequence {
    rt_work_backoff backoff;
    uint64_t previous_s; // before the first failure
    int count;
    uint64_t want_s[SEQUENCE_MAX];
} sequence;

static void check_sequences(const sequence *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_null(rt_work_backoff_check(&rows[i].backoff));
        uint64_t last_s = rows[i].previous_s;
        for (int k = 0; k < rows[i].count; k++) {
            last_s = rt_work_backoff_next_s(&rows[i].backoff, last_s);
            if (last_s == rows[i].want_s[k]) continue;
            fail_msg("row %zu, failure %d: %llu s, wanted %llu s", i, k + 1, (unsigned long long)last_s,
                     (unsigned long long)rows[i].want_s[k]);
        }
    }
}
#define CHECK_SEQUENCES(rows) check_sequences(rows, sizeof(rows) / sizeof((rows)[0]))

static void work_backoff__grows_as_in_the_document(void **state) {
    (void)state;
    static const sequence ROWS[] = {
        {{1 * S, 3600 * S, 1.1}, 0, 14, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17}},
        // Only maximum and exponent: exponential from one second.
        {{0, 3600 * S, 1.1}, 0, 14, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17}},
        {{1 * S, 100 * S, 2}, 0, 9, {1, 2, 4, 8, 16, 32, 64, 100, 100}},
        // 3, 4.5, 7.5 (5 x 1.5), 12, 18, 27, 40.5, 61.5, each rounded up.
        {{3 * S, 3600 * S, 1.5}, 0, 8, {3, 5, 8, 12, 18, 27, 41, 62}},
    };
    CHECK_SEQUENCES(ROWS);
}

static void work_backoff__multiplies_in_nanoseconds_not_in_seconds(void **state) {
    (void)state;
    // 60 x 1.1 = 66, 72.6, 80.3, 89.1 up to 90, 99 (ceil(90 x 1.1) of doubles would be 100), 108.9.
    static const sequence ROWS[] = {{{60 * S, 3600 * S, 1.1}, 60, 6, {66, 73, 81, 90, 99, 109}}};
    CHECK_SEQUENCES(ROWS);
}

static void work_backoff__constant_by_the_exponent_as_given(void **state) {
    (void)state;
    static const sequence ROWS[] = {
        // The zero descriptor: one second, whatever was persisted.
        {{0, 0, 0}, 0, 3, {1, 1, 1}},
        {{0, 0, 0}, 600, 2, {1, 1}},
        {{60 * S, 0, 0}, 0, 3, {60, 60, 60}},
        {{60 * S, 0, 0}, 7, 2, {60, 60}},
        {{60 * S, 3600 * S, 1}, 900, 2, {60, 60}},
        {{60 * S, 3600 * S, -0.0}, 900, 2, {60, 60}},
        // Truncated: 2.9 s are 2 s.
        {{2900 * MS, 0, 0}, 0, 2, {2, 2}},
        {{999 * MS, 0, 1}, 0, 2, {1, 1}},
    };
    CHECK_SEQUENCES(ROWS);
}

static void work_backoff__an_exponent_below_one_keeps_the_last_interval(void **state) {
    (void)state;
    static const sequence ROWS[] = {
        // Counts as 1, but is not constant: what was persisted stays.
        {{10 * S, 100 * S, 0.5}, 0, 3, {10, 10, 10}},
        {{10 * S, 100 * S, 0.5}, 70, 2, {70, 70}},
        {{10 * S, 100 * S, -3}, 70, 2, {70, 70}},
        {{10 * S, 100 * S, 0.999}, 700, 2, {100, 100}},
    };
    CHECK_SEQUENCES(ROWS);
}

static void work_backoff__first_interval_is_truncated_products_are_rounded_up(void **state) {
    (void)state;
    static const sequence ROWS[] = {
        // The persisted 1 s is multiplied, not the 1.9 s that it came from.
        {{1900 * MS, 3600 * S, 2}, 0, 4, {1, 2, 4, 8}},
        {{2500 * MS, 3600 * S, 3}, 0, 3, {2, 6, 18}},
        {{1 * S, 3600 * S, 1.0001}, 0, 4, {1, 2, 3, 4}},
    };
    CHECK_SEQUENCES(ROWS);
}

static void work_backoff__a_fractional_maximum_is_exceeded_by_rounding_up(void **state) {
    (void)state;
    static const sequence ROWS[] = {
        {{1 * S, 2500 * MS, 2}, 0, 4, {1, 2, 3, 3}},
        // A maximum below the initial counts as the initial: 2.5 s, at first truncated, then rounded up.
        {{2500 * MS, 1 * S, 2}, 0, 3, {2, 3, 3}},
        // Below a second counts as a second.
        {{1 * MS, 2 * MS, 2}, 0, 3, {1, 1, 1}},
        {{0, 0, 1.1}, 0, 3, {1, 1, 1}},
    };
    CHECK_SEQUENCES(ROWS);
}

static void work_backoff__goes_on_from_what_was_persisted(void **state) {
    (void)state;
    static const sequence ROWS[] = {
        // The initial interval counts only without a previous one.
        {{60 * S, 3600 * S, 2}, 5, 3, {10, 20, 40}},
        {{1 * S, 3600 * S, 2}, 1, 2, {2, 4}},
        // Above the maximum already.
        {{1 * S, 100 * S, 2}, 5000, 2, {100, 100}},
        {{1 * S, 100 * S, 1.01}, 101, 1, {100}},
    };
    CHECK_SEQUENCES(ROWS);
}

static void work_backoff__overflow_gives_the_maximum(void **state) {
    (void)state;
    // INT64_MAX ns are 9,223,372,036.85 s, rounded up.
    const uint64_t longest_s = 9223372037u;
    static const sequence ROWS[] = {
        {{1 * S, 3600 * S, 1e300}, 0, 3, {1, 3600, 3600}},
        {{1 * S, 3600 * S, 1e300}, 9000000000u, 1, {3600}},
        // 9e9 s x 2 is over int64 nanoseconds.
        {{1 * S, 3600 * S, 2}, 9000000000u, 1, {3600}},
        // Seconds that are no nanoseconds in 64 bits at all.
        {{1 * S, 3600 * S, 2}, 9223372037u, 1, {3600}},
        {{1 * S, 3600 * S, 2}, UINT64_MAX, 1, {3600}},
        {{1 * S, 3600 * S, 0.5}, UINT64_MAX, 1, {3600}},
        {{1 * S, 3600 * S, 0}, UINT64_MAX, 1, {1}},
    };
    CHECK_SEQUENCES(ROWS);
    const rt_work_backoff longest = {.initial_ns = LONGEST, .maximum_ns = LONGEST, .exponent = 2};
    assert_null(rt_work_backoff_check(&longest));
    assert_int_equal(rt_work_backoff_next_s(&longest, 0), longest_s - 1); // truncated
    assert_int_equal(rt_work_backoff_next_s(&longest, longest_s - 1), longest_s);
    assert_int_equal(rt_work_backoff_next_s(&longest, longest_s), longest_s);
}

static void work_backoff__a_double_that_rounds_below_the_last_interval_counts_as_overflow(void **state) {
    (void)state;
    // Above 2^62 ns doubles are 1024 ns apart. An odd number of seconds, so an odd multiple m of 512 ns, lies
    // between two of them and goes to the even one: down for m = 1 mod 4 (as 4611686021 s), up for 3 mod 4.
    static const sequence ROWS[] = {
        {{1 * S, LONGEST, 0.5}, 4611686021u, 1, {9223372037u}},
        {{1 * S, LONGEST, 0.5}, 4611686019u, 1, {4611686020u}},
    };
    CHECK_SEQUENCES(ROWS);
}

static void work_backoff__no_descriptor_keeps_the_last_interval(void **state) {
    (void)state;
    assert_int_equal(rt_work_backoff_next_s(NULL, 0), 1);
    assert_int_equal(rt_work_backoff_next_s(NULL, 1), 1);
    assert_int_equal(rt_work_backoff_next_s(NULL, 60), 60);
    assert_int_equal(rt_work_backoff_next_s(NULL, UINT64_MAX), UINT64_MAX);
}

static void work_backoff__a_previous_interval_may_be_fractional(void **state) {
    (void)state;
    const rt_work_backoff doubling = {.initial_ns = 10 * S, .maximum_ns = 3600 * S, .exponent = 2};
    assert_int_equal(rt_work_backoff_next_after_ns(&doubling, 0), 10);
    // Below a second counts as a second, but there was one: not the initial 10 s.
    assert_int_equal(rt_work_backoff_next_after_ns(&doubling, 500 * MS), 2);
    assert_int_equal(rt_work_backoff_next_after_ns(&doubling, 1250 * MS), 3); // 2.5 s
    assert_int_equal(rt_work_backoff_next_after_ns(NULL, 1999 * MS), 1);      // truncated
    assert_int_equal(rt_work_backoff_next_after_ns(NULL, 500 * MS), 1);
}

static void work_backoff__check_refuses_what_cannot_be_computed(void **state) {
    (void)state;
    static const struct {
        rt_work_backoff backoff;
        const char *text;
    } ROWS[] = {
        {{0, 0, (double)NAN}, "backoff: exponent must be a finite number."},
        {{0, 0, (double)INFINITY}, "backoff: exponent must be a finite number."},
        {{0, 0, -(double)INFINITY}, "backoff: exponent must be a finite number."},
        {{LONGEST + 1, 0, 2}, "backoff: initial_ms must be at most 9223372036854 (292 years)."},
        {{0, LONGEST + 1, 2}, "backoff: maximum_ms must be at most 9223372036854 (292 years)."},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        const char *said = rt_work_backoff_check(&ROWS[i].backoff);
        assert_non_null(said);
        assert_string_equal(said, ROWS[i].text);
    }
    const rt_work_backoff fine[] = {{LONGEST, LONGEST, 1.7e308}, {0, 0, -1.7e308}, {0, 0, 0}};
    for (size_t i = 0; i < 3; i++) assert_null(rt_work_backoff_check(&fine[i]));
}

/* At least a second, strictly growing until the maximum, then never above it. */
static void work_backoff__random_descriptors_grow_until_the_maximum(void **state) {
    (void)state;
    rt_rng rng = rt_rng_seeded(4);
    for (int i = 0; i < RANDOM_SETS; i++) {
        const rt_work_backoff b = {
            .initial_ns = rt_rng_below(&rng, 100 * S),
            .maximum_ns = rt_rng_below(&rng, 100000 * S),
            .exponent = 1.000000001 + (double)rt_rng_below(&rng, 3000) / 1000,
        };
        const uint64_t top_ns = b.maximum_ns > b.initial_ns ? b.maximum_ns : b.initial_ns;
        const uint64_t top_s = top_ns <= S ? 1 : (top_ns + S - 1) / S;
        uint64_t last_s = 0;
        for (int k = 0; k < 12; k++) {
            const uint64_t next_s = rt_work_backoff_next_s(&b, last_s);
            if (next_s >= 1 && next_s <= top_s && (next_s > last_s || next_s == top_s)) {
                last_s = next_s;
                continue;
            }
            fail_msg("%llu s after %llu s, maximum %llu s", (unsigned long long)next_s,
                     (unsigned long long)last_s, (unsigned long long)top_s);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_backoff__grows_as_in_the_document),
        cmocka_unit_test(work_backoff__multiplies_in_nanoseconds_not_in_seconds),
        cmocka_unit_test(work_backoff__constant_by_the_exponent_as_given),
        cmocka_unit_test(work_backoff__an_exponent_below_one_keeps_the_last_interval),
        cmocka_unit_test(work_backoff__first_interval_is_truncated_products_are_rounded_up),
        cmocka_unit_test(work_backoff__a_fractional_maximum_is_exceeded_by_rounding_up),
        cmocka_unit_test(work_backoff__goes_on_from_what_was_persisted),
        cmocka_unit_test(work_backoff__overflow_gives_the_maximum),
        cmocka_unit_test(work_backoff__a_double_that_rounds_below_the_last_interval_counts_as_overflow),
        cmocka_unit_test(work_backoff__no_descriptor_keeps_the_last_interval),
        cmocka_unit_test(work_backoff__a_previous_interval_may_be_fractional),
        cmocka_unit_test(work_backoff__check_refuses_what_cannot_be_computed),
        cmocka_unit_test(work_backoff__random_descriptors_grow_until_the_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
