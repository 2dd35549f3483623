/* The executor against an endpoint that answers, and against all that endpoints do instead. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "webhook_rig.h"
#include "webhook_sink.h"

#define LOOPBACK "127.0.0.0/8"

typedef struct world {
    sink *s;
    rig *r;
} world;

static world opened(void) {
    return (world){.s = sink_open(), .r = rig_open((rt_webhook_config){0}, LOOPBACK)};
}

static void closed(world w) {
    rig_close(w.r);
    sink_close(w.s);
}

/* Lends the URL of `path` at the sink until the next call. */
static const char *url(const world *w, const char *path) {
    static char text[2048];
    (void)snprintf(text, sizeof text, "http://127.0.0.1:%d%s", sink_port(w->s), path);
    return text;
}

static void assert_text(const rt_outcome *o, const char *want) {
    if (o->text_len != strlen(want) || memcmp(o->text, want, o->text_len) != 0) {
        fail_msg("\"%.*s\" is not \"%s\"", o->text_len, o->text, want);
    }
}

static void webhook__answers_are_outcomes(void **state) {
    (void)state;
    static const struct {
        const char *path;
        int status;
        int64_t retry_after_ms;
        const char *text;
    } rows[] = {
        {"/200", 200, -1, "answer 200"},
        {"/201", 201, -1, "answer 201"},
        {"/204", 204, -1, ""},
        {"/found", 307, -1, "elsewhere"}, // redirects are not followed unless asked for
        {"/404", 404, -1, "answer 404"},
        {"/410", 410, -1, "answer 410"},
        {"/later/7", 429, 7000, "later"},
        {"/later/0", 429, 0, "later"},
        {"/later/Wed,_21_Oct_2015_07:28:00_GMT", 429, 0, "later"},
        {"/later/soon", 429, -1, "later"},
        {"/500", 500, -1, "answer 500"},
        {"/503", 503, -1, "answer 503"},
        {"/599", 599, -1, "answer 599"},
        {"/999", 999, -1, "answer 999"},
        {"/binary", 500, -1, "a \xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd"},
        {"/once", 200, -1, "bye"},
    };
    const world w = opened();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rt_outcome o = rig_get(w.r, url(&w, rows[i].path));
        if (o.reason != RT_REASON_STATUS || o.status != rows[i].status) {
            fail_msg("%s: %s %d %.*s", rows[i].path, rt_reason_name(o.reason), o.status, o.text_len, o.text);
        }
        assert_int_equal(o.job, 7);
        assert_int_equal(o.token, 99);
        assert_int_equal(o.retry_after_ms, rows[i].retry_after_ms);
        assert_text(&o, rows[i].text);
    }
    closed(w);
}

/* For what somebody waits for whole: an order's worker. */
static void webhook__whole_answers_on_request(void **state) {
    (void)state;
    const world w = opened();
    rt_attempt a = rig_attempt(url(&w, "/200"));
    a.answer_max = 10; // "answer 200"
    rt_outcome o = rig_try(w.r, &a);
    assert_int_equal(o.status, 200);
    assert_int_equal(o.answer_len, 10);
    assert_string_equal(o.answer, "answer 200");
    assert_text(&o, ""); // it may hold keys, and the text goes into the history
    free(o.answer);

    a.url = rt_str_of(url(&w, "/500"));
    o = rig_try(w.r, &a);
    assert_int_equal(o.status, 500);
    assert_string_equal(o.answer, "answer 500");
    assert_text(&o, "answer 500");
    free(o.answer);

    a.url = rt_str_of(url(&w, "/200"));
    a.answer_max = 9;
    o = rig_try(w.r, &a);
    assert_int_equal(o.reason, RT_REASON_BROKEN);
    assert_null(o.answer);
    assert_text(&o, "the answer is longer than 9 bytes");
    closed(w);
}

