/* Delivery policies. The expected numbers are worked out by hand from the formulas in DESIGN.md and the
 * Zaqar specs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "retryd/policy.h"

enum { ROW_MAX = 16 };

static rt_delivery_policy backoff_of(rt_backoff_function f, uint32_t min_s, uint32_t max_s, uint32_t num) {
    rt_delivery_policy p = rt_delivery_policy_default();
    p.backoff_function = f;
    p.minimum_delay_s = min_s;
    p.maximum_delay_s = max_s;
    p.backoff_retries = num;
    return p;
}

/* The delay before `retry`, which must be there and in `phase`. */
static uint64_t delay_in(const rt_delivery_policy *p, uint32_t retry, rt_phase phase) {
    uint64_t ms = UINT64_MAX;
    rt_phase is = RT_PHASE_COUNT;
    assert_true(rt_delivery_policy_delay(p, retry, &ms, &is));
    assert_string_equal(rt_phase_name(is), rt_phase_name(phase));
    return ms;
}

typedef struct backoff_row {
    rt_backoff_function function;
    uint32_t min_s, max_s;
    uint32_t backoff_retries; // 0: derived
    uint32_t num;
    uint64_t ms[ROW_MAX];
} backoff_row;

static void check_rows(const backoff_row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const backoff_row *row = &rows[i];
        const rt_delivery_policy p = backoff_of(row->function, row->min_s, row->max_s, row->backoff_retries);
        assert_null(rt_delivery_policy_check(&p));
        assert_int_equal(rt_delivery_policy_backoff_retries(&p), row->num);
        for (uint32_t n = 1; n <= row->num; n++) {
            // Three immediate ones and three of the pre-backoff phase come first.
            assert_int_equal(delay_in(&p, 6 + n, RT_PHASE_BACKOFF), row->ms[n - 1]);
        }
    }
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

static void policy__default_gives_21_retries(void **state) {
    (void)state;
    static const uint64_t WANT[] = {0,     0,     0,     5000,  5000,  5000,  5000,
                                    10000, 15000, 20000, 25000, 30000, 35000, 40000,
                                    45000, 50000, 55000, 60000, 60000, 60000, 60000};
    const rt_delivery_policy p = rt_delivery_policy_default();
    assert_null(rt_delivery_policy_check(&p));
    assert_int_equal(rt_delivery_policy_retries(&p), 21);
    for (uint32_t retry = 1; retry <= 21; retry++) {
        const rt_phase phase = retry <= 3    ? RT_PHASE_IMMEDIATE
                               : retry <= 6  ? RT_PHASE_PRE_BACKOFF
                               : retry <= 18 ? RT_PHASE_BACKOFF
                                             : RT_PHASE_POST_BACKOFF;
        assert_int_equal(delay_in(&p, retry, phase), WANT[retry - 1]);
    }
}

static void policy__after_the_last_retry_there_is_none(void **state) {
    (void)state;
    const rt_delivery_policy p = rt_delivery_policy_default();
    uint64_t ms = 7;
    rt_phase phase = RT_PHASE_BACKOFF;
    assert_false(rt_delivery_policy_delay(&p, 22, &ms, &phase));
    assert_false(rt_delivery_policy_delay(&p, UINT32_MAX, &ms, &phase));
    assert_int_equal(ms, 7);
    assert_int_equal(phase, RT_PHASE_BACKOFF);
}

static void policy__phases_of_no_retries_are_passed_over(void **state) {
    (void)state;
    rt_delivery_policy p = backoff_of(RT_BACKOFF_LINEAR, 1, 2, 1);
    p.retries_with_no_delay = 0;
    p.minimum_delay_retries = 0;
    p.maximum_delay_retries = 0;
    assert_int_equal(rt_delivery_policy_retries(&p), 1);
    assert_int_equal(delay_in(&p, 1, RT_PHASE_BACKOFF), 1000);
    p.maximum_delay_retries = 1;
    assert_int_equal(delay_in(&p, 2, RT_PHASE_POST_BACKOFF), 2000);
    p.minimum_delay_retries = 1;
    assert_int_equal(delay_in(&p, 1, RT_PHASE_PRE_BACKOFF), 1000);
    assert_int_equal(delay_in(&p, 2, RT_PHASE_BACKOFF), 1000);
    assert_int_equal(delay_in(&p, 3, RT_PHASE_POST_BACKOFF), 2000);
}

