/* store_postgres.h: the store for several nodes: one PostgreSQL, or what speaks its protocol and its SQL.
 *
 * Everything is in plain tables, described in wire/schema.c, that an operator can query and back up. A batch
 * reads what it wants, and this node does not remember (node/memory.h), in pipelined round trips, keeps its
 * changes to itself, and writes them in one pipelined transaction of a few array-valued statements, which
 * compare versions and end in COMMIT. A commit does not wait: its end is told by rt_store_poll. Rows that are
 * to be taken are locked from the listing to the commit, so that nodes pass over each other's; the comparison
 * at the commit is the final word.
 *
 * No session state is relied on, so PgBouncer may stand in between. The database's clock is everybody's
 * clock. */
#ifndef RT_STORE_POSTGRES_STORE_POSTGRES_H
#define RT_STORE_POSTGRES_STORE_POSTGRES_H
#include "port/store.h"

enum {
    RT_PG_VIEWS_MAX = 128,          /* most connections for views */
    RT_PG_TROUBLE_BACKOFF_MS = 5000 /* longest pause between two tries to connect, before jitter */
};

typedef struct rt_store_postgres_config {
    const char *url;           /* URL or keywords, as libpq has them: service files, PGPASSFILE, PG* apply */
    const char *listen_url;    /* straight to the server where `url` leads to a pooler; NULL: `url` */
    uint32_t views_max;        /* for views, opened when needed; 1 .. RT_PG_VIEWS_MAX; beyond: waits */
    uint32_t connect_ms;       /* to connect; >= 1000, whole seconds count */
    uint32_t statement_ms;     /* the longest that a statement may take; >= 100 */
    rt_retention retention;
    bool alone;                /* refuse (RT_E_UNAVAILABLE) while others have sessions of this name */
    bool eager;                /* for tests: the batch's view fetches by itself: no RT_E_AGAIN */
} rt_store_postgres_config;

/* Copies what it needs of `cfg`. RT_OK: returns owned *out, closed by rt_store_close. Makes or migrates the
 * tables. RT_E_INVALID: the URL is none, or the tables are of a later version of retryd that this one cannot
 * work beside. RT_E_UNAVAILABLE: no connection; the message never holds a secret. */
RT_MUST_USE rt_code rt_store_postgres_open(const rt_store_postgres_config *cfg, rt_store **out, rt_err *err);

#endif
