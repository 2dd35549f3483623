/* bare_curl.c: what bounds webhook deliveries: a libcurl multi loop on epoll, nothing durable, nothing per
 * message.
 *
 *   bare_curl PORT CONNECTIONS SECONDS [BYTES [FULL]]
 *
 * FULL 1: each request is set up afresh with the headers, timeouts and callbacks that a real delivery needs.
 */
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common.h"

enum { CONNECTIONS_MAX = 1024 };

static int epoll_fd;
static long timeout_ms = -1;
static char url[64];
static char *body;
static size_t body_bytes;
static bool full;

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *known) {
    (void)easy;
    CURLM *multi = ctx;
    struct epoll_event e = {.events =
                                (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u),
                            .data.fd = fd};
    if (what == CURL_POLL_REMOVE) {
        (void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    if (epoll_ctl(epoll_fd, known != NULL ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &e) != 0 &&
        epoll_ctl(epoll_fd, known != NULL ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &e) != 0)
        die("epoll_ctl: %s", strerror(errno));
    curl_multi_assign(multi, fd, multi);
    return 0;
}

static int on_timer(CURLM *multi, long ms, void *ctx) {
    (void)multi;
    (void)ctx;
    timeout_ms = ms;
    return 0;
}

static size_t on_answer(char *data, size_t size, size_t n, void *ctx) {
    (void)data;
    (void)ctx;
    return size * n;
}

static curl_socket_t on_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *a) {
    (void)ctx;
    (void)purpose;
    return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

static struct curl_slist *headers_of(void) {
    static const char *const lines[] = {"Content-Type: application/json",
                                        "Expect:",
                                        "webhook-id: 000000000000000000000000",
                                        "webhook-timestamp: 1700000000",
                                        "webhook-attempt: 1",
                                        "webhook-signature: v1,0123456789012345678901234567890123456789012="};
    struct curl_slist *list = NULL;
    for (size_t i = 0; i < (full ? sizeof lines / sizeof *lines : 2); i++)
        list = curl_slist_append(list, lines[i]);
    return list;
}

static void set_up(CURL *easy, struct curl_slist *headers) {
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)body_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer);
    if (!full) return;
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 30000L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, 10000L);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "bare");
}

/* Takes what has ended, starts it again. Returns how many ended. */
static uint64_t again(CURLM *multi) {
    uint64_t done = 0;
    int left;
    CURLMsg *m;
    while ((m = curl_multi_info_read(multi, &left)) != NULL) {
        CURL *easy = m->easy_handle;
        if (m->data.result != CURLE_OK) die("curl: %s", curl_easy_strerror(m->data.result));
        done++;
        curl_multi_remove_handle(multi, easy);
        if (full) {
            struct curl_slist **headers;
            curl_easy_getinfo(easy, CURLINFO_PRIVATE, &headers);
            curl_slist_free_all(*headers);
            *headers = headers_of();
            curl_easy_reset(easy);
            curl_easy_setopt(easy, CURLOPT_PRIVATE, headers);
            set_up(easy, *headers);
        }
        curl_multi_add_handle(multi, easy);
    }
    return done;
}

int main(int argc, char **argv) {
    if (argc < 4) die("usage: bare_curl PORT CONNECTIONS SECONDS [BYTES [FULL]]");
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/", (unsigned)number(argv[1], "PORT"));
    const size_t conns = number(argv[2], "CONNECTIONS");
    const uint64_t seconds = number(argv[3], "SECONDS");
    body_bytes = argc > 4 ? number(argv[4], "BYTES") : 1024;
    full = argc > 5 && number(argv[5], "FULL") != 0;
    if (conns > CONNECTIONS_MAX) die("at most %d connections", CONNECTIONS_MAX);
    body = json_of(body_bytes);
    curl_global_init(CURL_GLOBAL_ALL);
    CURLM *multi = curl_multi_init();
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, multi);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)conns);
    static struct curl_slist *headers[CONNECTIONS_MAX];
    for (size_t i = 0; i < conns; i++) {
        CURL *easy = curl_easy_init();
        headers[i] = headers_of();
        curl_easy_setopt(easy, CURLOPT_PRIVATE, &headers[i]);
        set_up(easy, headers[i]);
        curl_multi_add_handle(multi, easy);
    }
    uint64_t done = 0, count_from = now_us() + 500000, until = count_from + seconds * 1000000, now;
    int running;
    while ((now = now_us()) < until) {
        struct epoll_event events[256];
        int n = epoll_wait(epoll_fd, events, 256, timeout_ms < 0 || timeout_ms > 100 ? 100 : (int)timeout_ms);
        if (n == 0) curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
        for (int i = 0; i < n; i++) {
            const uint32_t e = events[i].events;
            const int mask = (e & EPOLLIN ? CURL_CSELECT_IN : 0) | (e & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                             (e & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
            curl_multi_socket_action(multi, events[i].data.fd, mask, &running);
        }
        uint64_t ended = again(multi);
        if (now >= count_from) done += ended;
        // What was added again starts with the timer that curl sets to 0 for it.
        if (timeout_ms == 0) curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    printf("{\"done\": %lu, \"per_second\": %.0f}\n", done, (double)done * 1e6 / (double)(now - count_from));
    return 0;
}
