/* Subscriptions as zaqar-api.md §7 has them: the rules of uniqueness, ttl, confirmation, removal. */
#include "engine_kit.h"

/* ---- helpers ----------------------------------------------------------------------------------------- */

static void write_body(rt_subscription_create *c, rt_id id, int64_t expires_ms, rt_arena *arena,
                       rt_str *body) {
    (void)c;
    *body = rt_arena_printf(arena, "confirm %d until %lld", id != 0, (long long)expires_ms);
}

static rt_subscription_create creation(const char *uri, uint32_t ttl_s) {
    rt_subscription_create c;
    rt_subscription_create_init(&c);
    c.tenant = RT_STR("p");
    c.queue = RT_STR("q");
    c.like = (rt_subscription){.uri = rt_str_of(uri), .ttl_s = ttl_s, .options_json = RT_STR("{}")};
    return c;
}

static rt_code read_one(kit *k, rt_id id, rt_subscription *out, uint64_t *version) {
    const rt_id queue = kit_metadata(k, "q").id;
    return rt_read_subscription(kit_view(k), &k->out, queue, id, k->now_ms, out, version);
}

static rt_code confirm(kit *k, rt_id id, bool confirmed, const char *goodbye) {
    rt_subscription_confirm c;
    rt_subscription_confirm_init(&c);
    c.tenant = RT_STR("p");
    c.queue = RT_STR("q");
    c.id = id;
    c.confirmed = confirmed;
    c.goodbye = rt_str_of(goodbye);
    return kit_run(k, &c.cmd);
}

static rt_code delete(kit *k, rt_id id) {
    rt_subscription_delete c;
    rt_subscription_delete_init(&c);
    c.tenant = RT_STR("p");
    c.queue = RT_STR("q");
    c.id = id;
    return kit_run(k, &c.cmd);
}

static rt_subscription_patch patch_of(rt_id id, uint64_t version) {
    rt_subscription_patch c;
    rt_subscription_patch_init(&c);
    c.tenant = RT_STR("p");
    c.queue = RT_STR("q");
    c.id = id;
    c.version = version;
    return c;
}

typedef struct words {
    rt_job jobs[8];
    uint32_t count;
} words;

static bool add_word(void *ctx, const rt_job *job) {
    words *w = ctx;
    if ((job->flags & RT_JOB_CONFIRMATION) && w->count < 8) w->jobs[w->count++] = *job;
    return true;
}

/* What waits to be said to subscribers. */
static words words_of(kit *k) {
    words w = {.count = 0};
    const rt_job_range range = {.index = RT_INDEX_READY};
    assert_int_equal(rt_view_jobs(kit_view(k), &range, add_word, &w), RT_OK);
    return w;
}

static void assert_body(kit *k, rt_id id, const char *want) {
    rt_str body;
    assert_int_equal(rt_view_body(kit_view(k), id, &body), RT_OK);
    assert_int_equal(body.len, strlen(want));
    assert_memory_equal(body.ptr, want, body.len);
}

/* ---- creating ---------------------------------------------------------------------------------------- */

static void subscription__create_makes_its_queue_and_that_of_the_messages(void **state) {
    kit *k = *state;
    const rt_id id = kit_subscribe(k, "q", "http://a/");
    const rt_metadata m = kit_metadata(k, "q");
    rt_subscription s;
    uint64_t version;
    assert_int_equal(read_one(k, id, &s, &version), RT_OK);
    assert_int_equal(version, 1);
    assert_int_equal(s.queue, m.id);
    assert_true(rt_str_eq(s.uri, RT_STR("http://a/")));
    assert_true(rt_str_eq(s.tenant, RT_STR("p")));
    assert_true(rt_str_eq(s.queue_name, RT_STR("q")));
    assert_int_equal(s.created_ms, KIT_START_MS);
    assert_false(s.confirmed);
    rt_queue queue;
    assert_int_equal(rt_view_queue(kit_view(k), id, &queue), RT_OK);
    assert_int_equal(queue.kind, RT_QUEUE_DELIVERY);
    assert_int_equal(queue.owner, m.id);
    assert_true(rt_str_eq(queue.name, RT_STR("p/q/http://a/")));
}

