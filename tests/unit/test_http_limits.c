/* The HTTP server's bounds, each hit over a real socket. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "http_kit.h"

static const char HOLD[] = "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n";
static const char FINE[] = "PUT /only HTTP/1.1\r\nHost: h\r\n\r\n";

/* "POST … " with a body of `bytes` times 'x', behind each other `times` times. */
static void send_body(int fd, size_t bytes, bool chunked) {
    char head[128];
    (void)snprintf(head, sizeof head, "POST /echo/a/b HTTP/1.1\r\nHost: h\r\n%s: %zu\r\n\r\n",
                   chunked ? "Transfer-Encoding: chunked\r\nX-Bytes" : "Content-Length", bytes);
    kit_send(fd, head);
    char piece[4096];
    memset(piece, 'x', sizeof piece);
    for (size_t at = 0; at < bytes;) {
        const size_t n = bytes - at < sizeof piece ? bytes - at : sizeof piece;
        (void)snprintf(head, sizeof head, "%zx\r\n", n);
        if (chunked) kit_send(fd, head);
        kit_send_bytes(fd, piece, n);
        if (chunked) kit_send(fd, "\r\n");
        at += n;
    }
    if (chunked) kit_send(fd, "0\r\n\r\n");
}

static void limits__body(void **state) {
    (void)state;
    enum { MAX = 100000 };
    kit k;
    rt_server_config cfg = kit_config();
    cfg.body_bytes_max = MAX;
    kit_start(&k, &cfg);
    const int fd = kit_connect(&k);
    const struct {
        size_t bytes;
        bool chunked;
        unsigned status;
    } rows[] = {{MAX, false, 200}, {MAX + 1, false, 413}, {MAX, true, 200},
                {MAX + 1, true, 413}, {2000000, true, 413}, {1, false, 200}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        send_body(fd, rows[i].bytes, rows[i].chunked);
        kit_reply reply;
        assert_true(kit_read(fd, &reply)); // the connection goes on after a 413
        if (reply.status != rows[i].status) fail_msg("row %zu: %u", i, reply.status);
        kit_reply_free(&reply);
    }
    (void)close(fd);
    kit_close(&k);
}

static void limits__announced_body_that_nobody_would_read(void **state) {
    (void)state;
    kit k;
    const rt_server_config cfg = kit_config();
    kit_start(&k, &cfg);
    const int fd = kit_connect(&k);
    kit_send(fd, "POST /echo/a/b HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000\r\n\r\n");
    kit_reply reply;
    assert_true(kit_read(fd, &reply));
    assert_int_equal(reply.status, 413);
    kit_reply_free(&reply);
    assert_true(kit_is_closed(fd, 5000));
    (void)close(fd);
    kit_close(&k);
}

/* `head`, then `count` times `piece` with the number in its %zu, then `tail`. */
static unsigned ask_repeated(const kit *k, const char *head, const char *piece, size_t count,
                             const char *tail) {
    rt_buf all = {0};
    rt_buf_add(&all, rt_str_of(head));
    for (size_t i = 0; i < count; i++) {
        rt_buf_addf(&all, "%s", piece);
        rt_buf_addf(&all, "%zu", i);
        rt_buf_add(&all, RT_STR("=1"));
    }
    rt_buf_add(&all, rt_str_of(tail));
    const unsigned status = kit_ask(k, all.ptr);
    rt_buf_deinit(&all);
    return status;
}