static void policy__all_phases_at_their_largest_are_counted(void **state) {
    (void)state;
    rt_delivery_policy p = backoff_of(RT_BACKOFF_LINEAR, 1, RT_DELAY_S_MAX, 100);
    p.retries_with_no_delay = p.minimum_delay_retries = p.maximum_delay_retries = RT_PHASE_RETRIES_MAX;
    assert_null(rt_delivery_policy_check(&p));
    assert_int_equal(rt_delivery_policy_retries(&p), 300100);
    assert_int_equal(delay_in(&p, 100000, RT_PHASE_IMMEDIATE), 0);
    assert_int_equal(delay_in(&p, 100001, RT_PHASE_PRE_BACKOFF), 1000);
    assert_int_equal(delay_in(&p, 200001, RT_PHASE_BACKOFF), 1000);
    assert_int_equal(delay_in(&p, 200100, RT_PHASE_BACKOFF), 31536000000);
    assert_int_equal(delay_in(&p, 300100, RT_PHASE_POST_BACKOFF), 31536000000);
}

static void policy__linear(void **state) {
    (void)state;
    static const backoff_row ROWS[] = {
        // The worked example: 55 s in 11 steps of 5 s.
        {RT_BACKOFF_LINEAR, 5, 60, 12, 12,
         {5000, 10000, 15000, 20000, 25000, 30000, 35000, 40000, 45000, 50000, 55000, 60000}},
        // 60 s in 12 steps; 60 / 5 + 1 = 13 retries.
        {RT_BACKOFF_LINEAR, 20, 80, 0, 13,
         {20000, 25000, 30000, 35000, 40000, 45000, 50000, 55000, 60000, 65000, 70000, 75000, 80000}},
        // "10 retries" from 5 to 260 s: 255 / 9 = 28.333… s.
        {RT_BACKOFF_LINEAR, 5, 260, 10, 10,
         {5000, 33333, 61667, 90000, 118333, 146667, 175000, 203333, 231667, 260000}},
        // 11 / 5 is floored to 2, so 3 retries; steps of 5.5 s.
        {RT_BACKOFF_LINEAR, 5, 16, 0, 3, {5000, 10500, 16000}},
        // 14 / 5 is floored to 2 as well; steps of 7 s.
        {RT_BACKOFF_LINEAR, 0, 14, 0, 3, {0, 7000, 14000}},
        // 1 s in 14 steps of 71.43 ms.
        {RT_BACKOFF_LINEAR, 0, 1, 15, 15,
         {0, 71, 143, 214, 286, 357, 429, 500, 571, 643, 714, 786, 857, 929, 1000}},
        {RT_BACKOFF_LINEAR, 7, 7, 3, 3, {7000, 7000, 7000}},
        {RT_BACKOFF_LINEAR, 0, 0, 2, 2, {0, 0}},
    };
    CHECK_ROWS(ROWS);
}

static void policy__a_half_millisecond_goes_up(void **state) {
    (void)state;
    // 1 s in 16 steps of 62.5 ms.
    const rt_delivery_policy p = backoff_of(RT_BACKOFF_LINEAR, 0, 1, 17);
    static const uint64_t WANT[17] = {0,   63,  125, 188, 250, 313, 375, 438, 500,
                                      563, 625, 688, 750, 813, 875, 938, 1000};
    for (uint32_t n = 1; n <= 17; n++) assert_int_equal(delay_in(&p, 6 + n, RT_PHASE_BACKOFF), WANT[n - 1]);
}

static void policy__arithmetic(void **state) {
    (void)state;
    static const backoff_row ROWS[] = {
        // d = 2 * 55 / (12 * 11) = 5/6 s; the steps taken are 0, 1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 66.
        {RT_BACKOFF_ARITHMETIC, 5, 60, 0, 12,
         {5000, 5833, 7500, 10000, 13333, 17500, 22500, 28333, 35000, 42500, 50833, 60000}},
        // d = 2 * 60 / (13 * 12) = 10/13 s; … 66, 78 steps.
        {RT_BACKOFF_ARITHMETIC, 20, 80, 0, 13,
         {20000, 20769, 22308, 24615, 27692, 31538, 36154, 41538, 47692, 54615, 62308, 70769, 80000}},
        // d = 2 * 255 / (10 * 9) = 17/3 s.
        {RT_BACKOFF_ARITHMETIC, 5, 260, 10, 10,
         {5000, 10667, 22000, 39000, 61667, 90000, 124000, 163667, 209000, 260000}},
        // d = 2 * 10 / (3 * 2) = 10/3 s: 0, 10/3, 10.
        {RT_BACKOFF_ARITHMETIC, 0, 10, 0, 3, {0, 3333, 10000}},
        {RT_BACKOFF_ARITHMETIC, 1, 11, 2, 2, {1000, 11000}},
        {RT_BACKOFF_ARITHMETIC, 4, 4, 2, 2, {4000, 4000}},
    };
    CHECK_ROWS(ROWS);
}

