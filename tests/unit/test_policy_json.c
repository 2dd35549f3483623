/* Policies and work backoffs as JSON: Zaqar's rules and texts, and those of the options beyond it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "json/policy_json.h"
#include "json/scan.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

typedef struct refusal {
    const char *json, *text; // text NULL: accepted
} refusal;

static void check_policies(const refusal *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        rt_delivery_policy p;
        rt_err err = {0};
        const rt_code code = rt_policy_from_text(rt_str_of(rows[i].json), &p, &err);
        if (rows[i].text == NULL) {
            if (code != RT_OK) fail_msg("%s: refused: %s", rows[i].json, err.msg);
            continue;
        }
        if (code == RT_OK) fail_msg("%s: accepted", rows[i].json);
        assert_int_equal(code, RT_E_INVALID);
        assert_string_equal(err.msg, rows[i].text);
    }
}

static rt_delivery_policy policy_of(const char *json) {
    rt_delivery_policy p;
    memset(&p, 0xff, sizeof p);
    rt_err err = {0};
    if (rt_policy_from_text(rt_str_of(json), &p, &err) != RT_OK) fail_msg("%s: %s", json, err.msg);
    return p;
}

static void assert_default(const rt_delivery_policy *p) {
    const rt_delivery_policy want = rt_delivery_policy_default();
    assert_int_equal(p->retries_with_no_delay, want.retries_with_no_delay);
    assert_int_equal(p->minimum_delay_retries, want.minimum_delay_retries);
    assert_int_equal(p->minimum_delay_s, want.minimum_delay_s);
    assert_int_equal(p->maximum_delay_s, want.maximum_delay_s);
    assert_int_equal(p->maximum_delay_retries, want.maximum_delay_retries);
    assert_int_equal(p->backoff_retries, 0);
    assert_int_equal(p->maximum_age_s, 0);
    assert_int_equal(p->attempt_timeout_s, 30);
    assert_int_equal(p->backoff_function, RT_BACKOFF_LINEAR);
    assert_int_equal(p->jitter, RT_JITTER_NONE);
    assert_false(p->ignore_subscription_override);
    assert_false(p->respect_retry_after);
    assert_false(p->follow_redirects);
    assert_int_equal(p->retry_on_count, 0);
}

static void policy_json__falsy_policies_mean_the_defaults(void **state) {
    (void)state;
    static const char *const FALSY[] = {
        "{}", "null", "0", "0.0", "-0.0", "false", "\"\"", "[]",
        "{\"_retry_policy\": {}}", "{\"_retry_policy\": null}", "{\"unknown\": 1}",
    };
    for (size_t i = 0; i < COUNT(FALSY); i++) {
        const rt_delivery_policy p = policy_of(FALSY[i]);
        assert_default(&p);
    }
    rt_delivery_policy p;
    assert_int_equal(rt_policy_from_json(NULL, &p, NULL), RT_OK);
    assert_default(&p);
}

static void policy_json__truthy_policies_must_be_objects(void **state) {
    (void)state;
    static const refusal ROWS[] = {
        {"1", "retry_policy must be a dict."},
        {"true", "retry_policy must be a dict."},
        {"\"x\"", "retry_policy must be a dict."},
        {"[{}]", "retry_policy must be a dict."},
        {"0.5", "retry_policy must be a dict."},
        {"{\"_retry_policy\": 1}", "retry_policy must be a dict."},
    };
    check_policies(ROWS, COUNT(ROWS));
}

static void policy_json__reads_every_key(void **state) {
    (void)state;
    const rt_delivery_policy p = policy_of(
        "{\"_retry_policy\": {\"retries_with_no_delay\": 1, \"minimum_delay_retries\": 2,"
        " \"minimum_delay\": 4, \"maximum_delay\": 400, \"maximum_delay_retries\": 5,"
        " \"retry_backoff_function\": \"geometric\", \"ignore_subscription_override\": true,"
        " \"backoff_retries\": 7, \"maximum_age\": 3600, \"attempt_timeout\": 9, \"jitter\": \"equal\","
        " \"respect_retry_after\": true, \"follow_redirects\": true,"
        " \"retry_on\": [\"408\", 429, \"3xx\", \"4XX\"], \"unknown\": {\"kept\": [1]}},"
        " \"_default_message_ttl\": 60}");
    assert_int_equal(p.retries_with_no_delay, 1);
    assert_int_equal(p.minimum_delay_retries, 2);
    assert_int_equal(p.minimum_delay_s, 4);
    assert_int_equal(p.maximum_delay_s, 400);
    assert_int_equal(p.maximum_delay_retries, 5);
    assert_int_equal(p.backoff_retries, 7);
    assert_int_equal(p.maximum_age_s, 3600);
    assert_int_equal(p.attempt_timeout_s, 9);
    assert_int_equal(p.backoff_function, RT_BACKOFF_GEOMETRIC);
    assert_int_equal(p.jitter, RT_JITTER_EQUAL);
    assert_true(p.ignore_subscription_override);
    assert_true(p.respect_retry_after);
    assert_true(p.follow_redirects);
    static const rt_status_range WANT[] = {{408, 408}, {429, 429}, {300, 399}, {400, 499}};
    assert_int_equal(p.retry_on_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(p.retry_on[i].low, WANT[i].low);
        assert_int_equal(p.retry_on[i].high, WANT[i].high);
    }
}

static void policy_json__explicit_zero_is_kept(void **state) {
    (void)state;
    rt_delivery_policy p =
        policy_of("{\"retries_with_no_delay\": 0, \"minimum_delay_retries\": false,"
                  " \"maximum_delay_retries\": 0.0, \"minimum_delay\": 0, \"maximum_delay\": 10}");
    assert_int_equal(p.retries_with_no_delay, 0);
    assert_int_equal(p.minimum_delay_retries, 0);
    assert_int_equal(p.maximum_delay_retries, 0);
    assert_int_equal(p.minimum_delay_s, 0);
    assert_int_equal(rt_delivery_policy_retries(&p), 3); // 10 / 5 + 1 of the backoff phase
    p = policy_of("{\"maximum_delay_retries\": true}");
    assert_int_equal(p.maximum_delay_retries, 1);
}

static void policy_json__types_are_checked_on_truthy_values_only(void **state) {
    (void)state;
    static const refusal ROWS[] = {
        {"{\"retries_with_no_delay\": \"3\"}", "Retry policy: retries_with_no_delay must be a integer."},
        {"{\"minimum_delay_retries\": 1.5}", "Retry policy: minimum_delay_retries must be a integer."},
        {"{\"minimum_delay\": 5.0}", "Retry policy: minimum_delay must be a integer."},
        {"{\"maximum_delay\": [60]}", "Retry policy: maximum_delay must be a integer."},
        {"{\"maximum_delay_retries\": {\"a\": 1}}",
         "Retry policy: maximum_delay_retries must be a integer."},
        {"{\"retry_backoff_function\": 1}", "retry_backoff_function must be a string."},
        {"{\"retry_backoff_function\": true}", "retry_backoff_function must be a string."},
        {"{\"retry_backoff_function\": \"quadratic\"}", "invalid retry_backoff_function."},
        {"{\"retry_backoff_function\": \"Linear\"}", "invalid retry_backoff_function."},
        {"{\"ignore_subscription_override\": 1}", "ignore_subscription_override must be a boolean."},
        {"{\"ignore_subscription_override\": \"true\"}", "ignore_subscription_override must be a boolean."},
        {"{\"retries_with_no_delay\": null, \"minimum_delay_retries\": \"\"}", NULL},
        {"{\"maximum_delay_retries\": []}", NULL},
        {"{\"retry_backoff_function\": \"\"}", NULL},
        {"{\"retry_backoff_function\": null}", NULL},
        {"{\"retry_backoff_function\": 0}", NULL},
        {"{\"ignore_subscription_override\": 0}", NULL},
        {"{\"ignore_subscription_override\": {}}", NULL},
    };
    check_policies(ROWS, COUNT(ROWS));
}

static void policy_json__what_crashes_zaqar_is_refused(void **state) {
    (void)state;
    static const refusal ROWS[] = {
        {"{\"minimum_delay\": null}", "Retry policy: minimum_delay must be a integer."},
        {"{\"minimum_delay\": \"\"}", "Retry policy: minimum_delay must be a integer."},
        {"{\"maximum_delay\": null}", "Retry policy: maximum_delay must be a integer."},
        {"{\"maximum_delay\": []}", "Retry policy: maximum_delay must be a integer."},
        {"{\"maximum_delay\": {}}", "Retry policy: maximum_delay must be a integer."},
    };
    check_policies(ROWS, COUNT(ROWS));
}

static void policy_json__checks_come_in_zaqars_order(void **state) {
    (void)state;
    static const refusal ROWS[] = {
        {"{\"ignore_subscription_override\": 1, \"retry_backoff_function\": 1, "
         " \"maximum_delay_retries\": \"1\","
         " \"maximum_delay\": \"1\", \"minimum_delay\": \"1\", \"minimum_delay_retries\": \"1\","
         " \"retries_with_no_delay\": \"1\"}",
         "Retry policy: retries_with_no_delay must be a integer."},
        {"{\"maximum_delay\": \"1\", \"minimum_delay\": \"1\"}",
         "Retry policy: minimum_delay must be a integer."},
        {"{\"ignore_subscription_override\": 1, \"retry_backoff_function\": 1}",
         "retry_backoff_function must be a string."},
        {"{\"ignore_subscription_override\": 1, \"minimum_delay\": 100}",
         "ignore_subscription_override must be a boolean."},
        {"{\"retry_backoff_function\": \"x\", \"minimum_delay\": 100}", "invalid retry_backoff_function."},
    };
    check_policies(ROWS, COUNT(ROWS));
}

static void policy_json__delays_are_compared_with_the_defaults(void **state) {
    (void)state;
    static const refusal ROWS[] = {
        // The document's default maximum is 60.
        {"{\"minimum_delay\": 50}", NULL},
        {"{\"minimum_delay\": 51}", "invalid minimum_delay and maximum_delay."},
        {"{\"minimum_delay\": 60}", "invalid minimum_delay and maximum_delay."},
        {"{\"minimum_delay\": 61}", "minimum_delay must less than maximum_delay."},
        {"{\"maximum_delay\": 15}", NULL},
        {"{\"maximum_delay\": 14}", "invalid minimum_delay and maximum_delay."},
        {"{\"maximum_delay\": 4}", "minimum_delay must less than maximum_delay."},
        {"{\"maximum_delay\": 0}", "minimum_delay must less than maximum_delay."},
        {"{\"minimum_delay\": 60, \"backoff_retries\": 4}", NULL},
        {"{\"minimum_delay\": 61, \"backoff_retries\": 4}", "minimum_delay must less than maximum_delay."},
        {"{\"minimum_delay\": 0, \"retry_backoff_function\": \"arithmetic\"}", NULL},
        {"{\"minimum_delay\": 0, \"retry_backoff_function\": \"geometric\"}",
         "Retry policy: minimum_delay must be at least 1 second with geometric or exponential backoff."},
        {"{\"minimum_delay\": 0, \"retry_backoff_function\": \"exponential\", \"backoff_retries\": 3}",
         "Retry policy: minimum_delay must be at least 1 second with geometric or exponential backoff."},
    };
    check_policies(ROWS, COUNT(ROWS));
}

static void policy_json__numbers_have_limits(void **state) {
    (void)state;
    static const refusal ROWS[] = {
        {"{\"minimum_delay\": -1}", "Retry policy: minimum_delay must not be negative."},
        {"{\"maximum_delay\": -9223372036854775808}", "Retry policy: maximum_delay must not be negative."},
        {"{\"retries_with_no_delay\": -3}", "Retry policy: retries_with_no_delay must not be negative."},
        {"{\"maximum_age\": -1}", "Retry policy: maximum_age must not be negative."},
        {"{\"attempt_timeout\": -1}", "Retry policy: attempt_timeout must not be negative."},
        {"{\"backoff_retries\": -1}", "Retry policy: backoff_retries must not be negative."},
        {"{\"retries_with_no_delay\": 100000}", NULL},
        {"{\"retries_with_no_delay\": 100001}",
         "Retry policy: retries_with_no_delay must be between 0 and 100000."},
        // 2^32 + 3 and the largest integer: not taken for what is left of them in 32 bits.
        {"{\"retries_with_no_delay\": 4294967299}",
         "Retry policy: retries_with_no_delay must be between 0 and 100000."},
        {"{\"maximum_delay\": 9223372036854775807}",
         "Retry policy: maximum_delay must be between 0 and 31536000 seconds."},
        {"{\"maximum_delay\": 9223372036854775808}", "JSON contains integer that is too large."},
        {"{\"maximum_delay\": 31536000}", NULL},
        {"{\"backoff_retries\": 0}", "Retry policy: backoff_retries must be between 1 and 100."},
        {"{\"backoff_retries\": 101}", "Retry policy: backoff_retries must be between 1 and 100."},
        {"{\"backoff_retries\": 100}", NULL},
        {"{\"attempt_timeout\": 0}", "Retry policy: attempt_timeout must be between 1 and 3600 seconds."},
        {"{\"attempt_timeout\": 3601}", "Retry policy: attempt_timeout must be between 1 and 3600 seconds."},
        {"{\"maximum_age\": 0}", NULL},
        {"{\"maximum_age\": 31536001}",
         "Retry policy: maximum_age must be between 0 (no limit) and 31536000 seconds."},
    };
    check_policies(ROWS, COUNT(ROWS));
}

static void policy_json__options_beyond_the_documents_are_strict(void **state) {
    (void)state;
    static const char LIST[] = "Retry policy: retry_on must be a list such as [\"408\", \"429\", \"3xx\"].";
    static const char STATUS[] =
        "Retry policy: retry_on must name statuses (100 to 999) or classes (\"3xx\").";
    static const char JITTER[] = "Retry policy: jitter must be none, full, equal or decorrelated.";
    static const refusal ROWS[] = {
        {"{\"jitter\": null, \"retry_on\": null, \"maximum_age\": null, \"follow_redirects\": null}", NULL},
        {"{\"backoff_retries\": true}", "Retry policy: backoff_retries must be a integer."},
        {"{\"backoff_retries\": \"\"}", "Retry policy: backoff_retries must be a integer."},
        {"{\"maximum_age\": 0.0}", "Retry policy: maximum_age must be a integer."},
        {"{\"attempt_timeout\": \"30\"}", "Retry policy: attempt_timeout must be a integer."},
        {"{\"jitter\": \"FULL\"}", JITTER},
        {"{\"jitter\": \"\"}", JITTER},
        {"{\"jitter\": 1}", JITTER},
        {"{\"jitter\": \"decorrelated\"}", NULL},
        {"{\"jitter\": \"decorrelated\", \"minimum_delay\": 0}",
         "Retry policy: minimum_delay must be at least 1 second with decorrelated jitter."},
        {"{\"respect_retry_after\": 1}", "Retry policy: respect_retry_after must be a boolean."},
        {"{\"follow_redirects\": \"yes\"}", "Retry policy: follow_redirects must be a boolean."},
        {"{\"retry_on\": \"429\"}", LIST},
        {"{\"retry_on\": {}}", LIST},
        {"{\"retry_on\": []}", NULL},
        {"{\"retry_on\": [100, 999, \"100\", \"999\", \"9xx\", \"1xx\"]}", NULL},
        {"{\"retry_on\": [99]}", STATUS},
        {"{\"retry_on\": [1000]}", STATUS},
        {"{\"retry_on\": [429.0]}", STATUS},
        {"{\"retry_on\": [true]}", STATUS},
        {"{\"retry_on\": [\"42\"]}", STATUS},
        {"{\"retry_on\": [\"4290\"]}", STATUS},
        {"{\"retry_on\": [\"099\"]}", STATUS},
        {"{\"retry_on\": [\"4x9\"]}", STATUS},
        {"{\"retry_on\": [\"42x\"]}", STATUS},
        {"{\"retry_on\": [\"4xX\"]}", STATUS},
        {"{\"retry_on\": [\"xxx\"]}", STATUS},
        {"{\"retry_on\": [\"2xx\"]}",
         "Retry policy: retry_on must not name statuses 200 to 299, which are success."},
        {"{\"retry_on\": [204]}",
         "Retry policy: retry_on must not name statuses 200 to 299, which are success."},
        {"{\"retry_on\": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}",
         "Retry policy: retry_on may name at most 16 statuses or ranges."},
    };
    check_policies(ROWS, COUNT(ROWS));
}

static void policy_json__a_refused_policy_changes_nothing(void **state) {
    (void)state;
    rt_delivery_policy p = rt_delivery_policy_default();
    assert_int_equal(
        rt_policy_from_text(rt_str_of("{\"maximum_delay_retries\": 9, \"minimum_delay\": 99}"), &p, NULL),
        RT_E_INVALID);
    assert_default(&p);
}

static void policy_json__texts_are_bounded(void **state) {
    (void)state;
    static char text[RT_POLICY_JSON_BYTES_MAX + 2];
    rt_delivery_policy p;
    rt_err err;
    memset(text, ' ', sizeof text);
    memcpy(text, "{}", 2);
    assert_int_equal(rt_policy_from_text((rt_str){text, RT_POLICY_JSON_BYTES_MAX}, &p, &err), RT_OK);
    assert_int_equal(rt_policy_from_text((rt_str){text, RT_POLICY_JSON_BYTES_MAX + 1}, &p, &err),
                     RT_E_TOO_LARGE);
    assert_string_equal(err.msg, "JSON is longer than 16384 bytes.");

    // 64 levels are let through, 65 are not; brackets in strings do not count.
    for (size_t levels = RT_JSON_DEPTH_MAX; levels <= RT_JSON_DEPTH_MAX + 1; levels++) {
        static const char KEY[] = "{\"a[\\\"[\": ";
        const size_t inner = levels - 1;
        memcpy(text, KEY, sizeof KEY - 1);
        memset(text + sizeof KEY - 1, '[', inner);
        memset(text + sizeof KEY - 1 + inner, ']', inner);
        text[sizeof KEY - 1 + 2 * inner] = '}';
        const rt_code code = rt_policy_from_text((rt_str){text, sizeof KEY + 2 * inner}, &p, &err);
        assert_int_equal(code, levels <= RT_JSON_DEPTH_MAX ? RT_OK : RT_E_INVALID);
    }
    assert_string_equal(err.msg, "JSON is nested deeper than 64 levels.");
}

static void policy_json__what_is_no_json_is_refused(void **state) {
    (void)state;
    static const char *const BROKEN[] = {
        "", "{", "{\"minimum_delay\": 5", "nan", "{\"minimum_delay\": NaN}", "{} {}", "\xff",
        "{\"minimum_delay\": 1e999}",
    };
    for (size_t i = 0; i < COUNT(BROKEN); i++) {
        rt_delivery_policy p;
        rt_err err = {0};
        assert_int_equal(rt_policy_from_text(rt_str_of(BROKEN[i]), &p, &err), RT_E_INVALID);
        assert_int_equal(strncmp(err.msg, "This is no JSON: ", 17), 0);
    }
}

// ---- work backoff -------------------------------------------------------------------------------

static void backoff_json__reads_numbers_and_fractions(void **state) {
    (void)state;
    static const struct {
        const char *json;
        rt_work_backoff want;
    } ROWS[] = {
        {"{}", {0, 0, 0}},
        {"{\"initial_ms\": 1000, \"maximum_ms\": 3600000, \"exponent\": 1.1}",
         {1000000000, 3600000000000, 1.1}},
        {"{\"initial_ms\": 1500.5, \"maximum_ms\": 0.25, \"exponent\": 2}", {1500500000, 250000, 2}},
        // 0.1 has no exact double: to the nearest nanosecond.
        {"{\"initial_ms\": 0.1, \"maximum_ms\": 1e3}", {100000, 1000000000, 0}},
        {"{\"initial_ms\": null, \"exponent\": null}", {0, 0, 0}},
        {"{\"initial_ms\": -5, \"maximum_ms\": -0.5, \"exponent\": -2.5}", {0, 0, -2.5}},
        {"{\"initial_ms\": 9223372036854, \"maximum_ms\": 9.2e12, \"exponent\": 1e308}",
         {9223372036854000000, 9200000000000000000, 1e308}},
    };
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        rt_work_backoff b;
        rt_jitter jitter;
        bool given = false;
        rt_err err;
        if (rt_work_backoff_from_text(rt_str_of(ROWS[i].json), &given, &b, &jitter, &err) != RT_OK)
            fail_msg("%s", err.msg);
        assert_true(given);
        assert_int_equal(b.initial_ns, ROWS[i].want.initial_ns);
        assert_int_equal(b.maximum_ns, ROWS[i].want.maximum_ns);
        assert_memory_equal(&b.exponent, &ROWS[i].want.exponent, sizeof b.exponent);
    }
}

static void backoff_json__null_is_no_descriptor(void **state) {
    (void)state;
    rt_work_backoff b = {1, 2, 3};
    rt_jitter jitter;
    bool given = true;
    assert_int_equal(rt_work_backoff_from_text(rt_str_of("null"), &given, &b, &jitter, NULL), RT_OK);
    assert_false(given);
    assert_int_equal(b.initial_ns, 1);
}

static void backoff_json__jitter_goes_beside_the_descriptor(void **state) {
    (void)state;
    static const struct {
        const char *json;
        rt_jitter want;
    } ROWS[] = {
        {"{\"initial_ms\": 2000}", RT_JITTER_NONE},
        {"{\"initial_ms\": 2000, \"jitter\": null}", RT_JITTER_NONE},
        {"{\"initial_ms\": 2000, \"jitter\": \"full\"}", RT_JITTER_FULL},
        {"{\"jitter\": \"equal\", \"initial_ms\": 2000}", RT_JITTER_EQUAL},
    };
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        rt_work_backoff b;
        rt_jitter jitter;
        bool given;
        assert_int_equal(rt_work_backoff_from_text(rt_str_of(ROWS[i].json), &given, &b, &jitter, NULL), RT_OK);
        assert_true(given);
        assert_int_equal(jitter, ROWS[i].want);
        assert_int_equal(b.initial_ns, 2000000000);
    }
}

static void policy_json__names_a_key_that_means_nothing(void **state) {
    (void)state;
    static const struct {
        const char *json, *want;
    } ROWS[] = {
        {"{}", ""},
        {"null", ""},
        {"{\"jitter\": \"full\", \"minimum_delay\": 1}", ""},
        {"{\"minimum_dely\": 1}", "minimum_dely"},
        {"{\"_retry_policy\": {\"minimum_dely\": 1}, \"_max_claim_count\": 1}", "minimum_dely"},
    };
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        char key[RT_POLICY_KEY_BYTES];
        rt_policy_unknown_key(rt_str_of(ROWS[i].json), key);
        assert_string_equal(key, ROWS[i].want);
    }
}

static void backoff_json__refuses_with_field_and_rule(void **state) {
    (void)state;
    static const refusal ROWS[] = {
        {"[]", "backoff must be an object or null."},
        {"1", "backoff must be an object or null."},
        {"{\"initial_ms\": \"1\"}", "backoff: initial_ms must be a number."},
        {"{\"maximum_ms\": true}", "backoff: maximum_ms must be a number."},
        {"{\"exponent\": \"2\"}", "backoff: exponent must be a number."},
        {"{\"initial_ms\": 9223372036855}", "backoff: initial_ms must be at most 9223372036854 (292 years)."},
        {"{\"maximum_ms\": 1e13}", "backoff: maximum_ms must be at most 9223372036854 (292 years)."},
        {"{\"maximum_ms\": 1e308}", "backoff: maximum_ms must be at most 9223372036854 (292 years)."},
        {"{\"max_ms\": 1}", "backoff: its keys are initial_ms, maximum_ms, exponent and jitter, no others."},
        {"{\"jitter\": \"decorrelated\"}", "backoff: jitter must be \"none\", \"full\" or \"equal\"."},
        {"{\"jitter\": 1}", "backoff: jitter must be \"none\", \"full\" or \"equal\"."},
    };
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        rt_work_backoff b;
        rt_jitter jitter;
        bool given = true;
        rt_err err = {0};
        assert_int_equal(rt_work_backoff_from_text(rt_str_of(ROWS[i].json), &given, &b, &jitter, &err), RT_E_INVALID);
        assert_string_equal(err.msg, ROWS[i].text);
    }
    static const char *const BROKEN[] = {"{\"exponent\": NaN}", "{\"exponent\": Infinity}",
                                         "{\"exponent\": 1e999}"};
    for (size_t i = 0; i < COUNT(BROKEN); i++) {
        rt_work_backoff b;
        rt_jitter jitter;
        bool given = true;
        assert_int_equal(rt_work_backoff_from_text(rt_str_of(BROKEN[i]), &given, &b, &jitter, NULL), RT_E_INVALID);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policy_json__falsy_policies_mean_the_defaults),
        cmocka_unit_test(policy_json__truthy_policies_must_be_objects),
        cmocka_unit_test(policy_json__reads_every_key),
        cmocka_unit_test(policy_json__explicit_zero_is_kept),
        cmocka_unit_test(policy_json__types_are_checked_on_truthy_values_only),
        cmocka_unit_test(policy_json__what_crashes_zaqar_is_refused),
        cmocka_unit_test(policy_json__checks_come_in_zaqars_order),
        cmocka_unit_test(policy_json__delays_are_compared_with_the_defaults),
        cmocka_unit_test(policy_json__numbers_have_limits),
        cmocka_unit_test(policy_json__options_beyond_the_documents_are_strict),
        cmocka_unit_test(policy_json__a_refused_policy_changes_nothing),
        cmocka_unit_test(policy_json__texts_are_bounded),
        cmocka_unit_test(policy_json__what_is_no_json_is_refused),
        cmocka_unit_test(backoff_json__reads_numbers_and_fractions),
        cmocka_unit_test(backoff_json__null_is_no_descriptor),
        cmocka_unit_test(backoff_json__jitter_goes_beside_the_descriptor),
        cmocka_unit_test(policy_json__names_a_key_that_means_nothing),
        cmocka_unit_test(backoff_json__refuses_with_field_and_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
