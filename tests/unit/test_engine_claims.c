/* Claims as zaqar-api.md §6 has them: taking, grace, renewing, releasing, dead letters. */
#include "engine/calls/circuit.h"
#include "engine_kit.h"

static rt_code renew(kit *k, rt_id id, uint32_t ttl_s, uint32_t grace_s) {
    rt_claim_renew c;
    rt_claim_renew_init(&c);
    c.tenant = RT_STR("p");
    c.queue = RT_STR("q");
    c.id = id;
    c.ttl_s = ttl_s;
    c.grace_s = grace_s;
    return kit_run(k, &c.cmd);
}

static rt_code release(kit *k, const char *queue, rt_id id) {
    rt_claim_release c;
    rt_claim_release_init(&c);
    c.tenant = RT_STR("p");
    c.queue = rt_str_of(queue);
    c.id = id;
    return kit_run(k, &c.cmd);
}

static rt_code read_claim(kit *k, rt_id id, rt_lease *lease, uint32_t *count) {
    static rt_message out[RT_LEASE_JOBS_MAX];
    const rt_id jobs = kit_metadata(k, "q").jobs;
    return rt_read_claim(kit_view(k), &k->out, jobs, id, k->now_ms, lease, out, count);
}

static rt_id post_with_ttl(kit *k, const char *queue, uint32_t ttl_s) {
    rt_post_item item = {.body = RT_STR("1"), .ttl_s = ttl_s, .delay_s = -1};
    rt_post p;
    rt_post_init(&p);
    p.tenant = RT_STR("p");
    p.queue = rt_str_of(queue);
    p.items = &item;
    p.count = 1;
    assert_int_equal(kit_run(k, &p.cmd), RT_OK);
    return item.id;
}

static void claim__takes_the_first_messages_once(void **state) {
    kit *k = *state;
    rt_id ids[5];
    for (int i = 0; i < 5; i++) ids[i] = kit_post(k, "q", i == 0 ? "{\"n\":0}" : "1");
    const rt_claim_create a = kit_claim(k, "q", 3);
    assert_int_equal(a.count, 3);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(a.messages[i].job.id, ids[i]);
    assert_int_equal(a.messages[0].body.len, 7);
    assert_memory_equal(a.messages[0].body.ptr, "{\"n\":0}", 7);
    assert_int_equal(a.lease.until_ms, KIT_START_MS + 60000);
    const rt_job held = kit_job(k, ids[0]);
    assert_int_equal(held.state, RT_JOB_LEASED);
    assert_int_equal(held.lease, a.lease.id);
    assert_int_equal(held.claims, 1);
    assert_int_equal(rt_read_claim_of(kit_view(k), &held, k->now_ms), a.lease.id);
    const rt_claim_create b = kit_claim(k, "q", 20);
    assert_int_equal(b.count, 2);
    assert_int_equal(b.messages[0].job.id, ids[3]);
    assert_int_equal(kit_claim(k, "q", 20).count, 0);
    rt_lease lease;
    uint32_t count;
    assert_int_equal(read_claim(k, a.lease.id, &lease, &count), RT_OK);
    assert_int_equal(count, 3);
    assert_int_equal(lease.ttl_s, 60);
}

/* What is claimed while too much waits to be taken stays free. */
static void claim__answers_have_a_bound_together(void **state) {
    kit *k = *state;
    k->answers.bytes_max = 10;
    (void)kit_post(k, "q", "\"seven\"");
    (void)kit_post(k, "q", "\"seven\"");
    rt_claim_create a = kit_claim(k, "q", 1);
    assert_int_equal(a.count, 1);
    rt_claim_create b;
    rt_claim_create_init(&b);
    b.tenant = RT_STR("p");
    b.queue = RT_STR("q");
    b.ttl_s = b.grace_s = 60;
    b.limit = 1;
    b.arena = &k->out;
    assert_int_equal(kit_run(k, &b.cmd), RT_E_FULL);
    rt_answers_taken(&k->answers, &b.cmd);
    rt_answers_taken(&k->answers, &a.cmd);
    assert_int_equal(k->answers.bytes, 0);
    assert_int_equal(kit_run(k, &b.cmd), RT_OK);
    assert_int_equal(b.lease.jobs_count, 1);
    rt_answers_taken(&k->answers, &b.cmd);
}

static void claim__of_an_unknown_queue_has_nothing_and_creates_nothing(void **state) {
    kit *k = *state;
    assert_int_equal(kit_claim(k, "q", 20).count, 0);
    assert_int_equal(kit_docs(k, RT_DOC_METADATA), 0);
}

