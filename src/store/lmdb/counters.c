#include "store/lmdb/counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Entries before a fold: a reader's work is bounded by them, a fold's cost is spread over them. */
enum { FOLD_AT_MIN = 256, FOLD_AT_MAX = 16384 };

static void add(rt_counts *to, const rt_counts *more) {
    to->ready += more->ready;
    to->scheduled += more->scheduled;
    to->free += more->free;
    to->leased += more->leased;
    to->dead += more->dead;
    to->done += more->done;
    to->bytes += more->bytes;
}

static void add_delta(rt_counts *to, const rt_stored_delta *delta) {
    const rt_counts more = {
        .ready = delta->ready,
        .scheduled = delta->scheduled,
        .free = delta->free,
        .leased = delta->leased,
        .dead = delta->dead,
        .done = delta->done,
        .bytes = delta->bytes,
    };
    add(to, &more);
}

static bool is_zero(const rt_counts *counts) {
    static const rt_counts ZERO;
    return memcmp(counts, &ZERO, sizeof ZERO) == 0;
}

/* ---- in memory ----------------------------------------------------------------------------------------- */

/* rt_map knows no key 0; no queue has the largest number. */
static uint64_t map_key(rt_id queue) { return queue != 0 ? queue : UINT64_MAX; }

static rt_counter *counter_of(rt_counters *c, rt_id queue) {
    rt_counter *counter = rt_map_get(&c->by_queue, map_key(queue));
    if (counter != NULL) return counter;
    counter = rt_arena_alloc(&c->arena, sizeof *counter);
    if (counter == NULL || !rt_map_put(&c->by_queue, map_key(queue), counter)) return NULL;
    counter->queue = queue;
    counter->next = c->all;
    c->all = counter;
    c->all_count++;
    return counter;
}

static void count_job(rt_counts *counts, const rt_job *job, int64_t by) {
    RT_ASSERT(job->state > RT_JOB_NONE);
    RT_ASSERT(job->state < RT_JOB_STATE_COUNT);
    switch ((rt_job_state)job->state) {
    case RT_JOB_READY: counts->ready += by; break;
    case RT_JOB_SCHEDULED: counts->scheduled += by; break;
    case RT_JOB_FREE: counts->free += by; break;
    case RT_JOB_LEASED: counts->leased += by; break;
    case RT_JOB_DEAD: counts->dead += by; break;
    case RT_JOB_DONE: counts->done += by; break;
    case RT_JOB_NONE:
    case RT_JOB_STATE_COUNT: break;
    }
    if (job->state != RT_JOB_DONE) counts->bytes += by * (int64_t)job->body_bytes;
}

static int count(rt_counters *c, rt_id queue, const rt_job *job, int64_t by) {
    rt_counter *counter = counter_of(c, queue);
    if (counter == NULL) return ENOMEM;
    if (!counter->touched) {
        counter->touched = true;
        counter->next_touched = c->touched;
        c->touched = counter;
        c->touched_count++;
    }
    count_job(&counter->batch, job, by);
    return 0;
}

int rt_counters_change(rt_counters *c, const rt_job *was, const rt_job *now) {
    int rc = 0;
    if (was != NULL) rc = count(c, was->queue, was, -1);
    if (was != NULL && rc == 0) rc = count(c, 0, was, -1);
    if (now != NULL && rc == 0) rc = count(c, now->queue, now, 1);
    if (now != NULL && rc == 0) rc = count(c, 0, now, 1);
    return rc;
}

static void forget(rt_counters *c) {
    rt_map_deinit(&c->by_queue);
    c->by_queue = (rt_map){0};
    rt_arena_clear(&c->arena);
    c->all = c->touched = NULL;
    c->all_count = c->touched_count = c->unfolded = 0;
}

void rt_counters_settle(rt_counters *c, bool durable) {
    if (durable && c->folded) {
        forget(c);
    } else {
        if (durable) c->unfolded += c->touched_count;
        for (rt_counter *counter = c->touched; counter != NULL; counter = counter->next_touched) {
            if (durable) add(&counter->since, &counter->batch);
            counter->batch = (rt_counts){0};
            counter->touched = false;
        }
        c->touched = NULL;
        c->touched_count = 0;
    }
    c->folded = false;
}

