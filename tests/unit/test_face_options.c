/* A subscription's options and its subscriber: what reaches the engine, and what a request could smuggle in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "face/common/target.h"
#include "face/notifications/options.h"
#include "face/notifications/subscriber.h"
#include "json/tree.h"

static rt_arena arena;

static int teardown(void **state) {
    (void)state;
    rt_arena_deinit(&arena);
    arena = (rt_arena){0};
    return 0;
}

static rt_code parse(const char *text, rt_subscription *out) {
    json_t *json;
    rt_str why = RT_STR_EMPTY;
    assert_int_equal(rt_json_parse(rt_str_of(text), &json), RT_JSON_FINE);
    *out = (rt_subscription){0};
    const rt_code code = rt_options_from_json(json, &arena, out, &why);
    json_decref(json);
    if (code == RT_E_INVALID) assert_true(why.len > 0);
    return code;
}

static void assert_text(rt_str s, const char *want) {
    assert_int_equal(s.len, strlen(want));
    if (s.len > 0) assert_memory_equal(s.ptr, want, s.len);
}

#define KEY32 "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

static void options__reach_the_engine_in_either_spelling(void **state) {
    (void)state;
    rt_subscription s;
    assert_int_equal(parse("{\"post_data\": \"a\", \"post_headers\": {\"X-A\": \"1\", \"X-B\": \"b c\"}, "
                           "\"secret\": \"" KEY32 "\", \"subject\": \"Hi\", \"from\": \"a@b\", "
                           "\"_retry_policy\": {}}", &s), RT_OK);
    assert_text(s.post_data, "a");
    assert_text(s.headers, "X-A: 1\nX-B: b c\n");
    assert_text(s.secrets[0], KEY32);
    assert_text(s.secrets[1], "");
    assert_text(s.subject, "Hi");
    assert_text(s.from, "a@b");
    assert_true(s.has_policy);
    assert_int_equal(parse("{\"_post_data\": {\"m\": \"$zaqar_message$\"}, "
                           "\"_post_headers\": {\"Content-Type\": \"text/x\"}, "
                           "\"secret\": [\"" KEY32 "\", \"" KEY32 "\"]}", &s), RT_OK);
    assert_text(s.post_data, "{\"m\": \"$zaqar_message$\"}");
    assert_text(s.headers, "Content-Type: text/x\n");
    assert_text(s.secrets[1], KEY32);
    assert_false(s.has_policy);
    assert_int_equal(parse("{}", &s), RT_OK);
    assert_text(s.options_json, "{}");
    assert_false(s.has_policy);
}

static void options__headers_that_would_break_the_request_are_refused(void **state) {
    (void)state;
    static const char *const HEADERS[] = {
        "\"a b\": \"1\"", "\"\": \"1\"", "\"X:\": \"1\"", "\"X\": \"a\\r\\nY: 1\"", "\"X\": \"a\\u0000\"",
        "\"X\\n\": \"1\"", "\"host\": \"h\"", "\"Content-Length\": \"1\"",
        "\"Transfer-Encoding\": \"chunked\"", "\"CONNECTION\": \"close\"", "\"webhook-id\": \"1\"",
        "\"Expect\": \"1\"", "\"X\": 1", "\"X\": null"};
    for (size_t i = 0; i < sizeof HEADERS / sizeof *HEADERS; i++) {
        char text[128];
        rt_subscription s;
        (void)snprintf(text, sizeof text, "{\"post_headers\": {%s}}", HEADERS[i]);
        if (parse(text, &s) != RT_E_INVALID) fail_msg("accepted: %s", text);
    }
    rt_subscription s;
    assert_int_equal(parse("{\"post_headers\": [\"X\"]}", &s), RT_E_INVALID);
    assert_int_equal(parse("{\"post_data\": 5}", &s), RT_E_INVALID);
    assert_int_equal(parse("{\"subject\": \"a\\nBcc: x\"}", &s), RT_E_INVALID);
}

static void options__headers_are_bounded(void **state) {
    (void)state;
    for (int count = RT_TARGET_HEADERS_MAX; count <= RT_TARGET_HEADERS_MAX + 1; count++) {
        rt_buf text = {0};
        rt_buf_add(&text, RT_STR("{\"post_headers\": {"));
        for (int i = 0; i < count; i++) rt_buf_addf(&text, "%s\"X-%d\": \"\"", i > 0 ? "," : "", i);
        rt_buf_add(&text, RT_STR("}}"));
        rt_buf_add_char(&text, '\0');
        rt_subscription s;
        assert_int_equal(parse(text.ptr, &s), count > RT_TARGET_HEADERS_MAX ? RT_E_INVALID : RT_OK);
        rt_buf_deinit(&text);
    }
}

/* "whsec_" and the base64 of `bytes` zeros. */
static void zero_secret(char out[128], size_t bytes) {
    const size_t digits = (bytes * 8 + 5) / 6, padded = (bytes + 2) / 3 * 4;
    memcpy(out, "whsec_", 6);
    memset(out + 6, 'A', digits);
    memset(out + 6 + digits, '=', padded - digits);
    out[6 + padded] = '\0';
}