static void claim__message_that_would_end_first_lives_until_claim_and_grace_are_over(void **state) {
    kit *k = *state;
    const rt_id soon = post_with_ttl(k, "q", 59);
    const rt_id exact = post_with_ttl(k, "q", 60);
    assert_int_equal(kit_claim(k, "q", 2).count, 2);
    const rt_job held = kit_job(k, soon);
    assert_int_equal(held.expires_ms, KIT_START_MS + 120000);
    assert_int_equal(held.ttl_s, 120);
    // This one ends with its claim, not before it.
    assert_int_equal(kit_job(k, exact).expires_ms, KIT_START_MS + 60000);
    k->now_ms += 60000;
    (void)kit_sweep(k);
    assert_int_equal(kit_job(k, exact).state, RT_JOB_DONE);
    assert_int_equal(kit_job(k, soon).state, RT_JOB_FREE);
    k->now_ms += 60000;
    (void)kit_sweep(k);
    assert_int_equal(kit_job(k, soon).state, RT_JOB_DONE);
}

static void claim__end_frees_its_messages_to_their_places(void **state) {
    kit *k = *state;
    const rt_id one = kit_post(k, "q", "1");
    const rt_id two = kit_post(k, "q", "2");
    const rt_claim_create c = kit_claim(k, "q", 1);
    k->now_ms += 60000;
    rt_lease lease;
    uint32_t count;
    assert_int_equal(read_claim(k, c.lease.id, &lease, &count), RT_E_ABSENT);
    assert_int_equal(renew(k, c.lease.id, 60, 60), RT_E_ABSENT);
    assert_int_equal(kit_sweep(k), 1);
    const rt_claim_create again = kit_claim(k, "q", 2);
    assert_int_equal(again.messages[0].job.id, one);
    assert_int_equal(again.messages[0].job.claims, 2);
    assert_int_equal(again.messages[1].job.id, two);
}

static void claim__renewal_starts_the_time_again(void **state) {
    kit *k = *state;
    const rt_id id = post_with_ttl(k, "q", 100);
    const rt_claim_create c = kit_claim(k, "q", 1);
    k->now_ms += 50000;
    assert_int_equal(renew(k, c.lease.id, 300, 60), RT_OK);
    rt_lease lease;
    uint32_t count;
    assert_int_equal(read_claim(k, c.lease.id, &lease, &count), RT_OK);
    assert_int_equal(lease.from_ms, KIT_START_MS + 50000);
    assert_int_equal(lease.until_ms, KIT_START_MS + 350000);
    assert_int_equal(lease.ttl_s, 300);
    assert_int_equal(count, 1);
    // Its message would have ended after 100 s, while it is held.
    assert_int_equal(kit_job(k, id).expires_ms, KIT_START_MS + 410000);
    k->now_ms = KIT_START_MS + 200000;
    assert_int_equal(kit_sweep(k), 0);
    assert_int_equal(kit_job(k, id).state, RT_JOB_LEASED);
    assert_int_equal(renew(k, c.lease.id + 1, 300, 60), RT_E_ABSENT);
    assert_int_equal(renew(k, 0, 300, 60), RT_E_ABSENT);
}

static void claim__release_frees_at_once_and_repeats_quietly(void **state) {
    kit *k = *state;
    const rt_id id = kit_post(k, "q", "1");
    (void)kit_post(k, "q2", "1");
    const rt_claim_create c = kit_claim(k, "q", 1);
    assert_int_equal(release(k, "q2", c.lease.id), RT_OK);
    assert_int_equal(kit_job(k, id).state, RT_JOB_LEASED); // another queue's name releases nothing
    assert_int_equal(release(k, "q", c.lease.id), RT_OK);
    assert_int_equal(kit_job(k, id).state, RT_JOB_FREE);
    assert_int_equal(kit_job(k, id).claims, 1); // releasing does not lower the count
    assert_int_equal(release(k, "q", c.lease.id), RT_OK);
    assert_int_equal(kit_claim(k, "q", 1).count, 1);
}

static void claim__end_leaves_what_another_claim_holds_meanwhile(void **state) {
    kit *k = *state;
    const rt_id id = kit_post(k, "q", "1");
    const rt_claim_create first = kit_claim(k, "q", 1);
    k->now_ms += 60000;
    assert_int_equal(kit_sweep(k), 1);
    const rt_claim_create second = kit_claim(k, "q", 1);
    assert_int_equal(release(k, "q", first.lease.id), RT_OK);
    assert_int_equal(kit_job(k, id).lease, second.lease.id);
}

