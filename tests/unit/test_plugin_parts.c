/* What the plugin executor is made of: frames, lines, requests, replies, and the loading of a file. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "executor/plugin/frame.h"
#include "executor/plugin/lines.h"
#include "executor/plugin/plugins.h"
#include "executor/plugin/reply.h"
#include "executor/plugin/request.h"

/* ---- frames -------------------------------------------------------------------------------------------- */

static void send_bytes(int fd, const void *bytes, size_t len) {
    assert_int_equal(send(fd, bytes, len, 0), len);
}

static void frame__comes_in_byte_by_byte(void **state) {
    (void)state;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    static const char bytes[] = "Artd\5\0\0\0hello";
    rt_frame f = {.kind = RT_FRAME_NONE};
    for (size_t i = 0; i < 13; i++) {
        assert_int_equal(rt_frame_read(&f, pair[1], 5), RT_FRAME_MORE);
        send_bytes(pair[0], bytes + i, 1);
    }
    assert_int_equal(rt_frame_read(&f, pair[1], 5), RT_FRAME_WHOLE);
    assert_int_equal(f.kind, RT_FRAME_ANSWER);
    assert_string_equal(f.body, "hello");
    rt_frame_clear(&f);
    assert_true(rt_frame_send(pair[0], RT_FRAME_PROBLEM, RT_STR("why")));
    assert_true(rt_frame_send(pair[0], RT_FRAME_READY, RT_STR_EMPTY));
    assert_int_equal(rt_frame_read(&f, pair[1], 5), RT_FRAME_WHOLE);
    assert_string_equal(f.body, "why");
    rt_frame_clear(&f);
    assert_int_equal(rt_frame_read(&f, pair[1], 5), RT_FRAME_WHOLE);
    assert_int_equal(f.kind, RT_FRAME_READY);
    rt_frame_clear(&f);
    (void)close(pair[0]);
    assert_int_equal(rt_frame_read(&f, pair[1], 5), RT_FRAME_CLOSED);
    rt_frame_clear(&f);
    (void)close(pair[1]);
}

static void frame__what_is_none_is_bad(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        uint32_t max;
        rt_frame_end end;
    } rows[] = {
        {"Artd\5\0\0\0hello", 4, RT_FRAME_BAD}, // too long
        {"Artd\xff\xff\xff\xff.....", UINT32_MAX - 1, RT_FRAME_BAD},
        {"Xrtd\5\0\0\0hello", 5, RT_FRAME_BAD}, // no kind
        {"\0rtd\5\0\0\0hello", 5, RT_FRAME_BAD},
        {"Artx\5\0\0\0hello", 5, RT_FRAME_BAD}, // no mark
        {"HTTP/1.1 200 O", 5, RT_FRAME_BAD},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        send_bytes(pair[0], rows[i].bytes, 13);
        rt_frame f = {.kind = RT_FRAME_NONE};
        assert_int_equal(rt_frame_read(&f, pair[1], rows[i].max), rows[i].end);
        rt_frame_clear(&f);
        (void)close(pair[0]);
        (void)close(pair[1]);
    }
}

/* ---- lines --------------------------------------------------------------------------------------------- */

typedef struct said {
    char text[1 << 16];
    size_t len, count;
} said;

static void on_line(void *ctx, rt_str line) {
    said *s = ctx;
    s->count++;
    s->len += (size_t)snprintf(s->text + s->len, sizeof s->text - s->len, "%.*s|", RT_STR_ARG(line));
}

static void lines__are_cut_out_of_pieces(void **state) {
    (void)state;
    rt_lines l = {.len = 0};
    said s = {.len = 0};
    rt_lines_take(&l, RT_STR("one\n\ntw"), 0, on_line, &s); // an empty line says nothing
    rt_lines_take(&l, RT_STR("o\nthr\tee\x1b[1m\r\nfour"), 0, on_line, &s);
    assert_string_equal(s.text, "one|two|thr\tee?[1m?|");
    rt_lines_end(&l, on_line, &s);
    assert_string_equal(s.text, "one|two|thr\tee?[1m?|four|");
}

