/* view.h: readers' views: a transaction with a snapshot, on a connection of its own. Any thread. */
#ifndef RT_STORE_POSTGRES_VIEW_H
#define RT_STORE_POSTGRES_VIEW_H
#include "store/postgres/link.h"
#include "store/postgres/store_postgres.h"
#include "store/postgres/wire/page.h"

struct rt_pg_views;

typedef struct rt_pg_view {
    rt_view base; /* first */
    struct rt_pg_views *views;
    rt_pg_pipe pipe; /* kept when the view is closed, for the next one */
    rt_pg_reader reader;
    rt_arena arena;
    bool is_open;
} rt_pg_view;

typedef struct rt_pg_views {
    const rt_pg_server *server; /* lent, as is the link */
    rt_pg_link *link;           /* tells whether the server is there */
    uint32_t max;
    pthread_mutex_t lock;       /* guards who has which slot */
    pthread_cond_t closed;
    rt_pg_view slots[RT_PG_VIEWS_MAX];
} rt_pg_views;

/* `max` 1 .. RT_PG_VIEWS_MAX. The server's statement_ms is set. */
rt_code rt_pg_views_init(rt_pg_views *views, uint32_t max, const rt_pg_server *server, rt_pg_link *link,
                         rt_err *err);
void rt_pg_views_deinit(rt_pg_views *views); /* all are closed */

/* As rt_store_view. Waits for a moment where all are open. */
rt_code rt_pg_view_open(rt_pg_views *views, rt_view **out, rt_err *err);

#endif
