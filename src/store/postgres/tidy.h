/* tidy.h: history is kept within its bounds, oldest first; with the last event of a job that is done goes the
 * job. Several nodes share the work: each passes over what another has locked. */
#ifndef RT_STORE_POSTGRES_TIDY_H
#define RT_STORE_POSTGRES_TIDY_H
#include "store/postgres/inside.h"

/* As rt_store_tidy; the batch is open. */
bool rt_pg_tidy(rt_pg *s, int64_t now_ms, uint32_t ops_max);

#endif
