#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "executor/webhook/answer.h"

/* 2015-10-21 07:28:00 UTC. */
#define NOW INT64_C(1445412480)

static void retry_after__seconds_and_dates(void **state) {
    (void)state;
    static const struct {
        const char *value;
        int64_t want_ms;
    } rows[] = {
        {"0", 0},
        {"1", 1000},
        {" 120 ", 120000},
        {"00000000000000000000000000000000000005", 5000},
        {"31536000", INT64_C(31536000000)},
        {"31536001", INT64_C(31536000000)},
        {"99999999999999999999", INT64_C(31536000000)},
        {"Wed, 21 Oct 2015 07:28:00 GMT", 0},
        {"Wed, 21 Oct 2015 07:28:01 GMT", 1000},
        {"Wed, 21 Oct 2015 08:28:00 GMT", 3600000},
        {"Wed, 21 Oct 2015 07:27:59 GMT", 0},
        {"Wednesday, 21-Oct-15 07:28:30 GMT", 30000}, // RFC 850
        {"Wed Oct 21 07:29:00 2015", 60000},          // asctime
        {"Fri, 21 Oct 2039 07:28:00 GMT", INT64_C(31536000000)},
        {"", -1},
        {" ", -1},
        {"-5", -1},
        {"1.5", -1},
        {"120s", -1},
        {"soon", -1},
        {"Wed, 21 Oct 2015", -1},
        {"12:30", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const int64_t got = rt_retry_after_ms(rt_str_of(rows[i].value), NOW);
        if (got != rows[i].want_ms) fail_msg("\"%s\" gives %lld", rows[i].value, (long long)got);
    }
}

static void excerpt__is_printable_utf8(void **state) {
    (void)state;
#define BAD "\xef\xbf\xbd"
    static const struct {
        const char *raw, *want;
        bool more;
    } rows[] = {
        {"", "", false},
        {"hello", "hello", false},
        {"a\r\nb\tc", "a  b c", false},
        {"\x01\x1f\x7f", "   ", false},
        {"\x1b[31mred", " [31mred", false},
        {"caf\xc3\xa9", "caf\xc3\xa9", false},
        {"\xe2\x82\xac \xf0\x9f\x98\x80", "\xe2\x82\xac \xf0\x9f\x98\x80", false},
        {"\xc2\x80\xc2\x9f\xc2\xa0", "  \xc2\xa0", false},        // C1 controls, then a no-break space
        {"\xff", BAD, false},
        {"\x80", BAD, false},
        {"\xc0\xaf", BAD BAD, false},                             // overlong "/"
        {"\xe0\x80\xaf", BAD BAD BAD, false},                     // overlong
        {"\xed\xa0\x80", BAD BAD BAD, false},                     // surrogate
        {"\xed\x9f\xbf", "\xed\x9f\xbf", false},                  // U+D7FF
        {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf", false},          // U+10FFFF
        {"\xf4\x90\x80\x80", BAD BAD BAD BAD, false},             // past it
        {"\xf0\x8f\xbf\xbf", BAD BAD BAD BAD, false},             // overlong
        {"x\xc3(", "x" BAD "(", false},
        {"x\xe2\x82", "x" BAD BAD, false},                        // broken off at the end
        {"x\xe2\x82", "x", true},                                 // cut by us: not shown
        {"x\xe2\x28", "x" BAD "(", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[64];
        const size_t len = rt_excerpt_clean(rt_str_of(rows[i].raw), rows[i].more, out, sizeof out);
        if (len != strlen(rows[i].want) || memcmp(out, rows[i].want, len) != 0) fail_msg("row %zu: %.*s", i, (int)len, out);
    }
}

static void excerpt__fits_without_cutting_a_character(void **state) {
    (void)state;
    char out[8];
    memset(out, '#', sizeof out);
    assert_int_equal(rt_excerpt_clean(RT_STR("ab\xe2\x82\xac"), false, out, 4), 2);
    assert_int_equal(out[2], '#');
    assert_int_equal(rt_excerpt_clean(RT_STR("ab\xe2\x82\xac"), false, out, 5), 5);
    assert_int_equal(rt_excerpt_clean(RT_STR("\xff\xff\xff"), false, out, 8), 6);
    assert_int_equal(rt_excerpt_clean(RT_STR("abc"), false, out, 0), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retry_after__seconds_and_dates),
        cmocka_unit_test(excerpt__is_printable_utf8),
        cmocka_unit_test(excerpt__fits_without_cutting_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
