#include "order_rig.h"

#include "json/run_json.h"

enum { STEPS_MAX = 100000 };

/* ---- life ---------------------------------------------------------------------------------------------- */

static void start_attempt(void *ctx, rt_attempt *attempt) {
    rig *r = ctx;
    assert_true(r->attempts_count < RIG_ATTEMPTS_MAX);
    r->attempts[r->attempts_count++] = attempt;
}

static void open_engine(rig *r) {
    rt_err err = {0};
    const rt_executor executor = {.ctx = r, .start = start_attempt};
    rt_engine_settings settings = rt_engine_settings_default();
    settings.read_run = rt_run_from_text;
    settings.node = "here";
    r->lives++;
    assert_int_equal(rt_store_memory_attach(r->disk, r->lives, &r->store, &err), RT_OK);
    assert_int_equal(rt_engine_open(r->store, &executor, &settings, r->lives, &r->engine, &err), RT_OK);
}

static void close_engine(rig *r) {
    rt_view_close(r->view);
    r->view = NULL;
    rt_engine_close(r->engine);
    rt_store_close(r->store);
    for (uint32_t i = 0; i < r->attempts_count; i++) rt_attempt_free(r->attempts[i]);
    r->attempts_count = 0;
}

static int setup(void **state, bool sole_owner) {
    const rt_store_memory_config config = {.tag = RIG_TAG, .sole_owner = sole_owner, .commit_waits = true};
    rig *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->disk = rt_memory_disk_new(&config);
    assert_non_null(r->disk);
    r->now_ms = RIG_START_MS;
    open_engine(r);
    *state = r;
    return 0;
}

int rig_setup(void **state) { return setup(state, true); }
int rig_setup_shared(void **state) { return setup(state, false); }

int rig_teardown(void **state) {
    rig *r = *state;
    close_engine(r);
    rt_memory_disk_free(r->disk);
    rt_arena_deinit(&r->arena);
    free(r);
    return 0;
}

void rig_restart(rig *r) {
    close_engine(r);
    open_engine(r);
    rig_settle(r);
}

/* ---- time ---------------------------------------------------------------------------------------------- */

void rig_settle(rig *r) {
    int steps = 0;
    while (rt_engine_step(r->engine, r->now_ms) <= r->now_ms) assert_true(++steps < STEPS_MAX);
}

void rig_pass(rig *r, int64_t ms) {
    const int64_t until_ms = r->now_ms + ms;
    int steps = 0;
    for (;;) {
        const int64_t next_ms = rt_engine_step(r->engine, r->now_ms);
        assert_true(++steps < STEPS_MAX);
        if (next_ms > until_ms) break;
        if (next_ms > r->now_ms) r->now_ms = next_ms;
    }
    r->now_ms = until_ms;
    rig_settle(r);
}

/* ---- commands ------------------------------------------------------------------------------------------ */

static void mark(rt_command *cmd) { *(bool *)cmd->ctx = true; }

rt_code rig_run(rig *r, rt_command *cmd) {
    bool done = false;
    cmd->done = mark;
    cmd->ctx = &done;
    rt_engine_submit(r->engine, cmd);
    rig_settle(r);
    assert_true(done);
    return cmd->code;
}

rt_order_type rig_like(const char *target) {
    return (rt_order_type){.target = rt_str_of(target), .run_limit_ms = 30000, .answer_limit_s = 3600};
}

rt_code rig_put_type(rig *r, const char *name, rt_order_type like) {
    rt_order_type_put c;
    rt_order_type_put_init(&c);
    c.tenant = RT_STR("p");
    c.name = rt_str_of(name);
    c.like = like;
    return rig_run(r, &c.cmd);
}

rt_code rig_delete_type(rig *r, const char *name) {
    rt_order_type_delete c;
    rt_order_type_delete_init(&c);
    c.tenant = RT_STR("p");
    c.name = rt_str_of(name);
    return rig_run(r, &c.cmd);
}

rt_id rig_create(rig *r, const char *type) {
    rt_order_create c;
    rt_order_create_init(&c);
    c.tenant = RT_STR("p");
    c.type = rt_str_of(type);
    c.meta = RT_STR("{\"name\": \"n\"}");
    c.creator = RT_STR("me");
    assert_int_equal(rig_run(r, &c.cmd), RT_OK);
    return c.id;
}

