#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "policy/circuit.h"

static rt_circuit_settings settings(void) {
    rt_circuit_settings s = rt_circuit_settings_default();
    s.minimum_attempts = 4;
    return s;
}

static void circuit__defaults_are_those_of_the_design(void **state) {
    (void)state;
    const rt_circuit_settings s = rt_circuit_settings_default();
    assert_true(s.enabled);
    assert_int_equal(s.window_s, 10);
    assert_int_equal(s.minimum_attempts, 20);
    assert_true(s.failure_rate == 0.5);
    assert_true(s.slow_call_s == 0);
    assert_int_equal(s.sleep_s, 5);
    assert_int_equal(s.maximum_sleep_s, 300);
    assert_int_equal(s.probes, 3);
    assert_int_equal(s.release_per_s, 100);
    assert_int_equal(s.max_open_s, 86400);
    assert_null(rt_circuit_settings_check(&s));
}

static void refuse(rt_circuit_settings s, const char *field) {
    const char *why = rt_circuit_settings_check(&s);
    assert_non_null(why);
    assert_non_null(strstr(why, field));
}

static void circuit__check_names_the_field(void **state) {
    (void)state;
    const rt_circuit_settings d = rt_circuit_settings_default();
    rt_circuit_settings s;
    s = d, s.window_s = 0, refuse(s, "window_s");
    s = d, s.window_s = 3601, refuse(s, "window_s");
    s = d, s.minimum_attempts = 0, refuse(s, "minimum_attempts");
    s = d, s.failure_rate = 0, refuse(s, "failure_rate");
    s = d, s.failure_rate = 1.01, refuse(s, "failure_rate");
    s = d, s.failure_rate = (double)NAN, refuse(s, "failure_rate");
    s = d, s.slow_call_s = -1, refuse(s, "slow_call_s");
    s = d, s.slow_call_s = (double)INFINITY, refuse(s, "slow_call_s");
    s = d, s.slow_call_rate = 0, refuse(s, "slow_call_rate");
    s = d, s.sleep_s = 0, refuse(s, "sleep_s");
    s = d, s.maximum_sleep_s = 4, refuse(s, "maximum_sleep_s");
    s = d, s.probes = 0, refuse(s, "probes");
    s = d, s.probes = 1001, refuse(s, "probes");
    s = d, s.max_open_s = 31536001, refuse(s, "max_open_s");
    s = d, s.maximum_sleep_s = 5, s.max_open_s = 0, s.release_per_s = 0;
    assert_null(rt_circuit_settings_check(&s));
}

