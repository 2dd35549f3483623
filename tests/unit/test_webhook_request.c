/* What an attempt becomes before it is sent: header lines, turns at a host, mails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "executor/webhook/headers.h"
#include "executor/webhook/hosts.h"
#include "executor/webhook/mail.h"

/* The lines with '|' between them. */
static void lines_of(rt_headers *h, const char *users, const char *type, char out[1024]) {
    rt_headers_clear(h);
    rt_headers_add_users(h, rt_str_of(users), rt_str_of(type));
    size_t len = 0;
    for (struct curl_slist *l = rt_headers_list(h); l != NULL; l = l->next) {
        len += (size_t)snprintf(out + len, 1024 - len, "%s%s", len > 0 ? "|" : "", l->data);
    }
}

static void headers__of_an_attempt(void **state) {
    (void)state;
    static const struct {
        const char *users, *want;
    } rows[] = {
        {"", "Content-Type: application/json|Expect:"},
        {"X-A: 1\n", "Content-Type: application/json|X-A: 1|Expect:"},
        {"X-A: 1\nX-B:2", "Content-Type: application/json|X-A: 1|X-B: 2|Expect:"},
        {"content-TYPE: text/plain\n", "content-TYPE: text/plain|Expect:"},
        {"X-A: 1\nX-B: 2\nx-a: 3\n", "Content-Type: application/json|x-a: 3|X-B: 2|Expect:"}, // the later wins
        {"X-Empty:\n", "Content-Type: application/json|X-Empty;|Expect:"},
        {"Authorization: Bearer a:b\n", "Content-Type: application/json|Authorization: Bearer a:b|Expect:"},
        {"Content-Length: 0\nTransfer-Encoding: chunked\nEXPECT: x\nConnection: close\nUpgrade: h2c\n",
         "Content-Type: application/json|Expect:"},
        {"webhook-id: forged\nWebhook-Signature: forged\n", "Content-Type: application/json|Expect:"},
        {"no colon\n: no name\nbad name: x\nX-A\t: x\n\n", "Content-Type: application/json|Expect:"},
        {"X-A: one\rX-B: two\n", "Content-Type: application/json|Expect:"}, // a CR would end the line for some
        {"X-A: one\r\n", "Content-Type: application/json|X-A: one|Expect:"},
        {"X-A: caf\xc3\xa9\n", "Content-Type: application/json|X-A: caf\xc3\xa9|Expect:"},
    };
    rt_headers h = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char got[1024];
        lines_of(&h, rows[i].users, "", got);
        assert_string_equal(got, rows[i].want);
    }
    rt_headers_deinit(&h);
}

static void headers__the_content_type_of_an_attempt(void **state) {
    (void)state;
    static const struct {
        const char *users, *type, *want;
    } rows[] = {
        {"", "text/csv", "Content-Type: text/csv|Expect:"},
        {"content-type: text/plain\n", "text/csv", "content-type: text/plain|Expect:"}, // the header goes over it
        {"", "text/csv\r\nX-Second: 1", "Content-Type: application/json|Expect:"},
    };
    rt_headers h = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char got[1024];
        lines_of(&h, rows[i].users, rows[i].type, got);
        assert_string_equal(got, rows[i].want);
    }
    rt_headers_deinit(&h);
}

static void headers__are_bounded(void **state) {
    (void)state;
    rt_headers h = {0};
    rt_buf lines = {0};
    for (int i = 0; i < RT_HEADERS_USER_MAX + 5; i++) rt_buf_addf(&lines, "X-%d: %d\n", i, i);
    rt_headers_add_users(&h, rt_buf_str(&lines), RT_STR_EMPTY);
    assert_int_equal(h.count, RT_HEADERS_USER_MAX + 1);
    rt_buf_deinit(&lines);
    rt_headers_deinit(&h);
}

static void hosts__take_turns_in_order(void **state) {
    (void)state;
    rt_hosts hosts = {.limit = 2};
    rt_host_waiter w[5] = {0};
    rt_host *h[5], *other;
    rt_host_waiter other_waiter = {0};
    static const char *const urls[] = {"http://a:1/x", "http://A:1?y", "http://u:p@a:1", "http://a:1/@b", "http://a:1#f"};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(rt_hosts_enter(&hosts, rt_str_of(urls[i]), &w[i], &h[i]), i < 2);
        assert_ptr_equal(h[i], h[0]);
    }
    assert_true(rt_hosts_enter(&hosts, RT_STR("http://a:2/x"), &other_waiter, &other));
    assert_ptr_not_equal(other, h[0]);
    assert_ptr_equal(rt_hosts_leave(&hosts, h[0]), &w[2]);
    rt_hosts_give_up(&hosts, h[3], &w[3]);
    assert_ptr_equal(rt_hosts_leave(&hosts, h[1]), &w[4]);
    assert_null(rt_hosts_leave(&hosts, other));
    assert_null(rt_hosts_leave(&hosts, h[2]));
    assert_null(rt_hosts_leave(&hosts, h[4]));
    assert_int_equal(hosts.map.count, 0);
    rt_hosts_deinit(&hosts);
}