static void options__secrets_are_base64_of_24_to_64_bytes(void **state) {
    (void)state;
    const struct { size_t bytes; rt_code code; } sizes[] = {
        {23, RT_E_INVALID}, {24, RT_OK}, {25, RT_OK}, {32, RT_OK}, {64, RT_OK}, {65, RT_E_INVALID}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char secret[128], text[160];
        rt_subscription s;
        zero_secret(secret, sizes[i].bytes);
        (void)snprintf(text, sizeof text, "{\"secret\": \"%s\"}", secret);
        assert_int_equal(parse(text, &s), sizes[i].code);
    }
    static const char *const BAD[] = {
        "\"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\"", "\"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE\"",
        "\"whsec_MDEyMzQ1Njc4OTAxMjM0N!Y3ODkwMTIzNDU2Nzg5MDE=\"", "\"whsec_\"", "5", "[5]",
        "[\"" KEY32 "\", \"" KEY32 "\", \"" KEY32 "\"]"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        char text[256];
        rt_subscription s;
        (void)snprintf(text, sizeof text, "{\"secret\": %s}", BAD[i]);
        assert_int_equal(parse(text, &s), RT_E_INVALID);
    }
}

#define ALL_TYPES RT_STR("http,https,mailto,trust+http,trust+https")

static void subscriber__host_is_found_wherever_it_stands(void **state) {
    (void)state;
    const struct { const char *uri, *host; } rows[] = {
        {"http://example.com", "example.com"},
        {"https://example.com:8443/a?b#c", "example.com"},
        {"HTTP://127.0.0.1:80", "127.0.0.1"},
        {"http://[::1]:8080/x", "::1"},
        {"http://[fe80::1]", "fe80::1"},
        {"http://user:pass@10.0.0.1/x@y", "10.0.0.1"},
        {"http://good.example@127.0.0.1/", "127.0.0.1"},
        {"http://a?b@c", "a"},
        {"http://h:/", "h"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_subscriber to;
        rt_err err;
        assert_int_equal(rt_subscriber_parse(rt_str_of(rows[i].uri), ALL_TYPES, &to, &err), RT_OK);
        assert_false(to.mail);
        assert_text(to.host, rows[i].host);
    }
    rt_subscriber to;
    rt_err err;
    assert_int_equal(rt_subscriber_parse(RT_STR("mailto:a@b.c?subject=x"), ALL_TYPES, &to, &err), RT_OK);
    assert_true(to.mail);
}

static void subscriber__what_is_no_target_is_refused(void **state) {
    (void)state;
#define TYPES "The subscriber type of subscription must be supported in the list " \
              "['http', 'https', 'mailto', 'trust+http', 'trust+https']."
    const struct { const char *uri, *why; } rows[] = {
        {"", TYPES},
        {"example.com", TYPES},
        {"ftp://h/", TYPES},
        {"file:///etc/passwd", TYPES},
        {"http:", NULL},
        {"http://", NULL},
        {"http:///path", NULL},
        {"http://:80/", NULL},
        {"http://h:0/", NULL},
        {"http://h:65536/", NULL},
        {"http://h:x/", NULL},
        {"http://[::1/", NULL},
        {"http://[::1]x/", NULL},
        {"http://h/a b", NULL},
        {"http://h/\r\nX: 1", NULL},
        {"http://h\\@127.0.0.1/", NULL},
        {"mailto:", NULL},
        {"mailto:nobody", NULL},
        {"mailto:?subject=a@b", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_subscriber to;
        rt_err err;
        if (rt_subscriber_parse(rt_str_of(rows[i].uri), ALL_TYPES, &to, &err) != RT_E_INVALID) fail_msg("%s", rows[i].uri);
        if (rows[i].why != NULL) assert_string_equal(err.msg, rows[i].why);
    }
    rt_subscriber to;
    rt_err err;
    assert_int_equal(rt_subscriber_parse(RT_STR("trust+https://h/"), ALL_TYPES, &to, &err), RT_E_INVALID);
    assert_non_null(strstr(err.msg, "Keystone"));
}

static void subscriber__has_a_type_that_is_set(void **state) {
    (void)state;
    rt_subscriber to;
    rt_err err;
    assert_int_equal(rt_subscriber_parse(RT_STR("HTTPS://h/"), RT_STR("mailto, https"), &to, &err), RT_OK);
    assert_int_equal(rt_subscriber_parse(RT_STR("http://h/"), RT_STR("mailto, https"), &to, &err), RT_E_INVALID);
    assert_string_equal(err.msg, "The subscriber type of subscription must be supported in the list ['mailto', 'https'].");
    // What nobody could deliver to is no type, whatever is set.
    assert_int_equal(rt_subscriber_parse(RT_STR("ftp://h/"), RT_STR("ftp"), &to, &err), RT_E_INVALID);
    assert_int_equal(rt_subscriber_parse(RT_STR("://h/"), RT_STR(""), &to, &err), RT_E_INVALID);
}

static void subscriber__ends_at_its_maximum(void **state) {
    (void)state;
    char uri[RT_URI_MAX + 2];
    memset(uri, 'a', sizeof uri);
    memcpy(uri, "http://h/", 9);
    rt_subscriber to;
    rt_err err;
    assert_int_equal(rt_subscriber_parse((rt_str){uri, RT_URI_MAX}, ALL_TYPES, &to, &err), RT_OK);
    assert_int_equal(rt_subscriber_parse((rt_str){uri, RT_URI_MAX + 1}, ALL_TYPES, &to, &err), RT_E_INVALID);
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(options__reach_the_engine_in_either_spelling),
        TEST(options__headers_that_would_break_the_request_are_refused),
        TEST(options__headers_are_bounded),
        TEST(options__secrets_are_base64_of_24_to_64_bytes),
        TEST(subscriber__host_is_found_wherever_it_stands),
        TEST(subscriber__what_is_no_target_is_refused),
        TEST(subscriber__has_a_type_that_is_set),
        TEST(subscriber__ends_at_its_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