static void circuit__needs_enough_attempts_and_enough_failures(void **state) {
    (void)state;
    const rt_circuit_settings s = settings();
    // {succeeded, failed} in the window, and whether that opens it: at least 4 attempts, half of them failed.
    const struct {
        int good, bad;
        bool trips;
    } rows[] = {
        {0, 0, false}, {0, 3, false}, {0, 4, true}, {1, 3, true},
        {2, 2, true},  {3, 2, false}, {3, 3, true}, {100, 99, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rt_circuit_window w = {0};
        for (int n = 0; n < rows[i].good; n++) rt_circuit_window_add(&w, &s, 5000, false, 1);
        for (int n = 0; n < rows[i].bad; n++) rt_circuit_window_add(&w, &s, 5000, true, 1);
        assert_int_equal(rt_circuit_trips(&w, &s, 5000), rows[i].trips);
    }
}

static void circuit__forgets_what_has_left_the_window(void **state) {
    (void)state;
    const rt_circuit_settings s = settings(); // ten slices of a second
    rt_circuit_window w = {0};
    for (int i = 0; i < 4; i++) rt_circuit_window_add(&w, &s, 1000000, true, 1);
    assert_true(rt_circuit_trips(&w, &s, 1009999));
    assert_false(rt_circuit_trips(&w, &s, 1010000));
    rt_circuit_window_add(&w, &s, 1009000, true, 1);
    assert_true(rt_circuit_trips(&w, &s, 1009999));
    rt_circuit_window_add(&w, &s, 1010000, true, 1); // drops the four
    assert_false(rt_circuit_trips(&w, &s, 1010000));
    for (int i = 0; i < 2; i++) rt_circuit_window_add(&w, &s, 1011000, true, 1);
    assert_true(rt_circuit_trips(&w, &s, 1018999)); // 1 + 1 + 2
    assert_false(rt_circuit_trips(&w, &s, 1019000));
}

static void circuit__a_clock_that_is_set_back_empties_the_window(void **state) {
    (void)state;
    const rt_circuit_settings s = settings();
    rt_circuit_window w = {0};
    for (int i = 0; i < 4; i++) rt_circuit_window_add(&w, &s, 1000000, true, 1);
    assert_false(rt_circuit_trips(&w, &s, 900000));
    rt_circuit_window_add(&w, &s, 900000, true, 1);
    assert_false(rt_circuit_trips(&w, &s, 900000));
}

static void circuit__windows_of_nodes_add_up(void **state) {
    (void)state;
    const rt_circuit_settings s = settings(); // ten slices of a second
    // One counts at `mine_ms`, another at `others_ms`; together seen at `now_ms`: so many attempts of both.
    const struct {
        int64_t mine_ms, others_ms, now_ms;
        uint64_t attempts;
    } rows[] = {
        {1000000, 1000000, 1000000, 5}, // the same slice
        {1000000, 1009999, 1009999, 5}, // the first and the last of a window
        {1000000, 1010000, 1010000, 3}, // mine has left it
        {1010000, 1000000, 1010000, 2}, // the other's has
        {1000000, 1003000, 1000000, 5}, // its clock is ahead
        {1003000, 1000000, 1000000, 5}, // mine was
        {1000000, 1020000, 1000000, 2}, // not by so much: another length of the window, or a broken clock
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rt_circuit_window mine = {0}, others = {0};
        for (int n = 0; n < 2; n++) rt_circuit_window_add(&mine, &s, rows[i].mine_ms, n == 0, 1);
        for (int n = 0; n < 3; n++) rt_circuit_window_add(&others, &s, rows[i].others_ms, true, 1);
        rt_circuit_window_merge(&mine, &others, &s, rows[i].now_ms);
        const rt_circuit_counts c = rt_circuit_window_counts(&mine, &s, rows[i].now_ms);
        assert_int_equal(c.attempts, rows[i].attempts);
        assert_int_equal(c.failures, rows[i].attempts == 5 ? 4 : rows[i].attempts == 3 ? 3 : 1);
        assert_int_equal(c.slow, 0);
    }
    rt_circuit_window full = {0}, one = {0};
    rt_circuit_window_add(&full, &s, 1000000, true, 1);
    rt_circuit_window_add(&one, &s, 1000000, true, 1);
    full.slices[0].attempts = UINT32_MAX; // slice 1000 is at its place 0
    rt_circuit_window_merge(&full, &one, &s, 1000000);
    assert_int_equal(full.slices[0].attempts, UINT32_MAX);
    assert_int_equal(full.slices[0].failures, 2);
}

static void circuit__slow_answers_count_by_their_own_rate(void **state) {
    (void)state;
    rt_circuit_settings s = settings();
    s.slow_call_s = 0.5;
    s.slow_call_rate = 0.75;
    rt_circuit_window w = {0};
    for (int i = 0; i < 2; i++) rt_circuit_window_add(&w, &s, 1000, false, 500);
    for (int i = 0; i < 2; i++) rt_circuit_window_add(&w, &s, 1000, false, 499);
    assert_false(rt_circuit_trips(&w, &s, 1000)); // 2 of 4
    for (int i = 0; i < 4; i++) rt_circuit_window_add(&w, &s, 1000, false, 9999);
    assert_true(rt_circuit_trips(&w, &s, 1000)); // 6 of 8
    s.slow_call_s = 0;
    assert_false(rt_circuit_is_slow(&s, UINT32_MAX));
}

static void circuit__sleeps_twice_as_long_each_time_up_to_the_maximum(void **state) {
    (void)state;
    const rt_circuit_settings s = rt_circuit_settings_default();
    const uint32_t want[] = {5000, 10000, 20000, 40000, 80000, 160000, 300000, 300000};
    uint32_t slept = 0;
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        slept = rt_circuit_sleep_ms(&s, slept);
        assert_int_equal(slept, want[i]);
    }
    assert_int_equal(rt_circuit_sleep_ms(&s, UINT32_MAX), 300000);
}

static void circuit__states_have_names(void **state) {
    (void)state;
    assert_string_equal(rt_circuit_state_name(RT_CIRCUIT_CLOSED), "closed");
    assert_string_equal(rt_circuit_state_name(RT_CIRCUIT_OPEN), "open");
    assert_string_equal(rt_circuit_state_name(RT_CIRCUIT_HALF_OPEN), "half_open");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(circuit__defaults_are_those_of_the_design),
        cmocka_unit_test(circuit__check_names_the_field),
        cmocka_unit_test(circuit__needs_enough_attempts_and_enough_failures),
        cmocka_unit_test(circuit__forgets_what_has_left_the_window),
        cmocka_unit_test(circuit__a_clock_that_is_set_back_empties_the_window),
        cmocka_unit_test(circuit__windows_of_nodes_add_up),
        cmocka_unit_test(circuit__slow_answers_count_by_their_own_rate),
        cmocka_unit_test(circuit__sleeps_twice_as_long_each_time_up_to_the_maximum),
        cmocka_unit_test(circuit__states_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
