/* Event types and batches as clients write them, and bodies as they are shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "face/common/payload.h"
#include "face/events/batch.h"
#include "face/events/type_json.h"
#include "json/tree.h"

static rt_arena arena;

static int teardown(void **state) {
    (void)state;
    rt_arena_deinit(&arena);
    arena = (rt_arena){0};
    return 0;
}

static void assert_text(rt_str s, const char *want) {
    assert_int_equal(s.len, strlen(want));
    if (s.len > 0) assert_memory_equal(s.ptr, want, s.len);
}

/* ---- types --------------------------------------------------------------------------------------------- */

static rt_code parse(const char *text, rt_call_type *out, rt_err *err) {
    json_t *json;
    assert_int_equal(rt_json_parse(rt_str_of(text), &json), RT_JSON_FINE);
    const rt_code code = rt_type_from_json(json, &arena, out, err);
    json_decref(json);
    return code;
}

static rt_call_type parsed(const char *text) {
    rt_call_type t = {.queue = 7, .changed_ms = 8};
    rt_err err = {0};
    const rt_code code = parse(text, &t, &err);
    if (code != RT_OK) fail_msg("%s: %s", text, err.msg);
    return t;
}

static void type__what_is_left_out_has_its_default(void **state) {
    (void)state;
    const rt_call_type t = parsed("{\"target\": {\"pull\": true}}");
    assert_int_equal(t.queue, 7);
    assert_int_equal(t.changed_ms, 8);
    assert_int_equal(t.policy, RT_CALL_DELIVERY_POLICY);
    assert_int_equal(rt_delivery_policy_retries(&t.delivery), 21);
    assert_int_equal(t.delivery.attempt_timeout_s, 30);
    assert_text(t.target, "");
    assert_true(t.circuit.enabled);
    assert_int_equal(t.circuit.window_s, 10);
    assert_int_equal(t.circuit.minimum_attempts, 20);
    assert_int_equal(t.circuit.max_open_s, 86400);
    assert_false(t.pace.enabled);
    assert_false(t.ordered);
    assert_int_equal(t.concurrency, 0);
    assert_int_equal(t.rate_per_s, 0);
    assert_int_equal(t.buckets, 1);
    assert_text(t.dead_type, "");
}

static void type__everything_reaches_the_engine(void **state) {
    (void)state;
    const rt_call_type t = parsed(
        "{\"target\": {\"url\": \"https://h/x\", \"headers\": {\"X-A\": \"1\"}}, \"order_key\": true, \"buckets\": 4,"
        " \"policy\": {\"backoff\": {\"initial_ms\": 1500, \"maximum_ms\": 60000, \"exponent\": 2, \"jitter\": \"full\"},"
        " \"max_attempts\": 9, \"attempt_timeout\": 5, \"maximum_age\": 600, \"retry_on\": [\"429\"]},"
        " \"circuit\": {\"failure_rate\": 0.25, \"slow_call_s\": 1.5, \"probes\": 2}, \"pace\": {\"initial_ms\": 50},"
        " \"dead_letter\": {\"event_type\": \"other\", \"keep_s\": 60},"
        " \"limits\": {\"concurrency\": 3, \"rate_per_s\": 7}}");
    assert_text(t.target, "https://h/x");
    assert_text(t.headers, "X-A: 1\n");
    assert_int_equal(t.policy, RT_CALL_BACKOFF);
    assert_int_equal(t.backoff.descriptor.initial_ns, 1500000000);
    assert_int_equal(t.backoff.jitter, RT_JITTER_FULL);
    assert_int_equal(t.max_attempts, 9);
    assert_int_equal(t.delivery.attempt_timeout_s, 5);
    assert_int_equal(t.delivery.maximum_age_s, 600);
    assert_int_equal(rt_delivery_policy_judge(&t.delivery, 429), RT_VERDICT_RETRY);
    assert_true(t.circuit.failure_rate > 0.24 && t.circuit.failure_rate < 0.26);
    assert_true(t.circuit.slow_call_s > 1.4 && t.circuit.slow_call_s < 1.6);
    assert_int_equal(t.circuit.probes, 2);
    assert_true(t.pace.enabled);
    assert_int_equal(t.pace.initial_ms, 50);
    assert_int_equal(t.pace.maximum_ms, 30000);
    assert_true(t.ordered);
    assert_int_equal(t.buckets, 4);
    assert_text(t.dead_type, "other");
    assert_int_equal(t.dead_keep_s, 60);
    assert_int_equal(t.concurrency, 3);
    assert_int_equal(t.rate_per_s, 7);
}

