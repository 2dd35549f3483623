/* row.h: places in the order of a listing, and what stands there. Pure. */
#ifndef RT_STORE_POSTGRES_NODE_ROW_H
#define RT_STORE_POSTGRES_NODE_ROW_H
#include "store/postgres/node/known.h"

typedef struct rt_pg_row {
    uint64_t a, b, c;
    rt_str name;
    rt_pg_record *record; /* NULL: expiry, whose record may be unknown */
} rt_pg_row;

rt_pg_row rt_pg_row_of_job(const rt_job_range *range, rt_pg_record *r);
rt_pg_row rt_pg_row_of_doc(rt_pg_record *r);
rt_pg_row rt_pg_row_of_expiry(const rt_expiry *e);
rt_expiry rt_pg_row_expiry(const rt_pg_row *row);
int rt_pg_row_cmp(const rt_pg_row *x, const rt_pg_row *y); /* < 0, 0, > 0 */
/* The job is in what is listed. */
bool rt_pg_row_is_in(const rt_job *job, const rt_job_range *range);

#endif
