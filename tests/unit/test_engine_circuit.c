/* Circuits, pace and rate on a whole engine: what they hold up, and when they let go. */
#include "call_rig.h"

/* Fails attempts until the circuit opens. */
static void trip(rig *r) {
    for (int i = 0; i < 100 && rig_circuit(r) == RT_CIRCUIT_CLOSED; i++) rig_answer_all(r, 503);
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_OPEN);
}

/* ---- circuit ------------------------------------------------------------------------------------------- */

static void circuit__opens_when_enough_attempts_have_failed(void **state) {
    rig *r = *state;
    rig_put(r, rig_type("http://t/"));
    rt_id id;
    rig_schedule(r, 1, &id);
    for (int i = 0; i < 3; i++) rig_answer_all(r, 503);
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_CLOSED); // three say nothing yet
    rig_answer_all(r, 503);
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_OPEN);
    assert_int_equal(r->count, 0);
    assert_int_equal(rig_job(r, id).attempt, 4);
    const rt_brakes b = rig_queue(r).brakes;
    assert_int_equal(b.opened_ms, START_MS);
    assert_int_equal(b.circuit_until_ms, START_MS + 5000);
    rig_pass(r, 4999);
    assert_int_equal(r->started, 4);
    assert_int_equal(rig_job(r, id).attempt, 4); // untouched
}

static void circuit__stays_closed_while_enough_succeed(void **state) {
    rig *r = *state;
    rig_put(r, rig_type("http://t/"));
    for (int i = 0; i < 30; i++) {
        rig_schedule(r, 1, NULL);
        rig_answer(r, i % 3 == 0 ? 503 : 200, 0);
        rig_answer_all(r, 200);
    }
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_CLOSED);
}

static void circuit__probes_after_its_sleep_and_closes_when_they_succeed(void **state) {
    rig *r = *state;
    rig_put(r, rig_type("http://t/"));
    rig_schedule(r, 20, NULL);
    trip(r);
    assert_int_equal(r->count, 0);
    const uint32_t before = r->started;
    rig_pass(r, 5000);
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_HALF_OPEN);
    assert_true(r->count >= 1 && r->count <= 3);
    for (int i = 0; i < 2; i++) {
        rig_answer(r, 200, 0);
        assert_int_equal(rig_circuit(r), RT_CIRCUIT_HALF_OPEN);
        assert_true(r->started - before <= 3);
    }
    rig_answer(r, 200, 0);
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_CLOSED);
    assert_int_equal(rig_queue(r).brakes.opened_ms, 0);
    for (int i = 0; i < 20; i++) rig_answer_all(r, 200);
    rt_counts counts;
    rt_view *v = rt_memory_disk_view(r->disk);
    assert_int_equal(rt_view_counts(v, rig_queue(r).id, &counts), RT_OK);
    rt_view_close(v);
    assert_int_equal(counts.done, 20);
}

static void circuit__sleeps_twice_as_long_when_a_probe_fails(void **state) {
    rig *r = *state;
    rt_call_type like = rig_type("http://t/");
    like.circuit.probes = 1;
    like.circuit.maximum_sleep_s = 15;
    rig_put(r, like);
    rig_schedule(r, 5, NULL);
    trip(r);
    const int64_t sleeps[] = {5000, 10000, 15000, 15000};
    for (int i = 0; i < 4; i++) {
        const uint32_t before = r->started;
        assert_int_equal(rig_queue(r).brakes.sleep_ms, sleeps[i]);
        rig_pass(r, sleeps[i] - 1);
        assert_int_equal(r->started, before);
        rig_pass(r, 1);
        assert_int_equal(rig_circuit(r), RT_CIRCUIT_HALF_OPEN);
        assert_int_equal(r->count, 1);
        rig_answer(r, 503, 0);
        assert_int_equal(rig_circuit(r), RT_CIRCUIT_OPEN);
    }
    assert_int_equal(rig_queue(r).brakes.opened_ms, START_MS);
}

