/* sums.h: how many there are, as the open batch changes it. Taken note of in the records of the sums, where
 * other nodes' part need not be known. False: out of memory. */
#ifndef RT_STORE_POSTGRES_NODE_SUMS_H
#define RT_STORE_POSTGRES_NODE_SUMS_H
#include "store/postgres/node/known.h"

/* A job becomes another; NULL: it was not, or is no more. */
bool rt_pg_count(rt_pg_batch *b, const rt_job *was, const rt_job *now);
bool rt_pg_count_events(rt_pg_batch *b, int64_t more);

#endif
