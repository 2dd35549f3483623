#include "store/kit.h"

#include <poll.h>
#include <string.h>
#include <stdlib.h>

enum { END_WAIT_MS = 10000 };

static void need(rt_code code, const rt_err *err, const char *what) {
    if (code != RT_OK) fail_msg("%s: %s (%s)", what, rt_code_name(code), err->msg);
}

int kit_setup(void **state) {
    kit *k = calloc(1, sizeof *k);
    if (k == NULL) return -1;
    k->factory = *state;
    const rt_retention everything = {.age_ms = INT64_MAX, .events = UINT64_MAX};
    if (k->factory->create(k->factory->ctx, everything, &k->store, &k->err) != RT_OK) {
        print_error("create: %s\n", k->err.msg);
        free(k);
        return -1;
    }
    *state = k;
    return 0;
}

int kit_teardown(void **state) {
    kit *k = *state;
    k->factory->destroy(k->factory->ctx, k->store);
    free(k);
    return 0;
}

void kit_recreate(kit *k, rt_retention retention) {
    k->factory->destroy(k->factory->ctx, k->store);
    k->store = NULL;
    need(k->factory->create(k->factory->ctx, retention, &k->store, &k->err), &k->err, "create");
}

void kit_reopen(kit *k) { need(k->factory->reopen(k->factory->ctx, &k->store, &k->err), &k->err, "reopen"); }

void kit_crash(kit *k) {
    if (k->factory->crash == NULL) kit_reopen(k);
    else need(k->factory->crash(k->factory->ctx, &k->store, &k->err), &k->err, "crash");
}

/* ---- changes ------------------------------------------------------------------------------------------- */

static rt_code try_change(kit *k, const rt_guard *guard, const rt_op *ops, size_t ops_count) {
    const rt_change change = {
        .guards = guard, .guards_count = guard != NULL, .ops = ops, .ops_count = (uint32_t)ops_count};
    if (rt_store_batch(k->store, &k->err) == NULL) return RT_E_UNAVAILABLE;
    return rt_store_apply(k->store, &change, &k->err);
}

rt_code kit_try(kit *k, const rt_op *ops, size_t ops_count) { return try_change(k, NULL, ops, ops_count); }

rt_code kit_try_guarded(kit *k, rt_guard guard, const rt_op *ops, size_t ops_count) {
    return try_change(k, &guard, ops, ops_count);
}

void kit_apply(kit *k, const rt_op *ops, size_t ops_count) { need(kit_try(k, ops, ops_count), &k->err, "apply"); }

rt_batch_end kit_end(kit *k) {
    rt_store_commit(k->store, ++k->batch_no);
    uint64_t no = 0;
    rt_batch_end end = RT_BATCH_FAILED;
    while (!rt_store_poll(k->store, &no, &end, &k->err)) {
        if (k->store->fd < 0) fail_msg("the commit waited, yet the batch has no end");
        struct pollfd ready = {.fd = k->store->fd, .events = POLLIN};
        if (poll(&ready, 1, END_WAIT_MS) <= 0) fail_msg("the batch did not end in %d ms", END_WAIT_MS);
    }
    assert_int_equal(no, k->batch_no);
    return end;
}

void kit_commit(kit *k) {
    if (kit_end(k) != RT_BATCH_DURABLE) fail_msg("the batch failed: %s", k->err.msg);
}

/* ---- records ------------------------------------------------------------------------------------------- */

rt_job kit_job(kit *k, rt_id queue, rt_job_state state, uint8_t flags) {
    return (rt_job){
        .id = rt_store_new_id(k->store),
        .queue = queue,
        .version = 1,
        .placed_ms = 1000,
        .due_ms = 2000,
        .last_event = state == RT_JOB_DONE ? rt_store_new_seq(k->store) : 0,
        .state = (uint8_t)state,
        .flags = flags,
    };
}

rt_job kit_insert(kit *k, rt_id queue, rt_job_state state, uint8_t flags) {
    const rt_job job = kit_job(k, queue, state, flags);
    kit_apply(k, OPS(OP_JOB(NULL, &job)));
    return job;
}

rt_job kit_after(rt_job job) {
    job.version++;
    return job;
}

void kit_replace(kit *k, rt_job *job, rt_job now) {
    kit_apply(k, OPS(OP_JOB(job, &now)));
    *job = now;
}

