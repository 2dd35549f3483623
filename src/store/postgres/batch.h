/* batch.h: the life of a batch. One connection, one transaction: the next one is opened when the one before
 * has its end.
 *
 * A commit does not wait. If its answer is lost, the link finds out how the batch ended. */
#ifndef RT_STORE_POSTGRES_BATCH_H
#define RT_STORE_POSTGRES_BATCH_H
#include "store/postgres/inside.h"

/* The engine's connection is there, and nothing is on its way over it. */
bool rt_pg_ready(rt_pg *s, rt_err *err);

/* As the port's operations. */
rt_view *rt_pg_batch_open(rt_pg *s, rt_err *err);
void rt_pg_batch_abandon(rt_pg *s);
void rt_pg_batch_commit(rt_pg *s, uint64_t batch_no);
bool rt_pg_batch_poll(rt_pg *s, uint64_t *batch_no, rt_batch_end *end, rt_err *err);

#endif
