/* Calls that are too old: they die when they are, wherever they wait. */
#include "call_kit.h"

static void put_aged(kit *k, const char *name, rt_call_type like, uint32_t maximum_age_s) {
    like.delivery.maximum_age_s = maximum_age_s;
    assert_int_equal(call_put(k, name, like), RT_OK);
}

static void assert_expired(kit *k, rt_id id) {
    assert_int_equal(kit_job(k, id).state, RT_JOB_DEAD);
    assert_int_equal(kit_job(k, id).reason, RT_REASON_EXPIRED);
}

static void age__ends_what_no_worker_comes_for(void **state) {
    kit *k = *state;
    put_aged(k, "t", call_type_pull(), 60);
    const rt_id old = call_schedule(k, "t", NULL);
    k->now_ms += 30000;
    const rt_id young = call_schedule(k, "t", NULL);
    k->now_ms += 29999;
    assert_int_equal(kit_sweep(k), 0);
    k->now_ms += 1;
    assert_int_equal(kit_sweep(k), 1);
    assert_expired(k, old);
    assert_int_equal(kit_job(k, young).state, RT_JOB_FREE);
    k->now_ms += 30000;
    assert_int_equal(kit_sweep(k), 1);
    assert_expired(k, young);
}

static void age__ends_what_is_delayed_beyond_it(void **state) {
    kit *k = *state;
    put_aged(k, "t", call_type(), 60);
    rt_call_item item = {.payload = RT_STR("x"), .delay_ms = 3600000};
    assert_int_equal(call_schedule_item(k, "t", &item), RT_OK);
    k->now_ms += 60000;
    (void)kit_sweep(k);
    assert_expired(k, item.id);
}

static void age__ends_a_whole_line_one_after_the_other(void **state) {
    kit *k = *state;
    rt_call_type like = call_type();
    like.dead_type = RT_STR("graveyard");
    assert_int_equal(call_put(k, "graveyard", call_type_pull()), RT_OK);
    put_aged(k, "t", like, 60);
    rt_id ids[3];
    for (int i = 0; i < 3; i++) ids[i] = call_schedule(k, "t", "o");
    k->now_ms += 60000;
    (void)kit_sweep(k);
    for (int i = 0; i < 3; i++) assert_int_equal(kit_job(k, ids[i]).reason, RT_REASON_EXPIRED);
    // They go on as others, in the same order.
    for (int i = 0; i < 3; i++) {
        const rt_call_claim c = call_claim(k, "graveyard", 20);
        assert_int_equal(c.count, 1);
        assert_int_equal(c.calls[0].call.past, ids[i]);
        assert_int_equal(call_finish(k, c.calls[0].job.id, c.calls[0].token), RT_OK);
    }
    assert_int_equal(kit_docs(k, RT_DOC_CALL_LINE), 0);
    assert_int_equal(kit_docs(k, RT_DOC_CALL_PLACE), 0);
}

static void age__of_what_is_held_counts_when_it_comes_back(void **state) {
    kit *k = *state;
    put_aged(k, "t", call_type_pull(), 30);
    rt_id ids[3];
    for (int i = 0; i < 3; i++) ids[i] = call_schedule(k, "t", NULL);
    const rt_call_claim c = call_claim(k, "t", 20); // for 60 s
    assert_int_equal(c.count, 3);
    k->now_ms += 30000;
    assert_int_equal(kit_sweep(k), 3);
    for (int i = 0; i < 3; i++) assert_int_equal(kit_job(k, ids[i]).state, RT_JOB_LEASED);
    assert_int_equal(call_finish(k, ids[0], c.calls[0].token), RT_OK);
    assert_int_equal(kit_job(k, ids[0]).reason, RT_REASON_DELIVERED);
    assert_int_equal(call_fail(k, ids[1], c.calls[1].token), RT_OK);
    (void)kit_sweep(k);
    assert_expired(k, ids[1]);
    assert_int_equal(kit_job(k, ids[1]).attempt, 1);
    k->now_ms += 30000;
    assert_int_equal(kit_sweep(k), 1); // its worker is gone
    assert_int_equal(kit_sweep(k), 1);
    assert_expired(k, ids[2]);
}

static void age__is_the_types_as_it_is_now(void **state) {
    kit *k = *state;
    put_aged(k, "t", call_type_pull(), 60);
    const rt_id id = call_schedule(k, "t", NULL);
    put_aged(k, "t", call_type_pull(), 600);
    k->now_ms += 60000;
    assert_int_equal(kit_sweep(k), 1);
    assert_int_equal(kit_job(k, id).state, RT_JOB_FREE);
    assert_int_equal(kit_job(k, id).expires_ms, KIT_START_MS + 600000);
    put_aged(k, "t", call_type_pull(), 0);
    k->now_ms += 540000;
    assert_int_equal(kit_sweep(k), 1);
    assert_int_equal(kit_job(k, id).state, RT_JOB_FREE);
    assert_int_equal(kit_job(k, id).expires_ms, 0);
}

static void age__that_is_new_or_shorter_counts_for_what_waits(void **state) {
    kit *k = *state;
    enum { WAITING = RT_CURSOR_SLICE + 3 };
    rt_id pulled[WAITING], line[3];
    put_aged(k, "t", call_type_pull(), 0);
    put_aged(k, "u", call_type(), 600);
    for (int i = 0; i < WAITING; i++) pulled[i] = call_schedule(k, "t", NULL);
    for (int i = 0; i < 3; i++) line[i] = call_schedule(k, "u", "o");
    call_settle(k, line[0], RT_REASON_STATUS, 503);
    assert_int_equal(call_claim(k, "t", 1).count, 1);
    k->now_ms += 100000;
    put_aged(k, "t", call_type_pull(), 60); // they are older already
    put_aged(k, "u", call_type(), 120);
    assert_true(kit_run_cursors(k) >= 3);
    assert_int_equal(kit_docs(k, RT_DOC_CURSOR), 0);
    (void)kit_sweep(k);
    (void)kit_sweep(k); // the one that was held came back
    for (int i = 0; i < WAITING; i++) assert_expired(k, pulled[i]);
    for (int i = 0; i < 3; i++) assert_int_equal(kit_job(k, line[i]).state, RT_JOB_SCHEDULED);
    k->now_ms += 20000;
    (void)kit_sweep(k);
    for (int i = 0; i < 3; i++) assert_expired(k, line[i]);
}

static void age__begins_anew_when_it_is_redriven(void **state) {
    kit *k = *state;
    put_aged(k, "t", call_type_pull(), 60);
    const rt_id id = call_schedule(k, "t", NULL);
    k->now_ms += 60000;
    (void)kit_sweep(k);
    rt_dead_redrive c;
    rt_dead_redrive_init(&c);
    c.id = id;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    k->now_ms += 59999;
    assert_int_equal(kit_sweep(k), 0);
    k->now_ms += 1;
    assert_int_equal(kit_sweep(k), 1);
    assert_expired(k, id);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_BOTH(age__ends_what_no_worker_comes_for),
        KIT_BOTH(age__ends_what_is_delayed_beyond_it),
        KIT_BOTH(age__ends_a_whole_line_one_after_the_other),
        KIT_BOTH(age__of_what_is_held_counts_when_it_comes_back),
        KIT_BOTH(age__is_the_types_as_it_is_now),
        KIT_BOTH(age__that_is_new_or_shorter_counts_for_what_waits),
        KIT_BOTH(age__begins_anew_when_it_is_redriven),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
