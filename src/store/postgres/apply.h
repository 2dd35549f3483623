/* apply.h: a change is compared with what the batch knows, all of it before the first note of it is taken. */
#ifndef RT_STORE_POSTGRES_APPLY_H
#define RT_STORE_POSTGRES_APPLY_H
#include "store/postgres/inside.h"

/* As rt_store_apply; the batch is open. */
rt_code rt_pg_apply(rt_pg *s, const rt_change *change, rt_err *err);

#endif
