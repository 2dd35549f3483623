/* Types of orders, listings, and the patrol with its lock. */
#include "order_rig.h"

static const char DONE[] = "{\"action\": \"done\"}";

/* ---- types --------------------------------------------------------------------------------------------- */

static void type__is_stored_whole(void **state) {
    rig *r = *state;
    const rt_order_type like = {
        .target = RT_STR("http://h/x"),
        .headers = RT_STR("A: b\n"),
        .secrets = {RT_STR("s1"), RT_STR("s2")},
        .first_task = RT_STR("issue"),
        .backoff = {.given = true,
                    .descriptor = {.initial_ns = 2000000000, .maximum_ns = 9000000000, .exponent = 1.5},
                    .jitter = RT_JITTER_FULL},
        .max_attempts = 7,
        .run_limit_ms = 1000,
        .answer_limit_s = 60,
        .concurrency = 3,
        .cancel = true,
    };
    assert_int_equal(rig_put_type(r, "t", like), RT_OK);
    rt_order_type t;
    rt_view *v = rt_memory_disk_view(r->disk);
    assert_int_equal(rt_read_order_type(v, &r->arena, RT_STR("p"), RT_STR("t"), &t), RT_OK);
    assert_int_equal(rt_read_order_type(v, &r->arena, RT_STR("p"), RT_STR("u"), &t), RT_E_ABSENT);
    rt_queue queue;
    assert_int_equal(rt_view_queue(v, t.queue, &queue), RT_OK);
    assert_int_equal(queue.kind, RT_QUEUE_ORDERS);
    assert_int_equal(queue.in_flight_max, 3);
    assert_text(queue.name, "p/t");
    rt_view_close(v);
    assert_text(t.target, "http://h/x");
    assert_text(t.headers, "A: b\n");
    assert_text(t.secrets[1], "s2");
    assert_text(t.first_task, "issue");
    assert_true(t.backoff.given);
    assert_true(t.backoff.descriptor.exponent > 1.4 && t.backoff.descriptor.exponent < 1.6);
    assert_int_equal(t.backoff.jitter, RT_JITTER_FULL);
    assert_int_equal(t.max_attempts, 7);
    assert_int_equal(t.run_limit_ms, 1000);
    assert_int_equal(t.answer_limit_s, 60);
    assert_true(t.cancel);
    assert_int_equal(t.changed_ms, RIG_START_MS);
}

static void type__own_backoff_counts(void **state) {
    rig *r = *state;
    rt_order_type like = rig_like("plugin:x");
    like.backoff = (rt_backoff){
        .given = true,
        .descriptor = {.initial_ns = 2000000000, .maximum_ns = UINT64_C(5000000000), .exponent = 2}};
    assert_int_equal(rig_put_type(r, "t", like), RT_OK);
    const rt_id id = rig_create(r, "t");
    static const int64_t SECONDS[] = {2, 4, 5, 5};
    for (size_t i = 0; i < 4; i++) {
        rig_say(r, "{\"action\":\"unavailable\"}");
        assert_int_equal(rig_task(r, id).due_ms, r->now_ms + SECONDS[i] * 1000);
        rig_pass(r, SECONDS[i] * 1000);
    }
    rig_say(r, DONE);
}

static void type__new_target_counts_at_once(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "t", rig_like("plugin:old")), RT_OK);
    (void)rig_create(r, "t");
    rig_say(r, "{\"action\":\"retry\",\"after_ms\":1000}");
    assert_int_equal(rig_put_type(r, "t", rig_like("plugin:new")), RT_OK);
    rig_pass(r, 1000);
    rt_attempt *a = rig_attempt(r);
    assert_text(a->url, "plugin:new");
    rig_answer(r, a, 200, DONE);
}

static void type__is_left_alone_where_only_a_new_one_is_wanted(void **state) {
    rig *r = *state;
    rt_order_type_put c;
    rt_order_type_put_init(&c);
    c.tenant = RT_STR("p");
    c.name = RT_STR("t");
    c.only_new = true;
    c.like = rig_like("plugin:a");
    assert_int_equal(rig_run(r, &c.cmd), RT_OK);
    assert_true(c.created);
    c.like = rig_like("plugin:b");
    assert_int_equal(rig_run(r, &c.cmd), RT_OK);
    assert_false(c.created);
    (void)rig_create(r, "t");
    rt_attempt *a = rig_attempt(r);
    assert_text(a->url, "plugin:a");
    rig_answer(r, a, 200, DONE);
}

