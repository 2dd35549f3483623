/* Messages as zaqar-api.md §5 has them: posting, listing, deleting, popping, expiring. */
#include "engine_kit.h"

/* ---- helpers ----------------------------------------------------------------------------------------- */

static rt_post post_of(const char *queue, rt_post_item *items, uint32_t count) {
    rt_post p;
    rt_post_init(&p);
    p.tenant = RT_STR("p");
    p.queue = rt_str_of(queue);
    p.client_hash = 5;
    p.items = items;
    p.count = count;
    return p;
}

static rt_code delete(kit *k, rt_id id, bool has_claim, rt_id claim, rt_delete_refusal *refusal) {
    rt_message_delete c;
    rt_message_delete_init(&c);
    c.tenant = RT_STR("p");
    c.queue = RT_STR("q");
    c.id = id;
    c.has_claim = has_claim;
    c.claim = claim;
    const rt_code code = kit_run(k, &c.cmd);
    if (refusal != NULL) *refusal = c.refusal;
    return code;
}

static rt_pop pop(kit *k, uint32_t limit) {
    rt_pop c;
    rt_pop_init(&c);
    c.tenant = RT_STR("p");
    c.queue = RT_STR("q");
    c.limit = limit;
    c.arena = &k->out;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    return c;
}

static uint32_t list(kit *k, rt_message_range range, rt_message out[20]) {
    range.jobs = kit_metadata(k, "q").jobs;
    range.now_ms = k->now_ms;
    if (range.limit == 0) range.limit = 20;
    uint32_t count;
    assert_int_equal(rt_read_messages(kit_view(k), &k->out, &range, out, &count), RT_OK);
    return count;
}

static void assert_text(rt_str got, const char *want) {
    assert_int_equal(got.len, strlen(want));
    assert_memory_equal(got.ptr, want, got.len);
}

/* ---- posting ----------------------------------------------------------------------------------------- */

static void message__post_creates_the_queue_and_stores_all_messages(void **state) {
    kit *k = *state;
    rt_post_item items[2] = {{.body = RT_STR("{\"a\":1}"), .ttl_s = 60, .delay_s = -1},
                             {.body = RT_STR("null"), .delay_s = -1}};
    rt_post p = post_of("q", items, 2);
    assert_int_equal(kit_run(k, &p.cmd), RT_OK);
    const rt_metadata m = kit_metadata(k, "q");
    const rt_job first = kit_job(k, items[0].id);
    assert_int_equal(first.state, RT_JOB_FREE);
    assert_int_equal(first.queue, m.jobs);
    assert_int_equal(first.ttl_s, 60);
    assert_int_equal(first.expires_ms, KIT_START_MS + 60000);
    assert_int_equal(first.key_hash, 5);
    assert_int_equal(first.body_bytes, 7);
    assert_int_equal(kit_job(k, items[1].id).ttl_s, 3600);
    assert_true(items[0].id < items[1].id);
    rt_message out[20];
    assert_int_equal(list(k, (rt_message_range){0}, out), 2);
    assert_text(out[0].body, "{\"a\":1}");
    assert_text(out[1].body, "null");
}

static void message__queue_sets_default_ttl_and_delay(void **state) {
    kit *k = *state;
    kit_create_queue(k, "q", (rt_metadata){.default_ttl_s = 120, .default_delay_s = 30});
    rt_post_item items[3] = {{.body = RT_STR("1"), .delay_s = -1}, {.body = RT_STR("2"), .delay_s = 5},
                             {.body = RT_STR("3"), .delay_s = 0}};
    rt_post p = post_of("q", items, 3);
    assert_int_equal(kit_run(k, &p.cmd), RT_OK);
    const rt_job by_default = kit_job(k, items[0].id);
    assert_int_equal(by_default.ttl_s, 120);
    assert_int_equal(by_default.state, RT_JOB_SCHEDULED);
    assert_int_equal(by_default.due_ms, KIT_START_MS + 30000);
    assert_int_equal(kit_job(k, items[1].id).due_ms, KIT_START_MS + 5000);
    assert_int_equal(kit_job(k, items[2].id).state, RT_JOB_FREE);
}

static void message__delay_counts_only_on_delayed_queues(void **state) {
    kit *k = *state;
    rt_post_item item = {.body = RT_STR("1"), .delay_s = 5};
    rt_post p = post_of("q", &item, 1);
    assert_int_equal(kit_run(k, &p.cmd), RT_OK);
    assert_int_equal(kit_job(k, item.id).state, RT_JOB_FREE);
}

