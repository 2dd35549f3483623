/* Bytes as text: the vectors of RFC 4648, section 10, both ways, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"

static const struct {
    const char *bytes, *text;
} VECTORS[] = {{"", ""},
               {"f", "Zg=="},
               {"fo", "Zm8="},
               {"foo", "Zm9v"},
               {"foob", "Zm9vYg=="},
               {"fooba", "Zm9vYmE="},
               {"foobar", "Zm9vYmFy"}};

static void base64__encodes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof VECTORS / sizeof VECTORS[0]; i++) {
        char to[16];
        const rt_str bytes = rt_str_of(VECTORS[i].bytes);
        assert_int_equal(rt_base64_encode(bytes, to), strlen(VECTORS[i].text));
        assert_int_equal(RT_BASE64_LEN(bytes.len), strlen(VECTORS[i].text));
        assert_memory_equal(to, VECTORS[i].text, strlen(VECTORS[i].text));
    }
}

static void base64__decodes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof VECTORS / sizeof VECTORS[0]; i++) {
        char to[16];
        const rt_str text = rt_str_of(VECTORS[i].text);
        assert_int_equal(rt_base64_decode(text, NULL), strlen(VECTORS[i].bytes));
        assert_int_equal(rt_base64_decode(text, to), strlen(VECTORS[i].bytes));
        assert_memory_equal(to, VECTORS[i].bytes, strlen(VECTORS[i].bytes));
    }
}

static void base64__all_bytes_there_and_back(void **state) {
    (void)state;
    char bytes[256], text[RT_BASE64_LEN(sizeof bytes)], back[sizeof text / 4 * 3];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)i;
    assert_int_equal(rt_base64_encode((rt_str){bytes, sizeof bytes}, text), sizeof text);
    assert_memory_equal(text, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYX", 32);
    assert_int_equal(rt_base64_decode((rt_str){text, sizeof text}, back), sizeof bytes);
    assert_memory_equal(back, bytes, sizeof bytes);
}

static void base64__refuses_what_is_none(void **state) {
    (void)state;
    static const char *const OTHERS[] = {"Z",    "Zg",       "Zg=",       "Zg===",     "=",
                                         "====", "Z===",     "Zm9*",      "Zm9-",      "Zm9_",
                                         "Zm 9", "Zg==Zg==", "Zm9v\nZg=", "\xc3\xa9Zg"};
    for (size_t i = 0; i < sizeof OTHERS / sizeof OTHERS[0]; i++)
        assert_int_equal(rt_base64_decode(rt_str_of(OTHERS[i]), NULL), SIZE_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64__encodes),
        cmocka_unit_test(base64__decodes),
        cmocka_unit_test(base64__all_bytes_there_and_back),
        cmocka_unit_test(base64__refuses_what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