void rt_counters_deinit(rt_counters *c) {
    forget(c);
    rt_arena_deinit(&c->arena);
    *c = (rt_counters){0};
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static int write_delta(rt_counters *c, const rt_lmdb_env *env, MDB_txn *txn) {
    uint64_t number = c->next_commit++;
    MDB_val key = {.mv_size = sizeof number, .mv_data = &number};
    MDB_val value = {.mv_size = rt_stored_deltas_bytes(c->touched_count)};
    const int rc = mdb_put(txn, env->trees[RT_TREE_DELTAS], &key, &value, MDB_RESERVE | MDB_APPEND);
    if (rc != 0) return rc;
    size_t at = 0;
    for (const rt_counter *counter = c->touched; counter != NULL; counter = counter->next_touched) {
        const rt_counts *b = &counter->batch;
        const rt_stored_delta delta = {
            .queue = counter->queue,
            .ready = (int32_t)b->ready,
            .scheduled = (int32_t)b->scheduled,
            .free = (int32_t)b->free,
            .leased = (int32_t)b->leased,
            .dead = (int32_t)b->dead,
            .done = (int32_t)b->done,
            .bytes = b->bytes,
        };
        rt_stored_write_delta(value.mv_data, at++, &delta);
    }
    RT_ASSERT(at == c->touched_count);
    return 0;
}

static int by_queue(const void *a, const void *b) {
    const rt_id x = (*(rt_counter *const *)a)->queue;
    const rt_id y = (*(rt_counter *const *)b)->queue;
    return (x > y) - (x < y);
}

/* The record of `queue` becomes itself plus `counter`; one that is all zero goes away. */
static int fold_one(MDB_cursor *cursor, const rt_counter *counter) {
    rt_id queue = counter->queue;
    MDB_val key = {.mv_size = sizeof queue, .mv_data = &queue};
    MDB_val value;
    rt_counts counts = {0};
    int rc = mdb_cursor_get(cursor, &key, &value, MDB_SET);
    const bool found = rc == 0;
    if (rc != 0 && rc != MDB_NOTFOUND) return rc;
    if (found && !rt_stored_read_counts(rt_lmdb_str(&value), &counts)) return MDB_CORRUPTED;
    add(&counts, &counter->since);
    add(&counts, &counter->batch);
    if (is_zero(&counts)) return found ? mdb_cursor_del(cursor, 0) : 0;
    unsigned char bytes[RT_STORED_COUNTS_BYTES];
    rt_stored_write_counts(bytes, &counts);
    key = (MDB_val){.mv_size = sizeof queue, .mv_data = &queue};
    value = (MDB_val){.mv_size = sizeof bytes, .mv_data = bytes};
    return mdb_cursor_put(cursor, &key, &value, found ? MDB_CURRENT : 0);
}

static int fold(rt_counters *c, const rt_lmdb_env *env, MDB_txn *txn) {
    rt_counter **sorted = calloc(c->all_count, sizeof *sorted);
    if (sorted == NULL) return ENOMEM;
    size_t n = 0;
    for (rt_counter *counter = c->all; counter != NULL; counter = counter->next) sorted[n++] = counter;
    RT_ASSERT(n == c->all_count);
    qsort(sorted, n, sizeof *sorted, by_queue);
    MDB_cursor *cursor = NULL;
    int rc = mdb_cursor_open(txn, env->trees[RT_TREE_COUNTS], &cursor);
    for (size_t i = 0; i < n && rc == 0; i++) rc = fold_one(cursor, sorted[i]);
    if (cursor != NULL) mdb_cursor_close(cursor);
    free(sorted);
    if (rc == 0) rc = mdb_drop(txn, env->trees[RT_TREE_DELTAS], 0);
    return rc;
}

int rt_counters_write(rt_counters *c, const rt_lmdb_env *env, MDB_txn *txn) {
    if (c->touched_count == 0) return 0;
    MDB_stat stat;
    int rc = mdb_stat(txn, env->trees[RT_TREE_COUNTS], &stat);
    if (rc != 0) return rc;
    // With few queues a fold touches few pages, so it can come often; with many it pays to wait.
    size_t fold_at = stat.ms_entries / 4;
    if (fold_at < FOLD_AT_MIN) fold_at = FOLD_AT_MIN;
    if (fold_at > FOLD_AT_MAX) fold_at = FOLD_AT_MAX;
    if (c->unfolded + c->touched_count < fold_at) return write_delta(c, env, txn);
    rc = fold(c, env, txn);
    if (rc == 0) c->folded = true;
    return rc;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static int read_folded(const rt_lmdb_env *env, MDB_txn *txn, rt_id queue, rt_counts *out) {
    MDB_val key = {.mv_size = sizeof queue, .mv_data = &queue};
    MDB_val value;
    *out = (rt_counts){0};
    const int rc = mdb_get(txn, env->trees[RT_TREE_COUNTS], &key, &value);
    if (rc != 0) return rc == MDB_NOTFOUND ? 0 : rc;
    return rt_stored_read_counts(rt_lmdb_str(&value), out) ? 0 : MDB_CORRUPTED;
}

rt_code rt_counters_read_batch(const rt_counters *c, const rt_lmdb_env *env, MDB_txn *txn, rt_id queue,
                               rt_counts *out) {
    rt_counts counts;
    const int rc = read_folded(env, txn, queue, &counts);
    if (rc != 0) return rt_lmdb_code(rc);
    const rt_counter *counter = rt_map_get(&c->by_queue, map_key(queue));
    if (counter != NULL) {
        add(&counts, &counter->since);
        add(&counts, &counter->batch);
    }
    *out = counts;
    return RT_OK;
}

static int add_deltas(rt_str value, rt_id queue, rt_counts *out) {
    size_t n;
    if (!rt_stored_deltas_count(value, &n)) return MDB_CORRUPTED;
    for (size_t i = 0; i < n; i++) {
        const rt_stored_delta delta = rt_stored_delta_at(value, i);
        if (delta.queue == queue) add_delta(out, &delta);
    }
    return 0;
}

rt_code rt_counters_read(const rt_lmdb_env *env, MDB_txn *txn, rt_id queue, rt_counts *out) {
    rt_counts counts;
    int rc = read_folded(env, txn, queue, &counts);
    MDB_cursor *cursor = NULL;
    if (rc == 0) rc = mdb_cursor_open(txn, env->trees[RT_TREE_DELTAS], &cursor);
    if (rc != 0) return rt_lmdb_code(rc);
    MDB_val key;
    MDB_val value;
    rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    while (rc == 0) {
        rc = add_deltas(rt_lmdb_str(&value), queue, &counts);
        if (rc == 0) rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    mdb_cursor_close(cursor);
    if (rc != MDB_NOTFOUND) return rt_lmdb_code(rc);
    *out = counts;
    return RT_OK;
}

static int load_deltas(rt_counters *c, rt_str value) {
    size_t n;
    if (!rt_stored_deltas_count(value, &n)) return MDB_CORRUPTED;
    for (size_t i = 0; i < n; i++) {
        const rt_stored_delta delta = rt_stored_delta_at(value, i);
        rt_counter *counter = counter_of(c, delta.queue);
        if (counter == NULL) return ENOMEM;
        add_delta(&counter->since, &delta);
    }
    c->unfolded += n;
    return 0;
}

int rt_counters_load(rt_counters *c, const rt_lmdb_env *env, MDB_txn *txn) {
    MDB_cursor *cursor = NULL;
    int rc = mdb_cursor_open(txn, env->trees[RT_TREE_DELTAS], &cursor);
    if (rc != 0) return rc;
    c->next_commit = 1;
    MDB_val key;
    MDB_val value;
    rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    while (rc == 0) {
        uint64_t number = 0;
        if (key.mv_size == sizeof number) memcpy(&number, key.mv_data, sizeof number);
        c->next_commit = number + 1;
        rc = load_deltas(c, rt_lmdb_str(&value));
        if (rc == 0) rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    mdb_cursor_close(cursor);
    return rc == MDB_NOTFOUND ? 0 : rc;
}
