/* What runs of orders answer: each action with what belongs to it, and answers that nobody understands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/base64.h"
#include "json/run_json.h"

static rt_arena arena;
static rt_err err;

static int teardown(void **state) {
    (void)state;
    rt_arena_deinit(&arena);
    return 0;
}

static rt_run_answer take(const char *text) {
    rt_run_answer a;
    err = (rt_err){0};
    if (rt_run_from_text(rt_str_of(text), &arena, &a, &err) != RT_OK) fail_msg("%s: %s", text, err.msg);
    return a;
}

static void assert_text(rt_str s, const char *want) {
    assert_int_equal(s.len, strlen(want));
    if (s.len > 0) assert_memory_equal(s.ptr, want, s.len);
}

static void run__retry_says_what_comes_next(void **state) {
    (void)state;
    rt_run_answer a = take("{\"action\": \"retry\", \"after_ms\": 5000, \"task\": \"check\", \"args\": [1, \"ä\"], "
                           "\"kwargs\": {\"a\": null}, \"state\": \"s\", \"sub_status\": \"waiting\", \"message\": \"m\"}");
    assert_int_equal(a.action, RT_RUN_RETRY);
    assert_int_equal(a.after_ms, 5000);
    assert_true(a.has_task && a.has_args && a.has_kwargs && a.has_state && a.has_progress);
    assert_text(a.task, "check");
    assert_text(a.args, "[1, \"ä\"]");
    assert_text(a.kwargs, "{\"a\": null}");
    assert_text(a.state, "s");
    assert_text(a.sub_status, "waiting");
    assert_text(a.message, "m");

    a = take("{\"action\": \"retry\", \"after_ms\": null, \"task\": null, \"args\": null, \"state\": \"\", \"new\": 1}");
    assert_int_equal(a.after_ms, -1);
    assert_false(a.has_task || a.has_args || a.has_kwargs || a.has_progress);
    assert_true(a.has_state);
    assert_text(a.state, "");
}

static void run__failed_has_a_code_in_either_spelling(void **state) {
    (void)state;
    rt_run_answer a = take("{\"action\": \"failed\", \"code\": 400, \"reason\": \"no\", \"task\": 5}");
    assert_int_equal(a.action, RT_RUN_FAILED);
    assert_text(a.code, "400");
    assert_text(a.reason, "no");
    a = take("{\"action\": \"failed\", \"code\": \"E7\"}");
    assert_text(a.code, "E7");
    assert_text(a.reason, "");
    a = take("{\"action\": \"failed\"}");
    assert_text(a.code, "");
}

static void run__unavailable_may_say_when(void **state) {
    (void)state;
    assert_int_equal(take("{\"action\": \"unavailable\"}").after_ms, -1);
    assert_int_equal(take("{\"action\": \"unavailable\", \"after_ms\": 0}").after_ms, 0);
    assert_int_equal(take("{\"action\": \"unavailable\", \"message\": \"later\"}").has_progress, true);
}

static void run__done_hands_over_a_secret(void **state) {
    (void)state;
    rt_run_answer a = take("{\"action\": \"done\", \"secret\": {\"payload_base64\": \"AP8Q\", \"name\": \"n\"}}");
    assert_int_equal(a.action, RT_RUN_DONE);
    assert_false(a.container);
    assert_int_equal(a.secrets_count, 1);
    assert_text(a.secrets[0].role, "secret");
    assert_text(a.secrets[0].name, "n");
    assert_text(a.secrets[0].content_type, "application/octet-stream");
    assert_int_equal(a.secrets[0].payload.len, 3);
    assert_memory_equal(a.secrets[0].payload.ptr, "\x00\xff\x10", 3);

    a = take("{\"action\": \"done\", \"container\": {\"name\": \"c\", \"secrets\": {\"public_key\": {\"payload\": \"p\"}, "
             "\"private_key\": {\"payload\": \"q\", \"content_type\": \"application/pkcs8\"}}}}");
    assert_true(a.container);
    assert_text(a.container_name, "c");
    assert_int_equal(a.secrets_count, 2);
    assert_text(a.secrets[0].role, "public_key");
    assert_text(a.secrets[0].content_type, "text/plain");
    assert_text(a.secrets[1].content_type, "application/pkcs8");
    assert_text(a.secrets[1].payload, "q");

    a = take("{\"action\": \"done\", \"container\": {\"secrets\": {}}}");
    assert_true(a.container);
    assert_int_equal(a.secrets_count, 0);

    a = take("{\"action\": \"done\", \"secret_ref\": \"http://h/1\", \"container_ref\": \"http://h/2\"}");
    assert_int_equal(a.secrets_count, 0);
    assert_text(a.secret_ref, "http://h/1");
    assert_text(a.container_ref, "http://h/2");
}

static void run__nonsense_is_refused_by_its_member(void **state) {
    (void)state;
    static const struct {
        const char *text, *member;
    } ROWS[] = {
        {"", "JSON"},
        {"ok", "JSON"},
        {"<html>", "JSON"},
        {"[]", "action"},
        {"{}", "action"},
        {"{\"action\": 1}", "action"},
        {"{\"action\": \"Done\"}", "action"},
        {"{\"action\": \"done\", \"state\": {}}", "state"},
        {"{\"action\": \"done\", \"sub_status\": 5}", "sub_status"},
        {"{\"action\": \"done\", \"message\": []}", "message"},
        {"{\"action\": \"retry\", \"after_ms\": -1}", "after_ms"},
        {"{\"action\": \"retry\", \"after_ms\": 1.5}", "after_ms"},
        {"{\"action\": \"retry\", \"after_ms\": \"5\"}", "after_ms"},
        {"{\"action\": \"unavailable\", \"after_ms\": true}", "after_ms"},
        {"{\"action\": \"retry\", \"task\": \"\"}", "task"},
        {"{\"action\": \"retry\", \"task\": 1}", "task"},
        {"{\"action\": \"retry\", \"args\": {}}", "args"},
        {"{\"action\": \"retry\", \"kwargs\": []}", "kwargs"},
        {"{\"action\": \"failed\", \"code\": []}", "code"},
        {"{\"action\": \"failed\", \"reason\": 1}", "reason"},
        {"{\"action\": \"done\", \"secret\": \"x\"}", "secret"},
        {"{\"action\": \"done\", \"secret\": {}}", "secret"},
        {"{\"action\": \"done\", \"secret\": {\"payload\": \"a\", \"payload_base64\": \"YQ==\"}}", "secret"},
        {"{\"action\": \"done\", \"secret\": {\"payload_base64\": \"YQ=\"}}", "payload_base64"},
        {"{\"action\": \"done\", \"secret\": {\"payload\": \"a\", \"content_type\": \"a\\r\\nb: c\"}}", "content_type"},
        {"{\"action\": \"done\", \"secret\": {\"payload\": \"a\"}, \"container\": {}}", "container"},
        {"{\"action\": \"done\", \"container\": []}", "container"},
        {"{\"action\": \"done\", \"container\": {\"secrets\": []}}", "container"},
        {"{\"action\": \"done\", \"container\": {\"secrets\": {\"\": {\"payload\": \"a\"}}}}", "container"},
        {"{\"action\": \"done\", \"container\": {\"secrets\": {\"a\": 1}}}", "a"},
        {"{\"action\": \"done\", \"container\": {\"secrets\": {\"a\": {\"payload\": \"1\"}, \"b\": {\"payload\": \"1\"}, "
         "\"c\": {\"payload\": \"1\"}, \"d\": {\"payload\": \"1\"}}}}", "container"},
        {"{\"action\": \"done\", \"secret_ref\": {}}", "secret_ref"},
    };
    rt_run_answer a;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        err = (rt_err){0};
        if (rt_run_from_text(rt_str_of(ROWS[i].text), &arena, &a, &err) != RT_E_INVALID) fail_msg("%s", ROWS[i].text);
        if (strstr(err.msg, ROWS[i].member) == NULL) fail_msg("%s: %s", ROWS[i].text, err.msg);
    }
}

/* {"action": "retry", NAME: VALUE} with so many letters in it. */
static rt_code with_letters(const char *before, const char *after, size_t count) {
    rt_buf text = {0};
    rt_run_answer a;
    rt_buf_add(&text, rt_str_of(before));
    for (size_t i = 0; i < count; i++) rt_buf_add_char(&text, 'A');
    rt_buf_add(&text, rt_str_of(after));
    const rt_code code = rt_run_from_text(rt_buf_str(&text), &arena, &a, &err);
    rt_buf_deinit(&text);
    return code;
}

