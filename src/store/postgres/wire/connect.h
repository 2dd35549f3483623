/* connect.h: the server, and connections to it. */
#ifndef RT_STORE_POSTGRES_WIRE_CONNECT_H
#define RT_STORE_POSTGRES_WIRE_CONNECT_H
#include "store/postgres/wire/sql.h"

enum { RT_PG_TEXT_MAX = 1024 /* a URL */ };

/* Where it is, how long it may take, who we are to it. Set while the store opens; then read by all
 * threads. */
typedef struct rt_pg_server {
    char url[RT_PG_TEXT_MAX], listen_url[RT_PG_TEXT_MAX];
    uint32_t connect_ms, statement_ms;
    const char *texts[RT_SQL_COUNT]; /* statements, lent */
    int64_t node;                    /* random, > 0 */
} rt_pg_server;

/* A new connection, blocking, with all that is ours to say about it: the caller's to PQfinish. NULL: *err. */
PGconn *rt_pg_connect(const rt_pg_server *server, const char *url, rt_err *err);
bool rt_pg_has_session(PGconn *conn); /* no pooler in between */
/* Has the server notice within five seconds that this machine is gone, also in the middle of a run, where it
 * waits for the rest with no other bound and keeps what is locked. A server that cannot does without. */
void rt_pg_be_watched(PGconn *conn);

#endif
