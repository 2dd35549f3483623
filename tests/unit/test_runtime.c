/* Logs, tokens, secret files, and outcomes on their way to the engine. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/file.h"
#include "runtime/log.h"
#include "runtime/outcomes.h"
#include "runtime/tokens.h"

/* ---- log ----------------------------------------------------------------------------------------------- */

static void log__writes_one_line_in_either_form(void **state) {
    (void)state;
    const rt_log_field fields[] = {{.key = "path", .text = RT_STR("/a b\"\n")},
                                   {.key = "plain", .text = RT_STR("x-1")},
                                   {.key = "empty", .text = RT_STR("")},
                                   {.key = "count", .number = -3}};
    rt_buf line = {0};
    // 1700000000 s is 2023-11-14 22:13:20 UTC.
    rt_log_format(&line, false, RT_LOG_WARN, INT64_C(1700000000123), "request", fields, 4);
    assert_string_equal(line.ptr, "2023-11-14T22:13:20.123Z warn request path=\"/a b\\\"\\u000a\" plain=x-1 "
                                  "empty=\"\" count=-3");
    rt_buf_clear(&line);
    rt_log_format(&line, true, RT_LOG_DEBUG, INT64_C(1700000000005), "request", fields, 4);
    assert_string_equal(line.ptr,
                        "{\"time\":\"2023-11-14T22:13:20.005Z\",\"level\":\"debug\",\"event\":\"request\","
                        "\"path\":\"/a b\\\"\\u000a\",\"plain\":\"x-1\",\"empty\":\"\",\"count\":-3}");
    rt_buf_deinit(&line);
}

static void log__cuts_what_is_too_long(void **state) {
    (void)state;
    char text[3 * RT_LOG_LINE_MAX];
    memset(text, 'x', sizeof text);
    const rt_log_field field = {.key = "text", .text = {.ptr = text, .len = sizeof text}};
    rt_buf line = {0};
    rt_log_format(&line, true, RT_LOG_INFO, 0, "event", &field, 1);
    assert_true(line.len <= RT_LOG_LINE_MAX + 8);
    assert_string_equal(line.ptr + line.len - 2, "\"}");
    rt_buf_deinit(&line);
}

