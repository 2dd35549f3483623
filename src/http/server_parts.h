/* server_parts.h: what a server is made of, for the files of src/http alone. All of it belongs to the API
 * thread, except `stop`, `returns` and the counters. */
#ifndef RT_HTTP_SERVER_PARTS_H
#define RT_HTTP_SERVER_PARTS_H
#include <microhttpd.h>

#include "base/rng.h"
#include "http/deadline.h"
#include "http/exchange_parts.h"
#include "http/reader.h"
#include "http/server.h"

/* One connection. It waits in one of the server's lists of deadlines. */
typedef struct rt_peer {
    rt_deadline wait; /* first member: a deadline that is over names its peer */
    struct MHD_Connection *connection;
    int fd;
    rt_exchange *x; /* its request under way, or NULL */
} rt_peer;

struct rt_server {
    rt_server_config cfg;
    uint16_t port;
    int listen_fd; /* -1: MHD has it, or it is closed */
    int daemon_fd;
    struct MHD_Daemon *daemon;
    rt_router *router;
    rt_readers *readers;
    rt_returns returns;
    rt_reply_room room;
    rt_rng rng;
    int64_t now_mono_ms; /* read once a turn of the loop */
    rt_deadlines idle, receiving, out, impatient, sending;
    rt_exchange *spare; /* linked by `next` */
    size_t spare_count;
    size_t open_count;  /* connections */
    bool has_room_again; /* a connection ended while there were as many as there may be */
    size_t active;      /* exchanges whose client waits for them */
    size_t out_count;   /* exchanges that somebody is still to resume */
    size_t body_bytes;  /* of request bodies in memory */
    atomic_bool stop;
    bool draining;
    atomic_uint_fast64_t requests, connections, suspended, refused;
};

/* ---- under_way.c --------------------------------------------------------------------------------------- */
/* NULL: out of memory. */
rt_exchange *rt_server_take_exchange(rt_server *s, struct MHD_Connection *connection);
void rt_server_recycle(rt_server *s, rt_exchange *x);
/* Has the face of `x` say why the server itself does not take the request; 503 gets a Retry-After. */
void rt_server_refuse(rt_server *s, rt_exchange *x, unsigned status, rt_str why);
/* `x` is OUT: its client waits from now on, for as long as its route says. */
void rt_server_await(rt_server *s, rt_peer *peer, const rt_exchange *x);
/* Hands `x`, which is OUT, to a reader. No reader has room: it is refused and resumed. */
void rt_server_hand(rt_server *s, rt_exchange *x);
/* All that was resumed. */
void rt_server_take_all_back(rt_server *s);
/* Those that are OUT, whatever time they had left. */
void rt_server_answer_all(rt_server *s);

/* Answers late whom nobody has answered in time, and cuts off who has been too slow. */
void rt_server_enforce_deadlines(rt_server *s);
int64_t rt_server_next_deadline_ms(const rt_server *s); /* INT64_MAX: none */
/* Replies that could not be refused take more than there is: whoever has been reading for longest is cut off. */
void rt_server_make_room(rt_server *s);
/* Requests that are not whole and whose client has gone. */
void rt_server_cut_off_gone(rt_server *s);

/* ---- intake.c ------------------------------------------------------------------------------------------ */
/* What libmicrohttpd calls; `cls` is the rt_server, a request's context its rt_peer. */
void *rt_intake_target(void *cls, const char *target, struct MHD_Connection *connection);
enum MHD_Result rt_intake_access(void *cls, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *data_bytes, void **context);
size_t rt_intake_unescape(void *cls, struct MHD_Connection *connection, char *s);
void rt_intake_completed(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode how);
void rt_intake_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what);

#endif
