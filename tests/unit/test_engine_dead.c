/* What was given up: inspecting, redriving, deleting, one by one and many. */
#include "engine_kit.h"

/* ---- helpers ----------------------------------------------------------------------------------------- */

static rt_code redrive(kit *k, rt_id id) {
    rt_dead_redrive c;
    rt_dead_redrive_init(&c);
    c.id = id;
    return kit_run(k, &c.cmd);
}

static rt_code delete(kit *k, rt_id id, bool only_dead) {
    rt_job_delete c;
    rt_job_delete_init(&c);
    c.id = id;
    c.only_dead = only_dead;
    return kit_run(k, &c.cmd);
}

static void start_many(kit *k, rt_dead_filter filter, bool remove, uint32_t rate) {
    rt_dead_many c;
    rt_dead_many_init(&c);
    c.filter = filter;
    c.remove = remove;
    c.rate = rate;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_int_not_equal(c.cursor, 0);
}

/* A message to one subscriber whose delivery died. */
static rt_job dead_delivery(kit *k, const char *queue, rt_reason reason) {
    rt_job jobs[4];
    assert_int_equal(kit_deliveries(k, kit_post(k, queue, "1"), jobs, 4), 1);
    kit_kill(k, jobs[0].id, reason);
    return kit_job(k, jobs[0].id);
}

static void unsubscribe(kit *k, const char *queue, rt_id id) {
    rt_subscription_delete c;
    rt_subscription_delete_init(&c);
    c.tenant = RT_STR("p");
    c.queue = rt_str_of(queue);
    c.id = id;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    (void)kit_run_cursors(k);
}

typedef struct seen {
    rt_id ids[64];
    uint32_t count, max;
} seen;

typedef struct history {
    rt_event events[8];
    uint32_t count, max;
} history;

static bool add_event(void *ctx, const rt_event *event) {
    history *h = ctx;
    h->events[h->count++] = *event;
    return h->count < h->max;
}

static bool add_seen(void *ctx, const rt_job *job) {
    seen *s = ctx;
    s->ids[s->count++] = job->id;
    return s->count < s->max;
}

/* ---- single jobs ------------------------------------------------------------------------------------- */

static void dead__redrive_starts_afresh(void **state) {
    kit *k = *state;
    (void)kit_subscribe(k, "q", "http://a/");
    const rt_job dead = dead_delivery(k, "q", RT_REASON_EXHAUSTED);
    k->now_ms += 5000;
    assert_int_equal(redrive(k, dead.id), RT_OK);
    const rt_job now = kit_job(k, dead.id);
    assert_int_equal(now.state, RT_JOB_SCHEDULED);
    assert_int_equal(now.due_ms, KIT_START_MS + 5000);
    assert_int_equal(now.placed_ms, KIT_START_MS + 5000); // its maximum age counts anew
    assert_int_equal(now.attempt, 0);
    assert_int_equal(now.interval_ms, 0);
    assert_int_equal(now.reason, RT_REASON_NONE);
    assert_int_equal(now.generation, 1);
    const rt_event event = kit_last_event(k, dead.id);
    assert_int_equal(event.type, RT_EVENT_REDRIVEN);
    assert_int_equal(event.prev, dead.last_event);
    assert_int_equal(redrive(k, dead.id), RT_E_FENCED);
    assert_int_equal(redrive(k, 424242), RT_E_ABSENT);
}

static void dead__redrive_needs_the_subscription(void **state) {
    kit *k = *state;
    const rt_id id = kit_subscribe(k, "q", "http://a/");
    const rt_job dead = dead_delivery(k, "q", RT_REASON_EXHAUSTED);
    unsubscribe(k, "q", id);
    assert_int_equal(redrive(k, dead.id), RT_E_INVALID);
    assert_true(strlen(k->err.msg) > 0);
    assert_int_equal(kit_job(k, dead.id).state, RT_JOB_DEAD);
}

static void dead__delete_ends_dead_jobs_or_any(void **state) {
    kit *k = *state;
    (void)kit_subscribe(k, "q", "http://a/");
    const rt_job dead = dead_delivery(k, "q", RT_REASON_REJECTED);
    assert_int_equal(delete(k, dead.id, true), RT_OK);
    assert_int_equal(kit_job(k, dead.id).state, RT_JOB_DONE);
    assert_int_equal(kit_last_event(k, dead.id).reason, RT_REASON_DELETED);
    assert_int_equal(delete(k, dead.id, true), RT_E_ABSENT);
    rt_job waiting;
    assert_int_equal(kit_deliveries(k, kit_post(k, "q", "1"), &waiting, 1), 1);
    assert_int_equal(delete(k, waiting.id, true), RT_E_FENCED);
    assert_int_equal(delete(k, waiting.id, false), RT_OK);
    assert_int_equal(kit_job(k, waiting.id).state, RT_JOB_DONE);
}