static void claim__passes_over_and_ends_what_is_over(void **state) {
    kit *k = *state;
    const rt_id over = post_with_ttl(k, "q", 60);
    const rt_id good = kit_post(k, "q", "1");
    k->now_ms += 60000;
    const rt_claim_create c = kit_claim(k, "q", 1);
    assert_int_equal(c.count, 1);
    assert_int_equal(c.messages[0].job.id, good);
    assert_int_equal(kit_job(k, over).state, RT_JOB_DONE);
    assert_int_equal(kit_last_event(k, over).reason, RT_REASON_EXPIRED);
}

static void claim__a_message_and_its_claim_may_end_in_the_same_sweep(void **state) {
    kit *k = *state;
    const rt_id id = post_with_ttl(k, "q", 70);
    assert_int_equal(kit_claim(k, "q", 1).count, 1);
    k->now_ms += 1000000;
    assert_int_equal(kit_sweep(k), 2);
    assert_int_equal(kit_job(k, id).state, RT_JOB_DONE);
}

static void claim__of_a_paused_queue_waits(void **state) {
    kit *k = *state;
    (void)kit_post(k, "q", "1");
    rt_queue_pause pause;
    rt_queue_pause_init(&pause);
    pause.id = kit_metadata(k, "q").jobs;
    pause.until_ms = KIT_START_MS + 5000;
    assert_int_equal(kit_run(k, &pause.cmd), RT_OK);
    assert_int_equal(kit_claim(k, "q", 1).count, 0);
    k->now_ms += 5000;
    assert_int_equal(kit_claim(k, "q", 1).count, 1);
}

static void claim__of_a_queue_whose_circuit_is_forced_open_waits(void **state) {
    kit *k = *state;
    (void)kit_post(k, "q", "1");
    rt_queue_circuit c;
    rt_queue_circuit_init(&c);
    c.id = kit_metadata(k, "q").jobs;
    c.order = RT_CIRCUIT_FORCE_OPEN;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_int_equal(kit_claim(k, "q", 1).count, 0);
    c.order = RT_CIRCUIT_AUTO;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_int_equal(kit_claim(k, "q", 1).count, 1);
}

/* ---- dead letters ------------------------------------------------------------------------------------ */

static void claim__claimed_too_often_goes_to_the_dead_letter_queue(void **state) {
    kit *k = *state;
    kit_create_queue(k, "q", (rt_metadata){.max_claim_count = 2, .dead_letter_queue = RT_STR("dlq")});
    const rt_id id = kit_post(k, "q", "1");
    for (int i = 0; i < 2; i++) {
        const rt_claim_create c = kit_claim(k, "q", 1);
        assert_int_equal(c.count, 1);
        assert_int_equal(release(k, "q", c.lease.id), RT_OK);
    }
    const rt_id fresh = kit_post(k, "q", "2");
    const rt_claim_create c = kit_claim(k, "q", 1);
    assert_int_equal(c.count, 1); // the next one takes its place
    assert_int_equal(c.messages[0].job.id, fresh);
    const rt_job moved = kit_job(k, id);
    assert_int_equal(moved.queue, kit_metadata(k, "dlq").jobs);
    assert_int_equal(moved.state, RT_JOB_FREE);
    assert_int_equal(moved.placed_ms, KIT_START_MS);
    assert_int_equal(moved.expires_ms, KIT_START_MS + 3600000);
    const rt_event event = kit_last_event(k, id);
    assert_int_equal(event.type, RT_EVENT_MOVED);
    assert_int_equal(event.reason, RT_REASON_CLAIMS_EXCEEDED);
    assert_int_equal(event.queue, kit_metadata(k, "q").jobs);
    const rt_claim_create there = kit_claim(k, "dlq", 1);
    assert_int_equal(there.count, 1);
    assert_int_equal(there.messages[0].job.id, id);
    assert_int_equal(there.messages[0].job.claims, 1);
}

static void claim__all_candidates_moved_is_an_empty_claim(void **state) {
    kit *k = *state;
    rt_metadata like = {.max_claim_count = 1, .dead_letter_queue = RT_STR("dlq")};
    like.dead_letter_ttl_s = 100;
    kit_create_queue(k, "q", like);
    const rt_id id = kit_post(k, "q", "1");
    assert_int_equal(release(k, "q", kit_claim(k, "q", 1).lease.id), RT_OK);
    k->now_ms += 1000;
    const rt_claim_create c = kit_claim(k, "q", 1);
    assert_int_equal(c.count, 0);
    const rt_job moved = kit_job(k, id);
    assert_int_equal(moved.ttl_s, 100);
    assert_int_equal(moved.expires_ms, KIT_START_MS + 101000);
}