/* Geometric and exponential are the same numbers: MIN K^(n-1) and (MIN/k) k^n with k = K. */
static void policy__geometric_and_exponential(void **state) {
    (void)state;
    backoff_row rows[] = {
        // 16^(1/4) = 2.
        {RT_BACKOFF_GEOMETRIC, 1, 16, 5, 5, {1000, 2000, 4000, 8000, 16000}},
        {RT_BACKOFF_GEOMETRIC, 5, 80, 5, 5, {5000, 10000, 20000, 40000, 80000}},
        {RT_BACKOFF_GEOMETRIC, 20, 80, 3, 3, {20000, 40000, 80000}},
        // 4^(1/12) is the sixth root of 2; its powers are 1, 1.1224620, 1.2599210, 1.4142136, 1.5874011,
        // 1.7817974, then the doubles of these.
        {RT_BACKOFF_GEOMETRIC, 20, 80, 0, 13,
         {20000, 22449, 25198, 28284, 31748, 35636, 40000, 44898, 50397, 56569, 63496, 71272, 80000}},
        // 9^(1/2) = 3 and 2^(1/2) = 1.41421356.
        {RT_BACKOFF_GEOMETRIC, 1, 9, 3, 3, {1000, 3000, 9000}},
        {RT_BACKOFF_GEOMETRIC, 1, 2, 3, 3, {1000, 1414, 2000}},
        {RT_BACKOFF_GEOMETRIC, 9, 9, 4, 4, {9000, 9000, 9000, 9000}},
    };
    CHECK_ROWS(rows);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) rows[i].function = RT_BACKOFF_EXPONENTIAL;
    CHECK_ROWS(rows);
}

static void policy__one_backoff_retry_waits_the_minimum(void **state) {
    (void)state;
    for (int f = 0; f < RT_BACKOFF_FUNCTION_COUNT; f++) {
        const rt_delivery_policy p = backoff_of((rt_backoff_function)f, 5, 60, 1);
        assert_null(rt_delivery_policy_check(&p));
        assert_int_equal(delay_in(&p, 7, RT_PHASE_BACKOFF), 5000);
        assert_int_equal(delay_in(&p, 8, RT_PHASE_POST_BACKOFF), 60000);
    }
}

static void policy__num_is_derived_floored_and_bounded(void **state) {
    (void)state;
    static const struct {
        uint32_t min_s, max_s, num;
    } ROWS[] = {
        {5, 60, 12}, {5, 15, 3},   {5, 16, 3},   {5, 19, 3}, {5, 20, 4}, {0, 494, 99}, {0, 495, 100},
        {0, 499, 100}, {0, 500, 100}, {1, RT_DELAY_S_MAX, 100},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        const rt_delivery_policy p = backoff_of(RT_BACKOFF_LINEAR, ROWS[i].min_s, ROWS[i].max_s, 0);
        assert_null(rt_delivery_policy_check(&p));
        assert_int_equal(rt_delivery_policy_backoff_retries(&p), ROWS[i].num);
    }
    const rt_delivery_policy given = backoff_of(RT_BACKOFF_LINEAR, 5, 60, 7);
    assert_int_equal(rt_delivery_policy_backoff_retries(&given), 7);
}

// ---- checks -------------------------------------------------------------------------------------

static void expect_text(const rt_delivery_policy *p, const char *text) {
    const char *said = rt_delivery_policy_check(p);
    if (text == NULL) {
        assert_null(said);
        return;
    }
    assert_non_null(said);
    assert_string_equal(said, text);
}

static void policy__check_of_the_two_delays(void **state) {
    (void)state;
    static const char LESS[] = "minimum_delay must less than maximum_delay.";
    static const char SPREAD[] = "invalid minimum_delay and maximum_delay.";
    static const struct {
        uint32_t min_s, max_s, backoff_retries;
        const char *text;
    } ROWS[] = {
        {61, 60, 0, LESS},   {61, 60, 5, LESS},  {60, 60, 0, SPREAD}, {60, 60, 5, NULL}, {51, 60, 0, SPREAD},
        {51, 60, 1, NULL},   {50, 60, 0, NULL},  {0, 9, 0, SPREAD},   {0, 10, 0, NULL},  {0, 0, 1, NULL},
        {1, RT_DELAY_S_MAX, 0, NULL},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        const rt_delivery_policy p = backoff_of(RT_BACKOFF_LINEAR, ROWS[i].min_s, ROWS[i].max_s,
                                                ROWS[i].backoff_retries);
        expect_text(&p, ROWS[i].text);
    }
}

