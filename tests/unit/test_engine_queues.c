/* Whole queues: creating, replacing, deleting, purging, pausing, listing. */
#include "engine_kit.h"

/* ---- helpers ----------------------------------------------------------------------------------------- */

static rt_code delete_queue(kit *k, const char *queue) {
    rt_queue_delete c;
    rt_queue_delete_init(&c);
    c.tenant = RT_STR("p");
    c.queue = rt_str_of(queue);
    return kit_run(k, &c.cmd);
}

static rt_code purge(kit *k, bool messages, bool subscriptions) {
    rt_queue_purge c;
    rt_queue_purge_init(&c);
    c.tenant = RT_STR("p");
    c.queue = RT_STR("q");
    c.messages = messages;
    c.subscriptions = subscriptions;
    return kit_run(k, &c.cmd);
}

static void subscribe_many(kit *k, int count) {
    char uri[32];
    for (int i = 0; i < count; i++) {
        (void)snprintf(uri, sizeof uri, "http://h/%d", i);
        (void)kit_subscribe(k, "q", uri);
    }
}

typedef struct names {
    char text[200];
} names;

static bool add_name(void *ctx, rt_str queue, const rt_metadata *m) {
    names *n = ctx;
    assert_true(m->id != 0);
    const size_t used = strlen(n->text);
    (void)snprintf(n->text + used, sizeof n->text - used, "%.*s ", RT_STR_ARG(queue));
    return true;
}

static bool count_line(void *ctx, const rt_queue_line *line) {
    assert_int_equal(line->queue.gone, 0);
    ++*(int *)ctx;
    return true;
}

static int lines(kit *k) {
    int count = 0;
    assert_int_equal(rt_read_queue_lines(kit_view(k), 0, count_line, &count), RT_OK);
    return count;
}

/* ---- tests ------------------------------------------------------------------------------------------- */

static void queue__create_stores_metadata_and_repeats_untouched(void **state) {
    kit *k = *state;
    kit_create_queue(k, "q", (rt_metadata){.default_ttl_s = 100, .json = RT_STR("{\"a\": 1}")});
    const rt_metadata m = kit_metadata(k, "q");
    assert_true(rt_str_eq(m.json, RT_STR("{\"a\": 1}")));
    assert_int_equal(m.default_ttl_s, 100);
    assert_int_not_equal(m.id, m.jobs);
    rt_queue list;
    assert_int_equal(rt_view_queue(kit_view(k), m.jobs, &list), RT_OK);
    assert_int_equal(list.kind, RT_QUEUE_MESSAGES);
    assert_int_equal(list.owner, m.id);
    assert_true(rt_str_eq(list.name, RT_STR("p/q")));
    rt_queue_create c;
    rt_queue_create_init(&c);
    c.tenant = RT_STR("p");
    c.queue = RT_STR("q");
    c.like.default_ttl_s = 200;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_true(c.existed);
    assert_int_equal(kit_metadata(k, "q").default_ttl_s, 100);
}

static void queue__lazily_created_has_empty_metadata(void **state) {
    kit *k = *state;
    (void)kit_post(k, "q", "1");
    assert_true(rt_str_eq(kit_metadata(k, "q").json, RT_STR("{}")));
}

static void queue__replace_keeps_identity_and_minds_the_version(void **state) {
    kit *k = *state;
    kit_create_queue(k, "q", (rt_metadata){0});
    const rt_metadata before = kit_metadata(k, "q");
    rt_queue_replace c;
    rt_queue_replace_init(&c);
    c.tenant = RT_STR("p");
    c.queue = RT_STR("q");
    c.like.json = RT_STR("{\"b\": 2}");
    c.version = 2;
    assert_int_equal(kit_run(k, &c.cmd), RT_E_CONFLICT);
    c.version = 1;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    const rt_metadata after = kit_metadata(k, "q");
    assert_true(rt_str_eq(after.json, RT_STR("{\"b\": 2}")));
    assert_int_equal(after.id, before.id);
    assert_int_equal(after.jobs, before.jobs);
    c.queue = RT_STR("other");
    assert_int_equal(kit_run(k, &c.cmd), RT_E_ABSENT);
}