static void message__servers_delay_stands_where_a_queue_says_none(void **state) {
    kit *k = *state;
    k->settings.message_delay_s = 20;
    kit_create_queue(k, "own", (rt_metadata){.default_delay_s = 30});
    const struct {
        const char *queue;
        int64_t said_s, want_s;
    } rows[] = {{"q", -1, 20}, {"q", 5, 5}, {"own", -1, 30}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_post_item item = {.body = RT_STR("1"), .delay_s = rows[i].said_s};
        rt_post p = post_of(rows[i].queue, &item, 1);
        assert_int_equal(kit_run(k, &p.cmd), RT_OK);
        assert_int_equal(kit_job(k, item.id).due_ms, KIT_START_MS + rows[i].want_s * 1000);
    }
}

static void message__post_over_the_queues_own_limit_stores_nothing(void **state) {
    kit *k = *state;
    kit_create_queue(k, "q", (rt_metadata){.max_post_bytes = 1000});
    rt_post_item item = {.body = RT_STR("1"), .delay_s = -1};
    rt_post p = post_of("q", &item, 1);
    p.bytes = 1001;
    assert_int_equal(kit_run(k, &p.cmd), RT_E_TOO_LARGE);
    assert_int_equal(p.limit_bytes, 1000);
    assert_int_equal(kit_counts(k, 0).free, 0);
    p.bytes = 1000;
    assert_int_equal(kit_run(k, &p.cmd), RT_OK);
}

static void message__largest_post_fits_into_one_change(void **state) {
    kit *k = *state;
    (void)kit_subscribe(k, "q", "http://a/");
    static rt_post_item items[RT_POST_MESSAGES_MAX];
    const rt_post_item like = {.body = RT_STR("1"), .delay_s = -1};
    for (uint32_t i = 0; i < RT_POST_MESSAGES_MAX; i++) items[i] = like;
    rt_post p = post_of("q", items, RT_POST_MESSAGES_MAX);
    assert_int_equal(kit_run(k, &p.cmd), RT_OK);
    assert_int_equal(kit_counts(k, kit_metadata(k, "q").jobs).free, RT_POST_MESSAGES_MAX);
    (void)kit_run_cursors(k);
    for (uint32_t i = 0; i < RT_POST_MESSAGES_MAX; i += 100) {
        assert_int_equal(kit_deliveries(k, items[i].id, NULL, 0), 1);
    }
}

/* ---- listing ----------------------------------------------------------------------------------------- */

static void message__listing_pages_first_in_first_out(void **state) {
    kit *k = *state;
    rt_id ids[5];
    for (int i = 0; i < 5; i++) ids[i] = kit_post(k, "q", "1");
    rt_message out[20];
    assert_int_equal(list(k, (rt_message_range){.limit = 2}, out), 2);
    assert_int_equal(out[0].job.id, ids[0]);
    assert_int_equal(out[1].job.id, ids[1]);
    assert_int_equal(list(k, (rt_message_range){.limit = 2, .after = ids[1]}, out), 2);
    assert_int_equal(out[0].job.id, ids[2]);
    assert_int_equal(list(k, (rt_message_range){.limit = 2, .after = ids[3]}, out), 1);
    assert_int_equal(list(k, (rt_message_range){.limit = 2, .after = ids[4]}, out), 0);
}

static void message__own_messages_are_hidden_without_echo(void **state) {
    kit *k = *state;
    const rt_id others = kit_post(k, "q", "1"); // the kit's client is 99
    rt_post_item item = {.body = RT_STR("2"), .delay_s = -1};
    rt_post p = post_of("q", &item, 1);
    assert_int_equal(kit_run(k, &p.cmd), RT_OK);
    for (int i = 0; i < 2; i++) {
        rt_message out[20];
        const bool claimed = i == 1;
        assert_int_equal(list(k, (rt_message_range){.skip_hash = 5, .include_claimed = claimed}, out), 1);
        assert_int_equal(out[0].job.id, others);
        assert_int_equal(list(k, (rt_message_range){.include_claimed = claimed}, out), 2);
    }
}

static void message__a_page_goes_on_behind_many_that_are_hidden(void **state) {
    kit *k = *state;
    for (int i = 0; i < 20; i++) (void)kit_post(k, "q", "1");
    for (int i = 0; i < 4; i++) assert_int_equal(kit_claim(k, "q", 5).count, 5);
    kit_create_queue(k, "other", (rt_metadata){0});
    const rt_id last = kit_post(k, "q", "2");
    rt_message out[20];
    assert_int_equal(list(k, (rt_message_range){.include_delayed = true}, out), 1);
    assert_int_equal(out[0].job.id, last);
    assert_int_equal(list(k, (rt_message_range){.include_claimed = true, .limit = 20}, out), 20);
    const rt_id marker = out[19].job.id;
    assert_int_equal(list(k, (rt_message_range){.include_claimed = true, .after = marker}, out), 1);
}

