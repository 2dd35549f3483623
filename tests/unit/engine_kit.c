#include "engine_kit.h"

#include <stdlib.h>

static rt_view *open_view;

/* ---- life -------------------------------------------------------------------------------------------- */

static int setup(void **state, const rt_memory_faults *faults) {
    const rt_store_memory_config config = {.tag = 0x1234, .sole_owner = true};
    kit *k = calloc(1, sizeof *k);
    assert_non_null(k);
    k->disk = rt_memory_disk_new(&config);
    assert_non_null(k->disk);
    assert_int_equal(rt_store_memory_attach(k->disk, 7, &k->store, &k->err), RT_OK);
    rt_store_memory_set_faults(k->store, faults);
    k->settings = (rt_engine_settings){.message_ttl_s = 3600};
    k->rng = rt_rng_seeded(1);
    k->ops = calloc(RT_CHANGE_OPS_MAX, sizeof *k->ops);
    assert_non_null(k->ops);
    k->now_ms = KIT_START_MS;
    rt_schedule_init(&k->schedule, 2, 1);
    *state = k;
    return 0;
}

int kit_setup(void **state) { return setup(state, &(rt_memory_faults){0}); }

int kit_setup_troubled(void **state) {
    return setup(state, &(rt_memory_faults){.again = 300, .conflict = 100});
}

int kit_teardown(void **state) {
    kit *k = *state;
    rt_view_close(open_view);
    open_view = NULL;
    rt_store_close(k->store);
    rt_memory_disk_free(k->disk);
    rt_schedule_deinit(&k->schedule);
    rt_arena_deinit(&k->arena);
    rt_arena_deinit(&k->out);
    free(k->ops);
    free(k);
    return 0;
}

void kit_busy(kit *k, rt_id queue) {
    rt_lane *lane = rt_schedule_lane(&k->schedule, queue);
    assert_non_null(lane);
    lane->backlog = true;
}

/* ---- decisions --------------------------------------------------------------------------------------- */

static rt_code decide_once(kit *k, rt_command *cmd) {
    rt_arena_clear(&k->arena);
    k->err = (rt_err){0};
    rt_tx tx = {
        .view = rt_store_batch(k->store, &k->err),
        .now_ms = k->now_ms,
        .rng = &k->rng,
        .arena = &k->arena,
        .err = &k->err,
        .store = k->store,
        .settings = &k->settings,
        .schedule = &k->schedule,
        .answers = &k->answers,
        .ops = k->ops,
    };
    assert_non_null(tx.view);
    rt_code code = cmd->decide(&tx, cmd);
    if (code != RT_OK) return code;
    if (tx.overflow) return RT_E_TOO_LARGE;
    if (tx.ops_count == 0) return RT_OK;
    const rt_change change = {
        .guards = tx.guards,
        .guards_count = tx.guards_count,
        .ops = tx.ops,
        .ops_count = tx.ops_count,
        .frees = tx.frees,
    };
    code = rt_store_apply(k->store, &change, &k->err);
    // Told apart from a conflict that the decision itself found, which is final.
    return code == RT_E_CONFLICT ? RT_E_AGAIN : code;
}

rt_code kit_run(kit *k, rt_command *cmd) {
    rt_code code = RT_E_AGAIN;
    for (int i = 0; i < 1000 && code == RT_E_AGAIN; i++) {
        code = decide_once(k, cmd);
        if (code == RT_E_AGAIN) assert_int_equal(rt_store_load(k->store, &k->err), RT_OK);
    }
    rt_store_commit(k->store, ++k->batch_no);
    uint64_t no;
    rt_batch_end end;
    assert_true(rt_store_poll(k->store, &no, &end, &k->err));
    assert_int_equal(end, RT_BATCH_DURABLE);
    return code;
}

typedef struct cursors {
    rt_id ids[2048];
    uint32_t count;
} cursors;

static bool add_cursor(void *ctx, const rt_doc *doc) {
    cursors *c = ctx;
    assert_true(c->count < 2048);
    c->ids[c->count++] = rt_get_be64((const unsigned char *)doc->name.ptr);
    return true;
}

uint32_t kit_run_cursors(kit *k) {
    static cursors c;
    uint32_t slices = 0;
    for (bool busy = true; busy;) {
        busy = false;
        c.count = 0;
        rt_view *v = kit_view(k);
        assert_int_equal(rt_view_docs(v, RT_DOC_CURSOR, RT_STR_EMPTY, RT_STR_EMPTY, add_cursor, &c), RT_OK);
        for (uint32_t i = 0; i < c.count; i++) {
            rt_cursor_step step;
            rt_cursor_step_init(&step);
            step.id = c.ids[i];
            assert_int_equal(kit_run(k, &step.cmd), RT_OK);
            if (step.finished || step.next_ms <= k->now_ms) busy = true;
            slices++;
            assert_true(slices < 100000);
        }
    }
    return slices;
}

uint32_t kit_sweep(kit *k) {
    uint32_t ended = 0;
    for (int i = 0; i < 1000; i++) {
        rt_expiry_step step;
        rt_expiry_step_init(&step);
        assert_int_equal(kit_run(k, &step.cmd), RT_OK);
        ended += step.count;
        if (step.next_ms > k->now_ms) return ended;
    }
    fail_msg("the sweep does not end");
    return 0;
}

/* ---- commands ---------------------------------------------------------------------------------------- */