static void queue__delete_takes_messages_and_subscriptions_along(void **state) {
    kit *k = *state;
    const rt_id subscription = kit_subscribe(k, "q", "http://a/");
    kit_busy(k, subscription);
    const rt_id id = kit_post(k, "q", "1");
    const rt_claim_create claim = kit_claim(k, "q", 1);
    assert_int_equal(claim.count, 1);
    rt_job delivery;
    assert_int_equal(kit_deliveries(k, id, &delivery, 1), 1);
    assert_int_equal(delete_queue(k, "q"), RT_OK);
    assert_int_equal(kit_docs(k, RT_DOC_METADATA), 0);
    assert_int_equal(kit_docs(k, RT_DOC_SUBSCRIPTION), 0);
    assert_int_equal(kit_docs(k, RT_DOC_SUBSCRIBER), 0);
    assert_int_equal(lines(k), 0);
    (void)kit_run_cursors(k);
    assert_int_equal(kit_job(k, id).state, RT_JOB_DONE);
    assert_int_equal(kit_job(k, id).reason, RT_REASON_DELETED);
    assert_int_equal(kit_job(k, delivery.id).reason, RT_REASON_UNSUBSCRIBED);
    assert_false(kit_has_body(k, id));
    rt_queue queue;
    assert_int_equal(rt_view_queue(kit_view(k), subscription, &queue), RT_E_ABSENT);
    assert_int_equal(rt_view_queue(kit_view(k), claim.lease.queue, &queue), RT_E_ABSENT);
    k->now_ms += 60000;
    assert_int_equal(kit_sweep(k), 1); // the claim's own end finds nothing to free
    assert_int_equal(delete_queue(k, "q"), RT_OK);
}

static void queue__deleted_and_made_anew_is_another_one(void **state) {
    kit *k = *state;
    subscribe_many(k, 3);
    const rt_id old = kit_post(k, "q", "1");
    const rt_metadata before = kit_metadata(k, "q");
    assert_int_equal(delete_queue(k, "q"), RT_OK);
    const rt_id id = kit_post(k, "q", "2");
    assert_int_equal(kit_deliveries(k, id, NULL, 0), 0);
    (void)kit_run_cursors(k);
    assert_int_equal(kit_job(k, old).state, RT_JOB_DONE);
    assert_int_equal(kit_job(k, id).state, RT_JOB_FREE);
    assert_int_not_equal(kit_metadata(k, "q").id, before.id);
}

static void queue__delete_of_one_with_many_subscriptions_goes_on_by_cursor(void **state) {
    kit *k = *state;
    subscribe_many(k, 150);
    assert_int_equal(delete_queue(k, "q"), RT_OK);
    assert_int_equal(kit_docs(k, RT_DOC_SUBSCRIPTION), 150 - RT_CURSOR_SLICE);
    const rt_id kept = kit_subscribe(k, "q", "http://h/149"); // of the new queue of that name
    (void)kit_run_cursors(k);
    assert_int_equal(kit_docs(k, RT_DOC_SUBSCRIPTION), 1);
    assert_int_equal(kit_docs(k, RT_DOC_SUBSCRIBER), 1);
    assert_int_equal(kit_docs(k, RT_DOC_CURSOR), 0);
    assert_int_equal(kit_deliveries(k, kit_post(k, "q", "1"), NULL, 0), 1);
    assert_int_not_equal(kept, 0);
}

static void queue__purge_of_messages_empties_it_at_once_for_readers(void **state) {
    kit *k = *state;
    kit_create_queue(k, "q", (rt_metadata){.default_delay_s = 10});
    rt_post_item items[3] = {{.body = RT_STR("1")}, {.body = RT_STR("2")}, {.body = RT_STR("3")}};
    items[2].delay_s = 9;
    rt_post p;
    rt_post_init(&p);
    p.tenant = RT_STR("p");
    p.queue = RT_STR("q");
    p.items = items;
    p.count = 3;
    assert_int_equal(kit_run(k, &p.cmd), RT_OK);
    assert_int_equal(kit_claim(k, "q", 1).count, 1);
    const rt_id subscription = kit_subscribe(k, "q", "http://a/");
    assert_int_equal(purge(k, true, false), RT_OK);
    rt_queue_stats stats;
    const rt_id jobs = kit_metadata(k, "q").jobs; // before the view, which it would close
    assert_int_equal(rt_read_stats(kit_view(k), jobs, k->now_ms, &stats), RT_OK);
    assert_int_equal(stats.total, 0);
    assert_int_equal(kit_claim(k, "q", 1).count, 0);
    assert_int_equal(lines(k), 2);
    const rt_id fresh = kit_post(k, "q", "4");
    (void)kit_run_cursors(k);
    for (int i = 0; i < 3; i++) assert_int_equal(kit_job(k, items[i].id).state, RT_JOB_DONE);
    assert_int_equal(kit_job(k, fresh).state, RT_JOB_SCHEDULED);
    rt_job delivery;
    assert_int_equal(kit_deliveries(k, fresh, &delivery, 1), 1);
    assert_int_equal(delivery.queue, subscription);
}