static void webhook__everything_else_has_its_reason(void **state) {
    (void)state;
    static const struct {
        const char *path;
        rt_reason reason;
    } rows[] = {
        {"/hang", RT_REASON_TIMEOUT},   {"/drip", RT_REASON_TIMEOUT},    {"/reset", RT_REASON_BROKEN},
        {"/close", RT_REASON_BROKEN},   {"/early", RT_REASON_BROKEN},    {"/garbage", RT_REASON_BROKEN},
        {"/old", RT_REASON_BROKEN},     {"/odd", RT_REASON_BROKEN},      {"/headers", RT_REASON_BROKEN},
        {"/099", RT_REASON_BROKEN},
    };
    const world w = opened();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rt_attempt a = rig_attempt(url(&w, rows[i].path));
        if (rows[i].reason == RT_REASON_TIMEOUT) a.timeout_ms = 200;
        const rt_outcome o = rig_try(w.r, &a);
        if (o.reason != rows[i].reason) fail_msg("%s: %s %d", rows[i].path, rt_reason_name(o.reason), o.status);
        assert_int_equal(o.status, 0);
        assert_int_equal(o.retry_after_ms, -1);
        assert_true(o.text_len > 0);
        if (rows[i].reason == RT_REASON_TIMEOUT) assert_in_range(o.took_ms, 150, 1200);
    }
    // And afterwards it works as before.
    assert_int_equal(rig_get(w.r, url(&w, "/200")).status, 200);
    closed(w);
}

static void webhook__without_a_conversation_there_is_a_reason(void **state) {
    (void)state;
    const world w = opened();
    // A port that was free a moment ago, and that nobody listens on.
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    char nobody[64], tls[64];
    (void)snprintf(nobody, sizeof nobody, "http://127.0.0.1:%d/", ntohs(at.sin_port));
    (void)snprintf(tls, sizeof tls, "https://127.0.0.1:%d/200", sink_port(w.s));
    const struct {
        const char *url;
        rt_reason reason;
    } rows[] = {
        {nobody, RT_REASON_CONNECT},
        {tls, RT_REASON_TLS},
        {"http://nowhere.invalid/", RT_REASON_RESOLVE},
        {"http://10.1.2.3/", RT_REASON_ADDRESS_REFUSED},
        {"http://169.254.169.254/latest/meta-data", RT_REASON_ADDRESS_REFUSED},
        {"http://[::1]:1/", RT_REASON_ADDRESS_REFUSED},
        {"http://[::ffff:10.0.0.1]/", RT_REASON_ADDRESS_REFUSED},
        {"http://0x0a010203/", RT_REASON_ADDRESS_REFUSED},
        {"ftp://127.0.0.1/", RT_REASON_BROKEN},
        {"file:///etc/passwd", RT_REASON_BROKEN},
        {"http://", RT_REASON_BROKEN},
        {"mailto:joe@example.com", RT_REASON_NO_MAIL_RELAY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rt_outcome o = rig_get(w.r, rows[i].url);
        if (o.reason != rows[i].reason) {
            fail_msg("%s: %s %.*s", rows[i].url, rt_reason_name(o.reason), o.text_len, o.text);
        }
        assert_int_equal(o.status, 0);
        assert_true(o.text_len > 0);
    }
    (void)close(fd);
    closed(w);
}

/* A name is judged by its addresses: localhost is 127.0.0.1 and ::1, and no setting opens either here. */
static void webhook__names_that_lead_into_refused_networks_are_refused(void **state) {
    (void)state;
    sink *s = sink_open();
    rig *r = rig_open((rt_webhook_config){0}, "");
    char text[64];
    (void)snprintf(text, sizeof text, "http://localhost:%d/200", sink_port(s));
    const rt_outcome o = rig_get(r, text);
    assert_int_equal(o.reason, RT_REASON_ADDRESS_REFUSED);
    assert_int_equal(sink_connections(s), 0);
    rig_close(r);
    sink_close(s);
}

static void webhook__redirects_only_when_asked_for(void **state) {
    (void)state;
    static const struct {
        const char *path;
        rt_reason reason;
        int status;
    } rows[] = {
        {"/see-other", RT_REASON_STATUS, 200},
        {"/found", RT_REASON_STATUS, 201},
        {"/loop", RT_REASON_STATUS, 302},                              // bounded
        {"/to?http://10.0.0.1/", RT_REASON_ADDRESS_REFUSED, 0},        // judged at each hop
        {"/to?http://169.254.169.254/", RT_REASON_ADDRESS_REFUSED, 0},
        {"/to?ftp://127.0.0.1/", RT_REASON_STATUS, 307},               // no other protocol
        {"/to?file:///etc/passwd", RT_REASON_STATUS, 307},
    };
    const world w = opened();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rt_attempt a = rig_attempt(url(&w, rows[i].path));
        a.follow_redirects = true;
        const rt_outcome o = rig_try(w.r, &a);
        if (o.reason != rows[i].reason || o.status != rows[i].status) {
            fail_msg("%s: %s %d %.*s", rows[i].path, rt_reason_name(o.reason), o.status, o.text_len, o.text);
        }
        if (i > 1) continue;
        char *last = sink_last(w.s); // the POST stays one, with its body
        assert_non_null(strstr(last, "POST /20"));
        assert_non_null(strstr(last, "{\"body\": 1}"));
        free(last);
    }
    // The same handle does not go on following.
    assert_int_equal(rig_get(w.r, url(&w, "/found")).status, 307);
    assert_int_equal(sink_requests(w.s), 2 + 2 + (RT_WEBHOOK_REDIRECTS_MAX + 1) + 4 + 1);
    closed(w);
}