static void message__claimed_and_delayed_are_listed_on_request(void **state) {
    kit *k = *state;
    kit_create_queue(k, "q", (rt_metadata){.default_delay_s = 30});
    rt_post_item items[3] = {{.body = RT_STR("1")}, {.body = RT_STR("2")}, {.body = RT_STR("3")}};
    items[2].delay_s = 30;
    rt_post p = post_of("q", items, 3);
    assert_int_equal(kit_run(k, &p.cmd), RT_OK);
    assert_int_equal(kit_claim(k, "q", 1).count, 1);
    rt_message out[20];
    assert_int_equal(list(k, (rt_message_range){0}, out), 1);
    assert_int_equal(out[0].job.id, items[1].id);
    assert_int_equal(list(k, (rt_message_range){.include_claimed = true}, out), 2);
    assert_int_equal(list(k, (rt_message_range){.include_delayed = true}, out), 2);
    assert_int_equal(out[1].job.id, items[2].id);
    assert_int_equal(list(k, (rt_message_range){.include_claimed = true, .include_delayed = true}, out), 3);
    // Both are over by then, though nobody has written so yet.
    k->now_ms += 60000;
    assert_int_equal(list(k, (rt_message_range){.include_delayed = true}, out), 3);
}

static void message__reads_one_unless_it_ended(void **state) {
    kit *k = *state;
    const rt_id id = kit_post(k, "q", "1");
    const rt_id jobs = kit_metadata(k, "q").jobs;
    rt_message m;
    assert_int_equal(rt_read_message(kit_view(k), &k->out, jobs, id, k->now_ms, &m), RT_OK);
    assert_text(m.body, "1");
    assert_int_equal(rt_read_message(kit_view(k), &k->out, jobs + 1, id, k->now_ms, &m), RT_E_ABSENT);
    const int64_t over_ms = KIT_START_MS + 3600000;
    assert_int_equal(rt_read_message(kit_view(k), &k->out, jobs, id, over_ms, &m), RT_E_ABSENT);
    assert_int_equal(delete(k, id, false, 0, NULL), RT_OK);
    assert_int_equal(rt_read_message(kit_view(k), &k->out, jobs, id, k->now_ms, &m), RT_E_ABSENT);
}

static void message__stats_count_free_claimed_and_total(void **state) {
    kit *k = *state;
    rt_id ids[4];
    for (int i = 0; i < 4; i++) ids[i] = kit_post(k, "q", "1");
    assert_int_equal(kit_claim(k, "q", 1).count, 1);
    rt_queue_stats s;
    const rt_id jobs = kit_metadata(k, "q").jobs; // opens a view of its own: not while another is an argument
    assert_int_equal(rt_read_stats(kit_view(k), jobs, k->now_ms, &s), RT_OK);
    assert_int_equal(s.free, 3);
    assert_int_equal(s.claimed, 1);
    assert_int_equal(s.total, 4);
    assert_true(s.has_ends);
    assert_int_equal(s.oldest.id, ids[0]);
    assert_int_equal(s.newest.id, ids[3]);
    assert_int_equal(rt_read_stats(kit_view(k), 424242, k->now_ms, &s), RT_OK);
    assert_int_equal(s.total, 0);
    assert_false(s.has_ends);
}

/* ---- deleting ---------------------------------------------------------------------------------------- */

static void message__delete_ends_it_with_an_event_and_repeats_quietly(void **state) {
    kit *k = *state;
    const rt_id id = kit_post(k, "q", "1");
    assert_int_equal(delete(k, id, false, 0, NULL), RT_OK);
    assert_int_equal(kit_job(k, id).state, RT_JOB_DONE);
    const rt_event event = kit_last_event(k, id);
    assert_int_equal(event.type, RT_EVENT_ENDED);
    assert_int_equal(event.reason, RT_REASON_DELETED);
    assert_false(kit_has_body(k, id));
    assert_int_equal(delete(k, id, false, 0, NULL), RT_OK);
    assert_int_equal(delete(k, id + 1000, true, 0, NULL), RT_OK);
}

static void message__delete_of_another_queues_message_does_nothing(void **state) {
    kit *k = *state;
    (void)kit_post(k, "q", "1");
    const rt_id other = kit_post(k, "q2", "1");
    assert_int_equal(delete(k, other, false, 0, NULL), RT_OK);
    assert_int_equal(kit_job(k, other).state, RT_JOB_FREE);
}

