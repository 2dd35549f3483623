/* list.h: listings of the open batch, as the database has them: fetched a page at a time, and kept. */
#ifndef RT_STORE_POSTGRES_LIST_H
#define RT_STORE_POSTGRES_LIST_H
#include "store/postgres/inside.h"
#include "store/postgres/node/row.h"

typedef enum rt_pg_list_kind { RT_PG_LIST_JOBS, RT_PG_LIST_DOCS, RT_PG_LIST_EXPIRIES } rt_pg_list_kind;

/* A listing as far as it was fetched. */
typedef struct rt_pg_list {
    struct rt_pg_list *next;
    rt_pg_list_kind kind;
    rt_job_range range;
    rt_doc_kind doc_kind;
    rt_str prefix, after;
    int64_t until_ms;
    rt_pg_row *rows;
    size_t count, cap;
    rt_pg_row last;    /* where the next page begins; valid once something was fetched */
    uint32_t limit;    /* of the next page */
    uint32_t asked;    /* rows, by those who want it in this load, together */
    rt_id front;       /* its first page began behind this; 0: at the start */
    bool looked_behind; /* from the start, where the front had too few */
    bool fetched, complete, wanted;
    rt_pg *store;
} rt_pg_list;

/* Finds the one of the batch, or makes it. Borrows `like`, of which what says what is listed is set. NULL:
 * out of memory. */
rt_pg_list *rt_pg_list_know(rt_pg *s, const rt_pg_list *like);
void rt_pg_list_send(rt_pg *s, rt_pg_list *list); /* adds its next page to the run */

#endif