static void subscription__unconfirmed_one_is_found_again_and_asked_again(void **state) {
    kit *k = *state;
    rt_subscription_create c = creation("http://a/", 600);
    c.confirm = write_body;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    const rt_id id = c.id;
    rt_subscription_create again = creation("http://a/", 6000);
    again.confirm = write_body;
    assert_int_equal(kit_run(k, &again.cmd), RT_OK);
    assert_true(again.existed);
    assert_int_equal(again.id, id);
    rt_subscription s;
    uint64_t version;
    assert_int_equal(read_one(k, id, &s, &version), RT_OK);
    assert_int_equal(s.ttl_s, 600); // the old one's are kept
    assert_int_equal(version, 1);
    const words w = words_of(k);
    assert_int_equal(w.count, 2);
    assert_int_equal(w.jobs[0].queue, id);
    assert_int_equal(w.jobs[0].owner, kit_metadata(k, "q").id);
    assert_body(k, w.jobs[0].body, "confirm 1 until 1600000");
    assert_body(k, w.jobs[1].body, "confirm 1 until 1600000");
}

static void subscription__confirmed_one_stands_in_the_way(void **state) {
    kit *k = *state;
    const rt_id id = kit_subscribe(k, "q", "http://a/");
    assert_int_equal(confirm(k, id, true, ""), RT_OK);
    rt_subscription_create c = creation("http://a/", 600);
    assert_int_equal(kit_run(k, &c.cmd), RT_E_EXISTS);
    assert_int_not_equal(kit_subscribe(k, "q", "http://b/"), 0);
    assert_int_not_equal(kit_subscribe(k, "q2", "http://a/"), 0); // of another queue
}

static void subscription__expired_one_counts_as_absent_before_the_sweep(void **state) {
    kit *k = *state;
    rt_subscription_create first = creation("http://a/", 60);
    assert_int_equal(kit_run(k, &first.cmd), RT_OK);
    assert_int_equal(confirm(k, first.id, true, ""), RT_OK);
    k->now_ms += 60000;
    rt_subscription s;
    uint64_t version;
    assert_int_equal(read_one(k, first.id, &s, &version), RT_E_ABSENT);
    rt_subscription_create second = creation("http://a/", 60);
    assert_int_equal(kit_run(k, &second.cmd), RT_OK);
    assert_false(second.existed);
    assert_int_not_equal(second.id, first.id);
    assert_int_equal(kit_docs(k, RT_DOC_SUBSCRIPTION), 1);
    assert_int_equal(kit_docs(k, RT_DOC_SUBSCRIBER), 1);
    rt_queue queue;
    assert_int_equal(rt_view_queue(kit_view(k), first.id, &queue), RT_E_ABSENT);
    k->now_ms += 60000;
    assert_int_equal(kit_sweep(k), 1);
    assert_int_equal(kit_docs(k, RT_DOC_SUBSCRIPTION), 0);
    assert_int_equal(kit_docs(k, RT_DOC_SUBSCRIBER), 0);
}

static bool collect_id(void *ctx, const rt_subscription *s) {
    rt_id *ids = ctx;
    ids[++ids[0]] = s->id;
    return ids[0] < 2;
}

static void subscription__listing_goes_by_id_behind_a_marker(void **state) {
    kit *k = *state;
    const rt_id a = kit_subscribe(k, "q", "http://a/");
    const rt_id b = kit_subscribe(k, "q", "http://b/");
    (void)kit_subscribe(k, "q2", "http://b/");
    const rt_id c = kit_subscribe(k, "q", "http://c/");
    const rt_id queue = kit_metadata(k, "q").id;
    rt_id ids[3] = {0};
    assert_int_equal(rt_read_subscriptions(kit_view(k), queue, 0, k->now_ms, collect_id, ids), RT_OK);
    assert_int_equal(ids[0], 2);
    assert_int_equal(ids[1], a);
    assert_int_equal(ids[2], b);
    ids[0] = 0;
    assert_int_equal(rt_read_subscriptions(kit_view(k), queue, b, k->now_ms, collect_id, ids), RT_OK);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], c);
    ids[0] = 0;
    k->now_ms += 3600000;
    assert_int_equal(rt_read_subscriptions(kit_view(k), queue, 0, k->now_ms, collect_id, ids), RT_OK);
    assert_int_equal(ids[0], 0);
}

