#include "http_kit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { SILENCE_MS_MAX = 10000 };

/* ---- the face ------------------------------------------------------------------------------------------ */

static void echo(rt_exchange *x) {
    rt_buf out = {0};
    rt_str value;
    rt_buf_addf(&out, "method=%.*s path=%.*s", RT_STR_ARG(rt_exchange_method(x)),
                RT_STR_ARG(rt_exchange_path(x)));
    rt_buf_addf(&out, " a=%.*s b=%.*s", RT_STR_ARG(rt_exchange_param(x, 0)),
                RT_STR_ARG(rt_exchange_param(x, 1)));
    rt_str name;
    for (size_t i = 0; rt_exchange_arg_at(x, i, &name, &value); i++) {
        rt_buf_addf(&out, " arg:%.*s=%.*s", RT_STR_ARG(name), RT_STR_ARG(value));
    }
    if (rt_exchange_arg(x, "last", &value)) rt_buf_addf(&out, " last=%.*s", RT_STR_ARG(value));
    if (rt_exchange_header(x, "x-Test", &value)) rt_buf_addf(&out, " x-test=[%.*s]", RT_STR_ARG(value));
    if (rt_exchange_has_body(x)) rt_buf_addf(&out, " body=[%.*s]", RT_STR_ARG(rt_exchange_body(x)));
    rt_exchange_set_header(x, "X-One", RT_STR("1"));
    rt_exchange_reply_buf(x, 200, "text/plain", &out);
}

static void reader(rt_exchange *x) {
    rt_str value = RT_STR("nothing");
    (void)rt_exchange_header(x, "X-Test", &value);
    rt_exchange_reply(x, 200, "text/plain", value);
}

static void large(rt_exchange *x) {
    rt_buf out = {0};
    for (int i = 0; i < KIT_LARGE_BYTES / 1024; i++) rt_buf_addf(&out, "%01024d", 0);
    rt_exchange_reply_buf(x, 200, "text/plain", &out);
}

static void reads(rt_exchange *x) {
    if (rt_exchange_moves(x)) return;
    kit *k = rt_exchange_app(x);
    const bool elsewhere = pthread_equal(pthread_self(), k->thread) == 0;
    rt_exchange_reply(x, 200, "text/plain", elsewhere ? RT_STR("elsewhere") : RT_STR("here"));
}

static void finish_held(rt_exchange *x) {
    kit *k = rt_exchange_ctx(x);
    if (rt_exchange_is_late(x)) {
        pthread_mutex_lock(&k->lock);
        k->late_count++;
        pthread_cond_broadcast(&k->changed);
        pthread_mutex_unlock(&k->lock);
    }
    rt_exchange_reply(x, 201, "text/plain", rt_exchange_body(x));
}

static void hold_for(rt_exchange *x, rt_finish_fn *finish) {
    kit *k = rt_exchange_app(x);
    rt_exchange_suspend(x, finish, k);
    pthread_mutex_lock(&k->lock);
    assert_true(k->held_count < KIT_HELD_MAX);
    k->held[k->held_count++] = x;
    pthread_cond_broadcast(&k->changed);
    pthread_mutex_unlock(&k->lock);
}

static void hold(rt_exchange *x) { hold_for(x, finish_held); }
static void reads_after(rt_exchange *x) { hold_for(x, reads); }

static void impatient(rt_exchange *x) {
    if (rt_exchange_is_late(x)) rt_exchange_reply(x, 200, "text/plain", RT_STR("late"));
    else hold_for(x, finish_held);
}

static void fine(rt_exchange *x) { rt_exchange_reply(x, 200, NULL, RT_STR("fine")); }

static void before(rt_exchange *x) {
    rt_str value;
    if (rt_exchange_header(x, "X-Forbidden", &value)) rt_exchange_reply(x, 403, NULL, RT_STR("before"));
}

static void not_found(rt_exchange *x) { rt_exchange_reply(x, 404, "text/plain", RT_STR("not found")); }
static void other_not_found(rt_exchange *x) { rt_exchange_reply(x, 404, "text/plain", RT_STR("other")); }