static void type__plugins_and_topics_are_targets_too(void **state) {
    (void)state;
    assert_text(parsed("{\"target\": {\"plugin\": \"charge\"}}").target, "plugin:charge");
    assert_text(parsed("{\"target\": {\"kafka_topic\": \"a.b\"}}").target, "kafka:a.b");
}

static void type__a_circuit_is_on_unless_it_is_null(void **state) {
    (void)state;
    static const struct {
        const char *circuit;
        bool enabled;
    } ROWS[] = {{"null", false}, {"false", false}, {"true", true}, {"{}", true}};
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "{\"target\": {\"pull\": true}, \"circuit\": %s, \"pace\": %s}",
                       ROWS[i].circuit, ROWS[i].circuit);
        assert_int_equal(parsed(text).circuit.enabled, ROWS[i].enabled);
        assert_int_equal(parsed(text).pace.enabled, ROWS[i].enabled);
    }
}

static void type__mistakes_are_named_and_touch_nothing(void **state) {
    (void)state;
    static const struct {
        const char *members, *named;
    } ROWS[] = {
        {"\"odd\": 1", "odd"},
        {"\"policy\": {\"odd\": 1}", "odd"},
        {"\"policy\": {\"max_attempts\": 1}", "max_attempts"},
        {"\"policy\": {\"backoff\": {}, \"minimum_delay\": 1}", "minimum_delay"},
        {"\"policy\": {\"backoff\": {\"initial_ms\": \"1\"}}", "initial_ms"},
        {"\"policy\": {\"backoff\": {\"jitter\": \"decorrelated\"}}", "jitter"},
        {"\"circuit\": {\"window_s\": 3601}", "window_s"},
        {"\"circuit\": {\"window_s\": 1.5}", "window_s"},
        {"\"circuit\": {\"window_s\": -1}", "window_s"},
        {"\"circuit\": {\"window_s\": 4294967296}", "window_s"},
        {"\"circuit\": {\"maximum_sleep_s\": 4}", "maximum_sleep_s"},
        {"\"circuit\": []", "circuit"},
        {"\"pace\": {\"maximum_ms\": 99}", "maximum_ms"},
        {"\"limits\": {\"concurrency\": 65537}", "concurrency"},
        {"\"buckets\": 0", "buckets"},
        {"\"order_key\": 1", "order_key"},
        {"\"dead_letter\": {\"event_type\": \"a/b\"}", "event_type"},
        {"\"target\": {\"plugin\": \"..\"}", "plugin"},
        {"\"target\": {\"plugin\": \"A\"}", "plugin"},
        {"\"target\": {\"kafka_topic\": \"a b\"}", "kafka_topic"},
        {"\"target\": {\"kafka_topic\": \"a:b\"}", "kafka_topic must be 1 to 249 letters, digits, '.', '_' and '-'"},
        {"\"target\": {\"kafka_topic\": \"..\"}", "neither \".\" nor \"..\""},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        char text[256];
        rt_call_type t = {.queue = 7, .buckets = 99};
        rt_err err = {0};
        (void)snprintf(text, sizeof text, "{\"target\": {\"pull\": true}, %s}", ROWS[i].members);
        assert_int_equal(parse(text, &t, &err), RT_E_INVALID);
        if (strstr(err.msg, ROWS[i].named) == NULL) fail_msg("%s: %s", text, err.msg);
        assert_int_equal(t.buckets, 99);
    }
}