static void log__is_silent_below_its_level(void **state) {
    (void)state;
    int fds[2];
    char text[256];
    assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
    const rt_log log = {.level = RT_LOG_WARN, .fd = fds[1]};
    rt_log_write(&log, RT_LOG_INFO, "quiet", NULL, 0);
    assert_int_equal(read(fds[0], text, sizeof text), -1);
    rt_log_write(&log, RT_LOG_WARN, "loud", NULL, 0);
    const ssize_t n = read(fds[0], text, sizeof text);
    assert_true(n > 12);
    assert_memory_equal(text + n - 11, " warn loud\n", 11);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void log__knows_its_levels(void **state) {
    (void)state;
    rt_log_level level;
    assert_true(rt_log_level_parse(RT_STR("debug"), &level));
    assert_int_equal(level, RT_LOG_DEBUG);
    assert_true(rt_log_level_parse(RT_STR("error"), &level));
    assert_int_equal(level, RT_LOG_ERROR);
    assert_false(rt_log_level_parse(RT_STR("loud"), &level));
}

/* ---- tokens -------------------------------------------------------------------------------------------- */

static void tokens__reads_lines(void **state) {
    (void)state;
    rt_tokens t = {0};
    rt_err err;
    const rt_str text = RT_STR("# who may come in\n\n0123456789abcdef  team one \r\n\tfedcba9876543210\t*\n");
    if (rt_tokens_parse(text, "t", &t, &err) != RT_OK) fail_msg("%s", err.msg);
    assert_int_equal(t.count, 2);
    assert_true(rt_str_eq(t.list[0].secret, RT_STR("0123456789abcdef")));
    assert_true(rt_str_eq(t.list[0].project, RT_STR("team one")));
    assert_true(rt_str_eq(t.list[1].secret, RT_STR("fedcba9876543210")));
    assert_true(rt_str_eq(t.list[1].project, RT_STR("*")));
    rt_tokens_deinit(&t);
}

static void tokens__names_the_wrong_line_but_never_a_token(void **state) {
    (void)state;
    const struct {
        const char *text, *words;
    } rows[] = {
        {"", "t: no token is in it"},
        {"# nothing\n", "t: no token is in it"},
        {"0123456789abcdef\n", "t:1: not of the form TOKEN PROJECT"},
        {"0123456789abcde p\n", "t:1: the token is shorter than 16 characters"},
        {"0123456789abcdef p\n0123456789abcdef q\n", "t:2: the token was there before"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_tokens t = {0};
        rt_err err;
        assert_int_equal(rt_tokens_parse(rt_str_of(rows[i].text), "t", &t, &err), RT_E_INVALID);
        assert_string_equal(err.msg, rows[i].words);
        assert_null(strstr(err.msg, "0123456789"));
    }
}

static void tokens__refuses_more_than_its_bound(void **state) {
    (void)state;
    rt_buf text = {0};
    for (unsigned i = 0; i < RT_TOKENS_MAX; i++) rt_buf_addf(&text, "0123456789abcdef%u p\n", i);
    rt_tokens t = {0};
    rt_err err;
    assert_int_equal(rt_tokens_parse(rt_buf_str(&text), "t", &t, &err), RT_OK);
    rt_tokens_deinit(&t);
    rt_buf_add(&text, RT_STR("0123456789abcdefx p\n"));
    assert_int_equal(rt_tokens_parse(rt_buf_str(&text), "t", &t, &err), RT_E_INVALID);
    assert_string_equal(err.msg, "t:1025: more than 1024 tokens");
    rt_buf_deinit(&text);
}

static void file__refuses_secrets_that_others_can_read(void **state) {
    (void)state;
    char path[] = "/tmp/retryd-test-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "0123456789abcdef *\n", 19), 19);
    rt_tokens t = {0};
    rt_err err;
    assert_int_equal(fchmod(fd, 0640), 0);
    assert_int_equal(rt_tokens_read(path, &t, &err), RT_E_FORBIDDEN);
    assert_non_null(strstr(err.msg, "chmod 600"));
    assert_int_equal(fchmod(fd, 0600), 0);
    assert_int_equal(rt_tokens_read(path, &t, &err), RT_OK);
    assert_int_equal(t.count, 1);
    rt_tokens_deinit(&t);
    rt_buf text = {0};
    assert_int_equal(rt_file_read(path, 18, false, &text, &err), RT_E_TOO_LARGE);
    rt_buf_deinit(&text);
    assert_int_equal(rt_file_read(path, 19, false, &text, &err), RT_OK);
    assert_int_equal(text.len, 19);
    rt_buf_deinit(&text);
    (void)close(fd);
    (void)unlink(path);
}

/* ---- outcomes ------------------------------------------------------------------------------------------ */

enum { OUTCOMES = 1000, PUTTERS = 4 };

static void *put_many(void *arg) {
    for (unsigned i = 1; i <= OUTCOMES; i++) {
        const rt_outcome o = {.job = i, .took_ms = i};
        rt_outcomes_put(arg, &o);
    }
    return NULL;
}

static void outcomes__are_all_taken_though_room_is_short(void **state) {
    (void)state;
    rt_outcomes *o;
    rt_err err;
    assert_int_equal(rt_outcomes_open(3, &o, &err), RT_OK);
    pthread_t threads[PUTTERS];
    for (size_t i = 0; i < PUTTERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, put_many, o), 0);
    uint64_t count = 0, sum = 0;
    while (count < (uint64_t)OUTCOMES * PUTTERS) {
        rt_outcome taken[2];
        const size_t n = rt_outcomes_take(o, taken, 2);
        for (size_t i = 0; i < n; i++) sum += taken[i].job;
        count += n;
    }
    for (size_t i = 0; i < PUTTERS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(sum, (uint64_t)PUTTERS * OUTCOMES * (OUTCOMES + 1) / 2);
    assert_true(rt_outcomes_sleep(o));
    rt_outcomes_close(o);
}

static void outcomes__nobody_waits_once_shut(void **state) {
    (void)state;
    rt_outcomes *o;
    rt_err err;
    assert_int_equal(rt_outcomes_open(1, &o, &err), RT_OK);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, put_many, o), 0); // fills it and waits
    rt_outcomes_shut(o);
    pthread_join(thread, NULL);
    rt_outcomes_close(o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log__writes_one_line_in_either_form),
        cmocka_unit_test(log__cuts_what_is_too_long),
        cmocka_unit_test(log__is_silent_below_its_level),
        cmocka_unit_test(log__knows_its_levels),
        cmocka_unit_test(tokens__reads_lines),
        cmocka_unit_test(tokens__names_the_wrong_line_but_never_a_token),
        cmocka_unit_test(tokens__refuses_more_than_its_bound),
        cmocka_unit_test(file__refuses_secrets_that_others_can_read),
        cmocka_unit_test(outcomes__are_all_taken_though_room_is_short),
        cmocka_unit_test(outcomes__nobody_waits_once_shut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
