/* exchange_parts.h: what an exchange is made of, for the files of src/http alone.
 *
 * Who owns it: the API thread, except while it is OUT or LATE; then whoever was handed it (a reader thread,
 * the engine) owns all of it but `stage`, `connection` and `late`, until it comes back through
 * rt_exchange_resume. */
#ifndef RT_HTTP_EXCHANGE_PARTS_H
#define RT_HTTP_EXCHANGE_PARTS_H
#include <stdatomic.h>

#include "http/exchange.h"
#include "http/router.h"

enum { RT_EXCHANGE_ID_LEN = 40 /* "req-" and a UUID */ };

typedef enum rt_stage {
    RT_STAGE_STARTED,   /* the request line is known */
    RT_STAGE_RECEIVING, /* so are the headers */
    RT_STAGE_OUT,       /* its client waits for somebody to resume it */
    RT_STAGE_LATE,      /* its client was answered by another exchange; it still is to be resumed */
    RT_STAGE_REPLIED    /* the reply is there, sent or not */
} rt_stage;

typedef struct rt_pair {
    rt_str name, value;
} rt_pair;

typedef struct rt_reply_header {
    struct rt_reply_header *next;
    rt_str name, value; /* NUL behind them */
} rt_reply_header;

/* Where exchanges come back to. */
typedef struct rt_returns {
    _Atomic(rt_exchange *) newest;
    int fd; /* an eventfd: readable after the first came back to an empty list */
} rt_returns;

/* What clients have not read yet of large replies, all together. Small ones are bounded by the connections. */
enum { RT_SMALL_REPLY_BYTES = 16 * 1024 };
typedef struct rt_reply_room {
    size_t bytes_max;
    atomic_size_t bytes;
} rt_reply_room;

struct rt_exchange {
    rt_exchange *next; /* in rt_returns or the list of free ones */
    rt_returns *returns;
    rt_reply_room *room;
    struct MHD_Connection *connection; /* NULL: LATE, or not in use */
    rt_stage stage;
    atomic_bool late;
    rt_arena arena;

    rt_str target, path, method;
    rt_match match;
    rt_pair *headers, *args; /* in the arena */
    size_t headers_count, args_count;
    rt_buf body;
    bool has_body;
    uint64_t content_length; /* as announced; UINT64_MAX: chunks */
    uint64_t discarded;      /* bytes of a refused body */
    unsigned refusal;        /* 0, or the status that it will be refused with */
    rt_str refusal_why;
    bool closes; /* its connection ends with the reply */

    bool replied;
    unsigned status;
    rt_str content_type; /* ptr NULL: none. NUL behind it */
    rt_reply_header *reply_headers;
    rt_buf reply;
    bool reply_failed;   /* memory ran out while the reply was built */
    size_t room_bytes;   /* what it takes of the room */
    bool crowded;        /* there was no room for its reply */
    uint64_t started_mono_us;

    rt_finish_fn *finish;
    void *finish_ctx;
    bool may_wait; /* the thread that has it may wait for a round trip */
    bool moves;    /* it is to be called again on one that may */
    bool *left; /* if not NULL, set when it is suspended: the reader may not look at the exchange any more */
    char id[RT_EXCHANGE_ID_LEN + 1];
};

/* All fields as in a fresh one, memory kept. */
void rt_exchange_reset(rt_exchange *x);
void rt_exchange_free(rt_exchange *x); /* NULL is a no-op */
/* Its reply is sent: frees all but the reply itself, which libmicrohttpd still reads. */
void rt_exchange_let_go(rt_exchange *x);
/* Calls `finish`, which replies, suspends once more (then only the API thread may still look at `x`), or moves. */
void rt_exchange_finish(rt_exchange *x);

/* API thread. All that came back, in the order in which they did; linked by `next`. */
rt_exchange *rt_returns_take(rt_returns *r);
bool rt_returns_empty(rt_returns *r);
void rt_returns_wake(rt_returns *r); /* any thread: ends the sleep of the loop */

#endif
