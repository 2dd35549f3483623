/* The HTTP server over real sockets: what comes in, what goes out, who waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "http_kit.h"

static int set_up(void **state) {
    kit *k = malloc(sizeof *k);
    assert_non_null(k);
    const rt_server_config cfg = kit_config();
    kit_start(k, &cfg);
    *state = k;
    return 0;
}

static int tear_down(void **state) {
    kit *k = *state;
    kit_close(k);
    free(k);
    return 0;
}

static void assert_body(const kit *k, const char *request, unsigned status, const char *body) {
    const int fd = kit_connect(k);
    kit_send(fd, request);
    kit_reply reply;
    assert_true(kit_read(fd, &reply));
    assert_int_equal(reply.status, status);
    assert_string_equal(reply.body, body);
    kit_reply_free(&reply);
    (void)close(fd);
}

/* ---- requests ------------------------------------------------------------------------------------------ */

static void server__hands_over_path_parameters_query_headers_and_body(void **state) {
    assert_body(
        *state,
        "POST /echo/one%2Ftwo/t%20hree/?x=1&y&z=a+b%26c&last=1&last=2 HTTP/1.1\r\nHost: h\r\n"
        "X-TEST:  some value \r\nContent-Length: 5\r\n\r\nhello",
        200,
        "method=POST path=/echo/one/two/t hree/ a=one/two b=t hree arg:x=1 arg:y= arg:z=a b&c arg:last=1 "
        "arg:last=2 last=2 x-test=[some value] body=[hello]");
}

static void server__tells_no_body_from_an_empty_one(void **state) {
    assert_body(*state, "GET /echo/a/b HTTP/1.1\r\nHost: h\r\n\r\n", 200,
                "method=GET path=/echo/a/b a=a b=b");
    assert_body(*state, "POST /echo/a/b HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", 200,
                "method=POST path=/echo/a/b a=a b=b body=[]");
}

static void server__joins_chunks(void **state) {
    assert_body(*state,
                "POST /echo/a/b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n",
                200, "method=POST path=/echo/a/b a=a b=b body=[abcdefg]");
}

static void server__takes_an_absolute_target(void **state) {
    assert_body(*state, "GET http://h:1/echo/a/b HTTP/1.1\r\nHost: h\r\n\r\n", 200,
                "method=GET path=/echo/a/b a=a b=b");
}

static void server__sends_headers_and_a_request_id_of_its_own_with_each_reply(void **state) {
    const kit *k = *state;
    const int fd = kit_connect(k);
    char id[2][256], value[256];
    for (size_t i = 0; i < 2; i++) {
        kit_send(fd, "GET /echo/a/b HTTP/1.1\r\nHost: h\r\n\r\n");
        kit_reply reply;
        assert_true(kit_read(fd, &reply));
        assert_true(kit_header(&reply, "x-openstack-request-id", id[i]));
        assert_true(kit_header(&reply, "X-One", value));
        assert_string_equal(value, "1");
        assert_true(kit_header(&reply, "Content-Type", value));
        assert_string_equal(value, "text/plain");
        assert_true(kit_header(&reply, "Date", value));
        kit_reply_free(&reply);
    }
    (void)close(fd);
    assert_string_not_equal(id[0], id[1]);
    unsigned a, b, c, d, e, f;
    assert_int_equal(sscanf(id[0], "req-%8x-%4x-4%3x-%4x-%8x%4x", &a, &b, &c, &d, &e, &f), 6);
    assert_int_equal(strlen(id[0]), 40);
    assert_int_equal(d >> 14, 2);
}