static void lines__are_bounded_in_length_and_number(void **state) {
    (void)state;
    rt_lines l = {.len = 0};
    said s = {.len = 0};
    for (int i = 0; i < RETRYD_LOG_LINE_MAX + 1; i++) rt_lines_take(&l, RT_STR("x"), 0, on_line, &s);
    rt_lines_take(&l, RT_STR("\nshort\n"), 0, on_line, &s);
    assert_int_equal(s.len, RETRYD_LOG_LINE_MAX + 1 + 6);
    for (int i = 0; i < RT_LINES_A_SECOND + 5; i++) rt_lines_take(&l, RT_STR("more\n"), 999, on_line, &s);
    assert_int_equal(s.count, RT_LINES_A_SECOND);
    rt_lines_take(&l, RT_STR("next second\n"), 1000, on_line, &s);
    assert_int_equal(s.count, RT_LINES_A_SECOND + 2);
    assert_non_null(strstr(s.text, "|(7 lines left out)|next second|"));
}

/* ---- requests ------------------------------------------------------------------------------------------ */

static void request__tells_what_is_in_it(void **state) {
    (void)state;
    rt_err err;
    rt_request q;
    const rt_str text = RT_STR(
        "{\"order\":\"a1\",\"type\":\"key\",\"task\":\"t\",\"args\":[1],\"kwargs\":{\"n\":-7,\"s\":\"x\"},"
        "\"meta\":{\"b\":true},\"state\":\"st\",\"attempt\":2,\"token\":\"0f\",\"deadline\":12,\"verb\":"
        "\"cancel\"}");
    assert_int_equal(rt_request_init(&q, text, &err), RT_OK);
    assert_int_equal(q.verb, RT_VERB_CANCEL);
    assert_string_equal(q.order.id, "a1");
    assert_string_equal(q.order.meta, "{\"b\":true}");
    assert_string_equal(q.order.state, "st");
    assert_string_equal(q.task.args, "[1]");
    assert_int_equal(q.attempt, 2);
    assert_string_equal(q.token, "0f");
    assert_int_equal(q.deadline_ms, 12);
    assert_int_equal(json_integer_value(json_object_get(rt_request_object(&q, q.task.kwargs), "n")), -7);
    assert_non_null(json_object_get(rt_request_object(&q, q.order.meta), "b"));
    assert_null(rt_request_object(&q, q.task.args)); // no object
    assert_null(rt_request_object(&q, "{}"));        // nobody's
    assert_null(rt_request_object(&q, NULL));
    rt_request_deinit(&q);
}

static void request__what_is_left_out_is_empty_and_what_is_wrong_refused(void **state) {
    (void)state;
    static const struct {
        const char *text;
        rt_code code;
    } rows[] = {
        {"{}", RT_OK},
        {"{\"kwargs\":{\"n\":\"a\\u0000b\"}}", RT_OK}, // a NUL in what somebody handed over is no reason to refuse
        {"{\"state\":null,\"meta\":null,\"args\":null,\"kwargs\":null}", RT_OK},
        {"", RT_E_INVALID},
        {"[]", RT_E_INVALID},
        {"{\"verb\":\"walk\"}", RT_E_INVALID},
        {"{\"verb\":1}", RT_E_INVALID},
        {"{\"meta\":[]}", RT_E_INVALID},
        {"{\"args\":{}}", RT_E_INVALID},
        {"{\"kwargs\":\"\"}", RT_E_INVALID},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rt_err err;
        rt_request q;
        assert_int_equal(rt_request_init(&q, rt_str_of(rows[i].text), &err), rows[i].code);
        if (rows[i].code == RT_OK) {
            assert_int_equal(q.verb, RT_VERB_RUN);
            assert_string_equal(q.task.name, "");
            assert_string_equal(q.order.meta, "{}");
            assert_string_equal(q.task.args, "[]");
            assert_null(q.order.state);
        }
        rt_request_deinit(&q);
    }
}