static void circuit__survives_a_restart(void **state) {
    rig *r = *state;
    rig_put(r, rig_type("http://t/"));
    rig_schedule(r, 2, NULL);
    trip(r);
    const uint32_t before = r->started;
    rig_pass(r, 2000);
    rig_restart(r);
    rig_pass(r, 2999);
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_OPEN);
    assert_int_equal(r->started, before);
    rig_pass(r, 1);
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_HALF_OPEN);
    rig_restart(r); // the probes are lost: others go
    rig_pass(r, 0);
    assert_true(r->count > 0);
}

static void circuit__slow_answers_open_it_too(void **state) {
    rig *r = *state;
    rt_call_type like = rig_type("http://t/");
    like.circuit.slow_call_s = 2;
    like.circuit.slow_call_rate = 0.5;
    rig_put(r, like);
    rig_schedule(r, 6, NULL);
    for (int i = 0; i < 4; i++) rig_answer(r, 200, i < 2 ? 2000 : 1999);
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_OPEN);
}

static void circuit__releases_at_a_rate_after_closing(void **state) {
    rig *r = *state;
    rt_call_type like = rig_type("http://t/");
    like.circuit.release_per_s = 10;
    like.circuit.probes = 1;
    rig_put(r, like);
    rig_schedule(r, 100, NULL);
    trip(r);
    rig_pass(r, 5000);
    rig_answer(r, 200, 0);
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_CLOSED);
    rig_answer_all(r, 200);
    const uint32_t before = r->started;
    for (int i = 0; i < 30; i++) {
        rig_pass(r, 100);
        rig_answer_all(r, 200);
    }
    const uint32_t went = r->started - before;
    assert_true(went >= 28 && went <= 41); // three seconds' worth, and what was saved up
}

static void circuit__what_waits_too_long_behind_it_is_dead(void **state) {
    rig *r = *state;
    rt_call_type like = rig_type("http://t/");
    like.circuit.max_open_s = 60;
    like.circuit.sleep_s = like.circuit.maximum_sleep_s = 1000;
    rig_put(r, like);
    rt_id ids[3], late;
    rig_schedule(r, 3, ids);
    trip(r);
    rig_pass(r, 30000);
    rig_schedule(r, 1, &late);
    rig_pass(r, 29999);
    for (int i = 0; i < 3; i++) assert_int_equal(rig_job(r, ids[i]).state, RT_JOB_SCHEDULED);
    rig_restart(r);
    rig_pass(r, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rig_job(r, ids[i]).state, RT_JOB_DEAD);
        assert_int_equal(rig_job(r, ids[i]).reason, RT_REASON_CIRCUIT_OPEN);
    }
    rig_pass(r, 29999);
    assert_int_equal(rig_job(r, late).state, RT_JOB_SCHEDULED);
    rig_pass(r, 1);
    assert_int_equal(rig_job(r, late).state, RT_JOB_DEAD);
}

static void circuit__forced_by_an_operator_stays_so_until_auto(void **state) {
    rig *r = *state;
    rig_put(r, rig_type("http://t/"));
    rig_schedule(r, 5, NULL);
    rig_order(r, RT_CIRCUIT_FORCE_CLOSED);
    for (int i = 0; i < 20; i++) rig_answer_all(r, 503);
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_CLOSED);
    rig_order(r, RT_CIRCUIT_FORCE_OPEN);
    rig_answer_all(r, 503);
    const uint32_t before = r->started;
    rig_restart(r);
    rig_pass(r, INT64_C(100) * 86400 * 1000);
    assert_int_equal(r->started, before);
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_OPEN);
    rig_order(r, RT_CIRCUIT_AUTO);
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_HALF_OPEN);
    assert_true(r->count > 0);
    for (int i = 0; i < 10; i++) rig_answer_all(r, 200);
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_CLOSED);
}

static void circuit__switched_off_by_its_type_lets_go_at_once(void **state) {
    rig *r = *state;
    rt_call_type like = rig_type("http://t/");
    rig_put(r, like);
    rig_schedule(r, 2, NULL);
    trip(r);
    like.circuit.enabled = false;
    rig_put(r, like);
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_CLOSED);
    assert_true(r->count > 0);
}