static void queue__purge_of_subscriptions_leaves_messages(void **state) {
    kit *k = *state;
    subscribe_many(k, 2);
    const rt_id id = kit_post(k, "q", "1");
    assert_int_equal(purge(k, false, true), RT_OK);
    assert_int_equal(kit_docs(k, RT_DOC_SUBSCRIPTION), 0);
    assert_int_equal(kit_job(k, id).state, RT_JOB_FREE);
    assert_int_equal(kit_claim(k, "q", 1).count, 1);
    assert_int_equal(purge(k, true, true), RT_OK);
    rt_queue_purge c;
    rt_queue_purge_init(&c);
    c.tenant = RT_STR("p");
    c.queue = RT_STR("absent");
    c.messages = true;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
}

static bool count_subscription(void *ctx, const rt_subscription *s) {
    (void)s;
    ++*(int *)ctx;
    return true;
}

static int subscriptions(kit *k) {
    int count = 0;
    const rt_id queue = kit_metadata(k, "q").id;
    rt_view *v = kit_view(k);
    assert_int_equal(rt_read_subscriptions(v, queue, 0, k->now_ms, count_subscription, &count), RT_OK);
    return count;
}

static void queue__purge_of_many_subscriptions_hides_all_and_spares_who_comes_back(void **state) {
    kit *k = *state;
    subscribe_many(k, 150);
    const rt_id old = kit_post(k, "q", "1");
    assert_int_equal(purge(k, false, true), RT_OK);
    assert_int_equal(subscriptions(k), 0);
    const rt_metadata m = kit_metadata(k, "q");
    rt_queue list;
    assert_int_equal(rt_view_queue(kit_view(k), m.jobs, &list), RT_OK);
    assert_int_equal(list.owner, m.id);
    const rt_id back = kit_subscribe(k, "q", "http://h/149");
    (void)kit_run_cursors(k);
    assert_int_equal(subscriptions(k), 1);
    rt_job delivery;
    assert_int_equal(kit_deliveries(k, kit_post(k, "q", "2"), &delivery, 1), 1);
    assert_int_equal(delivery.queue, back);
    assert_int_equal(kit_job(k, old).state, RT_JOB_FREE);
}

static void queue__pause_is_kept_in_its_record(void **state) {
    kit *k = *state;
    const rt_id id = kit_subscribe(k, "q", "http://a/");
    rt_queue_pause c;
    rt_queue_pause_init(&c);
    c.id = id;
    c.until_ms = INT64_MAX;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    rt_queue queue;
    assert_int_equal(rt_view_queue(kit_view(k), id, &queue), RT_OK);
    assert_true(queue.paused_until_ms == INT64_MAX);
    assert_true(rt_str_eq(queue.name, RT_STR("p/q/http://a/")));
    c.until_ms = 0;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_int_equal(rt_view_queue(kit_view(k), id, &queue), RT_OK);
    assert_int_equal(queue.paused_until_ms, 0);
    c.id = 424242;
    assert_int_equal(kit_run(k, &c.cmd), RT_E_ABSENT);
}

static void queue__listing_is_of_one_tenant_by_name(void **state) {
    kit *k = *state;
    const char *queues[] = {"b", "a", "c.1", "B"};
    for (int i = 0; i < 4; i++) kit_create_queue(k, queues[i], (rt_metadata){0});
    rt_queue_create c;
    rt_queue_create_init(&c);
    c.tenant = RT_STR("p2");
    c.queue = RT_STR("x");
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    names n = {{0}};
    assert_int_equal(rt_read_queues(kit_view(k), RT_STR("p"), RT_STR_EMPTY, add_name, &n), RT_OK);
    assert_string_equal(n.text, "B a b c.1 ");
    n = (names){{0}};
    assert_int_equal(rt_read_queues(kit_view(k), RT_STR("p"), RT_STR("a"), add_name, &n), RT_OK);
    assert_string_equal(n.text, "b c.1 ");
    n = (names){{0}};
    assert_int_equal(rt_read_queues(kit_view(k), RT_STR("p2"), RT_STR_EMPTY, add_name, &n), RT_OK);
    assert_string_equal(n.text, "x ");
}

