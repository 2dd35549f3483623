/* A queue's reserved metadata: what is taken, what is refused in which words, what clients see. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "face/notifications/queue_metadata.h"
#include "json/tree.h"

static rt_arena arena;
static const rt_limits LIMITS = {
    .default_message_ttl = 3600, .max_message_ttl = 1209600, .max_message_delay = 900, .max_messages_post_size = 262144};

static int teardown(void **state) {
    (void)state;
    rt_arena_deinit(&arena);
    arena = (rt_arena){0};
    return 0;
}

static rt_code parse(const char *text, rt_metadata *out, rt_str *why) {
    json_t *json;
    assert_int_equal(rt_json_parse(rt_str_of(text), &json), RT_JSON_FINE);
    const rt_code code = rt_metadata_from_json(json, &LIMITS, &arena, out, why);
    json_decref(json);
    return code;
}

static void metadata__reserved_keys_reach_the_engine(void **state) {
    (void)state;
    rt_metadata m;
    rt_str why;
    assert_int_equal(parse("{\"_default_message_ttl\": 60, \"_max_messages_post_size\": 262144, \"_max_claim_count\": 3, "
                           "\"_dead_letter_queue\": \"dlq\", \"_dead_letter_queue_messages_ttl\": 1209600, "
                           "\"_default_message_delay\": 900, \"_retry_policy\": {\"maximum_delay\": 120}, \"own\": [1]}",
                           &m, &why), RT_OK);
    assert_int_equal(m.default_ttl_s, 60);
    assert_int_equal(m.max_post_bytes, 262144);
    assert_int_equal(m.max_claim_count, 3);
    assert_int_equal(m.dead_letter_queue.len, 3);
    assert_memory_equal(m.dead_letter_queue.ptr, "dlq", 3);
    assert_int_equal(m.dead_letter_ttl_s, 1209600);
    assert_int_equal(m.default_delay_s, 900);
    assert_true(m.has_policy);
    assert_int_equal(m.policy.maximum_delay_s, 120);
}

static void metadata__null_is_absent_and_an_empty_policy_is_one(void **state) {
    (void)state;
    rt_metadata m;
    rt_str why;
    assert_int_equal(parse("{\"_default_message_ttl\": null, \"_retry_policy\": null}", &m, &why), RT_OK);
    assert_int_equal(m.default_ttl_s, 0);
    assert_false(m.has_policy);
    assert_int_equal(parse("{\"_retry_policy\": {}}", &m, &why), RT_OK);
    assert_true(m.has_policy);
    assert_int_equal(m.policy.maximum_delay_s, 60);
}

static void metadata__refusals_are_zaqars(void **state) {
    (void)state;
#define TTL_RANGE "_default_message_ttl can not exceed 1209600 seconds, and must be at least 60 seconds long."
#define SIZE_RANGE "_max_messages_post_size can not exceed 262144,  and must be at least greater than 0."
#define DEAD_RANGE "The TTL for a message may not exceed 1209600 seconds, and must be at least 60 seconds long."
#define DELAY_RANGE "The TTL can not exceed 900 seconds, and must be at least 0 seconds long."
    const struct { const char *json, *why; } rows[] = {
        {"{\"_default_message_ttl\": \"a\"}", "_default_message_ttl must be integer."},
        {"{\"_default_message_ttl\": 60.5}", "_default_message_ttl must be integer."},
        {"{\"_default_message_ttl\": \"\"}", "_default_message_ttl must be integer."},
        {"{\"_default_message_ttl\": 59}", TTL_RANGE},
        {"{\"_default_message_ttl\": 0}", TTL_RANGE},
        {"{\"_default_message_ttl\": true}", TTL_RANGE},
        {"{\"_default_message_ttl\": 1209601}", TTL_RANGE},
        {"{\"_max_messages_post_size\": []}", "_max_messages_post_size must be integer."},
        {"{\"_max_messages_post_size\": 0}", SIZE_RANGE},
        {"{\"_max_messages_post_size\": 262145}", SIZE_RANGE},
        {"{\"_max_claim_count\": \"3\"}", "_max_claim_count must be integer."},
        {"{\"_dead_letter_queue_messages_ttl\": {}}", "_dead_letter_queue_messages_ttl must be integer."},
        {"{\"_dead_letter_queue_messages_ttl\": 59}", DEAD_RANGE},
        {"{\"_default_message_delay\": \"x\"}", "_default_message_delay must be integer."},
        {"{\"_default_message_delay\": -1}", DELAY_RANGE},
        {"{\"_default_message_delay\": 901}", DELAY_RANGE},
        {"{\"_enable_encrypt_messages\": 1}", "_enable_encrypt_messages must be boolean."},
        {"{\"_retry_policy\": [1]}", "retry_policy must be a dict."},
        {"{\"_retry_policy\": {\"minimum_delay\": \"5\"}}", "Retry policy: minimum_delay must be a integer."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_metadata m;
        rt_str why = RT_STR_EMPTY;
        assert_int_equal(parse(rows[i].json, &m, &why), RT_E_INVALID);
        assert_int_equal(why.len, strlen(rows[i].why));
        assert_memory_equal(why.ptr, rows[i].why, why.len);
    }
}

static void metadata__edges_of_the_ranges_are_fine(void **state) {
    (void)state;
    static const char *const TEXTS[] = {
        "{\"_default_message_ttl\": 60}", "{\"_default_message_ttl\": 1209600}", "{\"_max_messages_post_size\": 1}",
        "{\"_max_claim_count\": -5}", "{\"_default_message_delay\": 0}", "{\"_default_message_delay\": 0.0}",
        "{\"_default_message_delay\": false}", "{\"_dead_letter_queue\": 7}", "{\"_enable_encrypt_messages\": true}"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        rt_metadata m;
        rt_str why;
        assert_int_equal(parse(TEXTS[i], &m, &why), RT_OK);
    }
}

static void assert_shown(const char *stored, bool of_topic, const char *want) {
    rt_buf out = {0};
    assert_true(rt_metadata_write(&out, rt_str_of(stored), (rt_metadata_shown){&LIMITS, of_topic}));
    rt_buf_add_char(&out, '\0');
    assert_string_equal(out.ptr, want);
    rt_buf_deinit(&out);
}

static void metadata__defaults_stand_where_nothing_or_something_falsy_is(void **state) {
    (void)state;
    assert_shown("{}", false, "{\"_max_messages_post_size\": 262144, \"_default_message_ttl\": 3600, "
                       "\"_default_message_delay\": 0, \"_dead_letter_queue\": null, "
                       "\"_dead_letter_queue_messages_ttl\": null, \"_max_claim_count\": null, "
                       "\"_enable_encrypt_messages\": false}");
    assert_shown("{\"b\": 1, \"_max_claim_count\": 0, \"_default_message_ttl\": 60, \"_retry_policy\": {}}", false,
                 "{\"b\": 1, \"_max_claim_count\": null, \"_default_message_ttl\": 60, \"_retry_policy\": {}, "
                 "\"_max_messages_post_size\": 262144, \"_default_message_delay\": 0, \"_dead_letter_queue\": null, "
                 "\"_dead_letter_queue_messages_ttl\": null, \"_enable_encrypt_messages\": false}");
}

static void metadata__topics_show_no_dead_letters_claims_and_encryption(void **state) {
    (void)state;
    assert_shown("{\"b\": 1}", true, "{\"b\": 1, \"_max_messages_post_size\": 262144, \"_default_message_ttl\": 3600, "
                                   "\"_default_message_delay\": 0}");
    assert_true(rt_metadata_is_reserved("_max_claim_count"));
    assert_false(rt_metadata_is_reserved_of_topics("_max_claim_count"));
    assert_true(rt_metadata_is_reserved_of_topics("_default_message_ttl"));
    assert_false(rt_metadata_is_reserved("_retry_policy"));
}

static void metadata__rules_name_the_limit_that_is_set(void **state) {
    (void)state;
    const rt_limits limits = {.max_message_ttl = 100, .max_message_delay = 7, .max_messages_post_size = 1000};
    const struct { const char *json, *why; } rows[] = {
        {"{\"_default_message_ttl\": 101}",
         "_default_message_ttl can not exceed 100 seconds, and must be at least 60 seconds long."},
        {"{\"_max_messages_post_size\": 1001}",
         "_max_messages_post_size can not exceed 1000,  and must be at least greater than 0."},
        {"{\"_default_message_delay\": 8}", "The TTL can not exceed 7 seconds, and must be at least 0 seconds long."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *json;
        rt_metadata m;
        rt_str why;
        assert_int_equal(rt_json_parse(rt_str_of(rows[i].json), &json), RT_JSON_FINE);
        assert_int_equal(rt_metadata_from_json(json, &limits, &arena, &m, &why), RT_E_INVALID);
        assert_string_equal(why.ptr, rows[i].why);
        json_decref(json);
    }
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(metadata__reserved_keys_reach_the_engine),
        TEST(metadata__null_is_absent_and_an_empty_policy_is_one),
        TEST(metadata__refusals_are_zaqars),
        TEST(metadata__edges_of_the_ranges_are_fine),
        TEST(metadata__topics_show_no_dead_letters_claims_and_encryption),
        TEST(metadata__rules_name_the_limit_that_is_set),
        TEST(metadata__defaults_stand_where_nothing_or_something_falsy_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