static void hosts__without_a_limit_nobody_waits(void **state) {
    (void)state;
    rt_hosts hosts = {0};
    rt_host_waiter w = {0};
    for (int i = 0; i < 100; i++) {
        rt_host *h;
        assert_true(rt_hosts_enter(&hosts, RT_STR("http://a/"), &w, &h));
        assert_null(h);
        assert_null(rt_hosts_leave(&hosts, h));
    }
    rt_hosts_deinit(&hosts);
}

static rt_attempt mail_to(const char *url) {
    return (rt_attempt){.url = rt_str_of(url), .message_id = RT_STR("msg.1"), .body = RT_STR("{\"a\": 1}\n")};
}

static void mail__is_a_message(void **state) {
    (void)state;
    rt_attempt a = mail_to("mailto:joe@example.com,ann%40example.org?body=x&Subject=Two%20words");
    rt_mail m;
    rt_err err;
    assert_int_equal(rt_mail_compose(&a, RT_STR("retryd@example.net"), 1445412480, &m, &err), RT_OK);
    assert_string_equal(m.from, "retryd@example.net");
    assert_int_equal(m.to_count, 2);
    assert_string_equal(m.to[0], "joe@example.com");
    assert_string_equal(m.to[1], "ann@example.org");
    static const char want[] = "From: <retryd@example.net>\r\n"
                               "To: <joe@example.com>,\r\n <ann@example.org>\r\n"
                               "Subject: Two words\r\n"
                               "Date: Wed, 21 Oct 2015 07:28:00 +0000\r\n"
                               "Message-ID: <msg-1@example.net>\r\n"
                               "Auto-Submitted: auto-generated\r\n"
                               "MIME-Version: 1.0\r\n"
                               "Content-Type: text/plain; charset=us-ascii\r\n"
                               "Content-Transfer-Encoding: 7bit\r\n"
                               "\r\n"
                               "{\"a\": 1}\r\n";
    assert_int_equal(m.message.len, sizeof want - 1);
    assert_memory_equal(m.message.ptr, want, sizeof want - 1);
    rt_mail_deinit(&m);
}

/* The header line that begins with `name`, without its end; "" when there is none. */
static void header_of(const rt_mail *m, const char *name, char out[512]) {
    out[0] = '\0';
    char *text = rt_str_dup(rt_buf_str(&m->message));
    assert_non_null(text);
    char *at = strncmp(text, name, strlen(name)) == 0 ? text : NULL;
    for (char *p = text; at == NULL && (p = strstr(p, "\r\n")) != NULL; p += 2) {
        if (strncmp(p + 2, name, strlen(name)) == 0) at = p + 2;
    }
    if (at != NULL) {
        char *end = strstr(at, "\r\n");
        while (end != NULL && end[2] == ' ') end = strstr(end + 2, "\r\n");
        (void)snprintf(out, 512, "%.*s", end == NULL ? (int)strlen(at) : (int)(end - at), at);
    }
    free(text);
}

