/* mailto: through a relay: a small SMTP server that does what the recipient's name says. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "webhook_rig.h"

typedef struct relay {
    int listener;
    char url[64];
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    rt_buf talk;          /* all that clients said */
} relay;

static bool line_from(FILE *in, relay *r, char line[2048]) {
    if (fgets(line, 2048, in) == NULL) return false;
    pthread_mutex_lock(&r->lock);
    rt_buf_add(&r->talk, rt_str_of(line));
    pthread_mutex_unlock(&r->lock);
    return true;
}

static const char *reply_to(const char *line) {
    if (strncmp(line, "EHLO", 4) == 0) return "250-relay\r\n250 SIZE 10000000\r\n";
    if (strncmp(line, "RCPT", 4) == 0 && strstr(line, "<later@") != NULL) return "451 try again\r\n";
    if (strncmp(line, "RCPT", 4) == 0 && strstr(line, "<never@") != NULL) return "550 no such user\r\n";
    if (strncmp(line, "RCPT", 4) == 0 && strstr(line, "<gone@") != NULL) return NULL;
    if (strncmp(line, "DATA", 4) == 0) return "354 go on\r\n";
    return "250 fine\r\n";
}

static void converse(relay *r, int fd) {
    FILE *in = fdopen(fd, "r+");
    char line[2048];
    const char *reply = "220 relay\r\n";
    if (in == NULL) abort();
    while (reply != NULL) {
        if (send(fd, reply, strlen(reply), MSG_NOSIGNAL) < 0 || !line_from(in, r, line)) break;
        reply = reply_to(line);
        if (reply != NULL && reply[0] == '3') {
            if (send(fd, reply, strlen(reply), MSG_NOSIGNAL) < 0) break;
            while (line_from(in, r, line) && strcmp(line, ".\r\n") != 0) continue;
            reply = "250 taken\r\n";
        }
    }
    (void)fclose(in);
}

static void *run(void *ctx) {
    relay *r = ctx;
    int fd;
    while ((fd = accept(r->listener, NULL, NULL)) >= 0) converse(r, fd);
    return NULL;
}

static void relay_open(relay *r) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    *r = (relay){.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    pthread_mutex_init(&r->lock, NULL);
    assert_int_equal(bind(r->listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(r->listener, 16), 0);
    assert_int_equal(getsockname(r->listener, (struct sockaddr *)&at, &len), 0);
    (void)snprintf(r->url, sizeof r->url, "smtp://127.0.0.1:%d", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&r->thread, NULL, run, r), 0);
}

/* After the executor is closed: only then do its connections end. */
static void relay_close(relay *r) {
    (void)shutdown(r->listener, SHUT_RDWR);
    (void)pthread_join(r->thread, NULL);
    (void)close(r->listener);
    rt_buf_deinit(&r->talk);
    pthread_mutex_destroy(&r->lock);
}

/* The relay stands where the operator put it: no setting has to open its network. */
static void mail__goes_through_the_relay(void **state) {
    (void)state;
    relay r;
    relay_open(&r);
    rig *g = rig_open((rt_webhook_config){.mail_relay = r.url, .mail_from = "retryd@example.net"}, "");
    rt_attempt a = rig_attempt("mailto:ok@example.com");
    a.subject = RT_STR("Hello");
    a.body = RT_STR("{\"a\": 1}\n.\nQUIT\n");
    const rt_outcome o = rig_try(g, &a);
    assert_int_equal(o.reason, RT_REASON_STATUS);
    assert_int_equal(o.status, 200);
    pthread_mutex_lock(&r.lock);
    rt_buf_add_char(&r.talk, '\0');
    static const char *const want[] = {
        "MAIL FROM:<retryd@example.net>", "RCPT TO:<ok@example.com>\r\n", "\r\nSubject: Hello\r\n",
        "\r\nMessage-ID: <msg_1@example.net>\r\n", "\r\n\r\n{\"a\": 1}\r\n..\r\nQUIT\r\n.\r\n", // its dots are doubled
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        if (strstr(r.talk.ptr, want[i]) == NULL) fail_msg("no %s in %s", want[i], r.talk.ptr);
    }
    pthread_mutex_unlock(&r.lock);
    rig_close(g);
    relay_close(&r);
}

static void mail__refusals_have_their_reasons(void **state) {
    (void)state;
    static const struct {
        const char *url;
        rt_reason reason;
        int status;
    } rows[] = {
        {"mailto:later@example.com", RT_REASON_BROKEN, 0},
        {"mailto:never@example.com", RT_REASON_STATUS, 400},
        {"mailto:gone@example.com", RT_REASON_BROKEN, 0},
        {"mailto:nobody", RT_REASON_BROKEN, 0},
        {"mailto:ok@example.com%0d%0aDATA", RT_REASON_BROKEN, 0},
        {"MAILTO:ok@example.com", RT_REASON_STATUS, 200},
    };
    relay r;
    relay_open(&r);
    rig *g = rig_open((rt_webhook_config){.mail_relay = r.url}, "");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rt_outcome o = rig_get(g, rows[i].url);
        if (o.reason != rows[i].reason || o.status != rows[i].status) {
            fail_msg("%s: %s %d %.*s", rows[i].url, rt_reason_name(o.reason), o.status, o.text_len, o.text);
        }
        if (o.status != 200) assert_true(o.text_len > 0);
    }
    rig_close(g);
    relay_close(&r);
}

static void mail__without_anybody_at_the_relay_is_tried_again(void **state) {
    (void)state;
    relay r;
    relay_open(&r);
    relay_close(&r);
    rig *g = rig_open((rt_webhook_config){.mail_relay = r.url}, "");
    assert_int_equal(rig_get(g, "mailto:ok@example.com").reason, RT_REASON_CONNECT);
    rig_close(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mail__goes_through_the_relay),
        cmocka_unit_test(mail__refusals_have_their_reasons),
        cmocka_unit_test(mail__without_anybody_at_the_relay_is_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
