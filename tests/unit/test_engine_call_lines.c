/* Calls in line by their order key, and what becomes of the dead. */
#include "call_kit.h"

/* ---- lines --------------------------------------------------------------------------------------------- */

static void line__the_next_starts_after_the_one_before_it_ended(void **state) {
    kit *k = *state;
    assert_int_equal(call_put(k, "t", call_type()), RT_OK);
    const rt_id a = call_schedule(k, "t", "o"), b = call_schedule(k, "t", "o"),
                c = call_schedule(k, "t", "o");
    const rt_id other = call_schedule(k, "t", "o2"), free = call_schedule(k, "t", NULL);
    assert_int_equal(kit_job(k, a).state, RT_JOB_READY);
    assert_int_equal(kit_job(k, other).state, RT_JOB_READY);
    assert_int_equal(kit_job(k, free).state, RT_JOB_READY);
    const rt_job waits = kit_job(k, b);
    assert_true(rt_line_waits(&waits));
    call_settle(k, a, RT_REASON_STATUS, 503); // it is tried again: nobody overtakes it
    assert_int_equal(kit_job(k, b).due_ms, RT_LINE_DUE_MS);
    k->now_ms += 1000;
    call_settle(k, a, RT_REASON_STATUS, 200);
    assert_int_equal(kit_job(k, b).state, RT_JOB_SCHEDULED);
    assert_int_equal(kit_job(k, b).due_ms, KIT_START_MS + 1000);
    assert_int_equal(kit_job(k, c).due_ms, RT_LINE_DUE_MS);
    call_settle(k, b, RT_REASON_STATUS, 404); // death is an end too
    assert_int_equal(kit_job(k, c).due_ms, KIT_START_MS + 1000);
    call_settle(k, c, RT_REASON_STATUS, 200);
    call_settle(k, other, RT_REASON_STATUS, 200);
    assert_int_equal(kit_docs(k, RT_DOC_CALL_LINE), 0);
    assert_int_equal(kit_docs(k, RT_DOC_CALL_PLACE), 0);
}

static void line__holds_a_delay_until_its_turn(void **state) {
    kit *k = *state;
    assert_int_equal(call_put(k, "t", call_type()), RT_OK);
    const rt_id a = call_schedule(k, "t", "o");
    rt_call_item item = {.payload = RT_STR("x"), .order_key = RT_STR("o"), .delay_ms = 9000};
    assert_int_equal(call_schedule_item(k, "t", &item), RT_OK);
    assert_int_equal(kit_job(k, item.id).due_ms, RT_LINE_DUE_MS);
    call_settle(k, a, RT_REASON_STATUS, 200);
    assert_int_equal(kit_job(k, item.id).due_ms, KIT_START_MS + 9000);
}

static rt_code delete_job(kit *k, rt_id id) {
    rt_job_delete c;
    rt_job_delete_init(&c);
    c.id = id;
    return kit_run(k, &c.cmd);
}

static void line__closes_up_wherever_one_is_deleted(void **state) {
    kit *k = *state;
    assert_int_equal(call_put(k, "t", call_type()), RT_OK);
    rt_id ids[4];
    for (int i = 0; i < 4; i++) ids[i] = call_schedule(k, "t", "o");
    assert_int_equal(delete_job(k, ids[1]), RT_OK); // from the middle
    assert_int_equal(kit_job(k, ids[2]).due_ms, RT_LINE_DUE_MS);
    assert_int_equal(delete_job(k, ids[0]), RT_OK); // the head
    assert_int_equal(kit_job(k, ids[2]).due_ms, KIT_START_MS);
    assert_int_equal(delete_job(k, ids[3]), RT_OK); // the end
    call_settle(k, ids[2], RT_REASON_STATUS, 200);
    assert_int_equal(kit_docs(k, RT_DOC_CALL_LINE), 0);
}

static void redrive_one(kit *k, rt_id id, rt_code want) {
    rt_dead_redrive c;
    rt_dead_redrive_init(&c);
    c.id = id;
    assert_int_equal(kit_run(k, &c.cmd), want);
}

static void line__takes_a_redriven_one_back_by_its_id(void **state) {
    kit *k = *state;
    assert_int_equal(call_put(k, "t", call_type()), RT_OK);
    rt_id ids[3];
    for (int i = 0; i < 3; i++) ids[i] = call_schedule(k, "t", "o");
    call_settle(k, ids[0], RT_REASON_STATUS, 404);
    redrive_one(k, ids[0], RT_OK);
    assert_int_equal(kit_job(k, ids[0]).due_ms, RT_LINE_DUE_MS); // the second has its turn
    assert_int_equal(kit_job(k, ids[0]).generation, 1);
    call_settle(k, ids[1], RT_REASON_STATUS, 200);
    assert_int_equal(kit_job(k, ids[0]).due_ms, KIT_START_MS); // then it, before the third
    assert_int_equal(kit_job(k, ids[2]).due_ms, RT_LINE_DUE_MS);
    call_settle(k, ids[0], RT_REASON_STATUS, 200);
    assert_int_equal(kit_job(k, ids[2]).due_ms, KIT_START_MS);
}

