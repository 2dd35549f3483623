/* sink.c: an endpoint that answers 200 to every POST and counts. `sink [PORT]` prints the port it listens on.
 * GET says {"count", "first_us", "last_us"} of the POSTs since the last GET. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common.h"

enum { IN_MAX = 64 * 1024 };
typedef struct conn {
    int fd;
    size_t in_len;
    char in[IN_MAX];
} conn;
static uint64_t count, first_us, last_us;

static void reply(conn *c) {
    char out[256];
    int len;
    if (c->in[0] == 'G') {
        char body[128];
        int n = snprintf(body, sizeof body, "{\"count\": %lu, \"first_us\": %lu, \"last_us\": %lu}", count,
                         first_us, last_us);
        len = snprintf(out, sizeof out, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", n, body);
        count = 0;
    } else {
        len = snprintf(out, sizeof out, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        last_us = now_us();
        if (count++ == 0) first_us = last_us;
    }
    if (send(c->fd, out, (size_t)len, MSG_NOSIGNAL) != len && errno != EPIPE && errno != ECONNRESET)
        die("send: %s", strerror(errno));
}

/* False: the connection is over. */
static bool receive(conn *c) {
    ssize_t n = recv(c->fd, c->in + c->in_len, IN_MAX - c->in_len, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (n <= 0) return false;
    c->in_len += (size_t)n;
    size_t len, body;
    while ((len = http_message(c->in, c->in_len, &body)) > 0) {
        reply(c);
        c->in_len -= len;
        memmove(c->in, c->in + len, c->in_len);
    }
    return c->in_len < IN_MAX;
}

int main(int argc, char **argv) {
    uint16_t port = argc > 1 ? (uint16_t)number(argv[1], "PORT") : 0;
    int listener = listen_local(&port), epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) die("epoll_create1: %s", strerror(errno));
    watch(epoll_fd, listener, NULL);
    printf("%u\n", port);
    (void)fflush(stdout);
    for (;;) {
        struct epoll_event events[256];
        int n = epoll_wait(epoll_fd, events, 256, -1);
        for (int i = 0; i < n; i++) {
            conn *c = events[i].data.ptr;
            if (c != NULL) {
                if (receive(c)) continue;
                (void)close(c->fd);
                free(c);
                continue;
            }
            int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (fd < 0) continue;
            c = malloc(sizeof *c);
            if (c == NULL) die("out of memory");
            c->fd = fd;
            c->in_len = 0;
            watch(epoll_fd, fd, c);
        }
    }
}