static void not_allowed(rt_exchange *x, rt_str allow) {
    rt_exchange_set_header(x, "Allow", allow);
    rt_exchange_reply(x, 405, NULL, RT_STR_EMPTY);
}

static void refuse(rt_exchange *x, unsigned status, rt_str why) {
    rt_exchange_reply(x, status, "text/plain", why);
}

static void other_refuse(rt_exchange *x, unsigned status, rt_str why) {
    (void)why;
    rt_exchange_reply(x, status, "text/plain", RT_STR("other refuses"));
}

static const rt_route ROUTES[] = {
    {"GET", "/echo/{a}/{b}", echo, 0},         {"POST", "/echo/{a}/{b}", echo, 0},
    {"GET", "/reader", reader, RT_ON_READER},  {"GET", "/reader/hold", hold, RT_ON_READER},
    {"POST", "/hold", hold, 0},                {"GET", "/hold", hold, 0},
    {"HEAD", "/head", fine, 0},                {"PUT", "/only", fine, 0},
    {"DELETE", "/only", fine, 0},
    {"GET", "/large", large, RT_ON_READER},    {"POST", "/large", large, 0},
    {"GET", "/reads", reads, 0},               {"POST", "/reads", reads, 0},
    {"POST", "/reads/after", reads_after, 0},  {"GET", "/impatient", impatient, RT_IMPATIENT},
};

/* ---- the server ---------------------------------------------------------------------------------------- */

static void on_reply(void *ctx, const rt_exchange *x, unsigned status, uint64_t took_us) {
    (void)x, (void)took_us;
    kit *k = ctx;
    pthread_mutex_lock(&k->lock);
    k->replies++;
    k->last_status = status;
    pthread_mutex_unlock(&k->lock);
}

rt_server_config kit_config(void) {
    return (rt_server_config){.listen_host = "127.0.0.1",
                              .body_bytes_max = 1 << 20,
                              .replies_bytes_max = 256 << 20,
                              .connections_max = 4096,
                              .idle_timeout_s = 60,
                              .request_timeout_s = 30,
                              .deadline_ms = 30000,
                              .suspended_max = 8192,
                              .readers = 2};
}

static void *run(void *arg) {
    kit *k = arg;
    rt_err err;
    k->ended = rt_server_run(k->server, &err);
    return NULL;
}

void kit_start(kit *k, const rt_server_config *cfg) {
    *k = (kit){.running = true};
    (void)signal(SIGPIPE, SIG_IGN);
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->changed, NULL);
    rt_face *faces = calloc(2, sizeof *faces);
    assert_non_null(faces);
    faces[0] = (rt_face){.prefix = "/other", .not_found = other_not_found, .not_allowed = not_allowed,
                         .refuse = other_refuse, .app = k};
    faces[1] = (rt_face){.prefix = "", .routes = ROUTES, .routes_count = sizeof ROUTES / sizeof *ROUTES,
                         .before = before, .not_found = not_found, .not_allowed = not_allowed,
                         .refuse = refuse, .app = k};
    const rt_face *list[] = {&faces[0], &faces[1]};
    rt_server_config full = *cfg;
    full.faces = list;
    full.faces_count = 2;
    full.on_reply = on_reply;
    full.ctx = k;
    rt_err err;
    if (rt_server_open(&full, &k->server, &err) != RT_OK) fail_msg("%s", err.msg);
    k->faces = faces;
    assert_int_equal(pthread_create(&k->thread, NULL, run, k), 0);
}

void kit_stop(kit *k) {
    if (!k->running) return;
    rt_server_stop(k->server);
    pthread_join(k->thread, NULL);
    k->running = false;
    assert_int_equal(k->ended, RT_OK);
}

void kit_release(kit *k) {
    pthread_mutex_lock(&k->lock);
    for (size_t i = 0; i < k->held_count; i++) rt_exchange_resume(k->held[i]);
    k->held_count = 0;
    pthread_mutex_unlock(&k->lock);
}

