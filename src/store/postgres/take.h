/* take.h: rows that were read become known to the open batch. */
#ifndef RT_STORE_POSTGRES_TAKE_H
#define RT_STORE_POSTGRES_TAKE_H
#include "store/postgres/inside.h"

/* Fills *out, the record of a row whose columns begin at `first`. Older than what the batch wrote:
 * ignored. */
rt_code rt_pg_take_row(rt_pg *s, rt_pg_part part, const PGresult *rows, int row, int first,
                       rt_pg_record **out);

#endif
