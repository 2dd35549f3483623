/* What `retryctl policy explain` and `retryctl backoff explain` print. The numbers are those of the documents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../cli/chart.h"
#include "../../cli/explain.h"
#include "base/str.h"

enum { ARGS_MAX = 8, LINE_PLACES = 80 };

typedef struct result {
    int status;
    char *out, *err; // owned
} result;

typedef int explain(const rt_explain_io *io, int argc, char **argv);

/* Runs `command` with arguments up to NULL. */
static result run(explain *command, const char *input, const char *const args[]) {
    char words[ARGS_MAX][1024];
    char *argv[ARGS_MAX];
    int argc = 0;
    for (; args[argc] != NULL; argc++) {
        assert_in_range(argc, 0, ARGS_MAX - 1);
        (void)snprintf(words[argc], sizeof words[argc], "%s", args[argc]);
        argv[argc] = words[argc];
    }
    result r = {0};
    size_t out_len, err_len;
    char *in = rt_str_dup(rt_str_of(input)); // fmemopen wants one that may be written to
    assert_non_null(in);
    const rt_explain_io io = {
        .in = fmemopen(in, strlen(in) + (*in == '\0'), "r"),
        .out = open_memstream(&r.out, &out_len),
        .err = open_memstream(&r.err, &err_len),
    };
    assert_true(io.in != NULL && io.out != NULL && io.err != NULL);
    r.status = command(&io, argc, argv);
    (void)fclose(io.in);
    (void)fclose(io.out);
    (void)fclose(io.err);
    free(in);
    return r;
}
#define RUN(command, input, ...) run(command, input, (const char *const[]){__VA_ARGS__, NULL})

static void result_free(result *r) {
    free(r->out);
    free(r->err);
}

static void expect(result r, int status, const char *out) {
    if (r.status != status) fail_msg("status %d, %s", r.status, r.err);
    assert_string_equal(r.out, out);
    assert_int_equal(r.err[0] == '\0', status == 0);
    result_free(&r);
}

static const char DEFAULT_JSON[] =
    "{\"delays_ms\":[0,0,0,5000,5000,5000,5000,10000,15000,20000,25000,30000,35000,40000,45000,50000,55000,"
    "60000,60000,60000,60000],\"phases\":[\"immediate\",\"immediate\",\"immediate\",\"pre_backoff\","
    "\"pre_backoff\",\"pre_backoff\",\"backoff\",\"backoff\",\"backoff\",\"backoff\",\"backoff\",\"backoff\","
    "\"backoff\",\"backoff\",\"backoff\",\"backoff\",\"backoff\",\"backoff\",\"post_backoff\",\"post_backoff\","
    "\"post_backoff\"]}\n";

static void explain_policy__json_lists_every_retry_on_one_line(void **state) {
    (void)state;
    expect(RUN(rt_explain_policy_on, "", "--json", "{}"), 0, DEFAULT_JSON);
    expect(RUN(rt_explain_policy_on, "", "{}", "--json"), 0, DEFAULT_JSON);
    expect(RUN(rt_explain_policy_on, "", "--json", "--", "{\"_retry_policy\": {}}"), 0, DEFAULT_JSON);
    expect(RUN(rt_explain_policy_on, "{\"_retry_policy\": {}}\n", "-", "--json"), 0, DEFAULT_JSON);
    expect(RUN(rt_explain_policy_on, "", "--json",
               "{\"retries_with_no_delay\": 0, \"minimum_delay_retries\": 1, \"maximum_delay_retries\": 0,"
               " \"minimum_delay\": 1, \"maximum_delay\": 4, \"backoff_retries\": 3, \"jitter\": \"full\","
               " \"retry_backoff_function\": \"geometric\"}"),
           0,
           "{\"delays_ms\":[1000,1000,2000,4000],"
           "\"phases\":[\"pre_backoff\",\"backoff\",\"backoff\",\"backoff\"]}\n");
}