static void run__each_part_ends_at_its_maximum(void **state) {
    (void)state;
    static const struct {
        const char *before, *after;
        size_t max;
    } ROWS[] = {
        {"{\"action\": \"retry\", \"task\": \"", "\"}", RT_RUN_TASK_MAX},
        {"{\"action\": \"retry\", \"args\": [\"", "\"]}", RT_RUN_ARGS_MAX - 4},
        {"{\"action\": \"retry\", \"kwargs\": {\"k\": \"", "\"}}", RT_RUN_ARGS_MAX - 9},
        {"{\"action\": \"done\", \"state\": \"", "\"}", RT_RUN_STATE_MAX},
        {"{\"action\": \"done\", \"secret\": {\"payload\": \"", "\"}}", RT_RUN_SECRET_MAX},
        {"{\"action\": \"done\", \"secret_ref\": \"", "\"}", RT_RUN_REF_MAX},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        assert_int_equal(with_letters(ROWS[i].before, ROWS[i].after, ROWS[i].max), RT_OK);
        assert_int_equal(with_letters(ROWS[i].before, ROWS[i].after, ROWS[i].max + 1), RT_E_INVALID);
    }
    // 87384 letters are 65538 bytes.
    const char *before = "{\"action\": \"done\", \"secret\": {\"payload_base64\": \"", *after = "\"}}";
    assert_int_equal(with_letters(before, after, RT_RUN_SECRET_MAX / 3 * 4), RT_OK);
    assert_int_equal(with_letters(before, after, 87384), RT_E_INVALID);
}