static void dead__history_is_read_newest_first(void **state) {
    kit *k = *state;
    (void)kit_subscribe(k, "q", "http://a/");
    const rt_job dead = dead_delivery(k, "q", RT_REASON_EXHAUSTED);
    assert_int_equal(redrive(k, dead.id), RT_OK);
    kit_kill(k, dead.id, RT_REASON_REJECTED);
    const rt_job job = kit_job(k, dead.id);
    history h = {.count = 0, .max = 8};
    assert_int_equal(rt_read_attempts(kit_view(k), &job, 100, add_event, &h), RT_OK);
    assert_int_equal(h.count, 3);
    assert_int_equal(h.events[0].reason, RT_REASON_REJECTED);
    assert_int_equal(h.events[1].type, RT_EVENT_REDRIVEN);
    assert_int_equal(h.events[2].reason, RT_REASON_EXHAUSTED);
    h = (history){.count = 0, .max = 8};
    assert_int_equal(rt_read_attempts(kit_view(k), &job, 2, add_event, &h), RT_OK);
    assert_int_equal(h.count, 2);
}

/* ---- many -------------------------------------------------------------------------------------------- */

static void dead__listing_filters_and_pages(void **state) {
    kit *k = *state;
    (void)kit_subscribe(k, "a", "http://a/");
    const rt_id b = kit_subscribe(k, "b", "http://b/");
    rt_job jobs[6];
    for (int i = 0; i < 6; i++) {
        jobs[i] = dead_delivery(k, i < 3 ? "a" : "b", i % 2 == 0 ? RT_REASON_EXHAUSTED : RT_REASON_REJECTED);
    }
    seen s = {.max = 64};
    bool more;
    const rt_dead_filter all = {0};
    assert_int_equal(rt_read_dead(kit_view(k), &all, &(rt_dead_place){0}, 100, add_seen, &s, &more), RT_OK);
    assert_int_equal(s.count, 6);
    assert_false(more);
    s = (seen){.max = 64};
    const rt_dead_filter of_b = {.queue = b, .reason = RT_REASON_REJECTED};
    assert_int_equal(rt_read_dead(kit_view(k), &of_b, &(rt_dead_place){0}, 100, add_seen, &s, &more), RT_OK);
    assert_int_equal(s.count, 2);
    assert_int_equal(s.ids[0], jobs[3].id);
    assert_int_equal(s.ids[1], jobs[5].id);
    s = (seen){.max = 64};
    const rt_dead_filter of_owner = {.owner = kit_metadata(k, "a").id};
    assert_int_equal(rt_read_dead(kit_view(k), &of_owner, &(rt_dead_place){0}, 100, add_seen, &s, &more), RT_OK);
    assert_int_equal(s.count, 3);
    s = (seen){.max = 2};
    rt_dead_place from = {.queue = jobs[0].queue, .job = jobs[0].id};
    assert_int_equal(rt_read_dead(kit_view(k), &all, &from, 100, add_seen, &s, &more), RT_OK);
    assert_int_equal(from.job, jobs[2].id); // where it stands now
    assert_true(more);
    assert_int_equal(s.ids[0], jobs[1].id);
    assert_int_equal(s.ids[1], jobs[2].id);
    s = (seen){.max = 64};
    assert_int_equal(rt_read_dead(kit_view(k), &of_b, &(rt_dead_place){0}, 2, add_seen, &s, &more), RT_OK);
    assert_true(more);
}

