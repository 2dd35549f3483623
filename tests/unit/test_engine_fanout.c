/* From one message to a delivery for each subscription, at once and by a cursor. */
#include "engine_kit.h"

static rt_id subscribe_at(kit *k, int i) {
    char uri[32];
    (void)snprintf(uri, sizeof uri, "http://h/%d", i);
    return kit_subscribe(k, "q", uri);
}

static void subscribe_many(kit *k, int count) {
    for (int i = 0; i < count; i++) (void)subscribe_at(k, i);
}

static void post_many(kit *k, rt_post_item *items, uint32_t count, bool confirmed_only) {
    const rt_post_item like = {.body = RT_STR("{}"), .ttl_s = 300, .delay_s = -1};
    for (uint32_t i = 0; i < count; i++) items[i] = like;
    rt_post p;
    rt_post_init(&p);
    p.tenant = RT_STR("p");
    p.queue = RT_STR("q");
    p.items = items;
    p.count = count;
    p.confirmed_only = confirmed_only;
    assert_int_equal(kit_run(k, &p.cmd), RT_OK);
}

static void delete_message(kit *k, rt_id id) {
    rt_message_delete c;
    rt_message_delete_init(&c);
    c.tenant = RT_STR("p");
    c.queue = RT_STR("q");
    c.id = id;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_int_equal(kit_job(k, id).state, RT_JOB_DONE);
}

static void fanout__each_subscription_gets_one_that_shares_the_body(void **state) {
    kit *k = *state;
    const rt_id a = kit_subscribe(k, "q", "http://a/");
    const rt_id b = kit_subscribe(k, "q", "mailto:b@c");
    (void)kit_subscribe(k, "other", "http://a/");
    rt_post_item item;
    post_many(k, &item, 1, false);
    rt_job jobs[3];
    assert_int_equal(kit_deliveries(k, item.id, jobs, 3), 2);
    assert_int_equal(jobs[0].queue, a);
    assert_int_equal(jobs[1].queue, b);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(jobs[i].owner, kit_metadata(k, "q").id);
        assert_int_equal(jobs[i].state, RT_JOB_READY);
        assert_int_equal(jobs[i].flags, 0);
        assert_int_equal(jobs[i].expires_ms, 0);
        assert_int_equal(jobs[i].key_hash, 0);
        assert_int_equal(jobs[i].placed_ms, KIT_START_MS);
        assert_int_equal(jobs[i].ttl_s, 300);
        assert_int_equal(jobs[i].body_bytes, 2);
    }
    assert_int_equal(kit_docs(k, RT_DOC_CURSOR), 0);
    delete_message(k, item.id);
    assert_true(kit_has_body(k, item.id)); // the deliveries need it
}

static void fanout__lines_up_behind_what_a_queue_has_waiting(void **state) {
    kit *k = *state;
    kit_busy(k, kit_subscribe(k, "q", "http://a/"));
    rt_job job;
    assert_int_equal(kit_deliveries(k, kit_post(k, "q", "1"), &job, 1), 1);
    assert_int_equal(job.state, RT_JOB_SCHEDULED);
    assert_int_equal(job.due_ms, KIT_START_MS);
}

static void fanout__up_to_64_are_made_in_the_posts_own_change(void **state) {
    kit *k = *state;
    subscribe_many(k, 64);
    rt_post_item items[2];
    post_many(k, items, 1, false);
    assert_int_equal(kit_docs(k, RT_DOC_CURSOR), 0);
    assert_int_equal(kit_deliveries(k, items[0].id, NULL, 0), 64);
    post_many(k, items, 2, false);
    assert_int_equal(kit_docs(k, RT_DOC_CURSOR), 1);
    for (int i = 0; i < 2; i++) assert_int_equal(kit_deliveries(k, items[i].id, NULL, 0), 32);
    (void)kit_run_cursors(k);
    for (int i = 0; i < 2; i++) assert_int_equal(kit_deliveries(k, items[i].id, NULL, 0), 64);
}

/* Each of 1,000 exactly once, in slices of at most 64; nobody who subscribed later. */
static void fanout__a_thousand_subscribers_each_get_exactly_one(void **state) {
    kit *k = *state;
    subscribe_many(k, 1000);
    rt_post_item item;
    post_many(k, &item, 1, false);
    assert_int_equal(kit_deliveries(k, item.id, NULL, 0), 64);
    const rt_id late = subscribe_at(k, 1000);
    const uint32_t slices = kit_run_cursors(k);
    assert_true(slices >= (1000 - 64) / RT_CURSOR_SLICE);
    assert_true(slices <= 20);
    static rt_job jobs[1001];
    assert_int_equal(kit_deliveries(k, item.id, jobs, 1001), 1000);
    for (int i = 1; i < 1000; i++) assert_true(jobs[i].queue > jobs[i - 1].queue);
    for (int i = 0; i < 1000; i++) assert_true(jobs[i].queue != late);
    assert_int_equal(kit_docs(k, RT_DOC_CURSOR), 0);
    const rt_counts all = kit_counts(k, 0);
    assert_int_equal(all.leased, 0); // no holder is left
    assert_int_equal(all.ready, 1000);
    assert_int_equal(all.free, 1);
}