static void type__concurrency_bounds_its_runs(void **state) {
    rig *r = *state;
    rt_order_type like = rig_like("plugin:x");
    like.concurrency = 1;
    assert_int_equal(rig_put_type(r, "t", like), RT_OK);
    for (int i = 0; i < 3; i++) (void)rig_create(r, "t");
    for (uint32_t left = 3; left > 0; left--) {
        assert_int_equal(r->attempts_count, 1);
        rig_say(r, DONE);
    }
    assert_int_equal(r->attempts_count, 0);
}

static void type__cannot_go_while_orders_are_pending(void **state) {
    rig *r = *state;
    assert_int_equal(rig_delete_type(r, "t"), RT_E_ABSENT);
    assert_int_equal(rig_put_type(r, "t", rig_like("plugin:x")), RT_OK);
    const rt_id id = rig_create(r, "t");
    assert_int_equal(rig_delete_type(r, "t"), RT_E_FENCED);
    rig_say(r, "{\"action\":\"retry\",\"after_ms\":60000}");
    assert_int_equal(rig_delete_type(r, "t"), RT_E_FENCED);
    rig_pass(r, 60000);
    rig_say(r, DONE);
    assert_int_equal(rig_delete_type(r, "t"), RT_OK);
    assert_int_equal(rig_order(r, id).status, RT_ORDER_ACTIVE); // it stays
    rt_order_create c;
    rt_order_create_init(&c);
    c.tenant = RT_STR("p");
    c.type = RT_STR("t");
    c.meta = RT_STR("{}");
    assert_int_equal(rig_run(r, &c.cmd), RT_E_ABSENT);
}

static void type__there_are_only_so_many(void **state) {
    rig *r = *state;
    char name[16];
    for (int i = 0; i < RT_ORDER_TYPES_MAX; i++) {
        (void)snprintf(name, sizeof name, "t%d", i);
        assert_int_equal(rig_put_type(r, name, rig_like("plugin:x")), RT_OK);
    }
    assert_int_equal(rig_put_type(r, "more", rig_like("plugin:x")), RT_E_TOO_LARGE);
    assert_int_equal(rig_put_type(r, "t7", rig_like("plugin:y")), RT_OK); // one that is there
}

/* ---- listings ------------------------------------------------------------------------------------------ */

typedef struct listed {
    rt_id ids[8];
    uint32_t count;
} listed;

static bool add_order(void *ctx, const rt_order *o) {
    listed *l = ctx;
    l->ids[l->count++] = o->id;
    return l->count < 2;
}

static void order__listing_is_in_order_of_creation(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "t", rig_like("plugin:x")), RT_OK);
    rt_id ids[3];
    for (int i = 0; i < 3; i++) ids[i] = rig_create(r, "t");
    listed l = {.count = 0};
    rt_view *v = rt_memory_disk_view(r->disk);
    assert_int_equal(rt_read_orders(v, RT_STR("p"), 0, add_order, &l), RT_OK);
    assert_int_equal(l.count, 2); // it had enough
    assert_true(l.ids[0] == ids[0] && l.ids[1] == ids[1]);
    l.count = 0;
    assert_int_equal(rt_read_orders(v, RT_STR("p"), ids[1], add_order, &l), RT_OK);
    assert_int_equal(l.count, 1);
    assert_true(l.ids[0] == ids[2]);
    l.count = 0;
    assert_int_equal(rt_read_orders(v, RT_STR("q"), 0, add_order, &l), RT_OK);
    assert_int_equal(l.count, 0);
    rt_view_close(v);
}

/* ---- patrol -------------------------------------------------------------------------------------------- */

/* What must never happen: the job of an order's task is ended behind its back, or the document of a type
 * goes. */
typedef struct mischief {
    rt_command cmd;
    rt_id job;
    const char *type;
} mischief;

static rt_code decide_mischief(rt_tx *tx, rt_command *cmd) {
    const mischief *m = (mischief *)cmd;
    rt_job job;
    rt_doc doc;
    if (m->job != 0) {
        assert_int_equal(rt_view_job(tx->view, m->job, &job), RT_OK);
        rt_tx_remove_job(tx, &job);
    }
    if (m->type != NULL) {
        const rt_str name = rt_name(tx->arena, RT_STR("p"), rt_str_of(m->type));
        assert_int_equal(rt_doc_load(tx, RT_DOC_ORDER_TYPE, name, &doc), RT_OK);
        rt_tx_put_doc(tx, &doc, NULL);
    }
    return RT_OK;
}

