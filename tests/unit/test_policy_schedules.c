/* Schedules and jitter of random policies, held against the formulas of the documents.
 *
 * The reference is computed another way than the product does: in long double, by the recurrences in which
 * the documents introduce each function (the next time from the one before), not by their closed forms. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "retryd/policy.h"

enum { SETS_PER_FUNCTION = 250000, JITTER_DRAWS = 20000 };

// Half a millisecond for rounding, and room for what a double cannot hold of 3e10 ms.
static const long double TOLERANCE_MS = 0.5001L;

/* Any number up to `max`, small ones as likely as large ones: uniform in its number of bits. */
static uint32_t any_size(rt_rng *rng, uint32_t max) {
    const uint64_t bits = rt_rng_below(rng, 26);
    const uint64_t drawn = rt_rng_below(rng, (uint64_t)1 << bits);
    return drawn < max ? (uint32_t)drawn : max;
}

static rt_delivery_policy random_policy(rt_rng *rng, rt_backoff_function f) {
    rt_delivery_policy p = rt_delivery_policy_default();
    const bool power = f == RT_BACKOFF_GEOMETRIC || f == RT_BACKOFF_EXPONENTIAL;
    p.backoff_function = f;
    p.retries_with_no_delay = (uint32_t)rt_rng_below(rng, 4);
    p.minimum_delay_retries = (uint32_t)rt_rng_below(rng, 4);
    p.maximum_delay_retries = (uint32_t)rt_rng_below(rng, 4);
    p.minimum_delay_s = any_size(rng, RT_DELAY_S_MAX - 10);
    if (power && p.minimum_delay_s == 0) p.minimum_delay_s = 1;
    const bool derived = rt_rng_below(rng, 2) == 0;
    p.backoff_retries = derived ? 0 : 2 + (uint32_t)rt_rng_below(rng, 99);
    p.maximum_delay_s = p.minimum_delay_s + (derived ? 10 : 0) + any_size(rng, RT_DELAY_S_MAX);
    if (p.maximum_delay_s > RT_DELAY_S_MAX) p.maximum_delay_s = RT_DELAY_S_MAX;
    return p;
}

/* One of the four functions as a recurrence; all values in ms. */
typedef struct series {
    rt_backoff_function function;
    long double value, step;
} series;

static series series_of(const rt_delivery_policy *p, uint32_t num) {
    const long double min = p->minimum_delay_s * 1000.0L;
    const long double max = p->maximum_delay_s * 1000.0L;
    series s = {.function = p->backoff_function, .value = min, .step = 0};
    switch (p->backoff_function) {
        case RT_BACKOFF_LINEAR: s.step = (max - min) / (num - 1); break;
        case RT_BACKOFF_ARITHMETIC: s.step = 2 * (max - min) / ((long double)num * (num - 1)); break;
        case RT_BACKOFF_GEOMETRIC: s.step = powl(10, log10l(max / min) / (num - 1)); break;
        case RT_BACKOFF_EXPONENTIAL:
            s.step = powl(10, log10l(max / min) / (num - 1));
            s.value = min / s.step * s.step; // p k^1
            break;
        case RT_BACKOFF_FUNCTION_COUNT: fail();
    }
    return s;
}

/* From time(n - 1) to time(n). */
static void series_next(series *s, uint32_t n) {
    switch (s->function) {
        case RT_BACKOFF_LINEAR: s->value += s->step; break;
        case RT_BACKOFF_ARITHMETIC: s->value += s->step * (n - 1); break;
        case RT_BACKOFF_GEOMETRIC:
        case RT_BACKOFF_EXPONENTIAL: s->value *= s->step; break;
        case RT_BACKOFF_FUNCTION_COUNT: fail();
    }
}

/* NULL, or what is wrong with the backoff phase of `p`. */
static const char *walk(const rt_delivery_policy *p) {
    const uint64_t min_ms = (uint64_t)p->minimum_delay_s * 1000, max_ms = (uint64_t)p->maximum_delay_s * 1000;
    const uint32_t num = rt_delivery_policy_backoff_retries(p);
    const uint32_t before = p->retries_with_no_delay + p->minimum_delay_retries;
    if (num < 2 || num > 100) return "number of backoff retries";
    series want = series_of(p, num);
    uint64_t last_ms = 0;
    for (uint32_t n = 1; n <= num; n++) {
        uint64_t ms = 0;
        rt_phase phase = RT_PHASE_COUNT;
        if (!rt_delivery_policy_delay(p, before + n, &ms, &phase)) return "a retry is missing";
        if (phase != RT_PHASE_BACKOFF) return "wrong phase";
        if (n > 1) series_next(&want, n);
        if (fabsl((long double)ms - want.value) > TOLERANCE_MS) return "not the formula's value";
        if (ms < min_ms || ms > max_ms) return "outside MIN to MAX";
        if (ms < last_ms) return "decreasing";
        if (n == 1 && ms != min_ms) return "does not begin at MIN";
        last_ms = ms;
    }
    return last_ms == max_ms ? NULL : "does not end at MAX";
}

static void check_function(rt_backoff_function f) {
    rt_rng rng = rt_rng_seeded(20231 + (uint64_t)f);
    for (int i = 0; i < SETS_PER_FUNCTION; i++) {
        const rt_delivery_policy p = random_policy(&rng, f);
        const char *wrong = rt_delivery_policy_check(&p);
        if (wrong == NULL) wrong = walk(&p);
        if (wrong == NULL) continue;
        fail_msg("%s: %s %u..%u s, backoff_retries %u", wrong, rt_backoff_function_name(f), p.minimum_delay_s,
                 p.maximum_delay_s, p.backoff_retries);
    }
}