static void fanout__goes_on_when_the_messages_are_deleted_meanwhile(void **state) {
    kit *k = *state;
    subscribe_many(k, 100);
    rt_post_item items[3];
    post_many(k, items, 3, false);
    for (int i = 0; i < 3; i++) delete_message(k, items[i].id);
    k->now_ms += 1000;
    (void)kit_run_cursors(k);
    for (int i = 0; i < 3; i++) {
        static rt_job jobs[100];
        assert_int_equal(kit_deliveries(k, items[i].id, jobs, 100), 100);
        assert_true(kit_has_body(k, items[i].id));
        assert_int_equal(jobs[99].placed_ms, KIT_START_MS); // its age counts from the post
        assert_int_equal(jobs[99].ttl_s, 300);
        assert_int_equal(jobs[99].body_bytes, 2);
    }
    assert_int_equal(kit_counts(k, 0).leased, 0);
}

static void fanout__keeps_each_subscribers_messages_in_order(void **state) {
    kit *k = *state;
    subscribe_many(k, 10);
    static rt_post_item items[50];
    post_many(k, items, 50, false);
    (void)kit_run_cursors(k);
    rt_id last[10] = {0};
    for (int m = 0; m < 50; m++) {
        rt_job jobs[10];
        assert_int_equal(kit_deliveries(k, items[m].id, jobs, 10), 10);
        for (int s = 0; s < 10; s++) {
            assert_true(jobs[s].id > last[s]);
            last[s] = jobs[s].id;
        }
    }
}

static void fanout__of_a_queue_that_is_deleted_meanwhile_ends(void **state) {
    kit *k = *state;
    subscribe_many(k, 200);
    rt_post_item items[2];
    post_many(k, items, 2, false);
    rt_queue_delete c;
    rt_queue_delete_init(&c);
    c.tenant = RT_STR("p");
    c.queue = RT_STR("q");
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    (void)kit_run_cursors(k);
    assert_int_equal(kit_docs(k, RT_DOC_CURSOR), 0);
    assert_int_equal(kit_docs(k, RT_DOC_SUBSCRIPTION), 0);
    const rt_counts all = kit_counts(k, 0);
    assert_int_equal(all.free, 0);
    assert_int_equal(all.leased, 0);
    assert_int_equal(all.scheduled, 0);
}

static void fanout__tells_confirmed_ones_only_where_that_is_asked_for(void **state) {
    kit *k = *state;
    subscribe_many(k, 70);
    const rt_id id = subscribe_at(k, 70);
    rt_subscription_confirm c;
    rt_subscription_confirm_init(&c);
    c.tenant = RT_STR("p");
    c.queue = RT_STR("q");
    c.id = id;
    c.confirmed = true;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    rt_post_item item;
    post_many(k, &item, 1, true);
    rt_job job;
    assert_int_equal(kit_deliveries(k, item.id, &job, 1), 1);
    assert_int_equal(job.queue, id);
    static rt_post_item many[100];
    post_many(k, many, 100, true); // more than 64: by a cursor, and still the one
    (void)kit_run_cursors(k);
    for (int i = 0; i < 100; i++) assert_int_equal(kit_deliveries(k, many[i].id, NULL, 0), 1);
}

static void fanout__passes_over_subscriptions_whose_time_is_over(void **state) {
    kit *k = *state;
    subscribe_many(k, 100);
    k->now_ms += 3600000;
    rt_post_item item;
    post_many(k, &item, 1, false);
    assert_int_equal(kit_deliveries(k, item.id, NULL, 0), 0);
    assert_int_equal(kit_docs(k, RT_DOC_CURSOR), 0);
}

static void fanout__holders_are_nobodys_business(void **state) {
    kit *k = *state;
    subscribe_many(k, 65);
    rt_post_item item;
    post_many(k, &item, 1, false);
    rt_job holder = {0};
    for (rt_id id = item.id; !(holder.flags & RT_JOB_HOLDER) && id < item.id + 200; id++) {
        holder = kit_job(k, id);
    }
    assert_true(holder.flags & RT_JOB_HOLDER);
    rt_job job;
    assert_int_equal(rt_read_job(kit_view(k), holder.id, &job), RT_E_ABSENT);
    rt_job_delete c;
    rt_job_delete_init(&c);
    c.id = holder.id;
    assert_int_equal(kit_run(k, &c.cmd), RT_E_ABSENT);
    k->now_ms += 100000000;
    (void)kit_sweep(k);
    assert_int_equal(kit_job(k, holder.id).state, RT_JOB_LEASED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_BOTH(fanout__each_subscription_gets_one_that_shares_the_body),
        KIT_BOTH(fanout__lines_up_behind_what_a_queue_has_waiting),
        KIT_BOTH(fanout__up_to_64_are_made_in_the_posts_own_change),
        KIT_CALM(fanout__a_thousand_subscribers_each_get_exactly_one),
        KIT_BOTH(fanout__goes_on_when_the_messages_are_deleted_meanwhile),
        KIT_BOTH(fanout__keeps_each_subscribers_messages_in_order),
        KIT_BOTH(fanout__of_a_queue_that_is_deleted_meanwhile_ends),
        KIT_BOTH(fanout__tells_confirmed_ones_only_where_that_is_asked_for),
        KIT_BOTH(fanout__passes_over_subscriptions_whose_time_is_over),
        KIT_BOTH(fanout__holders_are_nobodys_business),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
