/* What a subscriber is sent for one message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "engine/messages/notice.h"

static void assert_notice(rt_job job, const char *body, rt_subscription s, const char *want) {
    rt_buf out = {0};
    rt_notice_write(&out, &job, rt_str_of(body), &s);
    assert_false(out.failed);
    rt_buf_add_char(&out, '\0');
    assert_string_equal(out.ptr, want);
    rt_buf_deinit(&out);
}

static const rt_subscription HOOK = {.uri = {"http://h/", 9}, .queue_name = {"q", 1}};

static void notice__carries_ttl_body_kind_and_queue(void **state) {
    (void)state;
    assert_notice((rt_job){.ttl_s = 300}, "{\"x\":1}", HOOK,
                  "{\"ttl\": 300, \"body\": {\"x\":1}, \"Message_Type\": \"Notification\", \"queue_name\": \"q\"}");
}

static void notice__of_a_delayed_message_says_so(void **state) {
    (void)state;
    assert_notice((rt_job){.ttl_s = 60, .delay_s = 900}, "null", HOOK,
                  "{\"ttl\": 60, \"body\": null, \"delay\": 900, \"Message_Type\": \"Notification\", "
                  "\"queue_name\": \"q\"}");
}

static void notice__template_is_filled_wherever_it_asks(void **state) {
    (void)state;
    rt_subscription s = HOOK;
    const rt_job job = {.ttl_s = 60};
#define MESSAGE "{\"ttl\": 60, \"body\": 1, \"Message_Type\": \"Notification\", \"queue_name\": \"q\"}"
    s.post_data = RT_STR("{\"m\": \"$zaqar_message$\", \"again\": [\"$zaqar_message$\"]}");
    assert_notice(job, "1", s, "{\"m\": " MESSAGE ", \"again\": [" MESSAGE "]}");
    s.post_data = RT_STR("\"$zaqar_message$\"");
    assert_notice(job, "1", s, MESSAGE);
    s.post_data = RT_STR("no mark: $zaqar_message$ \"$zaqar_message\"");
    assert_notice(job, "1", s, "no mark: $zaqar_message$ \"$zaqar_message\"");
}

static void notice__what_the_message_says_is_not_taken_for_the_mark(void **state) {
    (void)state;
    rt_subscription s = HOOK;
    s.post_data = RT_STR("[\"$zaqar_message$\"]");
    assert_notice((rt_job){.ttl_s = 60}, "\"$zaqar_message$\"", s,
                  "[{\"ttl\": 60, \"body\": \"$zaqar_message$\", \"Message_Type\": \"Notification\", "
                  "\"queue_name\": \"q\"}]");
}

static void notice__mails_are_never_templates(void **state) {
    (void)state;
    rt_subscription s = HOOK;
    s.uri = RT_STR("mailto:a@b.c");
    s.post_data = RT_STR("template");
    assert_notice((rt_job){.ttl_s = 60}, "1", s, MESSAGE);
}

static void notice__of_a_topic_has_its_name_without_the_mark(void **state) {
    (void)state;
    rt_subscription s = HOOK;
    s.queue_name = RT_STR("~q");
    assert_notice((rt_job){.ttl_s = 60}, "1", s, MESSAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notice__carries_ttl_body_kind_and_queue),
        cmocka_unit_test(notice__of_a_delayed_message_says_so),
        cmocka_unit_test(notice__template_is_filled_wherever_it_asks),
        cmocka_unit_test(notice__what_the_message_says_is_not_taken_for_the_mark),
        cmocka_unit_test(notice__mails_are_never_templates),
        cmocka_unit_test(notice__of_a_topic_has_its_name_without_the_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
