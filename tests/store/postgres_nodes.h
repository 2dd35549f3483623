/* postgres_nodes.h: two nodes on one empty database, and what tests do with them. */
#ifndef RT_TEST_POSTGRES_NODES_H
#define RT_TEST_POSTGRES_NODES_H
#include "store/kit.h"
#include "store/postgres_database.h"

enum { Q = 7, NODES = 2 };

typedef struct nodes {
    rt_store *store[NODES];
    uint64_t batch_no[NODES];
    rt_err err;
} nodes;

void nodes_need(rt_code code, const rt_err *err);
int nodes_open(void **state);
int nodes_close(void **state);
rt_view *nodes_batch(nodes *n, int node);
rt_code nodes_apply(nodes *n, int node, const rt_guard *guard, const rt_op *ops, size_t count);
void nodes_must_apply(nodes *n, int node, const rt_op *ops, size_t count);
void nodes_send(nodes *n, int node);
void nodes_must_wait(nodes *n, int node, int64_t ms); /* its batch does not end in this time */
rt_batch_end nodes_await(nodes *n, int node);
rt_batch_end nodes_commit(nodes *n, int node);
void nodes_must_commit(nodes *n, int node);
rt_job nodes_new_job(nodes *n, int node, rt_job_state state, uint8_t flags);
rt_job nodes_insert(nodes *n, int node, rt_job_state state, uint8_t flags);
rt_code nodes_read_job(nodes *n, int node, rt_id id, rt_job *out);
bool nodes_keep_id(void *ctx, const rt_job *job); /* ctx: kit_ids */
void nodes_list(nodes *n, int node, rt_job_range range, kit_ids *out);
void nodes_update(nodes *n, int node, const rt_job *was, rt_job_state state);

#endif
