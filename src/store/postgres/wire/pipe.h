/* pipe.h: one connection and the statements that are on their way over it.
 *
 * A run: rt_pg_send for each statement, rt_pg_end, then rt_pg_step (never waits) or rt_pg_wait until it is
 * done. Statements take effect in order; the first that fails stops those behind it. One thread at a time. */
#ifndef RT_STORE_POSTGRES_WIRE_PIPE_H
#define RT_STORE_POSTGRES_WIRE_PIPE_H
#include "store/postgres/wire/sql.h"

/* The rows of a statement, lent for the call. */
typedef rt_code rt_pg_take(void *ctx, const PGresult *rows);

typedef struct rt_pg_expected {
    rt_pg_take *take; /* NULL: its rows say nothing */
    void *ctx;
    int number, prepares; /* statement; the one that is prepared, or -1 */
} rt_pg_expected;

typedef struct rt_pg_pipe {
    PGconn *conn;             /* owned; NULL: none */
    const char *const *texts; /* RT_SQL_COUNT */
    bool may_prepare;         /* the server's session is ours: no pooler in between */
    uint8_t prepared[RT_SQL_COUNT];
    rt_pg_expected *expected; /* of this run */
    size_t count, cap, at;
    bool answered;            /* the statement at `at` has had a result */
    bool running;             /* rt_pg_end was called, and it is not done */
    /* How the run went. */
    rt_code code;             /* RT_OK, or what stopped it */
    rt_err err;
    bool broken;              /* the connection cannot be used any more */
    int64_t deadline_ms;      /* of the run, monotonic */
} rt_pg_pipe;

/* Takes `conn`, which is connected. False: it cannot be used (and is closed). */
bool rt_pg_pipe_open(rt_pg_pipe *p, PGconn *conn, const char *const *texts, bool may_prepare);
void rt_pg_pipe_close(rt_pg_pipe *p); /* and the connection; waits for nothing; can be opened again */

/* Of errors only the first is kept; all are told by p->code at the end. `args` NULL: none. */
void rt_pg_send(rt_pg_pipe *p, int number, const rt_pg_args *args, rt_pg_take *take, void *ctx);
/* The run is complete, and has `within_ms`. */
void rt_pg_end(rt_pg_pipe *p, int64_t within_ms);
/* True: the run is done. Beyond its time it is done too, and the connection broken. */
bool rt_pg_step(rt_pg_pipe *p);
void rt_pg_wait(rt_pg_pipe *p);
/* Descriptors and directions to wait for: POLLIN, with POLLOUT while there is something to send. */
short rt_pg_wants(rt_pg_pipe *p);

/* What an error means. */
rt_code rt_pg_code_of(const char *sqlstate);
/* The first line of libpq's words. */
rt_code rt_pg_fail(rt_err *err, rt_code code, const char *words);

#endif
