/* sockets.h: libcurl's wishes about sockets, told to epoll with as few system calls as will do.
 *
 * After each request libcurl says that it is no longer interested in the connection that it keeps, and
 * with the next request that it is again. For sockets that we opened ourselves the registration simply
 * stays: that saves two system calls a request. Should something happen on such a socket meanwhile (its
 * peer closes it), its registration goes then. One thread at a time. */
#ifndef RT_EXECUTOR_WEBHOOK_SOCKETS_H
#define RT_EXECUTOR_WEBHOOK_SOCKETS_H
#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct rt_socket {
    uint8_t wants; /* CURL_POLL_IN | CURL_POLL_OUT: what libcurl waits for */
    uint8_t has;   /* what epoll watches for */
    uint8_t shard; /* whose multi handle serves it */
    bool ours;     /* opened and closed through here, so `has` is never stale */
} rt_socket;

typedef struct rt_sockets {
    int epoll_fd;
    rt_socket *by_fd;
    size_t count;
} rt_sockets;

/* The sockets of one of several multi handles. */
typedef struct rt_socket_group {
    rt_sockets *all;
    uint8_t shard;
} rt_socket_group;

/* For CURLOPT_OPENSOCKETFUNCTION: a non-blocking TCP socket for `address`, or CURL_SOCKET_BAD. */
curl_socket_t rt_sockets_open(rt_sockets *s, const struct curl_sockaddr *address);
/* CURLOPT_CLOSESOCKETFUNCTION; CURLOPT_CLOSESOCKETDATA is the rt_sockets. */
int rt_sockets_on_close(void *ctx, curl_socket_t fd);
/* CURLMOPT_SOCKETFUNCTION; CURLMOPT_SOCKETDATA is an rt_socket_group. */
int rt_sockets_on_wish(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx);
/* What to tell curl_multi_socket_action of which shard about `events` of epoll: CURL_CSELECT_… bits. 0: nobody
 * waits for it. */
int rt_sockets_bits(rt_sockets *s, int fd, uint32_t events, uint8_t *shard);
void rt_sockets_deinit(rt_sockets *s);

#endif