rt_id kit_post(kit *k, const char *queue, const char *body) {
    rt_post_item item = {.body = rt_str_of(body), .delay_s = -1};
    rt_post p;
    rt_post_init(&p);
    p.tenant = RT_STR("p");
    p.queue = rt_str_of(queue);
    p.client_hash = 99;
    p.items = &item;
    p.count = 1;
    assert_int_equal(kit_run(k, &p.cmd), RT_OK);
    return item.id;
}

rt_id kit_subscribe(kit *k, const char *queue, const char *uri) {
    rt_subscription_create c;
    rt_subscription_create_init(&c);
    c.tenant = RT_STR("p");
    c.queue = rt_str_of(queue);
    c.like = (rt_subscription){.uri = rt_str_of(uri), .ttl_s = 3600, .options_json = RT_STR("{}")};
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_false(c.existed);
    return c.id;
}

void kit_create_queue(kit *k, const char *queue, rt_metadata like) {
    rt_queue_create c;
    rt_queue_create_init(&c);
    c.tenant = RT_STR("p");
    c.queue = rt_str_of(queue);
    c.like = like;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_false(c.existed);
}

rt_claim_create kit_claim(kit *k, const char *queue, uint32_t limit) {
    rt_claim_create c;
    rt_claim_create_init(&c);
    c.tenant = RT_STR("p");
    c.queue = rt_str_of(queue);
    c.ttl_s = 60;
    c.grace_s = 60;
    c.limit = limit;
    c.arena = &k->out;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    return c;
}

typedef struct killing {
    rt_command cmd;
    rt_id job;
    rt_reason reason;
} killing;

static rt_code decide_kill(rt_tx *tx, rt_command *cmd) {
    const killing *c = (killing *)cmd;
    rt_job was;
    const rt_code code = rt_view_job(tx->view, c->job, &was);
    if (code != RT_OK) return code;
    rt_job now = was;
    now.state = RT_JOB_DEAD;
    now.reason = (uint8_t)c->reason;
    now.attempt = 22;
    now.interval_ms = 60000;
    now.due_ms = 0;
    rt_tx_event(tx, &now, (rt_event){.type = RT_EVENT_DEAD, .reason = (uint8_t)c->reason, .attempt = 22});
    rt_tx_update_job(tx, &was, &now);
    return RT_OK;
}

void kit_kill(kit *k, rt_id job, rt_reason reason) {
    killing c = {.cmd = {.decide = decide_kill}, .job = job, .reason = reason};
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
}

/* ---- what is stored ---------------------------------------------------------------------------------- */

rt_view *kit_view(kit *k) {
    rt_view_close(open_view);
    open_view = rt_memory_disk_view(k->disk);
    assert_non_null(open_view);
    return open_view;
}

rt_metadata kit_metadata(kit *k, const char *queue) {
    rt_metadata m;
    uint64_t version;
    const rt_str name = rt_str_of(queue);
    assert_int_equal(rt_read_metadata(kit_view(k), &k->out, RT_STR("p"), name, &m, &version), RT_OK);
    return m;
}

rt_job kit_job(kit *k, rt_id id) {
    rt_job job = {.state = RT_JOB_NONE};
    const rt_code code = rt_view_job(kit_view(k), id, &job);
    assert_true(code == RT_OK || code == RT_E_ABSENT);
    return job;
}

rt_counts kit_counts(kit *k, rt_id queue) {
    rt_counts counts;
    assert_int_equal(rt_view_counts(kit_view(k), queue, &counts), RT_OK);
    return counts;
}

static bool count_doc(void *ctx, const rt_doc *doc) {
    (void)doc;
    ++*(uint32_t *)ctx;
    return true;
}

uint32_t kit_docs(kit *k, rt_doc_kind kind) {
    uint32_t count = 0;
    assert_int_equal(rt_view_docs(kit_view(k), kind, RT_STR_EMPTY, RT_STR_EMPTY, count_doc, &count), RT_OK);
    return count;
}

typedef struct finding {
    rt_id message;
    rt_job *out;
    uint32_t count, max;
} finding;

static bool add_delivery(void *ctx, const rt_job *job) {
    finding *f = ctx;
    if (job->body != f->message || (job->flags & RT_JOB_PULL)) return true;
    if (f->count < f->max) f->out[f->count] = *job;
    f->count++;
    return true;
}

static bool add_due_deliveries(void *ctx, const rt_wake *wake) {
    const rt_job_range range = {.index = RT_INDEX_DUE, .queue = wake->queue, .until_ms = INT64_MAX};
    return rt_view_jobs(open_view, &range, add_delivery, ctx) == RT_OK;
}

uint32_t kit_deliveries(kit *k, rt_id message, rt_job *out, uint32_t max) {
    finding f = {.message = message, .out = out, .max = max};
    rt_view *v = kit_view(k);
    const rt_job_range ready = {.index = RT_INDEX_READY};
    const rt_job_range dead = {.index = RT_INDEX_DEAD};
    assert_int_equal(rt_view_jobs(v, &ready, add_delivery, &f), RT_OK);
    assert_int_equal(rt_view_wakes(v, 0, add_due_deliveries, &f), RT_OK);
    assert_int_equal(rt_view_jobs(v, &dead, add_delivery, &f), RT_OK);
    return f.count;
}

rt_event kit_last_event(kit *k, rt_id job) {
    rt_event event = {.type = RT_EVENT_NONE};
    const uint64_t seq = kit_job(k, job).last_event;
    if (seq != 0) assert_int_equal(rt_view_event(kit_view(k), seq, &event), RT_OK);
    return event;
}

bool kit_has_body(kit *k, rt_id id) {
    rt_str body;
    return rt_view_body(kit_view(k), id, &body) == RT_OK;
}