static void circuit__of_a_type_that_is_deleted_holds_up_nothing(void **state) {
    rig *r = *state;
    rig_put(r, rig_type("http://t/"));
    rig_order(r, RT_CIRCUIT_FORCE_OPEN);
    rt_id ids[3];
    rig_schedule(r, 3, ids);
    assert_int_equal(r->started, 0);
    rt_call_type_delete c;
    rt_call_type_delete_init(&c);
    c.tenant = RT_STR("p");
    c.name = RT_STR("t");
    assert_int_equal(rig_run(r, &c.cmd), RT_E_FENCED);
    c.force = true;
    // One more comes in in the same step, and is still in the FIFO when the type goes.
    rt_call_item item;
    rt_calls_schedule s;
    rig_schedule_init(&s, &item);
    bool done;
    s.cmd.done = c.cmd.done;
    s.cmd.ctx = &done;
    rt_engine_submit(r->engine, &s.cmd);
    assert_int_equal(rig_run(r, &c.cmd), RT_OK);
    rig_pass(r, 1000);
    for (int i = 0; i < 3; i++) assert_int_equal(rig_job(r, ids[i]).state, RT_JOB_DONE);
    assert_int_equal(rig_job(r, item.id).state, RT_JOB_DONE);
}

/* ---- workers ------------------------------------------------------------------------------------------- */

static void workers__feed_the_circuit_and_wait_for_it(void **state) {
    rig *r = *state;
    rig_put(r, rig_type(""));
    rig_schedule(r, 10, NULL);
    const rt_call_claim c = rig_claim(r, 4);
    assert_int_equal(c.count, 4);
    for (int i = 0; i < 4; i++) rig_end(r, &c.calls[i], RT_CALL_FAIL);
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_OPEN);
    assert_int_equal(rig_claim(r, 20).count, 0);
    rt_call_claim waits;
    rig_claim_init(r, &waits, 20);
    waits.wait_until_ms = r->now_ms + 60000;
    bool done;
    rig_submit(r, &waits.cmd, &done);
    rig_pass(r, 4999);
    assert_false(done);
    rig_pass(r, 1);
    assert_true(done);
    assert_int_equal(waits.count, 3); // the probes
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_HALF_OPEN);
    assert_int_equal(rig_claim(r, 20).count, 0);
    for (int i = 0; i < 3; i++) rig_end(r, &waits.calls[i], RT_CALL_FINISH);
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_CLOSED);
    assert_int_equal(rig_claim(r, 20).count, 7);
}

static void workers__outcomes_of_before_are_no_probes(void **state) {
    rig *r = *state;
    rt_call_type like = rig_type("");
    like.circuit.probes = 10;
    rig_put(r, like);
    rig_schedule(r, 20, NULL);
    const rt_call_claim old = rig_claim(r, 8);
    for (int i = 0; i < 4; i++) rig_end(r, &old.calls[i], RT_CALL_FAIL);
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_OPEN);
    rig_end(r, &old.calls[4], RT_CALL_FINISH); // while it is open an end means nothing
    rig_pass(r, 5000);
    const rt_call_claim probes = rig_claim(r, 20);
    assert_int_equal(probes.count, 7); // three are under way still
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_HALF_OPEN);
    rig_end(r, &old.calls[5], RT_CALL_FAIL);
    rig_end(r, &old.calls[6], RT_CALL_FINISH);
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_HALF_OPEN);
    assert_int_equal(rig_queue(r).brakes.probes, 0);
    rig_end(r, &probes.calls[0], RT_CALL_FINISH);
    assert_int_equal(rig_queue(r).brakes.probes, 1);
    rig_end(r, &probes.calls[1], RT_CALL_FAIL);
    assert_int_equal(rig_circuit(r), RT_CIRCUIT_OPEN);
}

static void workers__wait_for_the_rate(void **state) {
    rig *r = *state;
    rt_call_type like = rig_type("");
    like.rate_per_s = 5;
    rig_put(r, like);
    rig_schedule(r, 20, NULL);
    assert_int_equal(rig_claim(r, 20).count, 5);
    assert_int_equal(rig_claim(r, 20).count, 0);
    rt_call_claim waits;
    rig_claim_init(r, &waits, 20);
    waits.wait_until_ms = r->now_ms + 60000;
    bool done;
    rig_submit(r, &waits.cmd, &done);
    rig_pass(r, 199);
    assert_false(done);
    rig_pass(r, 1);
    assert_true(done);
    assert_int_equal(waits.count, 1);
}