static void do_mischief(rig *r, rt_id job, const char *type) {
    mischief m = {.cmd = {.decide = decide_mischief}, .job = job, .type = type};
    assert_int_equal(rig_run(r, &m.cmd), RT_OK);
}

static rt_id waiting_order(rig *r) {
    assert_int_equal(rig_put_type(r, "t", rig_like("plugin:x")), RT_OK);
    const rt_id id = rig_create(r, "t");
    rig_say(r, "{\"action\":\"retry\",\"after_ms\":86400000}");
    return id;
}

static void patrol__order_that_lost_its_task_gets_another(void **state) {
    rig *r = *state;
    const rt_id id = waiting_order(r);
    const rt_id job = rig_task(r, id).id;
    do_mischief(r, job, NULL);
    rig_pass(r, 18000); // a period and its dither
    assert_int_equal(rig_metric(r, RT_ORDER_REPAIRED), 1);
    rig_say(r, DONE);
    assert_int_equal(rig_order(r, id).status, RT_ORDER_ACTIVE);
    assert_int_equal(rig_docs(r, RT_DOC_LOCK), 0);
}

static void patrol__order_whose_type_is_gone_as_well_is_in_error(void **state) {
    rig *r = *state;
    const rt_id id = waiting_order(r);
    do_mischief(r, rig_task(r, id).id, "t");
    rig_pass(r, 18000);
    assert_int_equal(rig_order(r, id).status, RT_ORDER_ERROR);
    assert_text(rig_order(r, id).error_code, "500");
}

static void order__whose_type_is_gone_is_in_error_at_its_next_run(void **state) {
    rig *r = *state;
    const rt_id id = waiting_order(r);
    const rt_id job = rig_task(r, id).id;
    do_mischief(r, 0, "t");
    assert_int_equal(rig_wake(r, id), RT_OK);
    assert_int_equal(r->attempts_count, 0);
    const rt_order o = rig_order(r, id);
    assert_int_equal(o.status, RT_ORDER_ERROR);
    assert_text(o.error_code, "500");
    assert_text(o.error_reason, "There is no order type t any more.");
    assert_int_equal(rig_job(r, job).reason, RT_REASON_UNSUBSCRIBED);
}

static void order__whose_type_went_during_a_run_is_in_error(void **state) {
    rig *r = *state;
    const rt_id id = waiting_order(r);
    assert_int_equal(rig_wake(r, id), RT_OK);
    do_mischief(r, 0, "t");
    rig_say(r, "{\"action\":\"retry\",\"after_ms\":0}");
    assert_int_equal(rig_order(r, id).status, RT_ORDER_ERROR);
}

static void patrol__looks_at_all_orders_slice_by_slice(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "t", rig_like("plugin:x")), RT_OK);
    rt_id last = 0;
    for (int i = 0; i < 200; i++) {
        last = rig_create(r, "t");
        while (r->attempts_count > 0) rig_say(r, "{\"action\":\"retry\",\"after_ms\":86400000}");
    }
    do_mischief(r, rig_task(r, last).id, NULL);
    rig_pass(r, 18000);
    assert_int_equal(rig_metric(r, RT_ORDER_REPAIRED), 1);
    rig_say(r, DONE);
}

/* ---- locks --------------------------------------------------------------------------------------------- */

typedef struct locking {
    rt_command cmd;
    rt_str holder;
    bool release, held;
} locking;

static rt_code decide_lock(rt_tx *tx, rt_command *cmd) {
    locking *l = (locking *)cmd;
    if (l->release) return rt_lock_release(tx, RT_STR("order_retry_scheduler"), l->holder);
    return rt_lock_take(tx, RT_STR("order_retry_scheduler"), l->holder, 60000, &l->held);
}

static bool take(rig *r, const char *holder) {
    locking l = {.cmd = {.decide = decide_lock}, .holder = rt_str_of(holder)};
    assert_int_equal(rig_run(r, &l.cmd), RT_OK);
    return l.held;
}

static void release(rig *r, const char *holder) {
    locking l = {.cmd = {.decide = decide_lock}, .holder = rt_str_of(holder), .release = true};
    assert_int_equal(rig_run(r, &l.cmd), RT_OK);
}

static bool copy_lock(void *ctx, rt_str name, const rt_lock *l) {
    assert_text(name, "order_retry_scheduler");
    *(rt_lock *)ctx = *l;
    return true;
}