static void schedules__linear_keep_to_the_formula(void **state) {
    (void)state;
    check_function(RT_BACKOFF_LINEAR);
}

static void schedules__arithmetic_keep_to_the_formula(void **state) {
    (void)state;
    check_function(RT_BACKOFF_ARITHMETIC);
}

static void schedules__geometric_keep_to_the_formula(void **state) {
    (void)state;
    check_function(RT_BACKOFF_GEOMETRIC);
}

static void schedules__exponential_keep_to_the_formula(void **state) {
    (void)state;
    check_function(RT_BACKOFF_EXPONENTIAL);
}

// ---- jitter -------------------------------------------------------------------------------------

static rt_delivery_policy with_jitter(rt_jitter jitter) {
    rt_delivery_policy p = rt_delivery_policy_default();
    p.jitter = jitter;
    return p;
}

/* Draws JITTER_DRAWS times and checks that all lie within [low, high] and that both ends are neared. */
static void check_spread(const rt_delivery_policy *p, uint64_t delay_ms, uint64_t last_ms, uint64_t low,
                         uint64_t high) {
    rt_rng rng = rt_rng_seeded(7);
    uint64_t lowest = UINT64_MAX, highest = 0;
    for (int i = 0; i < JITTER_DRAWS; i++) {
        const uint64_t ms = rt_delivery_policy_jittered(p, delay_ms, last_ms, rt_rng_next(&rng));
        lowest = ms < lowest ? ms : lowest;
        highest = ms > highest ? ms : highest;
    }
    // The chance that 20,000 draws all miss a hundredth is 1e-87.
    const uint64_t near = (high - low) / 100;
    assert_in_range(lowest, low, low + near);
    assert_in_range(highest, high - near, high);
}

static void jitter__none_changes_nothing(void **state) {
    (void)state;
    const rt_delivery_policy p = with_jitter(RT_JITTER_NONE);
    check_spread(&p, 10000, 5000, 10000, 10000);
}

static void jitter__full_is_uniform_from_zero(void **state) {
    (void)state;
    const rt_delivery_policy p = with_jitter(RT_JITTER_FULL);
    check_spread(&p, 10000, 0, 0, 10000);
    check_spread(&p, 1, 0, 0, 1);
    // Both ends are included: the least and the largest remainder of 64 bits by 10001.
    assert_int_equal(rt_delivery_policy_jittered(&p, 10000, 0, 0), 0);
    assert_int_equal(rt_delivery_policy_jittered(&p, 10000, 0, 10000), 10000);
    assert_int_equal(rt_delivery_policy_jittered(&p, 10000, 0, 10001), 0);
}

static void jitter__equal_keeps_at_least_half(void **state) {
    (void)state;
    const rt_delivery_policy p = with_jitter(RT_JITTER_EQUAL);
    check_spread(&p, 10000, 0, 5000, 10000);
    check_spread(&p, 10001, 0, 5000, 10001);
}

static void jitter__decorrelated_grows_out_of_the_last_wait(void **state) {
    (void)state;
    const rt_delivery_policy p = with_jitter(RT_JITTER_DECORRELATED); // 5 to 60 s
    check_spread(&p, 30000, 6000, 5000, 18000);
    // None yet, or a shorter one: as if it had been MIN.
    check_spread(&p, 30000, 0, 5000, 15000);
    check_spread(&p, 30000, 1, 5000, 15000);
    // 3 x 50 s is over MAX: drawn, then capped, so that most draws are MAX.
    check_spread(&p, 30000, 50000, 5000, 60000);
    assert_int_equal(rt_delivery_policy_jittered(&p, 30000, 50000, 100000), 60000);
    check_spread(&p, 30000, UINT64_MAX, 5000, 60000);
}

static void jitter__immediate_retries_stay_immediate(void **state) {
    (void)state;
    for (int j = 0; j < RT_JITTER_COUNT; j++) {
        const rt_delivery_policy p = with_jitter((rt_jitter)j);
        assert_int_equal(rt_delivery_policy_jittered(&p, 0, 20000, UINT64_MAX), 0);
    }
}

static void jitter__never_exceeds_the_maximum(void **state) {
    (void)state;
    rt_rng rng = rt_rng_seeded(99);
    for (int i = 0; i < SETS_PER_FUNCTION; i++) {
        rt_delivery_policy p = random_policy(&rng, RT_BACKOFF_GEOMETRIC);
        p.jitter = (rt_jitter)rt_rng_below(&rng, RT_JITTER_COUNT);
        const uint64_t max_ms = (uint64_t)p.maximum_delay_s * 1000;
        const uint64_t delay_ms = rt_rng_below(&rng, max_ms + 1);
        const uint64_t last_ms = rt_rng_next(&rng) >> rt_rng_below(&rng, 64);
        if (rt_delivery_policy_jittered(&p, delay_ms, last_ms, rt_rng_next(&rng)) > max_ms) fail();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules__linear_keep_to_the_formula),
        cmocka_unit_test(schedules__arithmetic_keep_to_the_formula),
        cmocka_unit_test(schedules__geometric_keep_to_the_formula),
        cmocka_unit_test(schedules__exponential_keep_to_the_formula),
        cmocka_unit_test(jitter__none_changes_nothing),
        cmocka_unit_test(jitter__full_is_uniform_from_zero),
        cmocka_unit_test(jitter__equal_keeps_at_least_half),
        cmocka_unit_test(jitter__decorrelated_grows_out_of_the_last_wait),
        cmocka_unit_test(jitter__immediate_retries_stay_immediate),
        cmocka_unit_test(jitter__never_exceeds_the_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