static void workers__that_wait_get_what_is_scheduled_or_retried(void **state) {
    rig *r = *state;
    rig_put(r, rig_type(""));
    rt_call_claim waits;
    for (int i = 0; i < 2; i++) {
        rig_claim_init(r, &waits, 20);
        waits.wait_until_ms = r->now_ms + 60000;
        bool done;
        rig_submit(r, &waits.cmd, &done);
        assert_false(done);
        rig_schedule(r, 1, NULL);
        assert_true(done);
        assert_int_equal(waits.count, 1);
    }
}

/* ---- pace and rate ------------------------------------------------------------------------------------- */

static void pace__grows_with_failures_and_shrinks_with_successes(void **state) {
    rig *r = *state;
    rt_call_type like = rig_type("http://t/");
    like.circuit.enabled = false;
    like.pace = (rt_pace_settings){.enabled = true, .initial_ms = 100, .maximum_ms = 400};
    rig_put(r, like);
    rig_schedule(r, 20, NULL);
    rig_answer_all(r, 503);
    const int64_t pace_ms = rig_queue(r).brakes.pace_ms;
    assert_true(pace_ms >= 100);
    while (r->count > 0) rig_answer(r, 503, 0);
    for (int i = 0; i < 4; i++) { // to the maximum
        rig_pass(r, rig_queue(r).brakes.pace_until_ms - r->now_ms);
        assert_int_equal(r->count, 1); // one after the other
        rig_answer_all(r, 503);
    }
    assert_int_equal(rig_queue(r).brakes.pace_ms, 400);
    const uint32_t before = r->started;
    rig_pass(r, 399);
    assert_int_equal(r->started, before);
    rig_pass(r, 1);
    assert_int_equal(r->count, 1);
    rig_answer_all(r, 200);
    assert_int_equal(rig_queue(r).brakes.pace_ms, 200);
    rig_restart(r);
    rig_pass(r, 199);
    assert_int_equal(r->count, 0);
    rig_pass(r, 1);
    rig_answer_all(r, 200);
    assert_int_equal(rig_queue(r).brakes.pace_ms, 100);
    rig_pass(r, 100);
    rig_answer_all(r, 200);
    assert_int_equal(rig_queue(r).brakes.pace_ms, 0);
    assert_true(r->count >= 1);
}

static void rate__holds_starts(void **state) {
    rig *r = *state;
    rt_call_type like = rig_type("http://t/");
    like.rate_per_s = 10;
    rig_put(r, like);
    rig_schedule(r, 60, NULL);
    rig_answer_all(r, 200);
    for (int i = 0; i < 100; i++) {
        rig_pass(r, 10);
        rig_answer_all(r, 200);
    }
    assert_true(r->started >= 18 && r->started <= 21); // ten at once, ten in the second after
    like.rate_per_s = 0;
    rig_put(r, like);
    for (int i = 0; i < 20; i++) rig_answer_all(r, 200);
    assert_int_equal(r->started, 60);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(circuit__opens_when_enough_attempts_have_failed),
        CASE(circuit__stays_closed_while_enough_succeed),
        CASE(circuit__probes_after_its_sleep_and_closes_when_they_succeed),
        CASE(circuit__sleeps_twice_as_long_when_a_probe_fails),
        CASE(circuit__survives_a_restart),
        CASE(circuit__slow_answers_open_it_too),
        CASE(circuit__releases_at_a_rate_after_closing),
        CASE(circuit__what_waits_too_long_behind_it_is_dead),
        CASE(circuit__forced_by_an_operator_stays_so_until_auto),
        CASE(circuit__switched_off_by_its_type_lets_go_at_once),
        CASE(circuit__of_a_type_that_is_deleted_holds_up_nothing),
        CASE(workers__feed_the_circuit_and_wait_for_it),
        CASE(workers__outcomes_of_before_are_no_probes),
        CASE(workers__wait_for_the_rate),
        CASE(workers__that_wait_get_what_is_scheduled_or_retried),
        CASE(pace__grows_with_failures_and_shrinks_with_successes),
        CASE(rate__holds_starts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
