#include "http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024, PORT_TEXT_MAX = 8 };

static bool is_all(const char *host) { return host[0] == '\0' || strcmp(host, "*") == 0; }

static int resolve(const char *host, uint16_t port, struct addrinfo **out) {
    char service[PORT_TEXT_MAX];
    (void)snprintf(service, sizeof service, "%u", (unsigned)port);
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    return getaddrinfo(is_all(host) ? NULL : host, service, &hints, out);
}

/* Returns the socket, or -1 and errno. */
static int open_one(const struct addrinfo *a) {
    const int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    if (fd < 0) return -1;
    const int on = 1, off = 0;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->ai_family == AF_INET6) (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) return fd;
    const int why = errno;
    (void)close(fd);
    errno = why;
    return -1;
}

static uint16_t port_of(int fd) {
    struct sockaddr_storage at;
    socklen_t len = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &len) != 0) return 0;
    if (at.ss_family == AF_INET6) return ntohs(((const struct sockaddr_in6 *)&at)->sin6_port);
    return ntohs(((const struct sockaddr_in *)&at)->sin_port);
}

rt_code rt_listen_open(const char *host, uint16_t port, int *fd, uint16_t *bound_port, rt_err *err) {
    struct addrinfo *list = NULL;
    const int bad = resolve(host, port, &list);
    if (bad != 0) return rt_fail(err, RT_E_INVALID, 0, "cannot listen on %s: %s", host, gai_strerror(bad));
    int why = EADDRNOTAVAIL, got = -1;
    // Of all addresses the IPv6 one comes first: it takes IPv4 too.
    const int families[] = {is_all(host) ? AF_INET6 : AF_UNSPEC, AF_UNSPEC};
    for (size_t pass = 0; pass < 2 && got < 0; pass++) {
        for (const struct addrinfo *a = list; a != NULL && got < 0; a = a->ai_next) {
            if (families[pass] != AF_UNSPEC && a->ai_family != families[pass]) continue;
            got = open_one(a);
            if (got < 0) why = errno;
        }
    }
    freeaddrinfo(list);
    if (got < 0) {
        const char *hint = "";
        if (why == EADDRINUSE) hint = "; another program listens there: choose another port (0 takes a free one)";
        if (why == EACCES) hint = "; ports below 1024 want root, or the capability CAP_NET_BIND_SERVICE";
        if (why == EADDRNOTAVAIL) hint = "; this machine has no such address";
        return rt_fail(err, RT_E_IO, why, "cannot listen on %s port %u: %s%s", host, (unsigned)port, strerror(why), hint);
    }
    *fd = got;
    *bound_port = port_of(got);
    return RT_OK;
}

static bool is_loopback(const struct sockaddr *a) {
    if (a->sa_family == AF_INET) {
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    if (a->sa_family != AF_INET6) return false;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == IN_LOOPBACKNET);
}

bool rt_listen_is_loopback(const char *host) {
    struct addrinfo *list = NULL;
    if (is_all(host) || resolve(host, 0, &list) != 0) return false;
    bool all = list != NULL;
    for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) all = all && is_loopback(a->ai_addr);
    freeaddrinfo(list);
    return all;
}