/* ---- replies ------------------------------------------------------------------------------------------- */

static const struct retryd_secret SECRET = {
    .size = sizeof SECRET, .name = "n", .content_type = "text/plain", .payload = "\0\xff", .payload_len = 2};

static void done(struct retryd_reply *r) { retryd_reply_done(r); }
static void failed(struct retryd_reply *r) { retryd_reply_failed(r, 400, "caf\xc3\xa9"); }
static void retry(struct retryd_reply *r) { retryd_reply_retry(r, 5, "t", "[1]", "{\"a\":2}"); }
static void retry_as_it_was(struct retryd_reply *r) { retryd_reply_retry(r, 0, NULL, NULL, NULL); }
static void unavailable(struct retryd_reply *r) { retryd_reply_unavailable(r, -1); }
static void later(struct retryd_reply *r) { retryd_reply_unavailable(r, 7); }
static void nothing(struct retryd_reply *r) { retryd_reply_state(r, "s"); }
static void second_thoughts(struct retryd_reply *r) {
    retryd_reply_secret(r, &SECRET);
    retryd_reply_retry(r, 5, "t", "[]", "{}");
    retryd_reply_failed(r, 500, "no");
}
static void secret(struct retryd_reply *r) {
    retryd_reply_done(r);
    retryd_reply_secret(r, &SECRET);
}
static void container(struct retryd_reply *r) {
    retryd_reply_container(r, "c");
    retryd_reply_member(r, "private_key", &SECRET);
    retryd_reply_done(r);
}
static void refs(struct retryd_reply *r) {
    retryd_reply_refs(r, "http://s", NULL);
    retryd_reply_progress(r, "word", "sentence");
    retryd_reply_done(r);
}

static void negative(struct retryd_reply *r) { retryd_reply_retry(r, -1, NULL, NULL, NULL); }
static void no_array(struct retryd_reply *r) { retryd_reply_retry(r, 0, NULL, "{}", NULL); }
static void no_object(struct retryd_reply *r) { retryd_reply_retry(r, 0, NULL, NULL, "{"); }
static void empty_task(struct retryd_reply *r) { retryd_reply_retry(r, 0, "", NULL, NULL); }
static void no_text(struct retryd_reply *r) { retryd_reply_failed(r, 400, "\xc3("); }
static void no_payload(struct retryd_reply *r) {
    retryd_reply_secret(r, &(struct retryd_secret){.size = sizeof(struct retryd_secret)});
}
static void no_size(struct retryd_reply *r) {
    retryd_reply_secret(r, &(struct retryd_secret){.payload = ""});
}
static void large(struct retryd_reply *r) {
    static char payload[RETRYD_SECRET_MAX + 1];
    retryd_reply_secret(r, &(struct retryd_secret){.size = sizeof(struct retryd_secret),
                                                   .payload = payload,
                                                   .payload_len = sizeof payload});
}
static void long_state(struct retryd_reply *r) {
    static char text[RETRYD_STATE_MAX + 2];
    memset(text, 'x', RETRYD_STATE_MAX + 1);
    retryd_reply_state(r, text);
}
static void crowd(struct retryd_reply *r) {
    for (char role[] = "a"; role[0] <= 'd'; role[0]++) retryd_reply_member(r, role, &SECRET);
}
static void wrong_and_right(struct retryd_reply *r) {
    retryd_reply_retry(r, -1, NULL, NULL, NULL);
    retryd_reply_done(r);
}

