/* txn.h: the transaction of the open batch. It begins with the first statement that the batch sends. */
#ifndef RT_STORE_POSTGRES_TXN_H
#define RT_STORE_POSTGRES_TXN_H
#include "store/postgres/inside.h"

/* Begins it, if there is none, as the first statements of a run. */
void rt_pg_begin(rt_pg *s);
/* Ends the run and waits. Not RT_OK: the batch is broken. */
rt_code rt_pg_finish(rt_pg *s);
void rt_pg_batch_break(rt_pg *s, const rt_err *why); /* it can only fail */
void rt_pg_roll_back(rt_pg *s);                      /* nobody waits for it; the next run does */

#endif