static void type__what_is_shown_reads_the_same(void **state) {
    (void)state;
    static const char *const TEXTS[] = {
        "{\"target\": {\"pull\": true}}",
        "{\"target\": {\"plugin\": \"p\"}, \"circuit\": null, \"pace\": true}",
        "{\"target\": {\"url\": \"http://h/\", \"headers\": {\"A\": \"b: c\"}, "
        "\"secret\": [\"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\", "
        "\"whsec_MTEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\"]}, \"policy\": {\"retry_on\": [408, \"4xx\"]}}",
        "{\"target\": {\"pull\": true}, \"policy\": {\"backoff\": {\"initial_ms\": 0.5, \"exponent\": 1.5}}}",
    };
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        const rt_call_type t = parsed(TEXTS[i]);
        json_t *shown = rt_type_to_json(&t);
        rt_call_type again = {.queue = 7, .changed_ms = 8};
        rt_err err = {0};
        assert_int_equal(rt_type_from_json(shown, &arena, &again, &err), RT_OK);
        json_decref(shown);
        const rt_str first = rt_call_type_encode(&arena, &t), second = rt_call_type_encode(&arena, &again);
        // What the delays make of backoff_retries is said in the second; everything else is the same.
        rt_call_type same = again;
        same.delivery.backoff_retries = t.delivery.backoff_retries;
        const rt_str third = rt_call_type_encode(&arena, &same);
        assert_int_equal(first.len, second.len);
        assert_int_equal(first.len, third.len);
        assert_memory_equal(first.ptr, third.ptr, first.len);
    }
}

/* ---- batches ------------------------------------------------------------------------------------------- */

static void batch__members_reach_the_engine(void **state) {
    (void)state;
    rt_call_item *items;
    uint32_t count;
    rt_err err = {0};
    const rt_str text =
        RT_STR("{\"events\": [{\"type\": \"t\", \"body\": {\"a\": [1,2]}, \"reason\": \"r\\u00e9\", \"order_key\": \"o\", "
               "\"idempotency_key\": \"k\", \"deliver_after\": 2}, {\"body\": \"a\\\"b\", \"content_type\": \"x/y\"}, "
               "{\"body\": null}, {\"body_base64\": \"AAH/\"}, {\"body_base64\": \"\"}]}");
    assert_int_equal(rt_event_batch_read(text, false, &arena, &items, &count, &err), RT_OK);
    assert_int_equal(count, 5);
    assert_text(items[0].type, "t");
    assert_text(items[0].payload, "{\"a\": [1,2]}");
    assert_text(items[0].content_type, "application/json");
    assert_text(items[0].reason, "r\xc3\xa9");
    assert_text(items[0].order_key, "o");
    assert_text(items[0].key, "k");
    assert_int_equal(items[0].delay_ms, 2000);
    assert_text(items[1].type, "");
    assert_text(items[1].payload, "a\"b");
    assert_text(items[1].content_type, "x/y");
    assert_text(items[2].payload, "null");
    assert_int_equal(items[3].payload.len, 3);
    assert_memory_equal(items[3].payload.ptr, "\x00\x01\xff", 3);
    assert_text(items[3].content_type, "application/octet-stream");
    assert_int_equal(items[4].payload.len, 0);
}

static void batch__of_several_types_each_names_its_own(void **state) {
    (void)state;
    rt_call_item *items;
    uint32_t count;
    rt_err err = {0};
    assert_int_equal(rt_event_batch_read(RT_STR("{\"events\": [{\"body\": 1}]}"), true, &arena, &items, &count, &err),
                     RT_E_INVALID);
    assert_non_null(strstr(err.msg, "type"));
}

static void batch__has_a_bound(void **state) {
    (void)state;
    for (int n = RT_CALLS_PER_REQUEST_MAX; n <= RT_CALLS_PER_REQUEST_MAX + 1; n++) {
        rt_buf text = {0};
        rt_buf_add(&text, RT_STR("{\"events\": ["));
        for (int i = 0; i < n; i++) rt_buf_add(&text, i == 0 ? RT_STR("{\"body\": 1}") : RT_STR(",{\"body\": 1}"));
        rt_buf_add(&text, RT_STR("]}"));
        rt_call_item *items;
        uint32_t count;
        rt_err err = {0};
        assert_int_equal(rt_event_batch_read(rt_buf_str(&text), false, &arena, &items, &count, &err),
                         n > RT_CALLS_PER_REQUEST_MAX ? RT_E_TOO_LARGE : RT_OK);
        rt_buf_deinit(&text);
    }
}

/* ---- bodies -------------------------------------------------------------------------------------------- */

