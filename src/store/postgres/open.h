/* open.h: a store, from an address to having a connection and its threads; and the end of it. */
#ifndef RT_STORE_POSTGRES_OPEN_H
#define RT_STORE_POSTGRES_OPEN_H
#include "store/postgres/inside.h"

/* As rt_store_postgres_open, but for the operations: nobody can use it as a store yet. */
RT_MUST_USE rt_code rt_pg_open(const rt_store_postgres_config *cfg, rt_pg **out, rt_err *err);
void rt_pg_close(rt_pg *s);

#endif