void kit_close(kit *k) {
    kit_release(k);
    kit_stop(k);
    kit_release(k);
    rt_server_close(k->server);
    free(k->faces);
    pthread_cond_destroy(&k->changed);
    pthread_mutex_destroy(&k->lock);
}

void kit_wait_held(kit *k, size_t count) {
    pthread_mutex_lock(&k->lock);
    while (k->held_count < count) pthread_cond_wait(&k->changed, &k->lock);
    pthread_mutex_unlock(&k->lock);
}

void kit_wait_late(kit *k, size_t count) {
    pthread_mutex_lock(&k->lock);
    while (k->late_count < count) pthread_cond_wait(&k->changed, &k->lock);
    pthread_mutex_unlock(&k->lock);
}

/* ---- the client ---------------------------------------------------------------------------------------- */

int kit_connect(const kit *k) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons(rt_server_port(k->server)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(fd, (const struct sockaddr *)&at, sizeof at) != 0) fail_msg("connect: %s", strerror(errno));
    return fd;
}

void kit_send_bytes(int fd, const char *bytes, size_t len) {
    for (size_t at = 0; at < len;) {
        const ssize_t n = send(fd, bytes + at, len - at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return; // the server closed: the test looks at what it said before
        at += (size_t)n;
    }
}

void kit_send(int fd, const char *bytes) { kit_send_bytes(fd, bytes, strlen(bytes)); }

/* Returns the number of bytes; 0: closed. */
static size_t receive(int fd, char *to, size_t max) {
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    if (poll(&wait, 1, SILENCE_MS_MAX) == 0) fail_msg("no byte came within %d ms", SILENCE_MS_MAX);
    const ssize_t n = recv(fd, to, max, 0);
    return n <= 0 ? 0 : (size_t)n;
}

bool kit_read_head(int fd, kit_reply *out) {
    *out = (kit_reply){.status = 0};
    size_t len = 0;
    // Byte by byte, so that a pipelined next reply stays in the socket.
    while (len < 4 || memcmp(out->head + len - 4, "\r\n\r\n", 4) != 0) {
        assert_true(len + 1 < sizeof out->head);
        if (receive(fd, out->head + len, 1) == 0) return false;
        len++;
    }
    out->head[len] = '\0';
    assert_int_equal(sscanf(out->head, "HTTP/1.1 %u", &out->status), 1);
    return true;
}

bool kit_read(int fd, kit_reply *out) {
    char text[256];
    if (!kit_read_head(fd, out)) return false;
    if (kit_header(out, "Content-Length", text)) assert_int_equal(sscanf(text, "%zu", &out->body_len), 1);
    assert_true(out->body_len <= KIT_BODY_MAX);
    out->body = calloc(1, out->body_len + 1);
    assert_non_null(out->body);
    for (size_t at = 0; at < out->body_len;) {
        const size_t n = receive(fd, out->body + at, out->body_len - at);
        if (n == 0) return false;
        at += n;
    }
    return true;
}

void kit_reply_free(kit_reply *r) {
    free(r->body);
    r->body = NULL;
}

bool kit_header(const kit_reply *r, const char *name, char out[256]) {
    const size_t name_len = strlen(name);
    for (const char *line = strstr(r->head, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, name_len) != 0 || line[name_len] != ':') continue;
        const char *value = line + name_len + 1;
        while (*value == ' ') value++;
        (void)snprintf(out, 256, "%.*s", (int)strcspn(value, "\r"), value);
        return true;
    }
    return false;
}

bool kit_is_closed(int fd, int ms) {
    char byte;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    return poll(&wait, 1, ms) == 1 && recv(fd, &byte, 1, 0) <= 0;
}

unsigned kit_ask(const kit *k, const char *request) {
    const int fd = kit_connect(k);
    kit_send(fd, request);
    kit_reply reply;
    const unsigned status = kit_read(fd, &reply) ? reply.status : 0;
    kit_reply_free(&reply);
    (void)close(fd);
    return status;
}
