/* memory.h: what this node has claimed or started, as it wrote it last. Whoever holds a job comes back to the
 * same node to end it, more often than not: the job, its lease and how many use its body need not be read
 * again.
 *
 * It is no more than a guess, for others write too. What a batch recalls is compared at its commit, written
 * or only read, and leaves the memory when it is recalled: a batch that ends in conflict reads everything
 * when it is decided again. */
#ifndef RT_STORE_POSTGRES_NODE_MEMORY_H
#define RT_STORE_POSTGRES_NODE_MEMORY_H
#include "store/postgres/node/known.h"

typedef struct rt_pg_generation {
    rt_map jobs, leases;
    rt_arena arena;
    size_t count;
} rt_pg_generation;

/* All zero is empty and ready. */
typedef struct rt_pg_memory {
    rt_pg_generation younger, older;
} rt_pg_memory;

/* Of the batch, which is about to be forgotten and may yet fail … */
void rt_pg_remember(rt_pg_memory *m, const rt_pg_batch *b);
void rt_pg_forget_all(rt_pg_memory *m); /* … it did */
/* Fills a record that the batch does not know. False: it cannot. */
bool rt_pg_recall(rt_pg_memory *m, rt_pg_batch *b, rt_pg_record *r);
void rt_pg_memory_deinit(rt_pg_memory *m);

#endif
