/* Attempts go to the executor that their URL names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "executor/executors.h"

typedef struct seen {
    int started[RT_TARGET_COUNT];
    int outcomes;
    rt_outcome last;
} seen;

static void on_outcome(void *ctx, const rt_outcome *outcome) {
    seen *s = ctx;
    s->outcomes++;
    s->last = *outcome;
}

static void count(void *ctx, rt_attempt *attempt) {
    ++*(int *)ctx;
    rt_attempt_free(attempt);
}

static void start(rt_executor x, const char *url) {
    rt_attempt *a =
        rt_attempt_new(&(rt_attempt){.job = 5, .token = 6, .timeout_ms = 1000, .url = rt_str_of(url)});
    assert_non_null(a);
    x.start(x.ctx, a);
}

static void executors__each_url_has_its_own(void **state) {
    (void)state;
    static const struct {
        const char *url;
        rt_target target;
    } rows[] = {
        {"http://example.com/", RT_TARGET_WEBHOOK},
        {"https://example.com/", RT_TARGET_WEBHOOK},
        {"mailto:joe@example.com", RT_TARGET_WEBHOOK},
        {"plugin:key", RT_TARGET_PLUGIN},
        {"kafka:topic", RT_TARGET_KAFKA},
        {"plugins:key", RT_TARGET_WEBHOOK},
        {"", RT_TARGET_WEBHOOK},
    };
    seen s = {.outcomes = 0};
    rt_executors x = {.outcome = on_outcome, .ctx = &s};
    for (int t = 0; t < RT_TARGET_COUNT; t++) x.of[t] = (rt_executor){.ctx = &s.started[t], .start = count};
    int want[RT_TARGET_COUNT] = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        start(rt_executors_executor(&x), rows[i].url);
        want[rows[i].target]++;
        assert_memory_equal(s.started, want, sizeof want);
    }
    assert_int_equal(s.outcomes, 0);
}

static void executors__what_nobody_serves_fails_in_words(void **state) {
    (void)state;
    static const struct {
        const char *url;
        rt_reason reason;
        const char *text;
    } rows[] = {
        {"http://example.com/", RT_REASON_CONNECT, "this server makes no deliveries over HTTP"},
        {"plugin:key", RT_REASON_NO_PLUGIN, "this server runs no plugins"},
        {"kafka:topic", RT_REASON_CONNECT, "no Kafka brokers are configured"},
    };
    seen s = {.outcomes = 0};
    rt_executors x = {.outcome = on_outcome, .ctx = &s};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        start(rt_executors_executor(&x), rows[i].url);
        assert_int_equal(s.outcomes, i + 1);
        assert_int_equal(s.last.job, 5);
        assert_int_equal(s.last.token, 6);
        assert_int_equal(s.last.reason, rows[i].reason);
        assert_int_equal(s.last.status, 0);
        assert_int_equal(s.last.retry_after_ms, -1);
        assert_null(s.last.answer);
        assert_int_equal(s.last.text_len, strlen(rows[i].text));
        assert_memory_equal(s.last.text, rows[i].text, s.last.text_len);
    }
}

static void topic__has_a_name_that_kafka_takes(void **state) {
    (void)state;
    char name[RT_TOPIC_NAME_MAX + 1];
    memset(name, 'a', sizeof name);
    assert_true(rt_topic_name_is_valid(RT_STR("aZ09._-")));
    assert_true(rt_topic_name_is_valid((rt_str){.ptr = name, .len = RT_TOPIC_NAME_MAX}));
    assert_false(rt_topic_name_is_valid((rt_str){.ptr = name, .len = RT_TOPIC_NAME_MAX + 1}));
    static const char *const BAD[] = {"", ".", "..", "a b", "a/b", "a:b", "\xc3\xa4"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) assert_false(rt_topic_name_is_valid(rt_str_of(BAD[i])));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(executors__each_url_has_its_own),
        cmocka_unit_test(executors__what_nobody_serves_fails_in_words),
        cmocka_unit_test(topic__has_a_name_that_kafka_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
