/* server.h: HTTP/1.1 over libmicrohttpd, driven by one epoll loop of ours.
 *
 * Every connection is bounded: header bytes, body bytes (413), time to send a request, time idle, requests
 * under way (503 with Retry-After), connections in all. So are the replies that clients have not read yet, all
 * together: see replies_bytes_max. */
#ifndef RT_HTTP_SERVER_H
#define RT_HTTP_SERVER_H
#include "http/exchange.h"

typedef struct rt_server rt_server;

typedef struct rt_server_config {
    const char *listen_host;      /* a numeric address or a name; "" or "*": all */
    uint16_t listen_port;         /* 0: a free one is picked */
    const rt_face *const *faces; /* the longest prefix that matches answers; the last should have prefix "" */
    size_t faces_count;
    size_t body_bytes_max;        /* 1 MiB */
    /* 256 MiB: of large replies in memory. When they would become more, a GET is answered 503; what was done is
     * told all the same, and whoever has been reading for longest is cut off for it. When three quarters are taken,
     * nobody has longer than 5 s to read. */
    size_t replies_bytes_max;
    uint32_t connections_max;     /* 4096 */
    uint32_t idle_timeout_s;      /* from one reply to the next request line: 60 */
    uint32_t request_timeout_s;  /* to send a request whole, and to read its reply: 30; then it is cut off */
    uint32_t deadline_ms;         /* for suspended exchanges: 30000 */
    uint32_t suspended_max;       /* 8192 */
    uint32_t readers;             /* reader threads: 1 */
    bool reads_wait;              /* all reading is for them: it takes round trips (rt_exchange_moves) */
    /* API thread, for each reply: access log, metrics. May be NULL. */
    void (*on_reply)(void *ctx, const rt_exchange *x, unsigned status, uint64_t took_us);
    void *ctx;
} rt_server_config;

RT_MUST_USE rt_code rt_server_open(const rt_server_config *cfg, rt_server **out, rt_err *err);
uint16_t rt_server_port(const rt_server *s);
/* Serves until rt_server_stop; the calling thread is the API thread. */
rt_code rt_server_run(rt_server *s, rt_err *err);
/* Any thread, also a signal handler: no new connections; what is under way is finished (at most deadline_ms);
 * then rt_server_run returns. */
void rt_server_stop(rt_server *s);
/* After everybody who has a suspended exchange has resumed it (the engine is closed). NULL is a no-op. */
void rt_server_close(rt_server *s);

typedef struct rt_server_stats { uint64_t requests, connections, suspended, refused; } rt_server_stats;
rt_server_stats rt_server_stats_now(const rt_server *s); /* any thread */

#endif
