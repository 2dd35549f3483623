/* The body of a new order: what Barbican takes, what it refuses, and what is taken off strings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "face/orders/order_body.h"
#include "json/tree.h"

enum { NOW_S = 1800000000 }; /* 2027-01-15T08:00:00 */

static json_t *parse(const char *text) {
    json_t *json;
    assert_int_equal(rt_json_parse(rt_str_of(text), &json), RT_JSON_FINE);
    return json;
}

static rt_code check(const char *text, rt_err *err) {
    json_t *body = parse(text);
    assert_true(rt_order_body_strip(body));
    *err = (rt_err){0};
    const rt_code code = rt_order_body_check(body, (int64_t)NOW_S * 1000, err);
    json_decref(body);
    return code;
}

#define KEY(more) "{\"type\": \"key\", \"meta\": {\"algorithm\": \"aes\", \"bit_length\": 256" more "}}"

static void body__is_taken(void **state) {
    (void)state;
    static const char *const ROWS[] = {
        KEY(""),
        KEY(", \"name\": \"n\", \"mode\": \"cbc\", \"payload_content_type\": \"application/octet-stream\""),
        KEY(", \"name\": null, \"mode\": null, \"expiration\": null, \"payload\": null"),
        KEY(", \"expiration\": \"2027-01-15T08:00:01\", \"unknown\": [1]"),
        KEY(", \"expiration\": \"  \""),
        "{\"type\": \"key\", \"meta\": {\"algorithm\": \"no such thing\", \"bit_length\": 8}}",
        "{\"type\": \"key\", \"meta\": {\"algorithm\": \"a\", \"bit_length\": 32760}}",
        "{\"type\": \" key \", \"meta\": {\"algorithm\": \"a\", \"bit_length\": 8}, \"status\": \"ACTIVE\", \"x\": 1}",
        "{\"type\": \"asymmetric\", \"meta\": {\"algorithm\": \"rsa\", \"bit_length\": 2048, \"pass_phrase\": \"p\"}}",
        "{\"type\": \"certificate\", \"meta\": {}}",
        "{\"type\": \"my.own-type_1\", \"meta\": {\"bit_length\": \"many\"}}",
    };
    rt_err err;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        if (check(ROWS[i], &err) != RT_OK) fail_msg("%s: %s", ROWS[i], err.msg);
    }
}

static void body__that_breaks_a_rule_is_refused_by_its_property(void **state) {
    (void)state;
    static const struct {
        const char *body, *property;
    } ROWS[] = {
        {"[]", "type"},
        {"{\"meta\": {}}", "type"},
        {"{\"type\": 1, \"meta\": {}}", "type"},
        {"{\"type\": \"\", \"meta\": {}}", "type"},
        {"{\"type\": \"a b\", \"meta\": {}}", "type"},
        {"{\"type\": \"key\"}", "meta"},
        {"{\"type\": \"key\", \"meta\": \"x\"}", "meta"},
        {"{\"type\": \"key\", \"meta\": []}", "meta"},
        {"{\"type\": \"key\", \"meta\": {\"bit_length\": 8}}", "algorithm"},
        {"{\"type\": \"key\", \"meta\": {\"algorithm\": null, \"bit_length\": 8}}", "algorithm"},
        {"{\"type\": \"key\", \"meta\": {\"algorithm\": \" \", \"bit_length\": 8}}", "algorithm"},
        {"{\"type\": \"key\", \"meta\": {\"algorithm\": 1, \"bit_length\": 8}}", "algorithm"},
        {"{\"type\": \"key\", \"meta\": {\"algorithm\": \"aes\"}}", "bit_length"},
        {"{\"type\": \"key\", \"meta\": {\"algorithm\": \"aes\", \"bit_length\": \"256\"}}", "bit_length"},
        {"{\"type\": \"key\", \"meta\": {\"algorithm\": \"aes\", \"bit_length\": true}}", "bit_length"},
        {"{\"type\": \"key\", \"meta\": {\"algorithm\": \"aes\", \"bit_length\": 8.0}}", "bit_length"},
        {"{\"type\": \"key\", \"meta\": {\"algorithm\": \"aes\", \"bit_length\": 0}}", "bit_length"},
        {"{\"type\": \"key\", \"meta\": {\"algorithm\": \"aes\", \"bit_length\": -8}}", "bit_length"},
        {"{\"type\": \"key\", \"meta\": {\"algorithm\": \"aes\", \"bit_length\": 9}}", "bit_length"},
        {"{\"type\": \"key\", \"meta\": {\"algorithm\": \"aes\", \"bit_length\": 32768}}", "bit_length"},
        {"{\"type\": \"asymmetric\", \"meta\": {\"algorithm\": \"rsa\", \"bit_length\": 2047}}", "bit_length"},
        {KEY(", \"payload\": \"x\""), "payload"},
        {KEY(", \"name\": 5"), "name"},
        {KEY(", \"mode\": {}"), "mode"},
        {KEY(", \"expiration\": \"soon\""), "expiration"},
        {KEY(", \"expiration\": \"2027-01-15T08:00:00\""), "expiration"},
        {KEY(", \"expiration\": 5"), "expiration"},
    };
    char want[64];
    rt_err err;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        if (check(ROWS[i].body, &err) != RT_E_INVALID) fail_msg("%s was taken", ROWS[i].body);
        (void)snprintf(want, sizeof want, "Invalid property: '%s'.", ROWS[i].property);
        if (strstr(err.msg, want) == NULL) fail_msg("%s: %s", ROWS[i].body, err.msg);
    }
}

