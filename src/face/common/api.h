/* api.h: what every face is given, and the glue between an HTTP exchange and an engine command. */
#ifndef RT_FACE_COMMON_API_H
#define RT_FACE_COMMON_API_H
#include <stdatomic.h>

#include "engine/engine.h"
#include "engine/queues/read.h"
#include "http/exchange.h"

/* Who may come in. Tokens: a request carries one in `Authorization: Bearer` or `X-Auth-Token`. Without any token
 * configured everybody may do everything (and the server binds to loopback only). */
typedef struct rt_token {
    rt_str secret;
    rt_str project; /* "*": every project and the operators' pages */
} rt_token;

struct rt_limits; /* face/notifications/limits.h */

typedef struct rt_api {
    rt_engine *engine;                        /* views, tag, metrics: the functions for any thread */
    bool (*submit)(void *ctx, rt_command *cmd, size_t bytes); /* any thread; false: full */
    void *submit_ctx;
    int64_t (*now_ms)(void);                  /* Unix time */
    const rt_token *tokens;
    size_t tokens_count;
    rt_str signing_key;                       /* of pre-signed URLs */
    int64_t deadline_ms;                      /* what a suspended request has; 0: no end */
    const atomic_bool *stopping;              /* no request should wait any longer for something to come; NULL: never */
    bool require_confirmation;                /* notification.require_confirmation */
    const struct rt_limits *limits;           /* the settings of the group transport */
    bool mail_relay;                          /* one is configured */
    rt_str orders_href;                       /* orders.host_href without a slash at the end; empty: not set */
    /* NULL: the URL's host may be a target. Otherwise why not (names the setting). For literal addresses. */
    const char *(*refuse_target)(void *ctx, rt_str host);
    void *refuse_target_ctx;
    rt_code (*trouble)(void *ctx, rt_err *why); /* RT_OK: ready */
    void *trouble_ctx;
    const void *server;                       /* for server metrics: an rt_server, or NULL */
    void (*server_stats)(const void *server, uint64_t out[4]); /* requests, connections, suspended, refused; may be NULL */
    void (*more_metrics)(void *ctx, rt_buf *out); /* of parts that faces do not know; NULL: none */
    void *more_metrics_ctx;
} rt_api;

static inline rt_api *rt_api_of(const rt_exchange *x) { return rt_exchange_app(x); }

/* Whose things a request is about: X-Project-ID, or "default". */
rt_str rt_tenant_of(const rt_exchange *x);

/* Suspends `x`, hands `cmd` (memory of x's arena) to the engine, and calls `finish(x, cmd)` on the API thread when it is
 * done. Ring full: `busy(x)` replies 503 at once. */
typedef void rt_command_done_fn(rt_exchange *x, rt_command *cmd);
typedef void rt_busy_fn(rt_exchange *x);
void rt_api_submit(rt_exchange *x, rt_command *cmd, size_t bytes, rt_command_done_fn *finish, rt_busy_fn *busy);

/* Hands `cmd` to the engine and waits until it is done: for what is done before the first request. Returns its code. */
rt_code rt_api_do(const rt_api *api, rt_command *cmd, size_t bytes, rt_err *err);

/* True: the request's token opens `project` ("*": the operators' pages), or no tokens are configured. */
bool rt_api_allows(const rt_exchange *x, rt_str project);
/* The same with a reason: 0: allowed; 401: no token, or none that is known; 403: a token of another project. */
unsigned rt_api_refusal(const rt_exchange *x, rt_str project);

#endif