static void reply__is_what_an_http_worker_would_say(void **state) {
    (void)state;
    static const struct {
        void (*say)(struct retryd_reply *r);
        const char *want;
    } rows[] = {
        {done, "{\"action\":\"done\"}"},
        {failed, "{\"action\":\"failed\",\"code\":\"400\",\"reason\":\"caf\xc3\xa9\"}"},
        {retry, "{\"action\":\"retry\",\"after_ms\":5,\"task\":\"t\",\"args\":[1],\"kwargs\":{\"a\":2}}"},
        {retry_as_it_was, "{\"action\":\"retry\",\"after_ms\":0}"},
        {unavailable, "{\"action\":\"unavailable\"}"},
        {later, "{\"action\":\"unavailable\",\"after_ms\":7}"},
        {nothing, "{\"state\":\"s\",\"action\":\"unavailable\"}"},
        {second_thoughts, "{\"action\":\"failed\",\"code\":\"500\",\"reason\":\"no\"}"},
        {secret, "{\"action\":\"done\",\"secret\":{\"payload_base64\":\"AP8=\",\"content_type\":\"text/"
                 "plain\",\"name\":\"n\"}}"},
        {container, "{\"container\":{\"secrets\":{\"private_key\":{\"payload_base64\":\"AP8=\",\"content_"
                    "type\":\"text/plain\","
                    "\"name\":\"n\"}},\"name\":\"c\"},\"action\":\"done\"}"},
        {refs, "{\"secret_ref\":\"http://"
               "s\",\"sub_status\":\"word\",\"message\":\"sentence\",\"action\":\"done\"}"},
    };
    struct retryd_calls calls = {.size = sizeof calls};
    rt_reply_fill(&calls);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rt_reply r;
        assert_true(rt_reply_init(&r, &calls));
        rows[i].say(&r.face);
        assert_string_equal(r.wrong, "");
        char *got = rt_reply_answer(&r);
        json_t *a = json_loads(got, 0, NULL), *b = json_loads(rows[i].want, 0, NULL);
        assert_non_null(b);
        if (!json_equal(a, b)) fail_msg("%s is not %s", got, rows[i].want);
        json_decref(a);
        json_decref(b);
        free(got);
        rt_reply_deinit(&r);
    }
}

static void reply__that_breaks_a_rule_is_nonsense(void **state) {
    (void)state;
    static const struct {
        void (*say)(struct retryd_reply *r);
        const char *wrong;
    } rows[] = {
        {negative, "after_ms is below 0"},        {no_array, "args is no JSON array"},
        {no_object, "kwargs is no JSON object"},  {empty_task, "task is empty"},
        {no_text, "reason is not UTF-8"},         {no_payload, "secret has no payload"},
        {no_size, "secret says no size"},         {large, "payload is too long"},
        {long_state, "state is too long"},        {crowd, "container has too many members"},
        {wrong_and_right, "after_ms is below 0"}, // what comes later does not mend it
    };
    struct retryd_calls calls = {.size = sizeof calls};
    rt_reply_fill(&calls);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rt_reply r;
        assert_true(rt_reply_init(&r, &calls));
        rows[i].say(&r.face);
        assert_string_equal(r.wrong, rows[i].wrong);
        rt_reply_deinit(&r);
    }
}

/* ---- names --------------------------------------------------------------------------------------------- */

static void names__are_no_paths(void **state) {
    (void)state;
    static const struct {
        const char *name;
        bool valid;
    } rows[] = {
        {"a", true},    {"simple_certificate", true},
        {"a-1", true},  {"", false},
        {".", false},   {"..", false},
        {"a/b", false}, {"A", false},
        {"a b", false}, {"\xc3\xa9", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(rt_plugin_name_is_valid(rt_str_of(rows[i].name)), rows[i].valid);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frame__comes_in_byte_by_byte),
        cmocka_unit_test(frame__what_is_none_is_bad),
        cmocka_unit_test(lines__are_cut_out_of_pieces),
        cmocka_unit_test(lines__are_bounded_in_length_and_number),
        cmocka_unit_test(request__tells_what_is_in_it),
        cmocka_unit_test(request__what_is_left_out_is_empty_and_what_is_wrong_refused),
        cmocka_unit_test(reply__is_what_an_http_worker_would_say),
        cmocka_unit_test(reply__that_breaks_a_rule_is_nonsense),
        cmocka_unit_test(names__are_no_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