static void server__answers_what_no_handler_is_there_for(void **state) {
    const struct {
        const char *request;
        unsigned status;
        const char *allow; /* NULL: none */
    } rows[] = {
        {"GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n", 404, NULL},
        {"GET /echo/a HTTP/1.1\r\nHost: h\r\n\r\n", 404, NULL},
        {"GET /echo//b HTTP/1.1\r\nHost: h\r\n\r\n", 404, NULL},
        {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", 404, NULL},
        {"GET /only HTTP/1.1\r\nHost: h\r\n\r\n", 405, "PUT, DELETE, OPTIONS"},
        {"OPTIONS /only HTTP/1.1\r\nHost: h\r\n\r\n", 200, "PUT, DELETE"},
        {"OPTIONS /only HTTP/1.1\r\nHost: h\r\nX-Forbidden: 1\r\n\r\n", 200, "PUT, DELETE"},
        {"OPTIONS /nowhere HTTP/1.1\r\nHost: h\r\n\r\n", 404, NULL},
        {"PUT /only HTTP/1.1\r\nHost: h\r\nX-Forbidden: 1\r\n\r\n", 403, NULL},
        {"GET /only HTTP/1.1\r\nHost: h\r\nX-Forbidden: 1\r\n\r\n", 403, NULL},
        {"GET /nowhere HTTP/1.1\r\nHost: h\r\nX-Forbidden: 1\r\n\r\n", 404, NULL},
        {"PUT /only/ HTTP/1.1\r\nHost: h\r\n\r\n", 200, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int fd = kit_connect(*state);
        kit_send(fd, rows[i].request);
        kit_reply reply;
        char allow[256];
        assert_true(kit_read(fd, &reply));
        if (reply.status != rows[i].status) fail_msg("row %zu: %u", i, reply.status);
        assert_int_equal(kit_header(&reply, "Allow", allow), rows[i].allow != NULL);
        if (rows[i].allow != NULL) assert_string_equal(allow, rows[i].allow);
        kit_reply_free(&reply);
        (void)close(fd);
    }
}

static void server__sends_no_body_to_head(void **state) {
    const int fd = kit_connect(*state);
    kit_send(fd, "HEAD /head HTTP/1.1\r\nHost: h\r\n\r\nHEAD /head HTTP/1.1\r\nHost: h\r\n\r\n");
    kit_reply reply;
    for (size_t i = 0; i < 2; i++) {
        assert_true(kit_read_head(fd, &reply));
        assert_int_equal(reply.status, 200);
    }
    (void)close(fd);
    assert_int_equal(kit_ask(*state, "HEAD /only HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"), 405);
}

static void server__asks_the_face_with_the_longest_prefix(void **state) {
    assert_body(*state, "GET /other/x HTTP/1.1\r\nHost: h\r\n\r\n", 404, "other");
    assert_body(*state, "GET /other HTTP/1.1\r\nHost: h\r\n\r\n", 404, "other");
    assert_body(*state, "GET /others HTTP/1.1\r\nHost: h\r\n\r\n", 404, "not found");
    assert_body(*state, "GET /other/%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400, "other refuses");
}

static void server__answers_two_hundred_pipelined_requests_in_order(void **state) {
    kit *k = *state;
    enum { COUNT = 200 };
    const int fd = kit_connect(k);
    rt_buf all = {0};
    for (unsigned i = 0; i < COUNT; i++) {
        rt_buf_addf(&all, "POST /echo/a/%u HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", i);
    }
    kit_send_bytes(fd, all.ptr, all.len);
    rt_buf_deinit(&all);
    for (unsigned i = 0; i < COUNT; i++) {
        kit_reply reply;
        char want[128];
        assert_true(kit_read(fd, &reply));
        (void)snprintf(want, sizeof want, "method=POST path=/echo/a/%u a=a b=%u body=[abc]", i, i);
        assert_string_equal(reply.body, want);
        kit_reply_free(&reply);
    }
    (void)close(fd);
    assert_int_equal(k->replies, COUNT);
    assert_int_equal(rt_server_stats_now(k->server).requests, COUNT);
    assert_int_equal(rt_server_stats_now(k->server).connections, 1);
}

/* ---- suspending ---------------------------------------------------------------------------------------- */

static const char HOLD[] = "POST /hold HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello";

static void server__finishes_what_another_thread_resumes(void **state) {
    kit *k = *state;
    const int fd = kit_connect(k);
    kit_send(fd, HOLD);
    kit_send(fd, "GET /echo/next/one HTTP/1.1\r\nHost: h\r\n\r\n");
    kit_wait_held(k, 1);
    assert_int_equal(kit_ask(k, "PUT /only HTTP/1.1\r\nHost: h\r\n\r\n"), 200); // others do not wait for it
    kit_release(k);
    kit_reply reply;
    assert_true(kit_read(fd, &reply));
    assert_int_equal(reply.status, 201);
    assert_string_equal(reply.body, "hello");
    kit_reply_free(&reply);
    assert_true(kit_read(fd, &reply));
    assert_string_equal(reply.body, "method=GET path=/echo/next/one a=next b=one");
    kit_reply_free(&reply);
    (void)close(fd);
}

static void server__survives_a_client_that_goes_while_suspended(void **state) {
    kit *k = *state;
    for (size_t i = 0; i < 8; i++) {
        const int fd = kit_connect(k);
        kit_send(fd, HOLD);
        kit_wait_held(k, i + 1);
        (void)close(fd);
    }
    kit_release(k);
    assert_int_equal(kit_ask(k, "PUT /only HTTP/1.1\r\nHost: h\r\n\r\n"), 200);
}

static void server__answers_all_of_many_clients_at_once(void **state) {
    kit *k = *state;
    // libmicrohttpd's own loop stalls when a multiple of 128 sockets is ready.
    static const size_t COUNTS[] = {127, 128, 129, 256, 512};
    int fds[512];
    for (size_t c = 0; c < sizeof COUNTS / sizeof *COUNTS; c++) {
        for (size_t i = 0; i < COUNTS[c]; i++) fds[i] = kit_connect(k);
        for (size_t round = 0; round < 3; round++) {
            for (size_t i = 0; i < COUNTS[c]; i++) kit_send(fds[i], HOLD);
            kit_wait_held(k, COUNTS[c]);
            kit_release(k);
            for (size_t i = 0; i < COUNTS[c]; i++) {
                kit_reply reply;
                assert_true(kit_read(fds[i], &reply));
                assert_int_equal(reply.status, 201);
                kit_reply_free(&reply);
            }
        }
        for (size_t i = 0; i < COUNTS[c]; i++) (void)close(fds[i]);
    }
}

static void server__runs_readers_handlers_elsewhere(void **state) {
    kit *k = *state;
    assert_body(k, "GET /reader HTTP/1.1\r\nHost: h\r\nX-Test: seen\r\n\r\n", 200, "seen");
    const int fd = kit_connect(k);
    kit_send(fd, "GET /reader/hold HTTP/1.1\r\nHost: h\r\n\r\n");
    kit_wait_held(k, 1);
    kit_release(k);
    kit_reply reply;
    assert_true(kit_read(fd, &reply));
    assert_int_equal(reply.status, 201);
    kit_reply_free(&reply);
    (void)close(fd);
}

/* The body of the answer, which must be 200. */
static void assert_says(int fd, const char *body) {
    kit_reply reply;
    assert_true(kit_read(fd, &reply));
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply.body, body);
    kit_reply_free(&reply);
}

/* One request each that reads at once, and one that reads when what it waited for is there. */
static void assert_reads(const kit *k, kit *held, const char *where) {
    const int fd = kit_connect(k);
    kit_send(fd, "GET /reads HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_says(fd, where);
    kit_send(fd, "POST /reads HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx");
    assert_says(fd, where);
    kit_send(fd, "POST /reads/after HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    kit_wait_held(held, 1);
    kit_release(held);
    assert_says(fd, where);
    (void)close(fd);
}

static void server__reads_elsewhere_what_takes_a_round_trip(void **state) {
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        kit k;
        rt_server_config cfg = kit_config();
        cfg.reads_wait = waits == 1;
        kit_start(&k, &cfg);
        assert_reads(&k, &k, waits == 1 ? "elsewhere" : "here");
        kit_close(&k);
    }
}

static void server__does_not_keep_the_impatient_waiting(void **state) {
    (void)state;
    kit k;
    const rt_server_config cfg = kit_config();
    kit_start(&k, &cfg);
    const int fd = kit_connect(&k);
    kit_send(fd, "GET /impatient HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_says(fd, "late");
    kit_wait_held(&k, 1);
    kit_release(&k);
    kit_wait_late(&k, 1); // what it waited for still comes to its end
    (void)close(fd);
    kit_close(&k);
}

static void server__drains_when_it_is_stopped(void **state) {
    kit *k = *state;
    const int fd = kit_connect(k), idle = kit_connect(k);
    kit_send(idle, "PUT /only HTTP/1.1\r\nHost: h\r\n\r\n");
    kit_reply reply;
    assert_true(kit_read(idle, &reply));
    kit_reply_free(&reply);
    kit_send(fd, HOLD);
    kit_wait_held(k, 1);
    rt_server_stop(k->server);
    kit_send(idle, "PUT /only HTTP/1.1\r\nHost: h\r\n\r\n"); // too late or not: the server is free to choose
    kit_release(k);
    char connection[256];
    assert_true(kit_read(fd, &reply));
    assert_int_equal(reply.status, 201);
    assert_string_equal(reply.body, "hello");
    assert_true(kit_header(&reply, "Connection", connection));
    assert_string_equal(connection, "close");
    kit_reply_free(&reply);
    kit_stop(k);
    (void)close(fd);
    (void)close(idle);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(server__hands_over_path_parameters_query_headers_and_body),
        TEST(server__tells_no_body_from_an_empty_one),
        TEST(server__joins_chunks),
        TEST(server__takes_an_absolute_target),
        TEST(server__sends_headers_and_a_request_id_of_its_own_with_each_reply),
        TEST(server__answers_what_no_handler_is_there_for),
        TEST(server__sends_no_body_to_head),
        TEST(server__asks_the_face_with_the_longest_prefix),
        TEST(server__answers_two_hundred_pipelined_requests_in_order),
        TEST(server__finishes_what_another_thread_resumes),
        TEST(server__survives_a_client_that_goes_while_suspended),
        TEST(server__answers_all_of_many_clients_at_once),
        TEST(server__runs_readers_handlers_elsewhere),
        TEST(server__reads_elsewhere_what_takes_a_round_trip),
        TEST(server__does_not_keep_the_impatient_waiting),
        TEST(server__drains_when_it_is_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
