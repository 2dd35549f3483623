/* Hexadecimal digits and the escapes of URLs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/hex.h"

static void hex__digits_of_either_case(void **state) {
    (void)state;
    const char digits[] = "0123456789abcdef", capitals[] = "0123456789ABCDEF", others[] = "/:@`Gg \x80";
    for (int i = 0; i < 16; i++) {
        assert_int_equal(rt_hex_value(digits[i]), i);
        assert_int_equal(rt_hex_value(capitals[i]), i);
    }
    for (size_t i = 0; i < sizeof others; i++) assert_int_equal(rt_hex_value(others[i]), -1);
}

static void hex__writes_two_lower_case_digits_a_byte(void **state) {
    (void)state;
    char out[8];
    rt_hex_write(out, (const unsigned char[]){0x00, 0x0f, 0xa0, 0xff}, 4);
    assert_memory_equal(out, "000fa0ff", 8);
}

static void hex__unescapes(void **state) {
    (void)state;
    static const struct {
        const char *in;
        bool plus_is_space;
        size_t cap;
        const char *want;
    } rows[] = {
        {"", false, 16, ""},
        {"a%2fb+%C3%a9", false, 16, "a/b+\xc3\xa9"},
        {"a+b", true, 16, "a b"},
        {"%2", false, 16, "%2"}, // no two digits: stays
        {"%g1%1g%", false, 16, "%g1%1g%"},
        {"%41%42%43", false, 2, "AB"}, // what does not fit is cut off
        {"abc", false, 0, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char to[16];
        const size_t len = rt_hex_unescape(rt_str_of(rows[i].in), rows[i].plus_is_space, to, rows[i].cap);
        assert_int_equal(len, strlen(rows[i].want));
        assert_memory_equal(to, rows[i].want, len);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hex__digits_of_either_case),
        cmocka_unit_test(hex__writes_two_lower_case_digits_a_byte),
        cmocka_unit_test(hex__unescapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