/* ---- changing ---------------------------------------------------------------------------------------- */

static void subscription__patch_replaces_what_it_names(void **state) {
    kit *k = *state;
    const rt_id id = kit_subscribe(k, "q", "http://a/");
    k->now_ms += 1000;
    rt_subscription_patch c = patch_of(id, 1);
    c.set_ttl = true;
    c.with.ttl_s = 100;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    rt_subscription s;
    uint64_t version;
    assert_int_equal(read_one(k, id, &s, &version), RT_OK);
    assert_int_equal(version, 2);
    assert_int_equal(s.ttl_s, 100);
    assert_int_equal(s.created_ms, KIT_START_MS + 1000); // its clock starts again
    c = patch_of(id, 2);
    c.set_options = true;
    c.with.options_json = RT_STR("{\"x\":1}");
    c.with.headers = RT_STR("A: b\n");
    c.with.has_policy = true;
    c.with.policy = rt_delivery_policy_default();
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_int_equal(read_one(k, id, &s, &version), RT_OK);
    assert_true(rt_str_eq(s.headers, RT_STR("A: b\n")));
    assert_true(s.has_policy);
    assert_int_equal(s.ttl_s, 100);
    k->now_ms += 100000;
    assert_int_equal(read_one(k, id, &s, &version), RT_E_ABSENT);
}

static void subscription__patch_of_a_stale_version_is_a_conflict(void **state) {
    kit *k = *state;
    const rt_id id = kit_subscribe(k, "q", "http://a/");
    rt_subscription_patch c = patch_of(id, 2);
    c.set_ttl = true;
    c.with.ttl_s = 100;
    assert_int_equal(kit_run(k, &c.cmd), RT_E_CONFLICT);
    c = patch_of(id + 1, 1);
    assert_int_equal(kit_run(k, &c.cmd), RT_E_ABSENT);
}

static void subscription__patch_moves_the_claim_to_a_uri(void **state) {
    kit *k = *state;
    const rt_id id = kit_subscribe(k, "q", "http://a/");
    assert_int_equal(confirm(k, id, true, ""), RT_OK);
    (void)kit_subscribe(k, "q", "http://b/");
    rt_subscription_patch c = patch_of(id, 2);
    c.set_uri = true;
    c.with.uri = RT_STR("http://b/");
    assert_int_equal(kit_run(k, &c.cmd), RT_E_EXISTS);
    c.with.uri = RT_STR("http://c/");
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    rt_subscription s;
    uint64_t version;
    assert_int_equal(read_one(k, id, &s, &version), RT_OK);
    assert_true(rt_str_eq(s.uri, RT_STR("http://c/")));
    assert_false(s.confirmed); // the new one was never asked
    rt_queue queue;
    assert_int_equal(rt_view_queue(kit_view(k), id, &queue), RT_OK);
    assert_true(rt_str_eq(queue.name, RT_STR("p/q/http://c/")));
    assert_int_not_equal(kit_subscribe(k, "q", "http://a/"), id); // the old one is free again
    rt_subscription_create taken = creation("http://c/", 60);
    assert_int_equal(kit_run(k, &taken.cmd), RT_OK);
    assert_int_equal(taken.id, id);
}

static void subscription__taking_a_confirmation_back_says_goodbye(void **state) {
    kit *k = *state;
    const rt_id id = kit_subscribe(k, "q", "http://a/");
    assert_int_equal(confirm(k, id, true, "unused"), RT_OK);
    rt_subscription s;
    uint64_t version;
    assert_int_equal(read_one(k, id, &s, &version), RT_OK);
    assert_true(s.confirmed);
    assert_int_equal(words_of(k).count, 0);
    assert_int_equal(confirm(k, id, false, "bye"), RT_OK);
    const words w = words_of(k);
    assert_int_equal(w.count, 1);
    assert_body(k, w.jobs[0].body, "bye");
    assert_int_equal(read_one(k, id, &s, &version), RT_OK);
    assert_false(s.confirmed);
    assert_int_equal(confirm(k, id + 1, true, ""), RT_E_ABSENT);
}

