/* flush.h: what the batch has noted, as array-valued statements: one for all records of a kind, in key
 * order. */
#ifndef RT_STORE_POSTGRES_FLUSH_H
#define RT_STORE_POSTGRES_FLUSH_H
#include "store/postgres/inside.h"

/* Adds all that is not yet sent to the run. */
rt_code rt_pg_flush(rt_pg *s, rt_err *err);
void rt_pg_flushed(rt_pg *s); /* … and that went well, in the middle of a batch */

#endif