static void queue__lines_tell_counts_and_times(void **state) {
    kit *k = *state;
    for (int i = 0; i < 40; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "q%d", i);
        kit_create_queue(k, name, (rt_metadata){0});
    }
    assert_int_equal(lines(k), 40);
    const rt_id subscription = kit_subscribe(k, "q0", "http://a/");
    kit_busy(k, subscription);
    k->now_ms += 5000;
    (void)kit_post(k, "q0", "1");
    rt_queue_line line;
    assert_int_equal(rt_read_queue_line(kit_view(k), subscription, &line), RT_OK);
    assert_int_equal(line.counts.scheduled, 1);
    assert_int_equal(line.next_due_ms, KIT_START_MS + 5000);
    assert_int_equal(line.oldest_ms, KIT_START_MS + 5000);
    const rt_id jobs = kit_metadata(k, "q0").jobs; // before the view, which it would close
    assert_int_equal(rt_read_queue_line(kit_view(k), jobs, &line), RT_OK);
    assert_int_equal(line.counts.free, 1);
    assert_true(line.next_due_ms == INT64_MAX);
    assert_int_equal(line.oldest_ms, KIT_START_MS + 5000);
    assert_int_equal(rt_read_queue_line(kit_view(k), 424242, &line), RT_E_ABSENT);
}

static void queue__label_is_cut_at_a_whole_character(void **state) {
    kit *k = *state;
    char uri[600];
    memset(uri, 'x', sizeof uri);
    // "p/q/" leaves 508 bytes, 254 of these characters; one byte more before them shifts the cut into one.
    for (size_t i = 0; i + 1 < sizeof uri; i += 2) memcpy(uri + i, "\xc3\xa4", 2);
    rt_str label = rt_queue_label(&k->out, RT_STR("p"), RT_STR("q"), (rt_str){.ptr = uri, .len = sizeof uri});
    assert_int_equal(label.len, 512);
    label = rt_queue_label(&k->out, RT_STR("pp"), RT_STR("q"), (rt_str){.ptr = uri, .len = sizeof uri});
    assert_int_equal(label.len, 511);
    label = rt_queue_label(&k->out, RT_STR("p"), RT_STR("q"), RT_STR_EMPTY);
    assert_true(rt_str_eq(label, RT_STR("p/q")));
}

static void queue__names_that_are_too_long_name_nothing(void **state) {
    kit *k = *state;
    char name[300];
    memset(name, 'x', sizeof name);
    const rt_str tenant = {.ptr = name, .len = RT_TENANT_MAX + 1}, queue = {.ptr = name, .len = RT_QUEUE_TITLE_MAX + 1};
    rt_metadata m;
    uint64_t version;
    assert_int_equal(rt_read_metadata(kit_view(k), &k->out, tenant, RT_STR("q"), &m, &version), RT_E_ABSENT);
    assert_int_equal(rt_read_metadata(kit_view(k), &k->out, RT_STR("p"), queue, &m, &version), RT_E_ABSENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_BOTH(queue__create_stores_metadata_and_repeats_untouched),
        KIT_BOTH(queue__lazily_created_has_empty_metadata),
        KIT_BOTH(queue__replace_keeps_identity_and_minds_the_version),
        KIT_BOTH(queue__delete_takes_messages_and_subscriptions_along),
        KIT_BOTH(queue__deleted_and_made_anew_is_another_one),
        KIT_BOTH(queue__delete_of_one_with_many_subscriptions_goes_on_by_cursor),
        KIT_BOTH(queue__purge_of_messages_empties_it_at_once_for_readers),
        KIT_BOTH(queue__purge_of_subscriptions_leaves_messages),
        KIT_BOTH(queue__purge_of_many_subscriptions_hides_all_and_spares_who_comes_back),
        KIT_BOTH(queue__pause_is_kept_in_its_record),
        KIT_BOTH(queue__listing_is_of_one_tenant_by_name),
        KIT_BOTH(queue__lines_tell_counts_and_times),
        KIT_CALM(queue__label_is_cut_at_a_whole_character),
        KIT_CALM(queue__names_that_are_too_long_name_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