/* Source of the plain ones: RFC 4648, section 10. */
static void base64__is_read_strictly(void **state) {
    (void)state;
    static const struct {
        const char *text, *want; /* NULL: none */
    } ROWS[] = {
        {"", ""},           {"Zg==", "f"},      {"Zm8=", "fo"},   {"Zm9v", "foo"},  {"Zm9vYg==", "foob"},
        {"Zm9vYmE=", "fooba"}, {"Zm9vYmFy", "foobar"}, {"+/+/", "\xfb\xff\xbf"},
        {"Z", NULL},        {"Zg", NULL},       {"Zg=", NULL},    {"Zg==Zg==", NULL}, {"=", NULL},
        {"====", NULL},     {"Z===", NULL},     {"Zm9v\n", NULL}, {"Zm 9", NULL},   {"Zm-_", NULL},
    };
    char out[64];
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        const rt_str text = rt_str_of(ROWS[i].text);
        const size_t len = rt_base64_decode(text, out);
        assert_int_equal(rt_base64_decode(text, NULL), len);
        if (ROWS[i].want == NULL) {
            if (len != SIZE_MAX) fail_msg("%s", ROWS[i].text);
            continue;
        }
        assert_int_equal(len, strlen(ROWS[i].want));
        assert_memory_equal(out, ROWS[i].want, len);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run__retry_says_what_comes_next),
        cmocka_unit_test(run__failed_has_a_code_in_either_spelling),
        cmocka_unit_test(run__unavailable_may_say_when),
        cmocka_unit_test(run__done_hands_over_a_secret),
        cmocka_unit_test(run__nonsense_is_refused_by_its_member),
        cmocka_unit_test(run__each_part_ends_at_its_maximum),
        cmocka_unit_test(base64__is_read_strictly),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