static void claim__without_both_settings_nothing_is_dead_lettered(void **state) {
    kit *k = *state;
    kit_create_queue(k, "q", (rt_metadata){.max_claim_count = 1});
    kit_create_queue(k, "q2", (rt_metadata){.dead_letter_queue = RT_STR("dlq")});
    kit_create_queue(k, "q3", (rt_metadata){.max_claim_count = 1, .dead_letter_queue = RT_STR("q3")});
    const char *names[] = {"q", "q2", "q3"};
    for (int q = 0; q < 3; q++) {
        (void)kit_post(k, names[q], "1");
        for (int i = 0; i < 3; i++) {
            const rt_claim_create c = kit_claim(k, names[q], 1);
            assert_int_equal(c.count, 1);
            assert_int_equal(release(k, names[q], c.lease.id), RT_OK);
        }
    }
}

static void claim__what_cannot_be_a_queues_name_is_no_dead_letter_queue(void **state) {
    kit *k = *state;
    const char *const odd[] = {"a\"b", "a b", "~topic", "\xC3\xA9"};
    for (size_t q = 0; q < sizeof odd / sizeof *odd; q++) {
        const char name[] = {(char)('a' + q), '\0'};
        kit_create_queue(k, name, (rt_metadata){.max_claim_count = 1, .dead_letter_queue = rt_str_of(odd[q])});
        (void)kit_post(k, name, "1");
        for (int i = 0; i < 3; i++) {
            const rt_claim_create c = kit_claim(k, name, 1);
            assert_int_equal(c.count, 1);
            assert_int_equal(release(k, name, c.lease.id), RT_OK);
        }
    }
}

static void claim__moves_a_bounded_number_at_once(void **state) {
    kit *k = *state;
    kit_create_queue(k, "q", (rt_metadata){.max_claim_count = 1, .dead_letter_queue = RT_STR("dlq")});
    static rt_post_item items[300];
    for (int i = 0; i < 300; i++) items[i] = (rt_post_item){.body = RT_STR("1"), .delay_s = -1};
    rt_post p;
    rt_post_init(&p);
    p.tenant = RT_STR("p");
    p.queue = RT_STR("q");
    p.items = items;
    p.count = 300;
    assert_int_equal(kit_run(k, &p.cmd), RT_OK);
    for (int i = 0; i < 15; i++) assert_int_equal(kit_claim(k, "q", 20).count, 20);
    k->now_ms += 60000;
    assert_int_equal(kit_sweep(k), 15);
    assert_int_equal(kit_claim(k, "q", 20).count, 0);
    assert_int_equal(kit_counts(k, kit_metadata(k, "dlq").jobs).free, 256);
    assert_int_equal(kit_claim(k, "q", 20).count, 0);
    assert_int_equal(kit_counts(k, kit_metadata(k, "dlq").jobs).free, 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_BOTH(claim__takes_the_first_messages_once),
        KIT_BOTH(claim__of_an_unknown_queue_has_nothing_and_creates_nothing),
        KIT_BOTH(claim__message_that_would_end_first_lives_until_claim_and_grace_are_over),
        KIT_BOTH(claim__end_frees_its_messages_to_their_places),
        KIT_BOTH(claim__renewal_starts_the_time_again),
        KIT_BOTH(claim__release_frees_at_once_and_repeats_quietly),
        KIT_BOTH(claim__end_leaves_what_another_claim_holds_meanwhile),
        KIT_BOTH(claim__passes_over_and_ends_what_is_over),
        KIT_BOTH(claim__a_message_and_its_claim_may_end_in_the_same_sweep),
        KIT_BOTH(claim__of_a_paused_queue_waits),
        KIT_BOTH(claim__of_a_queue_whose_circuit_is_forced_open_waits),
        KIT_BOTH(claim__claimed_too_often_goes_to_the_dead_letter_queue),
        KIT_BOTH(claim__all_candidates_moved_is_an_empty_claim),
        cmocka_unit_test_setup_teardown(claim__answers_have_a_bound_together, kit_setup, kit_teardown),
        KIT_BOTH(claim__without_both_settings_nothing_is_dead_lettered),
        KIT_BOTH(claim__what_cannot_be_a_queues_name_is_no_dead_letter_queue),
        KIT_BOTH(claim__moves_a_bounded_number_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