void kit_delete(kit *k, const rt_job *job) { kit_apply(k, OPS(OP_JOB(job, NULL))); }

rt_doc kit_doc(rt_doc_kind kind, rt_str name, rt_str value) {
    return (rt_doc){.kind = kind, .name = name, .version = 1, .value = value};
}

rt_event kit_event(kit *k, const rt_job *job, int64_t at_ms) {
    return (rt_event){
        .seq = rt_store_new_seq(k->store),
        .prev = job->last_event,
        .job = job->id,
        .queue = job->queue,
        .at_ms = at_ms,
        .type = RT_EVENT_ATTEMPT,
        .text = RT_STR_EMPTY,
    };
}

/* ---- reading ------------------------------------------------------------------------------------------- */

rt_view *kit_batch(kit *k) {
    rt_view *v = rt_store_batch(k->store, &k->err);
    if (v == NULL) fail_msg("batch: %s", k->err.msg);
    return v;
}

rt_view *kit_view(kit *k) {
    rt_view *v = NULL;
    need(rt_store_view(k->store, &v, &k->err), &k->err, "view");
    return v;
}

static bool keep_id(kit_ids *out, rt_id id) {
    assert_true(out->count < KIT_IDS_MAX);
    out->ids[out->count++] = id;
    return out->count != out->stop_at;
}

static bool keep_job(void *ctx, const rt_job *job) { return keep_id(ctx, job->id); }

void kit_list(rt_view *v, rt_job_range range, kit_ids *out) {
    out->count = 0;
    assert_int_equal(rt_view_jobs(v, &range, keep_job, out), RT_OK);
}

bool kit_is_in(rt_view *v, rt_job_range range, rt_id id) {
    kit_ids list = {0};
    kit_list(v, range, &list);
    for (size_t i = 0; i < list.count; i++) {
        if (list.ids[i] == id) return true;
    }
    return false;
}

void kit_assert_list(rt_view *v, rt_job_range range, const rt_id *want, size_t want_count) {
    kit_ids list = {0};
    kit_list(v, range, &list);
    assert_int_equal(list.count, want_count);
    for (size_t i = 0; i < want_count; i++) assert_int_equal(list.ids[i], want[i]);
}

rt_counts kit_counts(rt_view *v, rt_id queue) {
    rt_counts counts;
    assert_int_equal(rt_view_counts(v, queue, &counts), RT_OK);
    return counts;
}

void kit_assert_job(rt_view *v, const rt_job *want) {
    rt_job got;
    assert_int_equal(rt_view_job(v, want->id, &got), RT_OK);
    assert_memory_equal(&got, want, sizeof got);
}

void kit_assert_no_job(rt_view *v, rt_id id) {
    rt_job got;
    assert_int_equal(rt_view_job(v, id, &got), RT_E_ABSENT);
}

void kit_assert_str(rt_str got, rt_str want) {
    assert_int_equal(got.len, want.len);
    if (want.len > 0) assert_memory_equal(got.ptr, want.ptr, want.len);
}

void kit_assert_body(rt_view *v, rt_id id, rt_str want) {
    rt_str got;
    assert_int_equal(rt_view_body(v, id, &got), RT_OK);
    kit_assert_str(got, want);
}

bool kit_has_body(rt_view *v, rt_id id) {
    rt_str got;
    const rt_code code = rt_view_body(v, id, &got);
    assert_true(code == RT_OK || code == RT_E_ABSENT);
    return code == RT_OK;
}

typedef struct expiry_walk {
    kit_ids *out;
    int64_t last_ms;
} expiry_walk;

static bool keep_expiry(void *ctx, const rt_expiry *expiry) {
    expiry_walk *walk = ctx;
    assert_true(expiry->at_ms >= walk->last_ms);
    walk->last_ms = expiry->at_ms;
    if (expiry->kind != RT_EXPIRY_DOC) return keep_id(walk->out, expiry->id);
    assert_true(expiry->doc_name.len > 0);
    return keep_id(walk->out, (unsigned char)expiry->doc_name.ptr[0]);
}

void kit_expiries(rt_view *v, int64_t until_ms, kit_ids *out) {
    expiry_walk walk = {.out = out};
    out->count = 0;
    assert_int_equal(rt_view_expiries(v, until_ms, keep_expiry, &walk), RT_OK);
    assert_true(walk.last_ms <= until_ms);
}