rt_code rig_delete(rig *r, rt_id order) {
    rt_order_delete c;
    rt_order_delete_init(&c);
    c.tenant = RT_STR("p");
    c.id = order;
    return rig_run(r, &c.cmd);
}

rt_code rig_wake(rig *r, rt_id order) {
    rt_order_wake c;
    rt_order_wake_init(&c);
    c.tenant = RT_STR("p");
    c.id = order;
    return rig_run(r, &c.cmd);
}

rt_code rig_result(rig *r, rt_id order, uint64_t token, rt_run_answer answer) {
    rt_order_result c;
    rt_order_result_init(&c);
    c.tenant = RT_STR("p");
    c.id = order;
    c.token = token;
    c.answer = answer;
    return rig_run(r, &c.cmd);
}

/* ---- the worker ---------------------------------------------------------------------------------------- */

rt_attempt *rig_attempt(rig *r) {
    assert_true(r->attempts_count > 0);
    rt_attempt *first = r->attempts[0];
    r->attempts_count--;
    memmove(r->attempts, r->attempts + 1, r->attempts_count * sizeof *r->attempts);
    return first;
}

void rig_outcome(rig *r, rt_attempt *a, const rt_outcome *outcome) {
    rt_outcome o = *outcome;
    o.job = a->job;
    o.token = a->token;
    rt_attempt_free(a);
    rt_engine_outcome(r->engine, &o);
    rig_settle(r);
}

void rig_answer(rig *r, rt_attempt *a, uint16_t status, const char *text) {
    const size_t len = strlen(text);
    rt_outcome o = {.reason = RT_REASON_STATUS, .status = status, .took_ms = 5, .retry_after_ms = -1};
    o.text_len = (uint16_t)(len < RT_EVENT_TEXT_MAX ? len : RT_EVENT_TEXT_MAX);
    memcpy(o.text, text, o.text_len);
    o.answer = rt_str_dup(rt_str_of(text));
    o.answer_len = (uint32_t)len;
    assert_non_null(o.answer);
    rig_outcome(r, a, &o);
}

void rig_say(rig *r, const char *answer) { rig_answer(r, rig_attempt(r), 200, answer); }

/* ---- what is stored ------------------------------------------------------------------------------------ */

static rt_view *look(rig *r) {
    rt_view_close(r->view);
    r->view = rt_memory_disk_view(r->disk);
    assert_non_null(r->view);
    return r->view;
}

rt_order rig_order(rig *r, rt_id id) {
    rt_order o;
    assert_int_equal(rt_read_order(look(r), &r->arena, RT_STR("p"), id, &o), RT_OK);
    return o;
}

bool rig_has_order(rig *r, rt_id id) {
    rt_order o;
    const rt_code code = rt_read_order(look(r), &r->arena, RT_STR("p"), id, &o);
    assert_true(code == RT_OK || code == RT_E_ABSENT);
    return code == RT_OK;
}

rt_job rig_job(rig *r, rt_id id) {
    rt_job job = {.state = RT_JOB_NONE};
    const rt_code code = rt_view_job(look(r), id, &job);
    assert_true(code == RT_OK || code == RT_E_ABSENT);
    return job;
}

rt_job rig_task(rig *r, rt_id order) {
    const rt_order o = rig_order(r, order);
    rt_job job = {.state = RT_JOB_NONE};
    const rt_code code = rt_read_order_task(look(r), &o, &job);
    assert_int_equal(code, o.status == RT_ORDER_PENDING ? RT_OK : RT_E_ABSENT);
    return job;
}

rt_event rig_last_event(rig *r, rt_id job) {
    rt_event event;
    const uint64_t seq = rig_job(r, job).last_event;
    assert_int_equal(rt_view_event(look(r), seq, &event), RT_OK);
    return event;
}

rt_counts rig_counts(rig *r) {
    rt_counts counts;
    assert_int_equal(rt_read_totals(look(r), &counts), RT_OK);
    return counts;
}

static bool count_doc(void *ctx, const rt_doc *doc) {
    (void)doc;
    ++*(uint32_t *)ctx;
    return true;
}

uint32_t rig_docs(rig *r, rt_doc_kind kind) {
    uint32_t count = 0;
    assert_int_equal(rt_view_docs(look(r), kind, RT_STR_EMPTY, RT_STR_EMPTY, count_doc, &count), RT_OK);
    return count;
}

uint64_t rig_metric(rig *r, rt_order_count what) {
    return atomic_load(&rt_engine_metrics(r->engine)->orders.counts[what]);
}