static void policy__check_refuses_growth_out_of_zero(void **state) {
    (void)state;
    static const char POWER[] =
        "Retry policy: minimum_delay must be at least 1 second with geometric or exponential backoff.";
    for (int f = 0; f < RT_BACKOFF_FUNCTION_COUNT; f++) {
        const bool power = f == RT_BACKOFF_GEOMETRIC || f == RT_BACKOFF_EXPONENTIAL;
        for (uint32_t num = 0; num <= 2; num++) {
            const rt_delivery_policy p = backoff_of((rt_backoff_function)f, 0, 60, num);
            expect_text(&p, power ? POWER : NULL);
        }
    }
    rt_delivery_policy p = backoff_of(RT_BACKOFF_LINEAR, 0, 60, 0);
    p.jitter = RT_JITTER_DECORRELATED;
    expect_text(&p, "Retry policy: minimum_delay must be at least 1 second with decorrelated jitter.");
}

static void policy__check_of_each_limit(void **state) {
    (void)state;
    static const struct {
        size_t offset;
        uint32_t allowed, refused;
        const char *text;
    } ROWS[] = {
        {offsetof(rt_delivery_policy, retries_with_no_delay), 100000, 100001,
         "Retry policy: retries_with_no_delay must be between 0 and 100000."},
        {offsetof(rt_delivery_policy, minimum_delay_retries), 100000, 100001,
         "Retry policy: minimum_delay_retries must be between 0 and 100000."},
        {offsetof(rt_delivery_policy, maximum_delay_retries), 100000, 100001,
         "Retry policy: maximum_delay_retries must be between 0 and 100000."},
        {offsetof(rt_delivery_policy, maximum_delay_s), 31536000, 31536001,
         "Retry policy: maximum_delay must be between 0 and 31536000 seconds."},
        {offsetof(rt_delivery_policy, minimum_delay_s), 50, 31536001,
         "Retry policy: minimum_delay must be between 0 and 31536000 seconds."},
        {offsetof(rt_delivery_policy, backoff_retries), 100, 101,
         "Retry policy: backoff_retries must be between 1 and 100."},
        {offsetof(rt_delivery_policy, maximum_age_s), 31536000, 31536001,
         "Retry policy: maximum_age must be between 0 (no limit) and 31536000 seconds."},
        {offsetof(rt_delivery_policy, attempt_timeout_s), 3600, 3601,
         "Retry policy: attempt_timeout must be between 1 and 3600 seconds."},
        {offsetof(rt_delivery_policy, attempt_timeout_s), 1, 0,
         "Retry policy: attempt_timeout must be between 1 and 3600 seconds."},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        rt_delivery_policy p = rt_delivery_policy_default();
        memcpy((char *)&p + ROWS[i].offset, &ROWS[i].allowed, sizeof ROWS[i].allowed);
        expect_text(&p, NULL);
        memcpy((char *)&p + ROWS[i].offset, &ROWS[i].refused, sizeof ROWS[i].refused);
        expect_text(&p, ROWS[i].text);
    }
}

static void policy__check_of_retry_on(void **state) {
    (void)state;
    static const char RANGE[] = "Retry policy: retry_on must name statuses between 0 and 999.";
    static const char SUCCESS[] =
        "Retry policy: retry_on must not name statuses 200 to 299, which are success.";
    static const struct {
        rt_status_range range;
        const char *text;
    } ROWS[] = {
        {{0, 999}, SUCCESS},   {{0, 199}, NULL},      {{300, 999}, NULL},    {{408, 408}, NULL},
        {{0, 0}, NULL},        {{999, 999}, NULL},    {{1000, 1000}, RANGE}, {{429, 408}, RANGE},
        {{299, 300}, SUCCESS}, {{100, 200}, SUCCESS}, {{204, 204}, SUCCESS},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        rt_delivery_policy p = rt_delivery_policy_default();
        p.retry_on_count = 1;
        p.retry_on[0] = ROWS[i].range;
        expect_text(&p, ROWS[i].text);
    }
    rt_delivery_policy p = rt_delivery_policy_default();
    for (int i = 0; i < RT_RETRY_ON_MAX; i++) p.retry_on[i] = (rt_status_range){404, 404};
    p.retry_on_count = RT_RETRY_ON_MAX;
    expect_text(&p, NULL);
    p.retry_on_count = RT_RETRY_ON_MAX + 1;
    expect_text(&p, "Retry policy: retry_on may name at most 16 statuses or ranges.");
}

