/* link.h: the engine's connection: made, lost, made again; and how a batch ended whose COMMIT was cut off.
 *
 * A thread makes connections, so that the engine never waits for a server that does not answer. */
#ifndef RT_STORE_POSTGRES_LINK_H
#define RT_STORE_POSTGRES_LINK_H
#include <pthread.h>
#include <stdatomic.h>

#include "store/postgres/wire/connect.h"
#include "store/postgres/wire/pipe.h"

typedef struct rt_pg_link {
    const rt_pg_server *server; /* lent, as is the pipe */
    rt_pg_pipe *pipe;           /* the engine's connection; its thread's */
    int poll_fd;                /* epoll: that connection, and news */
    bool pours;                 /* … also when the rest of a large commit can be sent; the engine's thread's */
    int wake_fd;                /* eventfd: there is news for rt_store_poll */
    pthread_t thread;
    bool started;
    atomic_bool up;
    pthread_mutex_t lock;       /* guards all below */
    pthread_cond_t changed;
    bool stop;
    bool wanted;                /* the engine has none */
    PGconn *fresh;              /* ready for it … */
    bool session;               /* … with a session of its own */
    bool unsure;                /* a batch whose end is to be found out */
    uint64_t unsure_no;
    bool told, durable;         /* … and what it was */
    rt_err why;                 /* what stands in the way */
} rt_pg_link;

/* RT_OK or not: to be closed. */
rt_code rt_pg_link_init(rt_pg_link *l, const rt_pg_server *server, rt_pg_pipe *pipe, rt_err *err);
/* Takes the first connection, also on error; the thread begins. */
rt_code rt_pg_link_start(rt_pg_link *l, PGconn *first, rt_err *err);
void rt_pg_link_stop(rt_pg_link *l); /* the thread is to end; waits for nothing */
void rt_pg_link_close(rt_pg_link *l);

/* The engine's connection is gone. `unsure_no` > 0: with the commit of that batch on its way. */
void rt_pg_link_lost(rt_pg_link *l, uint64_t unsure_no, const rt_err *why);
/* True: the engine has a connection (again). */
bool rt_pg_link_ready(rt_pg_link *l, rt_err *err);
/* After steps of the pipe: there may be more to send than the socket takes at once. */
void rt_pg_link_watch(rt_pg_link *l);
/* True: what became of the unsure batch is known. */
bool rt_pg_link_resolved(rt_pg_link *l, bool *durable);

/* Any thread. */
void rt_pg_link_why(rt_pg_link *l, rt_err *why); /* what stands in the way */
void rt_pg_wake(const rt_pg_link *l);            /* has the engine poll */

#endif
