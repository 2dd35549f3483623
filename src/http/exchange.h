/* exchange.h: one HTTP request and its reply, as faces see them.
 *
 * A handler runs on the API thread (or, for routes marked RT_ON_READER, on a reader thread) and either
 * replies or calls rt_exchange_suspend and returns; then somebody calls rt_exchange_resume from any thread,
 * once, and `finish` runs on the API thread and replies, or suspends it once more. One that is not resumed
 * within the server's deadline, which starts anew with each suspension, is answered 503 and lives on,
 * unseen, until it is resumed. Everything that is borrowed from an exchange lives as long as its arena: until
 * after the reply (and after the resume, if it was suspended). */
#ifndef RT_HTTP_EXCHANGE_H
#define RT_HTTP_EXCHANGE_H
#include "base/arena.h"

enum { RT_PATH_PARAMS_MAX = 4, RT_ARGS_MAX = 32, RT_HEADERS_MAX = 64 };

typedef struct rt_exchange rt_exchange;

/* ---- the request --------------------------------------------------------------------------------------- */
rt_str rt_exchange_method(const rt_exchange *x);
rt_str rt_exchange_path(const rt_exchange *x);             /* decoded, without the query */
rt_str rt_exchange_param(const rt_exchange *x, size_t i);  /* i-th {placeholder} of the pattern, decoded */
rt_str rt_exchange_body(const rt_exchange *x);             /* whole; empty if there is none; NUL behind it */
bool rt_exchange_has_body(const rt_exchange *x); /* Content-Length (0 included) or chunks were sent */
/* The first of that name, whatever its case. False: absent; empty ones are present. */
bool rt_exchange_header(const rt_exchange *x, const char *name, rt_str *out);
/* Query parameters in order of appearance, decoded; `value` empty for "?a" and "?a=". False: no i-th one. */
bool rt_exchange_arg_at(const rt_exchange *x, size_t i, rt_str *name, rt_str *value);
bool rt_exchange_arg(const rt_exchange *x, const char *name, rt_str *value); /* the last one of that name */
rt_arena *rt_exchange_arena(rt_exchange *x);
void *rt_exchange_app(const rt_exchange *x);               /* what was given with the routes */
const char *rt_exchange_id(const rt_exchange *x);          /* "req-<uuid>": in every reply and in the log */

/* ---- the reply: exactly one ---------------------------------------------------------------------------- */
/* Before the reply; copied. A second value of one name takes the place of the first. */
void rt_exchange_set_header(rt_exchange *x, const char *name, rt_str value);
/* A large reply to a GET for which there is no room among those that clients are still reading becomes a 503.
 *
 * Replies with a copy of `body`; content_type NULL: none is sent. */
void rt_exchange_reply(rt_exchange *x, unsigned status, const char *content_type, rt_str body);
/* The same without a copy: takes the memory of `body` (an rt_buf), which is empty afterwards. */
void rt_exchange_reply_buf(rt_exchange *x, unsigned status, const char *content_type, rt_buf *body);

typedef void rt_finish_fn(rt_exchange *x);
/* From now on somebody else has it; `finish` builds the reply once it is resumed. */
void rt_exchange_suspend(rt_exchange *x, rt_finish_fn *finish, void *ctx);
void *rt_exchange_ctx(const rt_exchange *x); /* the ctx of rt_exchange_suspend */
void rt_exchange_resume(rt_exchange *x);     /* any thread */
/* True: the deadline passed and the client has its answer: finish need not build one. */
bool rt_exchange_is_late(const rt_exchange *x);
/* To be asked before a handler or `finish` reads what may take a round trip. True: this thread must not wait for one;
 * reply nothing and return, and all of it is called once more, from its beginning, on a reader thread. */
bool rt_exchange_moves(rt_exchange *x);
/* API thread, in `finish`. True: the client has closed its end of the connection. libmicrohttpd does not look while an
 * exchange is suspended. */
bool rt_exchange_is_gone(const rt_exchange *x);

/* ---- routes -------------------------------------------------------------------------------------------- */
typedef void rt_handler_fn(rt_exchange *x);
enum rt_route_flags {
    RT_ON_READER = 1, /* may wait for the disk: listings */
    /* Its client does not wait for longer than RT_IMPATIENT_MS. Then the handler is called a second time, for an
     * exchange that is late from the start and has no parameters, headers, query or body: it replies on the API thread
     * and at once, with what is at hand. */
    RT_IMPATIENT = 2
};
enum { RT_IMPATIENT_MS = 3000 };

typedef struct rt_route {
    const char *method; /* "GET", …; HEAD only if listed; OPTIONS that is not listed answers 200 with Allow */
    const char *pattern;  /* "/v2/queues/{queue}/messages": a placeholder is one whole segment, never empty */
    rt_handler_fn *handler;
    unsigned flags;
} rt_route;

/* All routes of one face. A trailing slash in a request is as if it were not there. */
typedef struct rt_face {
    const char *prefix; /* "/v2": what this table answers for, 404 and 405 included; "" matches all */
    const rt_route *routes;
    size_t routes_count;
    rt_handler_fn *not_found; /* no such path */
    rt_handler_fn *before;    /* the path exists: runs first, on the API thread; may reply. NULL: none */
    void (*not_allowed)(rt_exchange *x, rt_str allow); /* it does for other methods: "GET, PUT, OPTIONS" */
    /* 400, 413, 414, 431 or 503 from the server itself, in the face's shape. May find no parameters, headers
     * or query, and is not preceded by `before`. */
    void (*refuse)(rt_exchange *x, unsigned status, rt_str why);
    void *app;
} rt_face;

#endif