static void mail__headers_cannot_be_injected(void **state) {
    (void)state;
    static const struct {
        const char *subject, *from, *id, *name, *want;
    } rows[] = {
        {"a\r\nBcc: evil@example.com", "", "m", "Subject: ", "Subject: a  Bcc: evil@example.com"},
        {"a\r\nBcc: evil@example.com", "", "m", "Bcc", ""},
        {"\xc3\x84rger", "", "m", "Subject: ", "Subject: =?UTF-8?B?w4RyZ2Vy?="},
        {"=?x", "", "m", "Subject: ", "Subject: =?UTF-8?B?PT94?="},
        {"s", "Joe <joe@example.com>", "m", "From: ", "From: Joe <joe@example.com>"},
        {"s", "\"Joe\" <joe@example.com>", "m", "From: ", "From: Joe <joe@example.com>"},
        {"s", "J\nTo: x <joe@example.com>", "m", "From: ", "From: =?UTF-8?B?SiBUbzogeA==?= <joe@example.com>"},
        {"s", "joe@example.com", "a\r\nX: y>", "Message-ID: ", "Message-ID: <a--X--y-@example.com>"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rt_attempt a = mail_to("mailto:to@example.com");
        a.subject = rt_str_of(rows[i].subject);
        a.from = rt_str_of(rows[i].from);
        a.message_id = rt_str_of(rows[i].id);
        rt_mail m;
        rt_err err;
        char got[512];
        assert_int_equal(rt_mail_compose(&a, RT_STR("retryd@example.net"), 0, &m, &err), RT_OK);
        header_of(&m, rows[i].name, got);
        assert_string_equal(got, rows[i].want);
        rt_mail_deinit(&m);
    }
}

static void mail__long_subjects_are_folded_between_characters(void **state) {
    (void)state;
    rt_attempt a = mail_to("mailto:to@example.com");
    a.subject = RT_STR("\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
                       "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac");
    rt_mail m;
    rt_err err;
    char got[512];
    assert_int_equal(rt_mail_compose(&a, RT_STR("retryd@example.net"), 0, &m, &err), RT_OK);
    header_of(&m, "Subject: ", got);
    assert_string_equal(got, "Subject: =?UTF-8?B?4oKs4oKs4oKs4oKs4oKs4oKs4oKs4oKs4oKs4oKs4oKs4oKs4oKs4oKs?=\r\n"
                             " =?UTF-8?B?4oKs?=");
    rt_mail_deinit(&m);
}

static void mail__bodies_that_mail_cannot_carry_are_encoded(void **state) {
    (void)state;
    static char line[1001];
    memset(line, 'x', 1000);
    static const struct {
        const char *body;
        size_t len;
        bool encoded;
    } rows[] = {
        {"plain\ttext\n", 11, false}, {"caf\xc3\xa9", 5, true}, {"bare\rreturn", 11, true},
        {"nul\0", 4, true},           {line, 998, false},       {line, 999, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rt_attempt a = mail_to("mailto:to@example.com");
        a.body = (rt_str){rows[i].body, rows[i].len};
        rt_mail m;
        rt_err err;
        char got[512];
        assert_int_equal(rt_mail_compose(&a, RT_STR("retryd@example.net"), 0, &m, &err), RT_OK);
        header_of(&m, "Content-Transfer-Encoding: ", got);
        assert_string_equal(got, rows[i].encoded ? "Content-Transfer-Encoding: base64" : "Content-Transfer-Encoding: 7bit");
        rt_mail_deinit(&m);
    }
}

static void mail__bad_addresses_are_refused(void **state) {
    (void)state;
    static const char *const rows[] = {
        "mailto:",      "mailto:joe",     "mailto:@example.com", "mailto:joe@",       "mailto:a@b@c",
        "mailto:a b@c", "mailto:a%0A@c",  "mailto:a%3Eb@c",      "mailto:a%2Cb@c",    "mailto:a@b,,c@d",
        "mailto:a%00@b", "mailto:?to=a@b", "mailto:\xc3\xa9@b",
        "mailto:a@b,a@b,a@b,a@b,a@b,a@b,a@b,a@b,a@b,a@b,a@b",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rt_attempt a = mail_to(rows[i]);
        rt_mail m;
        rt_err err;
        if (rt_mail_compose(&a, RT_STR("r@example.net"), 0, &m, &err) != RT_E_INVALID) fail_msg("%s", rows[i]);
    }
    rt_attempt a = mail_to("mailto:a@b");
    a.from = RT_STR("Joe <joe>");
    rt_mail m;
    rt_err err;
    assert_int_equal(rt_mail_compose(&a, RT_STR("r@example.net"), 0, &m, &err), RT_E_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers__of_an_attempt),
        cmocka_unit_test(headers__the_content_type_of_an_attempt),
        cmocka_unit_test(headers__are_bounded),
        cmocka_unit_test(hosts__take_turns_in_order),
        cmocka_unit_test(hosts__without_a_limit_nobody_waits),
        cmocka_unit_test(mail__is_a_message),
        cmocka_unit_test(mail__headers_cannot_be_injected),
        cmocka_unit_test(mail__long_subjects_are_folded_between_characters),
        cmocka_unit_test(mail__bodies_that_mail_cannot_carry_are_encoded),
        cmocka_unit_test(mail__bad_addresses_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
