/* fill.c: puts many pending jobs into a store that a retryd has made, through the store's own interface.
 *
 *   fill DIR COUNT
 *
 * Half of them are messages that wait on the first message queue whose name ends in "backlog", half are
 * deliveries that are due tomorrow, spread over all delivery queues. Bodies have 256 bytes; twenty deliveries
 * share one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common.h"
#include "store/lmdb/store_lmdb.h"

enum { QUEUES_MAX = 4096, BODY_BYTES = 256, SHARE = 20, JOBS_PER_CHANGE = 2000, CHANGES_PER_BATCH = 20 };
static const int64_t DAY_MS = 86400000;

typedef struct fill {
    rt_store *store;
    rt_queue deliveries[QUEUES_MAX];
    size_t deliveries_count;
    rt_id backlog;
    int64_t now_ms;
    rt_str body;
    uint64_t made, batches;
    rt_id shared_body;
} fill;

static bool note_queue(void *ctx, const rt_queue *queue) {
    fill *f = ctx;
    static const char wanted[] = "backlog";
    const size_t len = sizeof wanted - 1;
    if (queue->kind == RT_QUEUE_DELIVERY && f->deliveries_count < QUEUES_MAX)
        f->deliveries[f->deliveries_count++] = *queue;
    if (queue->kind == RT_QUEUE_MESSAGES && queue->name.len >= len &&
        memcmp(queue->name.ptr + queue->name.len - len, wanted, len) == 0)
        f->backlog = queue->id;
    return true;
}

static rt_op body_op(fill *f, rt_id id) {
    return (rt_op){.kind = RT_OP_BODY, .body = {.id = id, .bytes = f->body}};
}

static rt_job message(fill *f, rt_id id) {
    return (rt_job){.id = id,
                    .queue = f->backlog,
                    .body = id,
                    .version = 1,
                    .key_hash = 1,
                    .placed_ms = f->now_ms,
                    .expires_ms = f->now_ms + 10 * DAY_MS,
                    .ttl_s = 864000,
                    .body_bytes = BODY_BYTES,
                    .state = RT_JOB_FREE,
                    .flags = RT_JOB_PULL};
}

static rt_job delivery(fill *f, rt_id id) {
    const rt_queue *queue = &f->deliveries[f->made % f->deliveries_count];
    // Over an hour, so that neighbours in the index are not neighbours in time.
    const int64_t spread_ms = (int64_t)(f->made * 2654435761u % 3600000u);
    return (rt_job){.id = id,
                    .queue = queue->id,
                    .owner = queue->owner,
                    .body = f->shared_body,
                    .version = 1,
                    .placed_ms = f->now_ms,
                    .due_ms = f->now_ms + DAY_MS + spread_ms,
                    .attempt = 4,
                    .interval_ms = 5000,
                    .body_bytes = BODY_BYTES,
                    .state = RT_JOB_SCHEDULED};
}

/* One change of up to JOBS_PER_CHANGE jobs. */
static void change(fill *f, uint64_t count) {
    static rt_op ops[RT_CHANGE_OPS_MAX];
    static rt_job jobs[JOBS_PER_CHANGE];
    uint32_t n = 0;
    f->shared_body = 0;
    for (size_t i = 0; i < JOBS_PER_CHANGE && f->made < count; i++, f->made++) {
        const rt_id id = rt_store_new_id(f->store);
        if (f->made % 2 == 0) {
            jobs[i] = message(f, id);
            ops[n++] = body_op(f, id);
        } else {
            if (f->shared_body == 0 || i / 2 % SHARE == 0) {
                f->shared_body = id;
                ops[n++] = body_op(f, id);
            }
            jobs[i] = delivery(f, id);
        }
        ops[n++] = (rt_op){.kind = RT_OP_JOB, .job = {.now = &jobs[i]}};
    }
    rt_err err = {0};
    if (rt_store_apply(f->store, &(rt_change){.ops = ops, .ops_count = n}, &err) != RT_OK)
        die("apply: %s", err.msg);
}

static void batch(fill *f, uint64_t count) {
    rt_err err = {0};
    if (rt_store_batch(f->store, &err) == NULL) die("batch: %s", err.msg);
    for (int i = 0; i < CHANGES_PER_BATCH && f->made < count; i++) change(f, count);
    rt_store_commit(f->store, ++f->batches);
    uint64_t no;
    rt_batch_end end;
    if (!rt_store_poll(f->store, &no, &end, &err) || end != RT_BATCH_DURABLE) die("commit: %s", err.msg);
    // Counters are folded as a running server would.
    if (rt_store_batch(f->store, &err) == NULL) die("batch: %s", err.msg);
    while (rt_store_tidy(f->store, f->now_ms, 4096)) {}
    rt_store_commit(f->store, ++f->batches);
    if (!rt_store_poll(f->store, &no, &end, &err) || end != RT_BATCH_DURABLE) die("commit: %s", err.msg);
}

int main(int argc, char **argv) {
    if (argc != 3) die("usage: fill DIR COUNT");
    static fill f;
    const uint64_t count = number(argv[2], "COUNT");
    const rt_store_lmdb_config cfg = {.dir = argv[1],
                                      .retention = {.age_ms = 7 * DAY_MS, .events = 10000000}};
    rt_err err = {0};
    if (rt_store_lmdb_open(&cfg, &f.store, &err) != RT_OK) die("open: %s", err.msg);
    f.now_ms = (int64_t)time(NULL) * 1000;
    f.body = (rt_str){.ptr = json_of(BODY_BYTES), .len = BODY_BYTES};
    rt_view *view;
    if (rt_store_view(f.store, &view, &err) != RT_OK) die("view: %s", err.msg);
    if (rt_view_queues(view, 0, note_queue, &f) != RT_OK) die("queues cannot be listed");
    rt_view_close(view);
    if (f.backlog == 0 || f.deliveries_count == 0)
        die("there is no message queue 'backlog', or no subscription");
    while (f.made < count) batch(&f, count);
    rt_store_close(f.store);
    char path[4096];
    struct stat data;
    (void)snprintf(path, sizeof path, "%s/data.mdb", argv[1]);
    if (stat(path, &data) != 0) die("no data.mdb in %s", argv[1]);
    printf("{\"jobs\": %lu, \"bytes\": %lu}\n", f.made, (uint64_t)data.st_blocks * 512);
    return 0;
}
