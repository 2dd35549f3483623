#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

_Noreturn void die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

uint64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void no_delay(int fd) {
    int one = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)
        die("TCP_NODELAY: %s", strerror(errno));
}

int listen_local(uint16_t *port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int one = 1;
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(*port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof a;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(fd, 4096) != 0 ||
        getsockname(fd, (struct sockaddr *)&a, &len) != 0)
        die("listen: %s", strerror(errno));
    no_delay(fd); // inherited by what it accepts
    *port = ntohs(a.sin_port);
    return fd;
}

int connect_local(uint16_t port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) != 0)
        die("connect to %u: %s", port, strerror(errno));
    no_delay(fd);
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) die("fcntl: %s", strerror(errno));
    return fd;
}

void watch(int epoll_fd, int fd, void *ptr) {
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = ptr};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e) != 0) die("epoll_ctl: %s", strerror(errno));
}

uint64_t number(const char *text, const char *what) {
    char *end;
    errno = 0;
    unsigned long long n = text != NULL ? strtoull(text, &end, 10) : 0;
    if (text == NULL || errno != 0 || end == text || *end != '\0' || *text == '-')
        die("%s: a number is wanted", what);
    return n;
}

char *json_of(size_t bytes) {
    static const char head[] = "{\"data\": \"", tail[] = "\"}";
    if (bytes < 16) die("a body has at least 16 bytes");
    char *text = malloc(bytes + 1);
    if (text == NULL) die("out of memory");
    memset(text, 'x', bytes);
    memcpy(text, head, sizeof head - 1);
    memcpy(text + bytes - (sizeof tail - 1), tail, sizeof tail);
    return text;
}

void spread_add(spread *s, uint64_t us) {
    if (us == 0) us = 1;
    const unsigned power = 63u - (unsigned)__builtin_clzll(us);
    const unsigned sixteenth =
        power >= 4 ? (unsigned)(us >> (power - 4)) & 15u : (unsigned)(us << (4 - power)) & 15u;
    s->buckets[power * 16 + sixteenth]++;
    s->count++;
}

uint64_t spread_at(const spread *s, double share) {
    uint64_t left = (uint64_t)((double)s->count * share);
    for (unsigned i = 0; i < SPREAD_BUCKETS; i++) {
        if (s->buckets[i] > left)
            return (uint64_t)((1.0 + (double)(i % 16) / 16.0) * (double)(1ull << (i / 16)));
        left -= s->buckets[i];
    }
    return 0;
}

size_t http_message(const char *data, size_t len, size_t *body) {
    const char *end = memmem(data, len, "\r\n\r\n", 4);
    if (end == NULL) return 0;
    const size_t head = (size_t)(end - data) + 4;
    size_t content = 0;
    for (const char *line = memchr(data, '\n', head); line != NULL && line + 1 < end;
         line = memchr(line + 1, '\n', head - (size_t)(line + 1 - data)))
        if (strncasecmp(line + 1, "content-length:", 15) == 0) content = strtoul(line + 16, NULL, 10);
    *body = head;
    return head + content <= len ? head + content : 0;
}