static void policy__check_refuses_what_is_no_enumerator(void **state) {
    (void)state;
    rt_delivery_policy p = rt_delivery_policy_default();
    p.backoff_function = RT_BACKOFF_FUNCTION_COUNT;
    expect_text(&p, "invalid retry_backoff_function.");
    p = rt_delivery_policy_default();
    p.jitter = RT_JITTER_COUNT;
    expect_text(&p, "Retry policy: jitter must be none, full, equal or decorrelated.");
}

// ---- answers ------------------------------------------------------------------------------------

static void policy__judges_by_the_document(void **state) {
    (void)state;
    const rt_delivery_policy p = rt_delivery_policy_default();
    for (uint32_t status = 0; status < 1100; status++) {
        const rt_verdict want = status >= 200 && status <= 299   ? RT_VERDICT_SUCCESS
                                : status >= 300 && status <= 499 ? RT_VERDICT_REJECTED
                                                                 : RT_VERDICT_RETRY;
        assert_int_equal(rt_delivery_policy_judge(&p, status), want);
    }
}

static void policy__judges_by_retry_on_too(void **state) {
    (void)state;
    rt_delivery_policy p = rt_delivery_policy_default();
    p.retry_on_count = 2;
    p.retry_on[0] = (rt_status_range){429, 429};
    p.retry_on[1] = (rt_status_range){300, 399};
    static const struct {
        uint32_t status;
        rt_verdict want;
    } ROWS[] = {
        {299, RT_VERDICT_SUCCESS},  {300, RT_VERDICT_RETRY},    {399, RT_VERDICT_RETRY},
        {400, RT_VERDICT_REJECTED}, {428, RT_VERDICT_REJECTED}, {429, RT_VERDICT_RETRY},
        {430, RT_VERDICT_REJECTED}, {500, RT_VERDICT_RETRY},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        assert_int_equal(rt_delivery_policy_judge(&p, ROWS[i].status), ROWS[i].want);
    }
}

static void policy__names_are_those_of_the_wire(void **state) {
    (void)state;
    assert_string_equal(rt_backoff_function_name(RT_BACKOFF_LINEAR), "linear");
    assert_string_equal(rt_backoff_function_name(RT_BACKOFF_ARITHMETIC), "arithmetic");
    assert_string_equal(rt_backoff_function_name(RT_BACKOFF_GEOMETRIC), "geometric");
    assert_string_equal(rt_backoff_function_name(RT_BACKOFF_EXPONENTIAL), "exponential");
    assert_string_equal(rt_jitter_name(RT_JITTER_NONE), "none");
    assert_string_equal(rt_jitter_name(RT_JITTER_FULL), "full");
    assert_string_equal(rt_jitter_name(RT_JITTER_EQUAL), "equal");
    assert_string_equal(rt_jitter_name(RT_JITTER_DECORRELATED), "decorrelated");
    assert_string_equal(rt_phase_name(RT_PHASE_IMMEDIATE), "immediate");
    assert_string_equal(rt_phase_name(RT_PHASE_PRE_BACKOFF), "pre_backoff");
    assert_string_equal(rt_phase_name(RT_PHASE_BACKOFF), "backoff");
    assert_string_equal(rt_phase_name(RT_PHASE_POST_BACKOFF), "post_backoff");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policy__default_gives_21_retries),
        cmocka_unit_test(policy__after_the_last_retry_there_is_none),
        cmocka_unit_test(policy__phases_of_no_retries_are_passed_over),
        cmocka_unit_test(policy__all_phases_at_their_largest_are_counted),
        cmocka_unit_test(policy__linear),
        cmocka_unit_test(policy__a_half_millisecond_goes_up),
        cmocka_unit_test(policy__arithmetic),
        cmocka_unit_test(policy__geometric_and_exponential),
        cmocka_unit_test(policy__one_backoff_retry_waits_the_minimum),
        cmocka_unit_test(policy__num_is_derived_floored_and_bounded),
        cmocka_unit_test(policy__check_of_the_two_delays),
        cmocka_unit_test(policy__check_refuses_growth_out_of_zero),
        cmocka_unit_test(policy__check_of_each_limit),
        cmocka_unit_test(policy__check_of_retry_on),
        cmocka_unit_test(policy__check_refuses_what_is_no_enumerator),
        cmocka_unit_test(policy__judges_by_the_document),
        cmocka_unit_test(policy__judges_by_retry_on_too),
        cmocka_unit_test(policy__names_are_those_of_the_wire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
