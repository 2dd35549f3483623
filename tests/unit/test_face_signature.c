/* Signatures of pre-signed URLs, instants as text, and query words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "face/common/query.h"
#include "face/common/timestamp.h"
#include "face/notifications/render.h"
#include "face/notifications/signature.h"

/* Worked out with Python's hmac over the text that Zaqar signs:
 * r"/v2/queues/q/claims,/v2/queues/q/messages\nGET,POST\np\n2030-01-01T00:00:00", key "0" * 64. */
static void signature__is_zaqars_whatever_the_order_of_the_lists(void **state) {
    (void)state;
    char key[64];
    memset(key, '0', sizeof key);
    for (int turned = 0; turned < 2; turned++) {
        rt_signed_url url = {
            .paths_count = 2, .methods_count = 2, .project = RT_STR("p"), .expires = rt_timestamp_format(1893456000)};
        url.paths[turned] = RT_STR("/v2/queues/q/messages");
        url.paths[1 - turned] = RT_STR("/v2/queues/q/claims");
        url.methods[turned] = RT_STR("GET");
        url.methods[1 - turned] = RT_STR("POST");
        rt_signature signature;
        assert_int_equal(rt_signature_make((rt_str){key, sizeof key}, &url, &signature), RT_OK);
        assert_string_equal(signature.s, "70b5027923c847a7a11176a638bbef1c749ffdc3aa2a08ca85bfea944f8fac9f");
    }
}