static void limits__head_of_a_request(void **state) {
    (void)state;
    kit k;
    const rt_server_config cfg = kit_config();
    kit_start(&k, &cfg);
    const char *end = " HTTP/1.1\r\nHost: h\r\n\r\n";
    assert_int_equal(ask_repeated(&k, "GET /echo/a/b?x=1", "&a", RT_ARGS_MAX - 1, end), 200);
    assert_int_equal(ask_repeated(&k, "GET /echo/a/b?x=1", "&a", RT_ARGS_MAX, end), 400);
    const char *start = "GET /echo/a/b HTTP/1.1\r\nHost: h";
    assert_int_equal(ask_repeated(&k, start, "\r\nX: ", RT_HEADERS_MAX - 1, "\r\n\r\n"), 200);
    assert_int_equal(ask_repeated(&k, start, "\r\nX: ", RT_HEADERS_MAX, "\r\n\r\n"), 431);
    assert_int_equal(ask_repeated(&k, "GET /echo/a/", "aaaaaaaaaa", 700, end), 414);
    assert_int_equal(ask_repeated(&k, "GET /echo/a", "/a", 100, end), 404);
    // What does not fit the connection's memory never reaches us: libmicrohttpd answers by itself.
    const unsigned status =
        ask_repeated(&k, start, "\r\nX: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 2000, "\r\n\r\n");
    assert_true(status == 431 || status == 413 || status == 0);
    assert_int_equal(kit_ask(&k, FINE), 200);
    kit_close(&k);
}

/* RFC 9112, 5.1, 6.1 and 6.3: a proxy in front might read the end of each in another way than we do. */
static void limits__a_request_whose_end_is_ambiguous_ends_the_connection(void **state) {
    (void)state;
    kit k;
    const rt_server_config cfg = kit_config();
    kit_start(&k, &cfg);
    static const char *const HEADERS[] = {
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 55",
        "Content-Length: 5, 5",
        "Content-Length: +5",
        "Content-Length : 5",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer\x7f-Encoding: chunked",
        "Transfer-Encoding: chunked\v",
        "Content-Length: 5\r",
        "X-Other: a\rb",
        "X-Other: \x01",
        "Host: other",
    };
    for (size_t i = 0; i < sizeof HEADERS / sizeof *HEADERS; i++) {
        char request[256];
        const int fd = kit_connect(&k);
        // In one reading of it the second request is the body of the first.
        (void)snprintf(request, sizeof request, "POST /echo/a/b HTTP/1.1\r\nHost: h\r\n%s\r\n\r\n0\r\n\r\n%s",
                       HEADERS[i], FINE);
        kit_send(fd, request);
        kit_reply reply;
        assert_true(kit_read(fd, &reply));
        if (reply.status != 400) fail_msg("%s: %u", HEADERS[i], reply.status);
        kit_reply_free(&reply);
        if (kit_read(fd, &reply)) fail_msg("%s: answered twice", HEADERS[i]);
        (void)close(fd);
    }
    kit_close(&k);
}

static void limits__malformed_targets(void **state) {
    (void)state;
    kit k;
    const rt_server_config cfg = kit_config();
    kit_start(&k, &cfg);
    static const char *const TARGETS[] = {"/echo/a/%00",   "/echo/a/%",       "/echo/a/%4", "/echo/a/%4g",
                                          "/echo/a/b?x=%", "/echo/a/b?x=%00", "echo/a/b",   "*",
                                          "/echo/a/\x01"};
    for (size_t i = 0; i < sizeof TARGETS / sizeof *TARGETS; i++) {
        char request[128];
        (void)snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", TARGETS[i]);
        const unsigned status = kit_ask(&k, request);
        if (status != 400) fail_msg("%s: %u", TARGETS[i], status);
    }
    kit_close(&k);
}

/* A byte every 50 ms keeps any timeout for silence from striking. Returns whether it closed in time. */
static bool drip(int fd, const char *bytes) {
    for (size_t i = 0; i < 100; i++) {
        kit_send_bytes(fd, bytes, 1);
        if (kit_is_closed(fd, 50)) return true;
    }
    return false;
}

static void limits__slow_clients_are_cut_off(void **state) {
    (void)state;
    kit k;
    rt_server_config cfg = kit_config();
    cfg.request_timeout_s = 1;
    cfg.idle_timeout_s = 1;
    kit_start(&k, &cfg);
    static const char *const BEGINNINGS[] = {
        "",                                                                       // the request line
        "GET /echo/a/b HTTP/1.1\r\nX: ",                                          // a header
        "POST /echo/a/b HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n",   // the body
    };
    for (size_t i = 0; i < sizeof BEGINNINGS / sizeof *BEGINNINGS; i++) {
        const int fd = kit_connect(&k);
        kit_send(fd, BEGINNINGS[i]);
        if (!drip(fd, "a")) fail_msg("beginning %zu", i);
        (void)close(fd);
    }
    assert_int_equal(kit_ask(&k, FINE), 200);
    kit_close(&k);
}

static void limits__idle_connections_are_closed(void **state) {
    (void)state;
    kit k;
    rt_server_config cfg = kit_config();
    cfg.idle_timeout_s = 1;
    kit_start(&k, &cfg);
    const int fresh = kit_connect(&k), used = kit_connect(&k);
    kit_send(used, FINE);
    kit_reply reply;
    assert_true(kit_read(used, &reply));
    kit_reply_free(&reply);
    assert_true(kit_is_closed(fresh, 5000));
    assert_true(kit_is_closed(used, 5000));
    (void)close(fresh);
    (void)close(used);
    kit_close(&k);
}

static void limits__deadline_of_a_suspended_request(void **state) {
    (void)state;
    kit k;
    rt_server_config cfg = kit_config();
    cfg.deadline_ms = 50;
    kit_start(&k, &cfg);
    const int fd = kit_connect(&k);
    kit_send(fd, HOLD);
    kit_reply reply;
    char value[256];
    assert_true(kit_read(fd, &reply));
    assert_int_equal(reply.status, 503);
    assert_true(kit_header(&reply, "Retry-After", value));
    assert_string_equal(value, "1");
    assert_true(kit_header(&reply, "x-openstack-request-id", value));
    kit_reply_free(&reply);
    kit_send(fd, FINE); // the connection is free for the next request, while the first still is out
    assert_true(kit_read(fd, &reply));
    assert_int_equal(reply.status, 200);
    kit_reply_free(&reply);
    assert_int_equal(rt_server_stats_now(k.server).suspended, 1);
    kit_release(&k);
    kit_wait_late(&k, 1);
    assert_int_equal(kit_ask(&k, FINE), 200);
    assert_int_equal(rt_server_stats_now(k.server).suspended, 0);
    (void)close(fd);
    kit_close(&k);
}

/* Asks for a page and reads its head only. Returns the status. */
static unsigned ask_and_be_deaf(const kit *k, const char *method, int *fd) {
    char request[128], after[256];
    kit_reply reply;
    *fd = kit_connect(k);
    (void)snprintf(request, sizeof request, "%s /large HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", method);
    kit_send(*fd, request);
    assert_true(kit_read_head(*fd, &reply));
    if (reply.status == 503) assert_true(kit_header(&reply, "Retry-After", after));
    return reply.status;
}

/* How much of the page comes before the server ends the connection or the page does. */
static size_t read_page(int fd) {
    static char piece[65536];
    size_t got = 0;
    ssize_t bytes;
    while (got < KIT_LARGE_BYTES && (bytes = read(fd, piece, sizeof piece)) > 0) got += (size_t)bytes;
    return got;
}

/* More of them than libmicrohttpd has memory for. */
static void limits__arguments(void **state) {
    (void)state;
    kit k;
    const rt_server_config cfg = kit_config();
    kit_start(&k, &cfg);
    const struct {
        int count;
        unsigned status;
    } rows[] = {{32, 200}, {33, 400}, {200, 400}, {3000, 400}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_buf request = {0};
        rt_buf_add(&request, RT_STR("GET /echo/a/b?"));
        for (int n = 0; n < rows[i].count; n++) rt_buf_add(&request, RT_STR("a&"));
        rt_buf_add(&request, RT_STR(" HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert_false(request.failed);
        assert_int_equal(kit_ask(&k, request.ptr), rows[i].status);
        rt_buf_deinit(&request);
    }
    kit_close(&k);
}

static void limits__replies_that_nobody_reads(void **state) {
    (void)state;
    kit k;
    rt_server_config cfg = kit_config();
    cfg.replies_bytes_max = (size_t)KIT_LARGE_BYTES * 5; // each is in a buffer of twice its size
    kit_start(&k, &cfg);
    int deaf[4];
    assert_int_equal(ask_and_be_deaf(&k, "GET", &deaf[0]), 200);
    assert_int_equal(ask_and_be_deaf(&k, "GET", &deaf[1]), 200);
    assert_int_equal(ask_and_be_deaf(&k, "GET", &deaf[2]), 503);
    // What was done is told; who has been reading for longest makes room.
    assert_int_equal(ask_and_be_deaf(&k, "POST", &deaf[3]), 200);
    assert_int_equal(read_page(deaf[3]), KIT_LARGE_BYTES);
    assert_int_equal(read_page(deaf[1]), KIT_LARGE_BYTES);
    assert_true(read_page(deaf[0]) < KIT_LARGE_BYTES);
    // And there is room again.
    int fd;
    assert_int_equal(ask_and_be_deaf(&k, "GET", &fd), 200);
    assert_int_equal(read_page(fd), KIT_LARGE_BYTES);
    (void)close(fd);
    for (size_t i = 0; i < 4; i++) (void)close(deaf[i]);
    kit_close(&k);
}

static void limits__requests_under_way(void **state) {
    (void)state;
    kit k;
    rt_server_config cfg = kit_config();
    cfg.suspended_max = 2;
    kit_start(&k, &cfg);
    const int one = kit_connect(&k), two = kit_connect(&k), three = kit_connect(&k);
    kit_send(one, HOLD);
    kit_send(two, HOLD);
    kit_wait_held(&k, 2);
    kit_send(three, HOLD);
    kit_reply reply;
    char value[256];
    assert_true(kit_read(three, &reply));
    assert_int_equal(reply.status, 503);
    assert_true(kit_header(&reply, "Retry-After", value));
    kit_reply_free(&reply);
    kit_release(&k);
    assert_true(kit_read(one, &reply));
    assert_int_equal(reply.status, 201);
    kit_reply_free(&reply);
    (void)close(one);
    (void)close(two);
    (void)close(three);
    kit_close(&k);
}

static void limits__connections(void **state) {
    (void)state;
    kit k;
    rt_server_config cfg = kit_config();
    cfg.connections_max = 2;
    kit_start(&k, &cfg);
    const int one = kit_connect(&k), two = kit_connect(&k);
    kit_send(one, HOLD);
    kit_send(two, HOLD);
    kit_wait_held(&k, 2);
    const int three = kit_connect(&k); // waits in the backlog
    kit_send(three, FINE);
    struct pollfd wait = {.fd = three, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, 100), 0);
    kit_release(&k);
    kit_reply reply;
    assert_true(kit_read(one, &reply));
    kit_reply_free(&reply);
    (void)close(one);
    assert_true(kit_read(three, &reply));
    assert_int_equal(reply.status, 200);
    kit_reply_free(&reply);
    (void)close(two);
    (void)close(three);
    kit_close(&k);
}

static void limits__stop_does_not_wait_for_ever(void **state) {
    (void)state;
    kit k;
    rt_server_config cfg = kit_config();
    cfg.deadline_ms = 300;
    kit_start(&k, &cfg);
    const int held = kit_connect(&k), slow = kit_connect(&k);
    kit_send(held, HOLD);
    kit_send(slow, "POST /echo/a/b HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n");
    kit_wait_held(&k, 1);
    kit_stop(&k);
    kit_reply reply;
    assert_true(kit_read(held, &reply));
    assert_int_equal(reply.status, 503);
    kit_reply_free(&reply);
    (void)close(held);
    (void)close(slow);
    kit_close(&k); // the exchange comes back only now
    assert_int_equal(k.late_count, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits__body),
        cmocka_unit_test(limits__announced_body_that_nobody_would_read),
        cmocka_unit_test(limits__head_of_a_request),
        cmocka_unit_test(limits__a_request_whose_end_is_ambiguous_ends_the_connection),
        cmocka_unit_test(limits__malformed_targets),
        cmocka_unit_test(limits__slow_clients_are_cut_off),
        cmocka_unit_test(limits__idle_connections_are_closed),
        cmocka_unit_test(limits__deadline_of_a_suspended_request),
        cmocka_unit_test(limits__arguments),
        cmocka_unit_test(limits__replies_that_nobody_reads),
        cmocka_unit_test(limits__requests_under_way),
        cmocka_unit_test(limits__connections),
        cmocka_unit_test(limits__stop_does_not_wait_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
