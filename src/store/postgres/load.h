/* load.h: everything that the batch's view did not know, in one round trip. */
#ifndef RT_STORE_POSTGRES_LOAD_H
#define RT_STORE_POSTGRES_LOAD_H
#include "store/postgres/inside.h"

/* As rt_store_load. */
rt_code rt_pg_load(rt_pg *s, rt_err *err);

#endif