static rt_lock read_lock(rig *r) {
    rt_lock l = {.token = 0};
    rt_view_close(r->view);
    r->view = rt_memory_disk_view(r->disk);
    assert_int_equal(rt_read_locks(r->view, copy_lock, &l), RT_OK);
    return l;
}

static void lock__has_one_holder(void **state) {
    rig *r = *state;
    assert_true(take(r, "a"));
    assert_false(take(r, "b"));
    assert_text(read_lock(r).holder, "a");
    r->now_ms += 1000;
    assert_true(take(r, "a")); // renews it
    assert_int_equal(read_lock(r).taken_ms, RIG_START_MS);
    assert_int_equal(read_lock(r).renewed_ms, RIG_START_MS + 1000);
}

static void lock__is_stolen_at_its_timeout_and_not_before(void **state) {
    rig *r = *state;
    assert_true(take(r, "a"));
    const uint64_t token = read_lock(r).token;
    r->now_ms += 59999;
    assert_false(take(r, "b"));
    r->now_ms += 1;
    assert_true(take(r, "b"));
    assert_false(take(r, "c"));
    assert_true(read_lock(r).token > token);
    assert_int_equal(read_lock(r).taken_ms, RIG_START_MS + 60000);
}

static void lock__is_released_by_its_holder_only(void **state) {
    rig *r = *state;
    release(r, "a"); // nobody's
    assert_true(take(r, "a"));
    r->now_ms += 60000;
    assert_true(take(r, "b"));
    release(r, "a"); // it woke up too late
    assert_text(read_lock(r).holder, "b");
    release(r, "b");
    assert_int_equal(read_lock(r).token, 0);
    assert_true(take(r, "c"));
}

static void lock__of_a_clock_that_was_set_back_is_not_held_for_ever(void **state) {
    rig *r = *state;
    assert_true(take(r, "a"));
    r->now_ms -= 60000;
    assert_false(take(r, "b"));
    r->now_ms -= 1;
    assert_true(take(r, "b"));
}

static void patrol__keeps_away_while_another_has_the_lock(void **state) {
    rig *r = *state;
    const rt_id id = waiting_order(r);
    do_mischief(r, rig_task(r, id).id, NULL);
    assert_true(take(r, "another node"));
    rig_pass(r, 18000);
    assert_int_equal(rig_metric(r, RT_ORDER_REPAIRED), 0);
    assert_text(read_lock(r).holder, "another node");
    rig_pass(r, 60000); // it has never been renewed
    assert_int_equal(rig_metric(r, RT_ORDER_REPAIRED), 1);
    assert_int_equal(rig_docs(r, RT_DOC_LOCK), 0);
}

static void patrol__without_orders_there_is_none(void **state) {
    rig *r = *state;
    rig_settle(r);
    const uint64_t commits = atomic_load(&rt_engine_metrics(r->engine)->commits);
    assert_true(rt_engine_step(r->engine, r->now_ms) > r->now_ms + 18000);
    rig_pass(r, 50000);
    assert_int_equal(atomic_load(&rt_engine_metrics(r->engine)->commits), commits);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RIG_BOTH(type__is_stored_whole),
        RIG_BOTH(type__own_backoff_counts),
        RIG_BOTH(type__new_target_counts_at_once),
        RIG_BOTH(type__is_left_alone_where_only_a_new_one_is_wanted),
        RIG_BOTH(type__concurrency_bounds_its_runs),
        RIG_BOTH(type__cannot_go_while_orders_are_pending),
        RIG_SOLE(type__there_are_only_so_many),
        RIG_BOTH(order__listing_is_in_order_of_creation),
        RIG_BOTH(patrol__order_that_lost_its_task_gets_another),
        RIG_BOTH(patrol__order_whose_type_is_gone_as_well_is_in_error),
        RIG_BOTH(order__whose_type_is_gone_is_in_error_at_its_next_run),
        RIG_BOTH(order__whose_type_went_during_a_run_is_in_error),
        RIG_SOLE(patrol__looks_at_all_orders_slice_by_slice),
        RIG_BOTH(lock__has_one_holder),
        RIG_BOTH(lock__is_stolen_at_its_timeout_and_not_before),
        RIG_BOTH(lock__is_released_by_its_holder_only),
        RIG_BOTH(lock__of_a_clock_that_was_set_back_is_not_held_for_ever),
        RIG_BOTH(patrol__keeps_away_while_another_has_the_lock),
        RIG_SOLE(patrol__without_orders_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