static void message__delete_rules_of_claimed_messages(void **state) {
    kit *k = *state;
    rt_id ids[3];
    for (int i = 0; i < 3; i++) ids[i] = kit_post(k, "q", "1");
    const rt_claim_create first = kit_claim(k, "q", 1);
    const rt_claim_create second = kit_claim(k, "q", 1);
    rt_delete_refusal why;
    assert_int_equal(delete(k, ids[0], false, 0, &why), RT_E_FENCED);
    assert_int_equal(why, RT_DELETE_CLAIMED);
    assert_int_equal(delete(k, ids[0], true, second.lease.id, &why), RT_E_FENCED);
    assert_int_equal(why, RT_DELETE_CLAIMED);
    assert_int_equal(delete(k, ids[0], true, 4242, &why), RT_E_FENCED);
    assert_int_equal(why, RT_DELETE_CLAIM_UNKNOWN);
    assert_int_equal(delete(k, ids[0], true, 0, &why), RT_E_FENCED);
    assert_int_equal(why, RT_DELETE_CLAIM_UNKNOWN);
    assert_int_equal(delete(k, ids[2], true, first.lease.id, &why), RT_E_FENCED);
    assert_int_equal(why, RT_DELETE_NOT_CLAIMED);
    assert_int_equal(delete(k, ids[0], true, first.lease.id, NULL), RT_OK);
    assert_int_equal(kit_job(k, ids[0]).state, RT_JOB_DONE);
    // A claim whose time is over holds nothing, swept or not.
    k->now_ms += 60000;
    assert_int_equal(delete(k, ids[1], true, second.lease.id, &why), RT_E_FENCED);
    assert_int_equal(why, RT_DELETE_NOT_CLAIMED);
    assert_int_equal(delete(k, ids[1], false, 0, NULL), RT_OK);
    assert_int_equal(kit_job(k, ids[1]).state, RT_JOB_DONE);
}

static void message__delete_by_ids_takes_claimed_ones_too(void **state) {
    kit *k = *state;
    const rt_id one = kit_post(k, "q", "1");
    const rt_id two = kit_post(k, "q", "2");
    assert_int_equal(kit_claim(k, "q", 1).count, 1);
    rt_messages_delete c;
    rt_messages_delete_init(&c);
    c.tenant = RT_STR("p");
    c.queue = RT_STR("q");
    c.ids[0] = one;
    c.ids[1] = 4242;
    c.ids[2] = two;
    c.ids[3] = one; // named twice
    c.count = 4;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_int_equal(kit_job(k, one).state, RT_JOB_DONE);
    assert_int_equal(kit_job(k, two).state, RT_JOB_DONE);
}

static void message__delete_by_ids_with_claims_takes_all_or_none(void **state) {
    kit *k = *state;
    rt_id ids[3];
    for (int i = 0; i < 3; i++) ids[i] = kit_post(k, "q", "1");
    const rt_claim_create first = kit_claim(k, "q", 1), second = kit_claim(k, "q", 1);
    const struct {
        rt_id ids[2], claims[2];
        rt_code want;
        rt_delete_refusal why;
    } rows[] = {
        {{ids[0], ids[1]}, {first.lease.id, 4242}, RT_E_FENCED, RT_DELETE_CLAIMED},
        {{ids[0], ids[2]}, {first.lease.id, second.lease.id}, RT_E_FENCED, RT_DELETE_NOT_CLAIMED},
        {{ids[0], ids[1]}, {second.lease.id, first.lease.id}, RT_OK, 0},
        {{ids[0], 4242}, {4242, 4243}, RT_OK, 0}, // gone already: that is what was asked for
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_messages_delete c;
        rt_messages_delete_init(&c);
        c.tenant = RT_STR("p");
        c.queue = RT_STR("q");
        c.count = c.claims_count = 2;
        c.has_claims = true;
        for (int n = 0; n < 2; n++) {
            c.ids[n] = rows[i].ids[n];
            c.claims[n] = rows[i].claims[n];
        }
        assert_int_equal(kit_run(k, &c.cmd), rows[i].want);
        if (rows[i].want == RT_OK) continue;
        assert_int_equal(c.refusal, rows[i].why);
        assert_int_equal(kit_job(k, ids[0]).state, RT_JOB_LEASED);
    }
    assert_int_equal(kit_job(k, ids[0]).state, RT_JOB_DONE);
    assert_int_equal(kit_job(k, ids[1]).state, RT_JOB_DONE);
    assert_int_equal(kit_job(k, ids[2]).state, RT_JOB_FREE);
}