static void dead__redrive_of_many_takes_what_matches(void **state) {
    kit *k = *state;
    (void)kit_subscribe(k, "a", "http://a/");
    const rt_id b = kit_subscribe(k, "b", "http://b/");
    rt_id matching[70], others[3];
    for (int i = 0; i < 70; i++) matching[i] = dead_delivery(k, "b", RT_REASON_EXHAUSTED).id;
    others[0] = dead_delivery(k, "a", RT_REASON_EXHAUSTED).id;
    others[1] = dead_delivery(k, "b", RT_REASON_REJECTED).id;
    start_many(k, (rt_dead_filter){.queue = b, .reason = RT_REASON_EXHAUSTED}, false, 0);
    others[2] = dead_delivery(k, "b", RT_REASON_EXHAUSTED).id; // posted after the operator asked
    const uint32_t slices = kit_run_cursors(k);
    assert_int_equal(slices, 2);
    for (int i = 0; i < 70; i++) assert_int_equal(kit_job(k, matching[i]).state, RT_JOB_SCHEDULED);
    for (int i = 0; i < 3; i++) assert_int_equal(kit_job(k, others[i]).state, RT_JOB_DEAD);
    assert_int_equal(kit_docs(k, RT_DOC_CURSOR), 0);
}

static void dead__redrive_of_many_leaves_those_without_subscription(void **state) {
    kit *k = *state;
    const rt_id gone = kit_subscribe(k, "a", "http://a/");
    (void)kit_subscribe(k, "b", "http://b/");
    const rt_job left = dead_delivery(k, "a", RT_REASON_EXHAUSTED);
    const rt_job driven = dead_delivery(k, "b", RT_REASON_EXHAUSTED);
    unsubscribe(k, "a", gone);
    start_many(k, (rt_dead_filter){0}, false, 0);
    (void)kit_run_cursors(k);
    assert_int_equal(kit_job(k, left.id).state, RT_JOB_DEAD);
    assert_int_equal(kit_job(k, driven.id).state, RT_JOB_SCHEDULED);
}

static void dead__redrive_of_many_keeps_to_its_rate(void **state) {
    kit *k = *state;
    (void)kit_subscribe(k, "q", "http://a/");
    rt_id ids[5];
    for (int i = 0; i < 5; i++) ids[i] = dead_delivery(k, "q", RT_REASON_EXHAUSTED).id;
    start_many(k, (rt_dead_filter){0}, false, 2);
    for (int i = 0; i < 5; i++) {
        (void)kit_run_cursors(k);
        assert_int_equal(kit_job(k, ids[i]).state, RT_JOB_SCHEDULED);
        if (i < 4) assert_int_equal(kit_job(k, ids[i + 1]).state, RT_JOB_DEAD);
        k->now_ms += 499;
        (void)kit_run_cursors(k);
        if (i < 4) assert_int_equal(kit_job(k, ids[i + 1]).state, RT_JOB_DEAD);
        k->now_ms += 1;
    }
    (void)kit_run_cursors(k);
    assert_int_equal(kit_docs(k, RT_DOC_CURSOR), 0);
}

static void dead__delete_of_many_takes_the_record_of_a_gone_queue_along(void **state) {
    kit *k = *state;
    const rt_id a = kit_subscribe(k, "a", "http://a/");
    const rt_id b = kit_subscribe(k, "b", "http://b/");
    for (int i = 0; i < 3; i++) {
        (void)dead_delivery(k, "a", RT_REASON_EXHAUSTED);
        (void)dead_delivery(k, "b", RT_REASON_EXHAUSTED);
    }
    unsubscribe(k, "a", a);
    rt_queue queue;
    assert_int_equal(rt_view_queue(kit_view(k), a, &queue), RT_OK);
    assert_int_equal(queue.gone, 1);
    start_many(k, (rt_dead_filter){0}, true, 0);
    (void)kit_run_cursors(k);
    rt_counts totals;
    assert_int_equal(rt_read_totals(kit_view(k), &totals), RT_OK);
    assert_int_equal(totals.dead, 0);
    assert_int_equal(totals.done, 6);
    assert_int_equal(rt_view_queue(kit_view(k), a, &queue), RT_E_ABSENT);
    assert_int_equal(rt_view_queue(kit_view(k), b, &queue), RT_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_BOTH(dead__redrive_starts_afresh),
        KIT_BOTH(dead__redrive_needs_the_subscription),
        KIT_BOTH(dead__delete_ends_dead_jobs_or_any),
        KIT_BOTH(dead__history_is_read_newest_first),
        KIT_BOTH(dead__listing_filters_and_pages),
        KIT_BOTH(dead__redrive_of_many_takes_what_matches),
        KIT_BOTH(dead__redrive_of_many_leaves_those_without_subscription),
        KIT_BOTH(dead__redrive_of_many_keeps_to_its_rate),
        KIT_BOTH(dead__delete_of_many_takes_the_record_of_a_gone_queue_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