static void payload__base64_is_strict(void **state) {
    (void)state;
    static const struct {
        const char *text, *want; /* NULL: it is none */
    } ROWS[] = {{"", ""},         {"Zg==", "f"},   {"Zm8=", "fo"},  {"Zm9v", "foo"}, {"Zm9vYg==", "foob"},
                {"Zg", NULL},     {"Zg=", NULL},   {"Zg==Zg==", NULL}, {"Z===", NULL},  {"Zm 9v", NULL},
                {"Zm9v\n", NULL}, {"Zm-_", NULL}, {"====", NULL}};
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        const rt_str got = rt_payload_from_base64(&arena, rt_str_of(ROWS[i].text));
        if ((got.ptr == NULL) != (ROWS[i].want == NULL)) fail_msg("%s", ROWS[i].text);
        if (ROWS[i].want != NULL) assert_text(got, ROWS[i].want);
    }
}

static void payload__is_shown_by_its_content_type(void **state) {
    (void)state;
    static const struct {
        const char *type, *payload, *want;
    } ROWS[] = {
        {"", "{\"a\": 1}", "{\"body\":{\"a\":1}}"},
        {"application/json; charset=utf-8", " [1] ", "{\"body\":[1]}"},
        {"application/problem+json", "5", "{\"body\":5}"},
        {"application/json", "{", "{\"body\":\"{\"}"},
        {"application/json", "\xff", "{\"body_base64\":\"/w==\"}"},
        {"TEXT/HTML", "<b>", "{\"body\":\"<b>\"}"},
        {"application/x-www-form-urlencoded", "a=1", "{\"body\":\"a=1\"}"},
        {"image/png", "{}", "{\"body_base64\":\"e30=\"}"},
        {"text/plain", "", "{\"body\":\"\"}"},
        {"image/png", "", "{\"body_base64\":\"\"}"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        json_t *object = json_object();
        assert_true(rt_payload_show(object, rt_str_of(ROWS[i].type), rt_str_of(ROWS[i].payload)));
        char *text = json_dumps(object, JSON_COMPACT);
        assert_string_equal(text, ROWS[i].want);
        free(text);
        json_decref(object);
    }
}

static void payload__is_written_as_it_came(void **state) {
    (void)state;
    static const struct {
        const char *type, *payload, *want;
    } ROWS[] = {
        {"", "{\"b\":1,  \"a\": 1.50}", "\"body\": {\"b\":1,  \"a\": 1.50}"},
        {"application/json", "123456789012345678901", "\"body\": 123456789012345678901"},
        {"application/json", "{", "\"body\": \"{\""},
        {"application/json", "\xff", "\"body_base64\": \"/w==\""},
        {"text/plain", "a \"b\"", "\"body\": \"a \\\"b\\\"\""},
        {"text/plain", "", "\"body\": \"\""},
        {"image/png", "{}", "\"body_base64\": \"e30=\""},
        {"image/png", "", "\"body_base64\": \"\""},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        rt_buf out = {0};
        rt_payload_write(&out, rt_str_of(ROWS[i].type), rt_str_of(ROWS[i].payload));
        assert_false(out.failed);
        assert_text(rt_buf_str(&out), ROWS[i].want);
        rt_buf_deinit(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(type__what_is_left_out_has_its_default, teardown),
        cmocka_unit_test_teardown(type__everything_reaches_the_engine, teardown),
        cmocka_unit_test_teardown(type__plugins_and_topics_are_targets_too, teardown),
        cmocka_unit_test_teardown(type__a_circuit_is_on_unless_it_is_null, teardown),
        cmocka_unit_test_teardown(type__mistakes_are_named_and_touch_nothing, teardown),
        cmocka_unit_test_teardown(type__what_is_shown_reads_the_same, teardown),
        cmocka_unit_test_teardown(batch__members_reach_the_engine, teardown),
        cmocka_unit_test_teardown(batch__of_several_types_each_names_its_own, teardown),
        cmocka_unit_test_teardown(batch__has_a_bound, teardown),
        cmocka_unit_test_teardown(payload__base64_is_strict, teardown),
        cmocka_unit_test_teardown(payload__is_shown_by_its_content_type, teardown),
        cmocka_unit_test_teardown(payload__is_written_as_it_came, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
