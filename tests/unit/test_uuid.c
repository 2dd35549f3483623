/* Ids as UUIDs: the layout of RFC 9562 for version 8, back and forth, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/uuid.h"

static void uuid__shows_tag_home_and_sequence_around_version_and_variant(void **state) {
    (void)state;
    const rt_uuid_text text = rt_uuid_format(0x12345678, UINT64_C(0xabcd0123456789ef));
    assert_int_equal(strlen(text.s), 36);
    assert_memory_equal(text.s, "12345678-abcd-8", 15);
    assert_true(strchr("89ab", text.s[19]) != NULL); // variant 10xx
    assert_memory_equal(text.s + 23, "-0123456789ef", 13);
    assert_int_equal(text.s[18], '-');
}

static void uuid__is_read_back_in_either_case(void **state) {
    (void)state;
    static const rt_id IDS[] = {1, 2, 0xffff, UINT64_C(1) << 48, UINT64_C(0xabcd0123456789ef), UINT64_MAX};
    for (size_t i = 0; i < sizeof IDS / sizeof IDS[0]; i++) {
        rt_uuid_text text = rt_uuid_format(0xfedcba98, IDS[i]);
        rt_id id = 0;
        assert_true(rt_uuid_parse(0xfedcba98, rt_str_of(text.s), &id));
        assert_true(id == IDS[i]);
        for (size_t c = 0; c < 36; c++) {
            if (text.s[c] >= 'a' && text.s[c] <= 'f') text.s[c] = (char)(text.s[c] - 'a' + 'A');
        }
        id = 0;
        assert_true(rt_uuid_parse(0xfedcba98, rt_str_of(text.s), &id));
        assert_true(id == IDS[i]);
    }
}

static void uuid__any_other_character_names_nothing(void **state) {
    (void)state;
    const rt_uuid_text right = rt_uuid_format(7, 42);
    rt_id id = 99;
    for (size_t i = 0; i < 36; i++) {
        const char others[] = {'0', '1', '7', 'f', 'g', '-', ' '};
        for (size_t k = 0; k < sizeof others; k++) {
            rt_uuid_text text = right;
            if (text.s[i] == others[k]) continue;
            text.s[i] = others[k];
            const bool read = rt_uuid_parse(7, rt_str_of(text.s), &id);
            assert_false(read && id == 42);
        }
    }
}

static void uuid__refuses_what_it_did_not_make(void **state) {
    (void)state;
    const rt_uuid_text right = rt_uuid_format(7, 42);
    const rt_uuid_text none = rt_uuid_format(7, 0);
    rt_id id = 99;
    assert_false(rt_uuid_parse(8, rt_str_of(right.s), &id)); // another store's
    assert_false(rt_uuid_parse(7, rt_str_of(none.s), &id));
    assert_false(rt_uuid_parse(7, RT_STR(""), &id));
    assert_false(rt_uuid_parse(7, (rt_str){.ptr = right.s, .len = 35}, &id));
    assert_false(rt_uuid_parse(7, RT_STR("00000007-0000-4000-8000-00000000002a"), &id));
    assert_int_equal(id, 99);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uuid__shows_tag_home_and_sequence_around_version_and_variant),
        cmocka_unit_test(uuid__is_read_back_in_either_case),
        cmocka_unit_test(uuid__any_other_character_names_nothing),
        cmocka_unit_test(uuid__refuses_what_it_did_not_make),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