static void timestamp__text_and_back(void **state) {
    (void)state;
    const struct { const char *text; int64_t unix_s; } rows[] = {
        {"1970-01-01T00:00:00", 0},
        {"2030-01-01T00:00:00", 1893456000},
        {"2024-02-29T12:34:56", 1709210096},
        {"9999-12-31T23:59:59", RT_TIMESTAMP_S_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t unix_s;
        assert_true(rt_timestamp_parse(rt_str_of(rows[i].text), &unix_s));
        assert_int_equal(unix_s, rows[i].unix_s);
        assert_string_equal(rt_timestamp_format(rows[i].unix_s).s, rows[i].text);
    }
    assert_string_equal(rt_timestamp_format(-1).s, "1970-01-01T00:00:00");
    assert_string_equal(rt_timestamp_format(INT64_MAX).s, "9999-12-31T23:59:59");
}

static void timestamp__spellings_of_one_instant(void **state) {
    (void)state;
    static const char *const TEXTS[] = {
        "2030-01-01T00:00:00", "2030-01-01", "2030-01-01T00:00", "2030-01-01 00:00:00", "2030-01-01T00:00:00Z",
        "2030-01-01T00:00:00.123456", "2030-01-01T02:00:00+02:00", "2030-01-01T02:00:00+0200", "2030-01-01T02:00:00+02",
        "2029-12-31T18:30:00-05:30"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        int64_t unix_s;
        assert_true(rt_timestamp_parse(rt_str_of(TEXTS[i]), &unix_s));
        assert_int_equal(unix_s, 1893456000);
    }
}

static void timestamp__what_is_no_instant_is_refused(void **state) {
    (void)state;
    static const char *const TEXTS[] = {
        "", "zzz", "2030", "2030-1-1", "2030-02-30", "2030-13-01", "2030-01-01T24:00:00", "2030-01-01T00:60",
        "2030-01-01T00:00:61", "2030-01-01T", "2030-01-01T00:00:00X", "2030-01-01T00:00:00+24", "2030-01-01T00:00:00.",
        "1969-12-31T23:59:59", "2030-01-01T00:00:00Z ago"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        int64_t unix_s;
        if (rt_timestamp_parse(rt_str_of(TEXTS[i]), &unix_s)) fail_msg("accepted: %s", TEXTS[i]);
    }
}

static void query__bool_has_seven_words_each(void **state) {
    (void)state;
    static const char *const YES[] = {"true", "True", "t", "yes", "y", "1", "on"};
    static const char *const NO[] = {"false", "False", "f", "no", "n", "0", "off"};
    static const char *const NEITHER[] = {"", "TRUE", "2", "nope", " true"};
    bool truth;
    for (size_t i = 0; i < 7; i++) {
        assert_true(rt_query_parse_bool(rt_str_of(YES[i]), &truth));
        assert_true(truth);
        assert_true(rt_query_parse_bool(rt_str_of(NO[i]), &truth));
        assert_false(truth);
    }
    for (size_t i = 0; i < sizeof NEITHER / sizeof *NEITHER; i++) {
        assert_false(rt_query_parse_bool(rt_str_of(NEITHER[i]), &truth));
    }
}

static void assert_buf(rt_buf *b, const char *want) {
    rt_buf_add_char(b, '\0');
    assert_string_equal(b->ptr, want);
    rt_buf_deinit(b);
}

static void link__is_encoded_and_there_only_with_a_page(void **state) {
    (void)state;
    rt_link link = {0};
    rt_buf out = {0};
    rt_link_int(&link, RT_STR("limit"), 2);
    rt_link_bool(&link, RT_STR("echo"), true);
    rt_link_str(&link, RT_STR("a b"), RT_STR("\"&=\xC3\xA9"));
    rt_link_write(&out, &link, RT_STR("/v2/queues"), true);
    assert_buf(&out, "\"links\": [{\"rel\": \"next\", \"href\": "
                     "\"/v2/queues?limit=2&echo=true&a%20b=%22%26%3D%C3%A9\"}]");
    link = (rt_link){0};
    out = (rt_buf){0};
    rt_link_int(&link, RT_STR("limit"), 2);
    rt_link_write(&out, &link, RT_STR("/v2/queues"), false);
    assert_buf(&out, "\"links\": []");
}

static void python_str__is_quoted_like_repr(void **state) {
    (void)state;
    const struct { const char *text, *want; } rows[] = {
        {"nosuch", "'nosuch'"}, {"it's", "\"it's\""}, {"'\"", "'\\'\"'"}, {"a\\b", "'a\\\\b'"}, {"a\n", "'a\\x0a'"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_buf out = {0};
        rt_render_python_str(&out, rt_str_of(rows[i].text));
        assert_buf(&out, rows[i].want);
    }
}

static void message__is_shown_with_its_claim_and_its_age(void **state) {
    (void)state;
    const rt_message_place place = {.tag = 0xABCD, .path = RT_STR("/v2/queues/q"), .now_ms = 100000};
    rt_message m = {.job = {.id = 5, .ttl_s = 60, .placed_ms = 10000, .expires_ms = 95000 + 60000},
                    .body = RT_STR("{\"a\":1}")};
    rt_buf out = {0};
    // Its life was prolonged 5 s ago, by a claim.
    rt_render_message(&out, &place, &m, 7);
    assert_buf(&out, "{\"id\": \"0000abcd0000000000000005\", \"href\": \"/v2/queues/q/messages/0000abcd0000000000000005"
                     "?claim_id=0000abcd0000000000000007\", \"ttl\": 60, \"age\": 5, \"body\": {\"a\":1}}");
    m.job.expires_ms = m.job.placed_ms + 60000 + 30000;
    assert_int_equal(rt_message_age_s(&m.job, 99999), 59);
    assert_int_equal(rt_message_age_s(&m.job, 1000), 0); // a clock that was set back
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signature__is_zaqars_whatever_the_order_of_the_lists),
        cmocka_unit_test(timestamp__text_and_back),
        cmocka_unit_test(timestamp__spellings_of_one_instant),
        cmocka_unit_test(timestamp__what_is_no_instant_is_refused),
        cmocka_unit_test(query__bool_has_seven_words_each),
        cmocka_unit_test(link__is_encoded_and_there_only_with_a_page),
        cmocka_unit_test(python_str__is_quoted_like_repr),
        cmocka_unit_test(message__is_shown_with_its_claim_and_its_age),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