static void webhook__the_request_is_as_promised(void **state) {
    (void)state;
    const world w = opened();
    rt_attempt a = rig_attempt(url(&w, "/200"));
    a.number = 3;
    a.headers = RT_STR("X-Custom: yes\nwebhook-id: forged\n");
    a.message_id = RT_STR("msg_p5jXN8AQM9LWM0D4loKWxJek");
    a.secrets[0] = RT_STR("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    a.secrets[1] = RT_STR("whsec_c2VjcmV0IQ==");
    const long long before = (long long)time(NULL);
    assert_int_equal(rig_try(w.r, &a).status, 200);
    const long long after = (long long)time(NULL);
    char *last = sink_last(w.s);
    static const char *const want[] = {
        "POST /200 HTTP/1.1\r\n", "\r\nX-Custom: yes\r\n", "\r\nContent-Type: application/json\r\n",
        "\r\nwebhook-id: msg_p5jXN8AQM9LWM0D4loKWxJek\r\n", "\r\nwebhook-attempt: 3\r\n",
        "\r\nUser-Agent: retryd/", "\r\nContent-Length: 11\r\n", "\r\n\r\n{\"body\": 1}",
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        if (strstr(last, want[i]) == NULL) fail_msg("no %s in %s", want[i], last);
    }
    assert_null(strstr(last, "forged"));
    assert_null(strcasestr(last, "\r\nExpect:"));
    const char *at = strstr(last, "\r\nwebhook-timestamp: ");
    assert_non_null(at);
    assert_in_range(strtoll(at + 21, NULL, 10), before, after);
    const char *signature = strstr(last, "\r\nwebhook-signature: v1,");
    assert_non_null(signature);
    assert_non_null(strstr(signature, "= v1,"));
    free(last);
    // Without secrets there is no signature, though the transfer is the same.
    assert_int_equal(rig_get(w.r, url(&w, "/200")).status, 200);
    last = sink_last(w.s);
    assert_null(strstr(last, "webhook-signature"));
    assert_null(strstr(last, "X-Custom"));
    assert_non_null(strstr(last, "\r\nwebhook-attempt: 1\r\n"));
    free(last);
    closed(w);
}

static void webhook__a_secret_that_cannot_sign_sends_nothing(void **state) {
    (void)state;
    const world w = opened();
    rt_attempt a = rig_attempt(url(&w, "/200"));
    a.secrets[0] = RT_STR("whsec_!");
    assert_int_equal(rig_try(w.r, &a).reason, RT_REASON_BROKEN);
    assert_int_equal(sink_requests(w.s), 0);
    closed(w);
}

/* Transfers are used again, so nothing of one attempt may travel with the next. */
static void webhook__credentials_stay_with_their_url(void **state) {
    (void)state;
    const world w = opened();
    char with[128];
    (void)snprintf(with, sizeof with, "http://joe:secret@127.0.0.1:%d/200", sink_port(w.s));
    assert_int_equal(rig_get(w.r, with).status, 200);
    char *last = sink_last(w.s);
    assert_non_null(strstr(last, "\r\nAuthorization: Basic am9lOnNlY3JldA==\r\n"));
    free(last);
    assert_int_equal(rig_get(w.r, url(&w, "/200")).status, 200);
    last = sink_last(w.s);
    assert_null(strstr(last, "Authorization"));
    free(last);
    closed(w);
}

static void webhook__large_bodies_go_out_whole(void **state) {
    (void)state;
    const world w = opened();
    static char body[800000];
    memset(body, 'b', sizeof body);
    body[sizeof body - 1] = '$';
    rt_attempt a = rig_attempt(url(&w, "/200"));
    a.body = (rt_str){body, sizeof body};
    assert_int_equal(rig_try(w.r, &a).status, 200);
    char *last = sink_last(w.s);
    const char *sent = strstr(last, "\r\n\r\n") + 4;
    assert_int_equal(strlen(sent), sizeof body);
    assert_memory_equal(sent, body, sizeof body);
    assert_null(strcasestr(last, "\r\nExpect:"));
    free(last);
    closed(w);
}

static void webhook__endless_answers_are_cut(void **state) {
    (void)state;
    const world w = opened();
    const rt_outcome o = rig_get(w.r, url(&w, "/huge"));
    assert_int_equal(o.reason, RT_REASON_STATUS);
    assert_int_equal(o.status, 200);
    assert_int_equal(o.text_len, RT_EVENT_TEXT_MAX);
    for (size_t i = 0; i < o.text_len; i++) assert_int_equal(o.text[i], 'x');
    closed(w);
}

static void webhook__connections_are_used_again(void **state) {
    (void)state;
    const world w = opened();
    for (int i = 0; i < 20; i++) {
        assert_int_equal(rig_get(w.r, url(&w, i % 2 == 0 ? "/200" : "/503")).reason, RT_REASON_STATUS);
    }
    assert_int_equal(sink_requests(w.s), 20);
    assert_int_equal(sink_connections(w.s), 1);
    closed(w);
}

/* The endpoint closes a connection without a word; the next attempt must not fail for it. */
static void webhook__a_connection_closed_meanwhile_is_opened_anew(void **state) {
    (void)state;
    const world w = opened();
    for (int i = 0; i < 20; i++) {
        const rt_outcome o = rig_get(w.r, url(&w, "/once"));
        if (o.status != 200) fail_msg("%d: %s %.*s", i, rt_reason_name(o.reason), o.text_len, o.text);
    }
    assert_int_equal(sink_requests(w.s), 20);
    closed(w);
}

static void webhook__idle_connections_are_bounded(void **state) {
    (void)state;
    sink *s = sink_open();
    rig *r = rig_open((rt_webhook_config){.connections_max = 2}, LOOPBACK);
    const world w = {s, r};
    char other[64];
    // Four names for one server are four hosts to a cache of two connections.
    for (int round = 0; round < 2; round++) {
        for (int i = 1; i <= 4; i++) {
            (void)snprintf(other, sizeof other, "http://127.0.0.%d:%d/200", i, sink_port(s));
            if (i == 1) assert_int_equal(rig_get(r, other).status, 200);
            else assert_int_equal(rig_get(r, other).reason, RT_REASON_CONNECT);
        }
    }
    closed(w);
}

static void webhook__two_hundred_at_a_time(void **state) {
    (void)state;
    const world w = opened();
    const rt_attempt a = rig_attempt(url(&w, "/slow"));
    for (int i = 0; i < 200; i++) rig_start(w.r, &a);
    rig_wait(w.r, 200);
    for (int i = 0; i < 200; i++) assert_int_equal(w.r->outcomes[i].status, 200);
    assert_int_equal(sink_requests(w.s), 200);
    assert_in_range(sink_connections(w.s), 50, 200);
    closed(w);
}

static void webhook__a_host_has_a_limit_and_the_others_wait(void **state) {
    (void)state;
    sink *s = sink_open();
    rig *r = rig_open((rt_webhook_config){.host_attempts_max = 3}, LOOPBACK);
    const world w = {s, r};
    const rt_attempt a = rig_attempt(url(&w, "/slow"));
    for (int i = 0; i < 12; i++) rig_start(r, &a);
    rig_wait(r, 12);
    for (int i = 0; i < 12; i++) assert_int_equal(r->outcomes[i].status, 200);
    assert_int_equal(sink_busiest(s), 3);
    assert_int_equal(sink_connections(s), 3);
    closed(w);
}

static void webhook__who_waits_too_long_for_a_turn_times_out(void **state) {
    (void)state;
    sink *s = sink_open();
    rig *r = rig_open((rt_webhook_config){.host_attempts_max = 1}, LOOPBACK);
    const world w = {s, r};
    rt_attempt a = rig_attempt(url(&w, "/hang"));
    a.timeout_ms = 300;
    rig_start(r, &a);
    a.timeout_ms = 100;
    a.job = 8;
    rig_start(r, &a);
    a.timeout_ms = 310; // gets its turn when the first one ends, and no time
    a.job = 9;
    rig_start(r, &a);
    rig_wait(r, 3);
    for (int i = 0; i < 3; i++) assert_int_equal(r->outcomes[i].reason, RT_REASON_TIMEOUT);
    assert_int_equal(r->outcomes[0].job, 8);
    assert_int_equal(r->outcomes[1].job, 7);
    closed(w);
}

/* Endpoints that hang hold up neither one that answers nor each other's timeouts. However slow the machine is: those that
 * are in the way hang for longer than rig_wait does, and so does the patience of those that are answered. */
static void webhook__hanging_endpoints_hold_up_nobody(void **state) {
    (void)state;
    const world w = opened();
    rt_attempt a = rig_attempt(url(&w, "/hang"));
    a.timeout_ms = 60000;
    for (int i = 0; i < 100; i++) rig_start(w.r, &a);
    a.url = rt_str_of(url(&w, "/200"));
    for (int i = 0; i < 50; i++) rig_start(w.r, &a);
    rig_wait(w.r, 50);
    for (int i = 0; i < 50; i++) assert_int_equal(w.r->outcomes[i].status, 200);
    a.url = rt_str_of(url(&w, "/hang"));
    a.timeout_ms = 500;
    for (int i = 0; i < 100; i++) rig_start(w.r, &a);
    rig_wait(w.r, 150);
    for (int i = 50; i < 150; i++) assert_int_equal(w.r->outcomes[i].reason, RT_REASON_TIMEOUT);
    closed(w);
}

static int64_t now_ms(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void webhook__close_waits_for_what_is_under_way(void **state) {
    (void)state;
    sink *s = sink_open();
    rig *r = rig_open((rt_webhook_config){.drain_ms = 5000}, LOOPBACK);
    const world w = {s, r};
    const rt_attempt a = rig_attempt(url(&w, "/slow"));
    for (int i = 0; i < 10; i++) rig_start(r, &a);
    const int64_t began = now_ms();
    rt_webhook_close(r->webhook);
    r->webhook = NULL;
    assert_true(now_ms() - began < 4000);
    assert_int_equal(r->count, 10);
    closed(w);
}

static void webhook__close_does_not_wait_for_ever(void **state) {
    (void)state;
    sink *s = sink_open();
    rig *r = rig_open((rt_webhook_config){.drain_ms = 50, .host_attempts_max = 3}, LOOPBACK);
    const world w = {s, r};
    const rt_attempt a = rig_attempt(url(&w, "/hang"));
    for (int i = 0; i < 10; i++) rig_start(r, &a); // seven of them wait for a turn
    const int64_t began = now_ms();
    rt_webhook_close(r->webhook);
    r->webhook = NULL;
    assert_true(now_ms() - began < 4000);
    assert_int_equal(r->count, 0);
    closed(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(webhook__answers_are_outcomes),
        cmocka_unit_test(webhook__whole_answers_on_request),
        cmocka_unit_test(webhook__everything_else_has_its_reason),
        cmocka_unit_test(webhook__without_a_conversation_there_is_a_reason),
        cmocka_unit_test(webhook__names_that_lead_into_refused_networks_are_refused),
        cmocka_unit_test(webhook__redirects_only_when_asked_for),
        cmocka_unit_test(webhook__the_request_is_as_promised),
        cmocka_unit_test(webhook__a_secret_that_cannot_sign_sends_nothing),
        cmocka_unit_test(webhook__credentials_stay_with_their_url),
        cmocka_unit_test(webhook__large_bodies_go_out_whole),
        cmocka_unit_test(webhook__endless_answers_are_cut),
        cmocka_unit_test(webhook__connections_are_used_again),
        cmocka_unit_test(webhook__a_connection_closed_meanwhile_is_opened_anew),
        cmocka_unit_test(webhook__idle_connections_are_bounded),
        cmocka_unit_test(webhook__two_hundred_at_a_time),
        cmocka_unit_test(webhook__a_host_has_a_limit_and_the_others_wait),
        cmocka_unit_test(webhook__who_waits_too_long_for_a_turn_times_out),
        cmocka_unit_test(webhook__hanging_endpoints_hold_up_nobody),
        cmocka_unit_test(webhook__close_waits_for_what_is_under_way),
        cmocka_unit_test(webhook__close_does_not_wait_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