static void line__many_redriven_at_once(void **state) {
    kit *k = *state;
    assert_int_equal(call_put(k, "t", call_type()), RT_OK);
    rt_id ids[5];
    for (int i = 0; i < 5; i++) ids[i] = call_schedule(k, "t", "o");
    for (int i = 0; i < 5; i++) call_settle(k, ids[i], RT_REASON_STATUS, 404);
    rt_dead_many many;
    rt_dead_many_init(&many);
    many.filter.queue = call_get(k, "t").queue;
    assert_int_equal(kit_run(k, &many.cmd), RT_OK);
    (void)kit_run_cursors(k);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(kit_job(k, ids[i]).due_ms, KIT_START_MS);
        if (i + 1 < 5) assert_int_equal(kit_job(k, ids[i + 1]).due_ms, RT_LINE_DUE_MS);
        call_settle(k, ids[i], RT_REASON_STATUS, 200);
    }
}

static void line__of_an_ordered_type_has_all_without_a_key(void **state) {
    kit *k = *state;
    rt_call_type like = call_type();
    like.ordered = true;
    assert_int_equal(call_put(k, "t", like), RT_OK);
    (void)call_schedule(k, "t", NULL);
    const rt_id b = call_schedule(k, "t", NULL), c = call_schedule(k, "t", "o");
    assert_int_equal(kit_job(k, b).due_ms, RT_LINE_DUE_MS);
    assert_int_equal(kit_job(k, c).state, RT_JOB_READY);
}

/* ---- the dead ------------------------------------------------------------------------------------------ */

static void dead__goes_on_as_a_new_call_of_its_dead_type(void **state) {
    kit *k = *state;
    rt_call_type like = call_type();
    like.dead_type = RT_STR("d");
    assert_int_equal(call_put(k, "t", like), RT_OK);
    const rt_id lone = call_schedule(k, "t", NULL);
    call_settle(k, lone, RT_REASON_STATUS, 404);
    assert_int_equal(kit_job(k, lone).state, RT_JOB_DEAD); // there is no such type yet
    assert_int_equal(call_put(k, "d", call_type_pull()), RT_OK);
    rt_call_item item = {.payload = RT_STR("x"), .reason = RT_STR("r"), .order_key = RT_STR("o")};
    assert_int_equal(call_schedule_item(k, "t", &item), RT_OK);
    call_settle(k, item.id, RT_REASON_STATUS, 404);
    assert_int_equal(kit_job(k, item.id).state, RT_JOB_DONE);
    assert_int_equal(kit_job(k, item.id).reason, RT_REASON_REJECTED);
    const rt_event moved = kit_last_event(k, item.id);
    assert_int_equal(moved.type, RT_EVENT_MOVED);
    const rt_call_claim c = call_claim(k, "d", 20);
    assert_int_equal(c.count, 1);
    assert_int_equal(c.calls[0].call.past, item.id);
    assert_true(rt_str_eq(c.calls[0].call.reason, RT_STR("r")));
    assert_true(rt_str_eq(c.calls[0].call.type, RT_STR("d")));
    assert_true(rt_str_eq(c.calls[0].call.payload, RT_STR("x")));
    assert_true(rt_str_eq(moved.text, rt_str_of(rt_id_format(0x1234, c.calls[0].job.id).s)));
}

static void dead__is_deleted_when_its_time_is_over_unless_it_was_redriven(void **state) {
    kit *k = *state;
    rt_call_type like = call_type();
    like.dead_keep_s = 60;
    assert_int_equal(call_put(k, "t", like), RT_OK);
    const rt_id a = call_schedule(k, "t", NULL), b = call_schedule(k, "t", NULL);
    call_settle(k, a, RT_REASON_STATUS, 404);
    call_settle(k, b, RT_REASON_STATUS, 404);
    k->now_ms += 30000;
    redrive_one(k, b, RT_OK);
    call_settle(k, b, RT_REASON_STATUS, 404);
    k->now_ms += 30000;
    assert_int_equal(kit_sweep(k), 2);
    assert_int_equal(kit_job(k, a).state, RT_JOB_DONE);
    assert_int_equal(kit_job(k, b).state, RT_JOB_DEAD); // its time started anew
    k->now_ms += 30000;
    (void)kit_sweep(k);
    assert_int_equal(kit_job(k, b).state, RT_JOB_DONE);
}

static void dead__redriven_starts_afresh_as_its_type_is_now(void **state) {
    kit *k = *state;
    assert_int_equal(call_put(k, "t", call_type()), RT_OK);
    const rt_id id = call_schedule(k, "t", NULL);
    call_settle(k, id, RT_REASON_STATUS, 503);
    call_settle(k, id, RT_REASON_STATUS, 404);
    assert_int_equal(call_put(k, "t", call_type_pull()), RT_OK); // dead ones do not wait
    k->now_ms += 10000;
    redrive_one(k, id, RT_OK);
    redrive_one(k, id, RT_E_FENCED);
    const rt_job job = kit_job(k, id);
    assert_int_equal(job.state, RT_JOB_FREE);
    assert_int_equal(job.attempt, 0);
    assert_int_equal(job.placed_ms, k->now_ms);
    assert_int_equal(call_claim(k, "t", 1).count, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_BOTH(line__the_next_starts_after_the_one_before_it_ended),
        KIT_BOTH(line__holds_a_delay_until_its_turn),
        KIT_BOTH(line__closes_up_wherever_one_is_deleted),
        KIT_BOTH(line__takes_a_redriven_one_back_by_its_id),
        KIT_BOTH(line__many_redriven_at_once),
        KIT_BOTH(line__of_an_ordered_type_has_all_without_a_key),
        KIT_BOTH(dead__goes_on_as_a_new_call_of_its_dead_type),
        KIT_BOTH(dead__is_deleted_when_its_time_is_over_unless_it_was_redriven),
        KIT_BOTH(dead__redriven_starts_afresh_as_its_type_is_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
