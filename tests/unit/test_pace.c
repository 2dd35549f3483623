#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/pace.h"

static void pace__doubles_with_failures_and_halves_with_successes(void **state) {
    (void)state;
    const rt_pace_settings s = {.enabled = true, .initial_ms = 100, .maximum_ms = 1000};
    const struct {
        uint32_t now;
        bool failed;
        uint32_t next;
    } rows[] = {
        {0, true, 100},    {100, true, 200},   {200, true, 400},   {400, true, 800},
        {800, true, 1000}, {1000, true, 1000}, {5000, true, 1000}, {1000, false, 500},
        {500, false, 250}, {250, false, 125},  {125, false, 0},    {200, false, 100},
        {199, false, 0},   {100, false, 0},    {0, false, 0},      {50, true, 100},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(rt_pace_next_ms(&s, rows[i].now, rows[i].failed), rows[i].next);
}

static void pace__does_not_overflow(void **state) {
    (void)state;
    const rt_pace_settings s = {.enabled = true, .initial_ms = 3600000, .maximum_ms = 86400000};
    assert_int_equal(rt_pace_next_ms(&s, UINT32_MAX, true), 86400000);
    assert_int_equal(rt_pace_next_ms(&s, UINT32_MAX, false), UINT32_MAX / 2);
}

static void pace__check_names_the_field(void **state) {
    (void)state;
    const rt_pace_settings d = rt_pace_settings_default();
    assert_false(d.enabled);
    assert_int_equal(d.initial_ms, 100);
    assert_int_equal(d.maximum_ms, 30000);
    assert_null(rt_pace_settings_check(&d));
    rt_pace_settings s;
    s = d, s.initial_ms = 0;
    assert_non_null(strstr(rt_pace_settings_check(&s), "initial_ms"));
    s = d, s.initial_ms = 3600001;
    assert_non_null(strstr(rt_pace_settings_check(&s), "initial_ms"));
    s = d, s.maximum_ms = 99;
    assert_non_null(strstr(rt_pace_settings_check(&s), "maximum_ms"));
    s = d, s.maximum_ms = 86400001;
    assert_non_null(strstr(rt_pace_settings_check(&s), "maximum_ms"));
}

/* ---- rate ---------------------------------------------------------------------------------------------- */

static void rate__starts_full_and_earns_back_by_time(void **state) {
    (void)state;
    rt_rate r = {0};
    const int64_t t = INT64_C(1700000000000);
    assert_int_equal(rt_rate_room(&r, 5, t), 5);
    for (int i = 0; i < 5; i++) rt_rate_take(&r, 5, t);
    assert_int_equal(rt_rate_room(&r, 5, t), 0);
    assert_int_equal(rt_rate_next_ms(&r, 5, t), t + 200);
    assert_int_equal(rt_rate_room(&r, 5, t + 199), 0);
    assert_int_equal(rt_rate_room(&r, 5, t + 200), 1);
    assert_int_equal(rt_rate_room(&r, 5, t + 999), 4);
    assert_int_equal(rt_rate_room(&r, 5, t + 1000), 5);
    assert_int_equal(rt_rate_room(&r, 5, t + 100000), 5); // at most as many at once
}

static void rate__next_time_is_one_at_which_there_is_room(void **state) {
    (void)state;
    const uint32_t rates[] = {1, 2, 3, 7, 10, 30, 99, 100, 333, 999, 1000};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        rt_rate r = {0};
        int64_t now = 1000;
        uint32_t took = 0;
        while (took < 3 * rates[i]) {
            if (rt_rate_room(&r, rates[i], now) == 0) {
                const int64_t next = rt_rate_next_ms(&r, rates[i], now);
                assert_true(next > now);
                now = next;
                assert_true(rt_rate_room(&r, rates[i], now) >= 1);
            }
            rt_rate_take(&r, rates[i], now);
            took++;
        }
        assert_in_range(now, 3000 - 5,
                        3000 + 3 * rates[i]); // two seconds for what went beyond the first burst
    }
}

static void rate__of_none_is_no_limit(void **state) {
    (void)state;
    rt_rate r = {0};
    rt_rate_take(&r, 0, 5);
    assert_int_equal(rt_rate_room(&r, 0, 5), UINT32_MAX);
    assert_int_equal(rt_rate_next_ms(&r, 0, 5), 5);
}

static void rate__may_change_at_any_time(void **state) {
    (void)state;
    rt_rate r = {0};
    for (int i = 0; i < 100; i++) rt_rate_take(&r, 100, 1000);
    assert_int_equal(rt_rate_room(&r, 10, 1000), 0);
    assert_int_equal(rt_rate_room(&r, 200, 1000), 100);
}

/* The same bucket, by clocks of two nodes: 500 ms are earned back once. */
static void rate__earns_nothing_twice_for_a_clock_that_is_behind(void **state) {
    (void)state;
    rt_rate r = {0};
    for (int i = 0; i < 10; i++) rt_rate_take(&r, 10, 1000);
    for (int i = 0; i < 5; i++) rt_rate_take(&r, 10, 1500);
    assert_int_equal(rt_rate_room(&r, 10, 1000), 0);
    assert_int_equal(rt_rate_next_ms(&r, 10, 1000), 1600);
    rt_rate_take(&r, 10, 1100); // by one that did not look: owed
    assert_int_equal(rt_rate_room(&r, 10, 1600), 0);
    assert_int_equal(rt_rate_room(&r, 10, 1700), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pace__doubles_with_failures_and_halves_with_successes),
        cmocka_unit_test(pace__does_not_overflow),
        cmocka_unit_test(pace__check_names_the_field),
        cmocka_unit_test(rate__starts_full_and_earns_back_by_time),
        cmocka_unit_test(rate__next_time_is_one_at_which_there_is_room),
        cmocka_unit_test(rate__of_none_is_no_limit),
        cmocka_unit_test(rate__may_change_at_any_time),
        cmocka_unit_test(rate__earns_nothing_twice_for_a_clock_that_is_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