static void message__pop_takes_and_deletes_the_first_free_ones(void **state) {
    kit *k = *state;
    rt_id ids[3];
    for (int i = 0; i < 3; i++) ids[i] = kit_post(k, "q", i == 1 ? "\"b\"" : "\"a\"");
    assert_int_equal(kit_claim(k, "q", 1).count, 1);
    const rt_pop got = pop(k, 20);
    assert_int_equal(got.count, 2);
    assert_int_equal(got.messages[0].job.id, ids[1]);
    assert_int_equal(got.messages[0].job.claims, 0);
    assert_text(got.messages[0].body, "\"b\"");
    assert_int_equal(kit_job(k, ids[1]).state, RT_JOB_DONE);
    assert_int_equal(kit_job(k, ids[0]).state, RT_JOB_LEASED);
    assert_int_equal(pop(k, 20).count, 0);
}

/* ---- expiring ---------------------------------------------------------------------------------------- */

static void message__expires_when_its_time_is_over(void **state) {
    kit *k = *state;
    rt_post_item item = {.body = RT_STR("1"), .ttl_s = 60, .delay_s = -1};
    rt_post p = post_of("q", &item, 1);
    assert_int_equal(kit_run(k, &p.cmd), RT_OK);
    k->now_ms += 59999;
    assert_int_equal(kit_sweep(k), 0);
    rt_expiry_step step;
    rt_expiry_step_init(&step);
    assert_int_equal(kit_run(k, &step.cmd), RT_OK);
    assert_int_equal(step.next_ms, KIT_START_MS + 60000);
    k->now_ms++;
    rt_message out[20];
    assert_int_equal(list(k, (rt_message_range){.include_claimed = true}, out), 0);
    assert_int_equal(pop(k, 1).count, 0);
    assert_int_equal(kit_sweep(k), 1);
    assert_int_equal(kit_job(k, item.id).state, RT_JOB_DONE);
    assert_int_equal(kit_last_event(k, item.id).reason, RT_REASON_EXPIRED);
    rt_expiry_step_init(&step);
    assert_int_equal(kit_run(k, &step.cmd), RT_OK);
    assert_true(step.next_ms == INT64_MAX);
}

static void message__sweep_takes_many_in_slices(void **state) {
    kit *k = *state;
    static rt_post_item items[150];
    for (int i = 0; i < 150; i++) items[i] = (rt_post_item){.body = RT_STR("1"), .ttl_s = 60, .delay_s = -1};
    rt_post p = post_of("q", items, 150);
    assert_int_equal(kit_run(k, &p.cmd), RT_OK);
    k->now_ms += 60000;
    rt_expiry_step step;
    rt_expiry_step_init(&step);
    assert_int_equal(kit_run(k, &step.cmd), RT_OK);
    assert_int_equal(step.count, RT_EXPIRY_SLICE);
    assert_true(step.next_ms <= k->now_ms);
    assert_int_equal(kit_sweep(k), 150 - RT_EXPIRY_SLICE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_BOTH(message__post_creates_the_queue_and_stores_all_messages),
        KIT_BOTH(message__queue_sets_default_ttl_and_delay),
        KIT_BOTH(message__delay_counts_only_on_delayed_queues),
        KIT_BOTH(message__servers_delay_stands_where_a_queue_says_none),
        KIT_BOTH(message__post_over_the_queues_own_limit_stores_nothing),
        KIT_CALM(message__largest_post_fits_into_one_change),
        KIT_BOTH(message__listing_pages_first_in_first_out),
        KIT_BOTH(message__own_messages_are_hidden_without_echo),
        KIT_BOTH(message__a_page_goes_on_behind_many_that_are_hidden),
        KIT_BOTH(message__claimed_and_delayed_are_listed_on_request),
        KIT_BOTH(message__reads_one_unless_it_ended),
        KIT_BOTH(message__stats_count_free_claimed_and_total),
        KIT_BOTH(message__delete_ends_it_with_an_event_and_repeats_quietly),
        KIT_BOTH(message__delete_of_another_queues_message_does_nothing),
        KIT_BOTH(message__delete_rules_of_claimed_messages),
        KIT_BOTH(message__delete_by_ids_takes_claimed_ones_too),
        KIT_BOTH(message__delete_by_ids_with_claims_takes_all_or_none),
        KIT_BOTH(message__pop_takes_and_deletes_the_first_free_ones),
        KIT_BOTH(message__expires_when_its_time_is_over),
        KIT_BOTH(message__sweep_takes_many_in_slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