/* ---- removing ---------------------------------------------------------------------------------------- */

static void subscription__delete_ends_waiting_deliveries_and_keeps_dead_ones(void **state) {
    kit *k = *state;
    const rt_id id = kit_subscribe(k, "q", "http://a/");
    kit_busy(k, id);
    const rt_id first = kit_post(k, "q", "1");
    const rt_id second = kit_post(k, "q", "2");
    rt_job dead, waiting;
    assert_int_equal(kit_deliveries(k, first, &dead, 1), 1);
    assert_int_equal(kit_deliveries(k, second, &waiting, 1), 1);
    kit_kill(k, dead.id, RT_REASON_EXHAUSTED);
    assert_int_equal(delete(k, id), RT_OK);
    rt_subscription s;
    uint64_t version;
    assert_int_equal(read_one(k, id, &s, &version), RT_E_ABSENT);
    (void)kit_run_cursors(k);
    assert_int_equal(kit_docs(k, RT_DOC_CURSOR), 0);
    assert_int_equal(kit_job(k, waiting.id).state, RT_JOB_DONE);
    assert_int_equal(kit_last_event(k, waiting.id).reason, RT_REASON_UNSUBSCRIBED);
    assert_int_equal(kit_job(k, dead.id).state, RT_JOB_DEAD);
    rt_queue queue; // its record still names the dead one
    assert_int_equal(rt_view_queue(kit_view(k), id, &queue), RT_OK);
    assert_int_equal(queue.gone, 1);
    rt_job_delete c;
    rt_job_delete_init(&c);
    c.id = dead.id;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_int_equal(rt_view_queue(kit_view(k), id, &queue), RT_E_ABSENT);
    assert_int_equal(delete(k, id), RT_OK);
    assert_int_equal(kit_job(k, second).state, RT_JOB_FREE); // messages are not its business
}

static void subscription__without_jobs_goes_at_once(void **state) {
    kit *k = *state;
    const rt_id id = kit_subscribe(k, "q", "http://a/");
    assert_int_equal(delete(k, id), RT_OK);
    assert_int_equal(kit_docs(k, RT_DOC_CURSOR), 0);
    rt_queue queue;
    assert_int_equal(rt_view_queue(kit_view(k), id, &queue), RT_E_ABSENT);
    assert_int_not_equal(kit_subscribe(k, "q", "http://a/"), id);
}

static void subscription__many_may_end_in_the_same_sweep(void **state) {
    kit *k = *state;
    char uri[32];
    for (int i = 0; i < 100; i++) {
        (void)snprintf(uri, sizeof uri, "http://h/%d", i);
        (void)kit_subscribe(k, "q", uri);
    }
    k->now_ms += 3600000;
    assert_int_equal(kit_sweep(k), 100);
    assert_int_equal(kit_docs(k, RT_DOC_SUBSCRIPTION), 0);
    assert_int_equal(kit_docs(k, RT_DOC_SUBSCRIBER), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_BOTH(subscription__create_makes_its_queue_and_that_of_the_messages),
        KIT_BOTH(subscription__unconfirmed_one_is_found_again_and_asked_again),
        KIT_BOTH(subscription__confirmed_one_stands_in_the_way),
        KIT_BOTH(subscription__expired_one_counts_as_absent_before_the_sweep),
        KIT_BOTH(subscription__listing_goes_by_id_behind_a_marker),
        KIT_BOTH(subscription__patch_replaces_what_it_names),
        KIT_BOTH(subscription__patch_of_a_stale_version_is_a_conflict),
        KIT_BOTH(subscription__patch_moves_the_claim_to_a_uri),
        KIT_BOTH(subscription__taking_a_confirmation_back_says_goodbye),
        KIT_BOTH(subscription__delete_ends_waiting_deliveries_and_keeps_dead_ones),
        KIT_BOTH(subscription__without_jobs_goes_at_once),
        KIT_BOTH(subscription__many_may_end_in_the_same_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