static void explain_policy__refuses_with_status_2_and_says_why(void **state) {
    (void)state;
    static const struct {
        const char *args[4], *said;
    } ROWS[] = {
        {{NULL}, "nothing to explain"},
        {{"{}", "{}"}, "too much"},
        {{"--yaml", "{}"}, "there is no option --yaml"},
        {{"--count", "3", "{}"}, "there is no option --count"},
        {{"{"}, "This is no JSON"},
        {{"{\"minimum_delay\": 61}"}, "minimum_delay must less than maximum_delay."},
        {{"-"}, "This is no JSON"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        result r = run(rt_explain_policy_on, "", ROWS[i].args);
        assert_int_equal(r.status, 2);
        assert_string_equal(r.out, "");
        if (strstr(r.err, ROWS[i].said) == NULL) fail_msg("%s", r.err);
        result_free(&r);
    }
}

/* Places of a UTF-8 line up to its end. */
static size_t places_of(const char *line) {
    size_t places = 0;
    for (; *line != '\0' && *line != '\n'; line++) places += ((unsigned char)*line & 0xc0) != 0x80;
    return places;
}

static void expect_narrow(const char *text) {
    for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (places_of(line) > LINE_PLACES) fail_msg("%zu places: %.200s", places_of(line), line);
    }
}

static void explain_policy__table_and_chart_fit_80_columns(void **state) {
    (void)state;
    static const char *const POLICIES[] = {
        "{}",
        "{\"maximum_age\": 60, \"jitter\": \"decorrelated\", \"respect_retry_after\": true}",
        "{\"retries_with_no_delay\": 0, \"minimum_delay_retries\": 0, \"maximum_delay_retries\": 0,"
        " \"backoff_retries\": 1}",
        "{\"retries_with_no_delay\": 100000, \"minimum_delay_retries\": 100000, \"minimum_delay\": 86399,"
        " \"maximum_delay\": 31535999, \"maximum_delay_retries\": 100000, \"retry_backoff_function\": \"exponential\"}",
        "{\"minimum_delay\": 0, \"maximum_delay\": 0, \"backoff_retries\": 2, \"jitter\": \"equal\"}",
        "{\"retry_on\": [\"3xx\", \"4xx\", \"5xx\", \"6xx\", \"7xx\", \"8xx\", \"9xx\", \"1xx\", 408]}",
    };
    for (size_t i = 0; i < sizeof POLICIES / sizeof POLICIES[0]; i++) {
        result r = RUN(rt_explain_policy_on, "", POLICIES[i]);
        assert_int_equal(r.status, 0);
        assert_string_equal(r.err, "");
        expect_narrow(r.out);
        assert_null(strstr(r.out, "\033["));
        result_free(&r);
    }
}

static void expect_line(const char *text, const char *line) {
    if (strstr(text, line) == NULL) fail_msg("no \"%s\" in:\n%s", line, text);
}

static void explain_policy__table_sums_up_the_waits(void **state) {
    (void)state;
    result r = RUN(rt_explain_policy_on, "", "{\"maximum_age\": 90}");
    // 3 x 5 + (5 + 10 + … + 60 = 390) + 3 x 60 = 585 s.
    expect_line(r.out, "21 retries within 9 min 45 s, then the job is dead.\n");
    expect_line(r.out, "  backoff  linear, 12 retries, 5 s to 1 min\n");
    // 15 + 5 + 10 + 15 + 20 + 25 = 90 s at the 11th.
    expect_line(r.out, "  expires  1 min 30 s after the post, so that retry 11 is not made\n");
    expect_line(r.out, "       10  backoff        20 s  1 min 5 s\n");
    expect_line(r.out, "       21  post_backoff  1 min  9 min 45 s\n");
    expect_line(r.out, "  ■ immediate 1-3  ■ pre_backoff 4-6  ■ backoff 7-18  ■ post_backoff 19-21\n");
    result_free(&r);
}

static void explain_policy__long_tables_show_head_and_tail(void **state) {
    (void)state;
    result r = RUN(rt_explain_policy_on, "", "{\"maximum_delay_retries\": 1000}");
    // 3 + 3 + 12 + 1000 retries, 40 and 10 of them shown.
    expect_line(r.out, "       40  post_backoff");
    expect_line(r.out, "        …  (968 more)\n");
    expect_line(r.out, "     1009  post_backoff");
    expect_line(r.out, "     1018  post_backoff");
    assert_null(strstr(r.out, "     1008  post_backoff"));
    result_free(&r);
}

