#include "store/postgres_nodes.h"

#include <poll.h>
#include <stdlib.h>

#include "os/clock.h"

void nodes_need(rt_code code, const rt_err *err) {
    if (code != RT_OK) fail_msg("%s: %s", rt_code_name(code), err->msg);
}

int nodes_open(void **state) {
    nodes *n = calloc(1, sizeof *n);
    if (n == NULL) return -1;
    postgres_empty();
    rt_store_postgres_config config = postgres_config();
    config.eager = false;
    config.statement_ms = 3000;
    for (int i = 0; i < NODES; i++) {
        if (rt_store_postgres_open(&config, &n->store[i], &n->err) == RT_OK) continue;
        print_error("%s\n", n->err.msg);
        return -1;
    }
    *state = n;
    return 0;
}

int nodes_close(void **state) {
    nodes *n = *state;
    for (int i = 0; i < NODES; i++) rt_store_close(n->store[i]);
    free(n);
    return 0;
}

rt_view *nodes_batch(nodes *n, int node) {
    rt_view *v = rt_store_batch(n->store[node], &n->err);
    if (v == NULL) fail_msg("%s", n->err.msg);
    return v;
}

rt_code nodes_apply(nodes *n, int node, const rt_guard *guard, const rt_op *ops, size_t count) {
    (void)nodes_batch(n, node);
    const rt_change change = {
        .guards = guard, .guards_count = guard != NULL, .ops = ops, .ops_count = (uint32_t)count};
    return rt_store_apply(n->store[node], &change, &n->err);
}

void nodes_must_apply(nodes *n, int node, const rt_op *ops, size_t count) {
    nodes_need(nodes_apply(n, node, NULL, ops, count), &n->err);
}

void nodes_send(nodes *n, int node) { rt_store_commit(n->store[node], ++n->batch_no[node]); }

void nodes_must_wait(nodes *n, int node, int64_t ms) {
    const int64_t end_ms = rt_mono_ms() + ms;
    uint64_t no;
    rt_batch_end end;
    for (int64_t left; (left = end_ms - rt_mono_ms()) > 0;) {
        struct pollfd fd = {.fd = n->store[node]->fd, .events = POLLIN};
        (void)poll(&fd, 1, (int)left);
        assert_false(rt_store_poll(n->store[node], &no, &end, &n->err));
    }
}

rt_batch_end nodes_await(nodes *n, int node) {
    uint64_t no = 0;
    rt_batch_end end = RT_BATCH_FAILED;
    while (!rt_store_poll(n->store[node], &no, &end, &n->err)) {
        struct pollfd fd = {.fd = n->store[node]->fd, .events = POLLIN};
        if (poll(&fd, 1, 20000) <= 0) fail_msg("the batch does not end");
    }
    assert_int_equal(no, n->batch_no[node]);
    return end;
}

rt_batch_end nodes_commit(nodes *n, int node) {
    nodes_send(n, node);
    return nodes_await(n, node);
}

void nodes_must_commit(nodes *n, int node) {
    if (nodes_commit(n, node) != RT_BATCH_DURABLE) fail_msg("%s", n->err.msg);
}

rt_job nodes_new_job(nodes *n, int node, rt_job_state state, uint8_t flags) {
    return (rt_job){.id = rt_store_new_id(n->store[node]),
                    .queue = Q,
                    .version = 1,
                    .placed_ms = 1000,
                    .due_ms = 2000,
                    .state = (uint8_t)state,
                    .flags = flags};
}

rt_job nodes_insert(nodes *n, int node, rt_job_state state, uint8_t flags) {
    const rt_job job = nodes_new_job(n, node, state, flags);
    nodes_must_apply(n, node, OPS(OP_JOB(NULL, &job)));
    return job;
}

/* Asks until it is there. */
rt_code nodes_read_job(nodes *n, int node, rt_id id, rt_job *out) {
    rt_code code = rt_view_job(nodes_batch(n, node), id, out);
    if (code != RT_E_AGAIN) return code;
    nodes_need(rt_store_load(n->store[node], &n->err), &n->err);
    return rt_view_job(nodes_batch(n, node), id, out);
}

bool nodes_keep_id(void *ctx, const rt_job *job) {
    kit_ids *out = ctx;
    out->ids[out->count] = job->id;
    return ++out->count != out->stop_at;
}

void nodes_list(nodes *n, int node, rt_job_range range, kit_ids *out) {
    rt_code code = RT_E_AGAIN;
    for (int round = 0; code == RT_E_AGAIN && round < 10; round++) {
        out->count = 0;
        code = rt_view_jobs(nodes_batch(n, node), &range, nodes_keep_id, out);
        if (code == RT_E_AGAIN) nodes_need(rt_store_load(n->store[node], &n->err), &n->err);
    }
    assert_int_equal(code, RT_OK);
}

void nodes_update(nodes *n, int node, const rt_job *was, rt_job_state state) {
    rt_job now = *was;
    now.version++;
    now.state = (uint8_t)state;
    nodes_must_apply(n, node, OPS(OP_JOB(was, &now)));
}