static void body__texts_end_at_255_characters(void **state) {
    (void)state;
    rt_err err;
    for (int count = RT_ORDER_TEXT_MAX; count <= RT_ORDER_TEXT_MAX + 1; count++) {
        rt_buf text = {0};
        rt_buf_add(&text, RT_STR("{\"type\": \"key\", \"meta\": {\"algorithm\": \"aes\", \"bit_length\": 8, \"name\": \""));
        for (int i = 0; i < count; i++) rt_buf_add(&text, RT_STR("ü"));
        rt_buf_add(&text, RT_STR("\"}}"));
        rt_buf_add_char(&text, '\0');
        assert_int_equal(check(text.ptr, &err), count > RT_ORDER_TEXT_MAX ? RT_E_INVALID : RT_OK);
        rt_buf_deinit(&text);
    }
}

static void strip__takes_blanks_off_every_string_and_nothing_else(void **state) {
    (void)state;
    json_t *body = parse("{\" key \": \" a b\\t\\r\\n\", \"deep\": [[{\"x\": [\"\\u000b\\f \", \"c\"]}], 1, true], "
                         "\"\": \" \\u00a0 \"}");
    assert_true(rt_order_body_strip(body));
    rt_buf out = {0};
    rt_json_write(&out, body);
    rt_buf_add_char(&out, '\0');
    assert_string_equal(out.ptr, "{\" key \": \"a b\", \"deep\": [[{\"x\": [\"\", \"c\"]}], 1, true], "
                                 "\"\": \"\xc2\xa0\"}");
    rt_buf_deinit(&out);
    json_decref(body);
}

static void strip__goes_as_deep_as_json_may_be(void **state) {
    (void)state;
    rt_buf text = {0};
    for (int i = 0; i < RT_JSON_DEPTH_MAX; i++) rt_buf_add_char(&text, '[');
    rt_buf_add(&text, RT_STR("\" x \""));
    for (int i = 0; i < RT_JSON_DEPTH_MAX; i++) rt_buf_add_char(&text, ']');
    rt_buf_add_char(&text, '\0');
    json_t *body = parse(text.ptr);
    assert_true(rt_order_body_strip(body));
    const json_t *at = body;
    while (json_is_array(at)) at = json_array_get(at, 0);
    assert_string_equal(json_string_value(at), "x");
    json_decref(body);
    rt_buf_deinit(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(body__is_taken),
        cmocka_unit_test(body__that_breaks_a_rule_is_refused_by_its_property),
        cmocka_unit_test(body__texts_end_at_255_characters),
        cmocka_unit_test(strip__takes_blanks_off_every_string_and_nothing_else),
        cmocka_unit_test(strip__goes_as_deep_as_json_may_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
