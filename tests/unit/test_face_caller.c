/* The checks that come before every request of Zaqar's API. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "face/notifications/caller.h"

static void accept__admits_json_or_not(void **state) {
    (void)state;
    const struct { const char *accept; bool admits; } rows[] = {
        {"", true},
        {"*/*", true},
        {"application/*", true},
        {"application/json", true},
        {"Application/JSON; charset=utf-8", true},
        {"text/html, application/xhtml+xml, */*;q=0.1", true},
        {"text/html", false},
        {"application/xml", false},
        {"text/*", false},
        {"*/*, application/json;q=0", false},
        {"application/json; q=0.0", false},
        {"application/*;q=0, */*", false},
        {"*/*;q=0, application/json;q=0.1", true},
        {"application/json;q=0;x=1, text/html", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rt_accept_admits_json(rt_str_of(rows[i].accept)) != rows[i].admits) fail_msg("%s", rows[i].accept);
    }
}

static void client_id__every_spelling_of_a_uuid_is_one_client(void **state) {
    (void)state;
    static const char *const SPELLINGS[] = {
        "3381af92-2b9e-11e3-b191-71861300734c",         "3381AF92-2B9E-11E3-B191-71861300734C",
        "3381af922b9e11e3b19171861300734c",             "{3381af92-2b9e-11e3-b191-71861300734c}",
        "urn:uuid:3381af92-2b9e-11e3-b191-71861300734c", "3-3-8-1af922b9e11e3b19171861300734c",
    };
    for (size_t i = 0; i < sizeof SPELLINGS / sizeof *SPELLINGS; i++) {
        char id[RT_CLIENT_ID_LEN];
        assert_true(rt_client_id_parse(rt_str_of(SPELLINGS[i]), id));
        assert_memory_equal(id, "3381af922b9e11e3b19171861300734c", RT_CLIENT_ID_LEN);
    }
}

static void client_id__anything_else_is_refused(void **state) {
    (void)state;
    static const char *const TEXTS[] = {"", "{}", "3381af92-2b9e-11e3-b191-71861300734", "not-a-uuid",
                                        "3381af92-2b9e-11e3-b191-71861300734cc", "3381af92-2b9e-11e3-b191-7186130g734c",
                                        "3381af92 2b9e-11e3-b191-71861300734c"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        char id[RT_CLIENT_ID_LEN];
        assert_false(rt_client_id_parse(rt_str_of(TEXTS[i]), id));
    }
}

static void queue_name__ends_at_64_characters_of_zaqars_set(void **state) {
    (void)state;
    char name[66];
    memset(name, 'a', sizeof name);
    assert_true(rt_name_is_word((rt_str){name, 64}));
    assert_false(rt_name_is_word((rt_str){name, 65}));
    assert_true(rt_name_is_word(RT_STR("A-z_0.9")));
    static const char *const BAD[] = {"", "a b", "a/b", "a%", "\xC3\xA9", "a\n", "a:b"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) assert_false(rt_name_is_word(rt_str_of(BAD[i])));
    assert_false(rt_name_is_word(RT_STR("a\0b")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accept__admits_json_or_not),
        cmocka_unit_test(client_id__every_spelling_of_a_uuid_is_one_client),
        cmocka_unit_test(client_id__anything_else_is_refused),
        cmocka_unit_test(queue_name__ends_at_64_characters_of_zaqars_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
