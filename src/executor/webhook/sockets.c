#include "executor/webhook/sockets.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* NULL: out of memory. */
static rt_socket *socket_of(rt_sockets *s, int fd) {
    const size_t at = (size_t)fd;
    if (at < s->count) return &s->by_fd[at];
    size_t count = s->count == 0 ? 256 : s->count;
    while (count <= at) count *= 2;
    rt_socket *more = realloc(s->by_fd, count * sizeof *more);
    if (more == NULL) return NULL;
    memset(more + s->count, 0, (count - s->count) * sizeof *more);
    s->by_fd = more;
    s->count = count;
    return &more[at];
}

curl_socket_t rt_sockets_open(rt_sockets *s, const struct curl_sockaddr *address) {
    const int type = address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK;
    const int fd = socket(address->family, type, address->protocol);
    if (fd < 0) return CURL_SOCKET_BAD;
    rt_socket *sock = socket_of(s, fd);
    if (sock != NULL) *sock = (rt_socket){.ours = true};
    return fd;
}

int rt_sockets_on_close(void *ctx, curl_socket_t fd) {
    rt_sockets *s = ctx;
    if ((size_t)fd < s->count) s->by_fd[fd] = (rt_socket){0};
    return close(fd);
}

/* Makes epoll watch for `what`. When that fails the transfer notices nothing and ends with its timeout. */
static void watch(const rt_sockets *s, int fd, rt_socket *sock, uint8_t what) {
    if (sock->has == what) return;
    struct epoll_event event = {.data.fd = fd};
    if ((what & CURL_POLL_IN) != 0) event.events |= EPOLLIN;
    if ((what & CURL_POLL_OUT) != 0) event.events |= EPOLLOUT;
    const int op = what == 0 ? EPOLL_CTL_DEL : (sock->has == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD);
    sock->has = epoll_ctl(s->epoll_fd, op, fd, &event) == 0 ? what : 0;
}

int rt_sockets_on_wish(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx) {
    (void)easy;
    (void)socket_ctx;
    const rt_socket_group *group = ctx;
    rt_sockets *s = group->all;
    rt_socket *sock = socket_of(s, fd);
    if (sock == NULL) return 0;
    sock->shard = group->shard;
    sock->wants = what == CURL_POLL_REMOVE ? 0 : (uint8_t)what;
    // A socket that libcurl made itself (its resolver's) may be closed behind our back: no registration
    // outlives its use.
    if (sock->wants != 0 || !sock->ours) watch(s, fd, sock, sock->wants);
    return 0;
}

int rt_sockets_bits(rt_sockets *s, int fd, uint32_t events, uint8_t *shard) {
    if ((size_t)fd >= s->count) return 0;
    rt_socket *sock = &s->by_fd[fd];
    *shard = sock->shard;
    if (sock->wants == 0) {
        if (sock->has != 0) watch(s, fd, sock, 0);
        return 0;
    }
    int bits = 0;
    // An error is learned in full by reading or writing, so it counts as whatever libcurl waits for.
    const bool trouble = (events & (EPOLLERR | EPOLLHUP)) != 0;
    if ((sock->wants & CURL_POLL_IN) != 0 && (trouble || (events & EPOLLIN) != 0)) bits |= CURL_CSELECT_IN;
    if ((sock->wants & CURL_POLL_OUT) != 0 && (trouble || (events & EPOLLOUT) != 0)) bits |= CURL_CSELECT_OUT;
    return bits;
}

void rt_sockets_deinit(rt_sockets *s) {
    free(s->by_fd);
    s->by_fd = NULL;
    s->count = 0;
}