static void explain_backoff__json_lists_the_intervals(void **state) {
    (void)state;
    static const char TENTH[] = "{\"initial_ms\": 1000, \"maximum_ms\": 3600000, \"exponent\": 1.1}";
    expect(RUN(rt_explain_backoff_on, "", "--json", TENTH, "--count", "14"), 0,
           "{\"intervals_s\":[1,2,3,4,5,6,7,8,9,10,11,13,15,17]}\n");
    expect(RUN(rt_explain_backoff_on, "", "--count=3", "--previous-ms=90000", TENTH, "--json"), 0,
           "{\"intervals_s\":[99,109,120]}\n"); // 99, 108.9, 119.9
    expect(RUN(rt_explain_backoff_on, "", "null", "--previous-ms", "60000", "--json", "--count", "2"), 0,
           "{\"intervals_s\":[60,60]}\n");
    expect(RUN(rt_explain_backoff_on, "", "null", "--json", "--count", "1"), 0, "{\"intervals_s\":[1]}\n");
    // There was one, below a second: as if it had been a second, and not the initial interval.
    expect(RUN(rt_explain_backoff_on, "", "{\"initial_ms\": 9000, \"maximum_ms\": 99000, \"exponent\": 2}",
               "--previous-ms", "500", "--json", "--count", "3"),
           0, "{\"intervals_s\":[2,4,8]}\n");
    expect(RUN(rt_explain_backoff_on, "{\"initial_ms\": 2000}", "-", "--json", "--count", "2"), 0,
           "{\"intervals_s\":[2,2]}\n");
}

static void explain_backoff__refuses_with_status_2_and_says_why(void **state) {
    (void)state;
    static const struct {
        const char *args[4], *said;
    } ROWS[] = {
        {{NULL}, "nothing to explain"},
        {{"null", "--count"}, "--count wants a number"},
        {{"null", "--count", "0"}, "--count wants a number"},
        {{"null", "--count", "100001"}, "--count wants a number"},
        {{"null", "--count", "3x"}, "--count wants a number"},
        {{"null", "--previous-ms", "-1"}, "--previous-ms wants"},
        {{"null", "--previous-ms", "9223372036855"}, "--previous-ms wants"},
        {{"null", "--previous"}, "there is no option --previous"},
        {{"{\"exponent\": \"2\"}"}, "backoff: exponent must be a number."},
        {{"{\"exponent\": NaN}"}, "This is no JSON"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        result r = run(rt_explain_backoff_on, "", ROWS[i].args);
        assert_int_equal(r.status, 2);
        assert_string_equal(r.out, "");
        if (strstr(r.err, ROWS[i].said) == NULL) fail_msg("%s", r.err);
        result_free(&r);
    }
}

static void explain_backoff__table_fits_80_columns(void **state) {
    (void)state;
    static const char *const DESCRIPTORS[] = {
        "null", "{}", "{\"initial_ms\": 1000, \"maximum_ms\": 9223372036854, \"exponent\": 3}"};
    for (size_t i = 0; i < sizeof DESCRIPTORS / sizeof DESCRIPTORS[0]; i++) {
        result r = RUN(rt_explain_backoff_on, "", DESCRIPTORS[i], "--count", "70");
        assert_int_equal(r.status, 0);
        expect_narrow(r.out);
        result_free(&r);
    }
}

static void chart__draws_columns_in_eighths(void **state) {
    (void)state;
    char *out = NULL;
    size_t len;
    FILE *f = open_memstream(&out, &len);
    assert_non_null(f);
    // Of 8 rows: all, a half, an eighth, three eighths of a row, nothing, and something too small to see.
    static const uint64_t VALUES[] = {6400, 3200, 800, 300, 0, 1};
    const rt_chart chart = {.values = VALUES, .count = 6, .top_label = "6.4 s"};
    rt_chart_print(f, &chart);
    (void)fclose(f);
    assert_string_equal(out, "     6.4 s ┤███                     \n"
                             "           │███                     \n"
                             "           │███                     \n"
                             "           │███                     \n"
                             "           │███ ███                 \n"
                             "           │███ ███                 \n"
                             "           │███ ███                 \n"
                             "           │███ ███ ███ ▃▃▃     ▁▁▁ \n"
                             "         0 └────────────────────────\n"
                             "            1                      6\n");
    free(out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explain_policy__json_lists_every_retry_on_one_line),
        cmocka_unit_test(explain_policy__refuses_with_status_2_and_says_why),
        cmocka_unit_test(explain_policy__table_and_chart_fit_80_columns),
        cmocka_unit_test(explain_policy__table_sums_up_the_waits),
        cmocka_unit_test(explain_policy__long_tables_show_head_and_tail),
        cmocka_unit_test(explain_backoff__json_lists_the_intervals),
        cmocka_unit_test(explain_backoff__refuses_with_status_2_and_says_why),
        cmocka_unit_test(explain_backoff__table_fits_80_columns),
        cmocka_unit_test(chart__draws_columns_in_eighths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
