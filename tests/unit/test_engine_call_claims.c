/* Workers fetch calls: claims, their ends, leases that run out, limits. */
#include "call_kit.h"

static void put_pull(kit *k) { assert_int_equal(call_put(k, "t", call_type_pull()), RT_OK); }

static rt_code end_call(kit *k, rt_call_end *c, rt_id id, uint64_t token, rt_call_verb verb) {
    c->tenant = RT_STR("p");
    c->id = id;
    c->token = token;
    c->verb = verb;
    return kit_run(k, &c->cmd);
}

/* ---- claiming ------------------------------------------------------------------------------------------ */

static void claim__takes_the_oldest_first_with_all_that_it_holds(void **state) {
    kit *k = *state;
    put_pull(k);
    rt_call_item item = {.payload = RT_STR("body"),
                         .reason = RT_STR("r"),
                         .order_key = RT_STR("o"),
                         .content_type = RT_STR("a/b")};
    assert_int_equal(call_schedule_item(k, "t", &item), RT_OK);
    const rt_id second = call_schedule(k, "t", NULL), third = call_schedule(k, "t", NULL);
    const rt_call_claim c = call_claim(k, "t", 2);
    assert_int_equal(c.count, 2);
    assert_int_equal(c.calls[0].job.id, item.id);
    assert_int_equal(c.calls[1].job.id, second);
    assert_true(rt_str_eq(c.calls[0].call.payload, RT_STR("body")));
    assert_true(rt_str_eq(c.calls[0].call.reason, RT_STR("r")));
    assert_true(rt_str_eq(c.calls[0].call.order_key, RT_STR("o")));
    assert_true(rt_str_eq(c.calls[0].call.content_type, RT_STR("a/b")));
    assert_int_equal(c.calls[0].until_ms, KIT_START_MS + 60000);
    assert_true(c.calls[0].token != 0 && c.calls[0].token != c.calls[1].token);
    assert_int_equal(kit_job(k, item.id).state, RT_JOB_LEASED);
    assert_int_equal(call_claim(k, "t", 20).calls[0].job.id, third);
    assert_int_equal(call_claim(k, "t", 20).count, 0);
}

static void claim__of_no_type_or_one_that_is_pushed_is_refused(void **state) {
    kit *k = *state;
    assert_int_equal(call_put(k, "pushed", call_type()), RT_OK);
    rt_call_claim c;
    rt_call_claim_init(&c);
    c.tenant = RT_STR("p");
    c.limit = c.lease_s = 1;
    c.arena = &k->out;
    c.type = RT_STR("none");
    assert_int_equal(kit_run(k, &c.cmd), RT_E_ABSENT);
    c.type = RT_STR("pushed");
    assert_int_equal(kit_run(k, &c.cmd), RT_E_INVALID);
}

static void claim__waits_if_it_may(void **state) {
    kit *k = *state;
    put_pull(k);
    rt_call_claim c;
    rt_call_claim_init(&c);
    c.tenant = RT_STR("p");
    c.type = RT_STR("t");
    c.limit = c.lease_s = 1;
    c.arena = &k->out;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_null(c.cmd.wait);
    c.wait_until_ms = KIT_START_MS + 1000;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_ptr_equal(c.cmd.wait, &c.wait);
    assert_int_equal(c.wait.until_ms, KIT_START_MS + 1000);
    assert_int_equal(c.topics[0], call_get(k, "t").queue);
}

static void claim__keeps_the_workers_name_in_the_history(void **state) {
    kit *k = *state;
    put_pull(k);
    const rt_id id = call_schedule(k, "t", NULL);
    rt_call_claim c;
    rt_call_claim_init(&c);
    c.tenant = RT_STR("p");
    c.type = RT_STR("t");
    c.worker = RT_STR("w1");
    c.limit = c.lease_s = 1;
    c.arena = &k->out;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_int_equal(kit_last_event(k, id).type, RT_EVENT_CLAIMED);
    assert_true(rt_str_eq(kit_last_event(k, id).text, RT_STR("w1")));
}

static void claim__keeps_to_the_concurrency_of_the_type(void **state) {
    kit *k = *state;
    rt_call_type like = call_type_pull();
    like.concurrency = 3;
    assert_int_equal(call_put(k, "t", like), RT_OK);
    for (int i = 0; i < 9; i++) (void)call_schedule(k, "t", NULL);
    const rt_call_claim a = call_claim(k, "t", 2);
    assert_int_equal(a.count, 2);
    assert_int_equal(call_claim(k, "t", 20).count, 1);
    assert_int_equal(call_claim(k, "t", 20).count, 0);
    assert_int_equal(call_finish(k, a.calls[0].job.id, a.calls[0].token), RT_OK);
    assert_int_equal(call_claim(k, "t", 20).count, 1);
    like.concurrency = 5;
    assert_int_equal(call_put(k, "t", like), RT_OK);
    assert_int_equal(call_claim(k, "t", 20).count, 2);
    like.concurrency = 1; // fewer than are held
    assert_int_equal(call_put(k, "t", like), RT_OK);
    assert_int_equal(call_claim(k, "t", 20).count, 0);
}

static void claim__of_a_paused_type_waits(void **state) {
    kit *k = *state;
    put_pull(k);
    (void)call_schedule(k, "t", NULL);
    rt_queue_pause pause;
    rt_queue_pause_init(&pause);
    pause.id = call_get(k, "t").queue;
    pause.until_ms = KIT_START_MS + 5000;
    assert_int_equal(kit_run(k, &pause.cmd), RT_OK);
    const rt_call_claim c = call_claim(k, "t", 1);
    assert_int_equal(c.count, 0);
    assert_int_equal(c.wait.again_ms, KIT_START_MS + 5000);
    k->now_ms += 5000;
    assert_int_equal(call_claim(k, "t", 1).count, 1);
}

static void claim__of_large_calls_takes_fewer(void **state) {
    static char large[1000000];
    kit *k = *state;
    put_pull(k);
    rt_call_item item = {.payload = {.ptr = large, .len = sizeof large}};
    for (int i = 0; i < 6; i++) assert_int_equal(call_schedule_item(k, "t", &item), RT_OK);
    assert_int_equal(call_claim(k, "t", 20).count, 5); // the fifth passes 4 MiB
    assert_int_equal(call_claim(k, "t", 20).count, 1);
}

static void claim__ends_what_is_too_old(void **state) {
    kit *k = *state;
    rt_call_type like = call_type_pull();
    like.delivery.maximum_age_s = 60;
    assert_int_equal(call_put(k, "t", like), RT_OK);
    const rt_id old = call_schedule(k, "t", "o");
    const rt_id next = call_schedule(k, "t", "o");
    k->now_ms += 30000;
    const rt_id good = call_schedule(k, "t", NULL);
    k->now_ms += 30000;
    const rt_call_claim c = call_claim(k, "t", 20);
    assert_int_equal(c.count, 1);
    assert_int_equal(c.calls[0].job.id, good);
    assert_int_equal(kit_job(k, old).reason, RT_REASON_EXPIRED);
    assert_int_equal(kit_job(k, next).state, RT_JOB_FREE); // has its turn, and its age, next time
    assert_int_equal(call_claim(k, "t", 20).count, 0);
    assert_int_equal(kit_job(k, next).reason, RT_REASON_EXPIRED);
}

/* ---- ends ---------------------------------------------------------------------------------------------- */

static void end__finish_is_done_and_may_be_repeated(void **state) {
    kit *k = *state;
    put_pull(k);
    const rt_id id = call_schedule(k, "t", NULL);
    const rt_call_claim c = call_claim(k, "t", 1);
    k->now_ms += 1500;
    assert_int_equal(call_finish(k, id, c.calls[0].token), RT_OK);
    const rt_event e = kit_last_event(k, id);
    assert_int_equal(e.type, RT_EVENT_DELIVERED);
    assert_int_equal(e.attempt, 1);
    assert_int_equal(e.took_ms, 1500);
    assert_int_equal(call_finish(k, id, c.calls[0].token), RT_OK);
    assert_int_equal(kit_last_event(k, id).seq, e.seq);
    assert_int_equal(call_finish(k, id, c.calls[0].token + 1), RT_E_FENCED);
    assert_int_equal(call_finish(k, id, 0), RT_E_FENCED);
    assert_int_equal(call_fail(k, id, c.calls[0].token), RT_E_FENCED);
    assert_int_equal(kit_sweep(k), 0); // its lease is gone
}

static void end__of_another_tenants_call_is_absent(void **state) {
    kit *k = *state;
    put_pull(k);
    const rt_id id = call_schedule(k, "t", NULL);
    const rt_call_claim c = call_claim(k, "t", 1);
    rt_call_end e;
    rt_call_end_init(&e);
    e.tenant = RT_STR("q");
    e.id = id;
    e.token = c.calls[0].token;
    assert_int_equal(kit_run(k, &e.cmd), RT_E_ABSENT);
    assert_int_equal(call_finish(k, id + 1000, 1), RT_E_ABSENT);
    assert_int_equal(call_finish(k, kit_post(k, "q", "1"), 1), RT_E_ABSENT);
}

static rt_code end_calls(kit *k, rt_call_end *ends, uint32_t count, rt_call_verb verb) {
    for (uint32_t i = 0; i < count; i++) {
        const rt_call_end like = ends[i];
        rt_call_end_init(&ends[i]);
        ends[i].tenant = like.tenant.len > 0 ? like.tenant : RT_STR("p");
        ends[i].id = like.id;
        ends[i].token = like.token;
        ends[i].verb = verb;
        ends[i].lease_s = 90;
    }
    rt_call_ends c;
    rt_call_ends_init(&c);
    c.ends = ends;
    c.count = count;
    return kit_run(k, &c.cmd);
}

static void ends__each_have_a_verdict_of_their_own(void **state) {
    kit *k = *state;
    put_pull(k);
    rt_call_end ends[7] = {{.id = 0}};
    for (int i = 0; i < 5; i++) (void)call_schedule(k, "t", NULL);
    const rt_call_claim c = call_claim(k, "t", 4);
    const rt_call_claim other = call_claim(k, "t", 1);
    for (int i = 0; i < 4; i++) ends[i] = (rt_call_end){.id = c.calls[i].job.id, .token = c.calls[i].token};
    ends[1].token++;                                                                          // nobody's
    ends[2].tenant = RT_STR("q");                                                             // another's
    ends[4] = (rt_call_end){.id = ends[0].id, .token = ends[0].token};                        // once more
    ends[5] = (rt_call_end){.id = ends[0].id, .token = ends[0].token + 1};                    // … and not his
    ends[6] = (rt_call_end){.id = other.calls[0].job.id + 1000, .token = other.calls[0].token}; // no such call
    assert_int_equal(end_calls(k, ends, 7, RT_CALL_FINISH), RT_OK);
    const rt_code want[7] = {RT_OK, RT_E_FENCED, RT_E_ABSENT, RT_OK, RT_OK, RT_E_FENCED, RT_E_ABSENT};
    for (int i = 0; i < 7; i++) assert_int_equal(ends[i].cmd.code, want[i]);
    assert_int_equal(kit_job(k, ends[0].id).state, RT_JOB_DONE);
    assert_int_equal(kit_job(k, ends[1].id).state, RT_JOB_LEASED);
    assert_int_equal(kit_job(k, ends[2].id).state, RT_JOB_LEASED);
    assert_int_equal(kit_job(k, ends[3].id).state, RT_JOB_DONE);
    const rt_event e = kit_last_event(k, ends[0].id);
    assert_int_equal(end_calls(k, ends, 1, RT_CALL_FINISH), RT_OK); // asked again: the same
    assert_int_equal(ends[0].cmd.code, RT_OK);
    assert_int_equal(kit_last_event(k, ends[0].id).seq, e.seq);
}

static void ends__fail_release_and_extend_as_one_does(void **state) {
    kit *k = *state;
    put_pull(k);
    for (int i = 0; i < 6; i++) (void)call_schedule(k, "t", NULL);
    const rt_call_claim c = call_claim(k, "t", 6);
    rt_call_end ends[6];
    for (int i = 0; i < 6; i++) ends[i] = (rt_call_end){.id = c.calls[i].job.id, .token = c.calls[i].token};
    assert_int_equal(end_calls(k, ends, 2, RT_CALL_RELEASE), RT_OK);
    assert_int_equal(end_calls(k, ends + 2, 2, RT_CALL_EXTEND), RT_OK);
    assert_int_equal(end_calls(k, ends + 4, 2, RT_CALL_FAIL), RT_OK);
    for (int i = 0; i < 6; i++) assert_int_equal(ends[i].cmd.code, RT_OK);
    for (int i = 0; i < 2; i++) assert_int_equal(kit_job(k, ends[i].id).state, RT_JOB_FREE);
    for (int i = 2; i < 4; i++) assert_int_equal(kit_job(k, ends[i].id).state, RT_JOB_LEASED);
    for (int i = 2; i < 4; i++) assert_int_equal(ends[i].until_ms, KIT_START_MS + 90000);
    for (int i = 4; i < 6; i++) assert_int_equal(kit_job(k, ends[i].id).attempt, 1);
}

static void ends__let_the_next_of_their_lines_go(void **state) {
    kit *k = *state;
    put_pull(k);
    rt_id ids[4];
    for (int i = 0; i < 4; i++) ids[i] = call_schedule(k, "t", i % 2 == 0 ? "a" : "b");
    const rt_call_claim c = call_claim(k, "t", 20);
    assert_int_equal(c.count, 2);
    rt_call_end ends[2];
    for (int i = 0; i < 2; i++) ends[i] = (rt_call_end){.id = c.calls[i].job.id, .token = c.calls[i].token};
    assert_int_equal(end_calls(k, ends, 2, RT_CALL_FINISH), RT_OK);
    assert_int_equal(kit_job(k, ids[2]).state, RT_JOB_FREE);
    assert_int_equal(kit_job(k, ids[3]).state, RT_JOB_FREE);
}

/* What dies on a joins the line on b that another of the same request leaves. */
static void ends__may_join_and_leave_one_line(void **state) {
    kit *k = *state;
    rt_call_type like = call_type_pull();
    like.policy = RT_CALL_BACKOFF;
    like.max_attempts = 1;
    assert_int_equal(call_put(k, "b", like), RT_OK);
    like.dead_type = RT_STR("b");
    assert_int_equal(call_put(k, "a", like), RT_OK);
    (void)call_schedule(k, "a", "key");
    (void)call_schedule(k, "b", "key");
    const rt_call_claim a = call_claim(k, "a", 1), b = call_claim(k, "b", 1);
    rt_call_end ends[2] = {{.id = a.calls[0].job.id, .token = a.calls[0].token},
                           {.id = b.calls[0].job.id, .token = b.calls[0].token}};
    assert_int_equal(end_calls(k, ends, 2, RT_CALL_FAIL), RT_OK);
    assert_int_equal(kit_job(k, ends[0].id).state, RT_JOB_DONE);
    assert_int_equal(kit_job(k, ends[1].id).state, RT_JOB_DEAD);
    const rt_call_claim next = call_claim(k, "b", 20);
    assert_int_equal(next.count, 1);
    assert_int_equal(next.calls[0].call.past, ends[0].id);
    assert_int_equal(call_finish(k, next.calls[0].job.id, next.calls[0].token), RT_OK);
    (void)call_schedule(k, "b", "key"); // the line is as it should be
    assert_int_equal(call_claim(k, "b", 20).count, 1);
}

static void ends__of_a_hundred_are_one_change(void **state) {
    kit *k = *state;
    put_pull(k);
    rt_call_end ends[RT_CALL_ENDS_MAX];
    for (int i = 0; i < RT_CALL_ENDS_MAX; i++) (void)call_schedule(k, "t", NULL);
    for (int i = 0; i < RT_CALL_ENDS_MAX; i += 20) {
        const rt_call_claim c = call_claim(k, "t", 20);
        assert_int_equal(c.count, 20);
        for (int j = 0; j < 20; j++)
            ends[i + j] = (rt_call_end){.id = c.calls[j].job.id, .token = c.calls[j].token};
    }
    assert_int_equal(end_calls(k, ends, RT_CALL_ENDS_MAX, RT_CALL_FINISH), RT_OK);
    for (int i = 0; i < RT_CALL_ENDS_MAX; i++) assert_int_equal(kit_job(k, ends[i].id).state, RT_JOB_DONE);
    assert_int_equal(kit_sweep(k), 0); // their leases are gone
}

static void end__fail_follows_the_policy_and_may_be_repeated(void **state) {
    kit *k = *state;
    rt_call_type like = call_type_pull();
    like.policy = RT_CALL_BACKOFF;
    like.backoff = (rt_backoff){
        .given = true, .descriptor = {.initial_ns = 2000000000, .maximum_ns = 60000000000, .exponent = 2}};
    like.max_attempts = 2;
    assert_int_equal(call_put(k, "t", like), RT_OK);
    const rt_id id = call_schedule(k, "t", NULL);
    rt_call_claim c = call_claim(k, "t", 1);
    rt_call_end e;
    rt_call_end_init(&e);
    e.error = RT_STR("no luck");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(end_call(k, &e, id, c.calls[0].token, RT_CALL_FAIL), RT_OK);
        assert_int_equal(e.until_ms, KIT_START_MS + 2000);
    }
    assert_int_equal(kit_job(k, id).attempt, 1);
    assert_int_equal(kit_last_event(k, id).type, RT_EVENT_ATTEMPT);
    assert_int_equal(kit_last_event(k, id).reason, RT_REASON_FAILED);
    assert_true(rt_str_eq(kit_last_event(k, id).text, RT_STR("no luck")));
    k->now_ms += 2000;
    assert_false(call_start(k, id, NULL)); // free
    assert_int_equal(kit_job(k, id).state, RT_JOB_FREE);
    const uint64_t before = c.calls[0].token;
    c = call_claim(k, "t", 1);
    assert_int_equal(call_fail(k, id, before), RT_E_FENCED); // another has it now
    assert_int_equal(end_call(k, &e, id, c.calls[0].token, RT_CALL_FAIL), RT_OK);
    assert_int_equal(e.until_ms, 0);
    assert_int_equal(kit_job(k, id).state, RT_JOB_DEAD);
    assert_int_equal(end_call(k, &e, id, c.calls[0].token, RT_CALL_FAIL), RT_OK);
    assert_int_equal(e.until_ms, 0);
}

static void end__fail_may_ask_for_a_time_or_give_up(void **state) {
    kit *k = *state;
    put_pull(k);
    const rt_id later = call_schedule(k, "t", NULL), never = call_schedule(k, "t", NULL);
    const rt_call_claim c = call_claim(k, "t", 2);
    rt_call_end e;
    rt_call_end_init(&e);
    e.retry_after_ms = 90000; // beyond maximum_delay: the worker knows
    assert_int_equal(end_call(k, &e, later, c.calls[0].token, RT_CALL_FAIL), RT_OK);
    assert_int_equal(e.until_ms, KIT_START_MS + 90000);
    rt_call_end_init(&e);
    e.give_up = true;
    assert_int_equal(end_call(k, &e, never, c.calls[1].token, RT_CALL_FAIL), RT_OK);
    assert_int_equal(kit_job(k, never).state, RT_JOB_DEAD);
    assert_int_equal(kit_job(k, never).reason, RT_REASON_FAILED);
}

static void end__immediate_retry_is_free_at_once(void **state) {
    kit *k = *state;
    put_pull(k);
    const rt_id id = call_schedule(k, "t", NULL);
    const rt_call_claim c = call_claim(k, "t", 1);
    assert_int_equal(call_fail(k, id, c.calls[0].token), RT_OK);
    assert_int_equal(kit_job(k, id).state, RT_JOB_FREE);
    assert_int_equal(call_claim(k, "t", 1).calls[0].job.attempt, 1);
}

static void end__release_was_no_attempt(void **state) {
    kit *k = *state;
    put_pull(k);
    const rt_id id = call_schedule(k, "t", NULL);
    const rt_call_claim c = call_claim(k, "t", 1);
    rt_call_end e;
    rt_call_end_init(&e);
    assert_int_equal(end_call(k, &e, id, c.calls[0].token, RT_CALL_RELEASE), RT_OK);
    assert_int_equal(kit_job(k, id).state, RT_JOB_FREE);
    assert_int_equal(kit_job(k, id).attempt, 0);
    assert_int_equal(kit_last_event(k, id).type, RT_EVENT_RELEASED);
    assert_int_equal(call_finish(k, id, c.calls[0].token), RT_E_FENCED);
    k->now_ms += 60000;
    assert_int_equal(kit_sweep(k), 0);
}

static void end__extend_moves_the_leases_end(void **state) {
    kit *k = *state;
    put_pull(k);
    const rt_id id = call_schedule(k, "t", NULL);
    const rt_call_claim c = call_claim(k, "t", 1);
    k->now_ms += 59000;
    rt_call_end e;
    rt_call_end_init(&e);
    e.lease_s = 60;
    assert_int_equal(end_call(k, &e, id, c.calls[0].token, RT_CALL_EXTEND), RT_OK);
    assert_int_equal(e.until_ms, k->now_ms + 60000);
    k->now_ms += 59000;
    assert_int_equal(kit_sweep(k), 0);
    assert_int_equal(call_finish(k, id, c.calls[0].token), RT_OK);
}

static void lease__that_runs_out_counts_as_an_attempt_until_the_call_is_dead(void **state) {
    kit *k = *state;
    rt_call_type like = call_type_pull();
    like.policy = RT_CALL_BACKOFF;
    like.max_attempts = 2;
    assert_int_equal(call_put(k, "t", like), RT_OK);
    const rt_id id = call_schedule(k, "t", NULL);
    rt_call_claim c = call_claim(k, "t", 1);
    k->now_ms += 60000;
    assert_int_equal(call_finish(k, id, c.calls[0].token), RT_E_FENCED); // late, if not yet swept
    assert_int_equal(kit_sweep(k), 1);
    assert_int_equal(kit_job(k, id).attempt, 1);
    assert_int_equal(kit_job(k, id).state, RT_JOB_SCHEDULED);
    assert_int_equal(kit_last_event(k, id).reason, RT_REASON_LOST);
    assert_int_equal(call_fail(k, id, c.calls[0].token), RT_E_FENCED);
    k->now_ms += 1000;
    assert_false(call_start(k, id, NULL));
    c = call_claim(k, "t", 1);
    assert_int_equal(c.count, 1);
    k->now_ms += 60000;
    (void)kit_sweep(k);
    assert_int_equal(kit_job(k, id).state, RT_JOB_DEAD);
    assert_int_equal(kit_job(k, id).reason, RT_REASON_EXHAUSTED);
}

static void lease__many_run_out_in_one_sweep(void **state) {
    kit *k = *state;
    rt_call_type dead = call_type_pull(), like = call_type_pull();
    dead.policy = like.policy = RT_CALL_BACKOFF;
    dead.max_attempts = like.max_attempts = 1;
    like.dead_type = RT_STR("d");
    assert_int_equal(call_put(k, "d", dead), RT_OK);
    assert_int_equal(call_put(k, "t", like), RT_OK);
    // In the line of the dead type one is held, and its lease ends behind those that come in from the same sweep.
    const rt_id held = call_schedule(k, "d", "o0");
    static const char *const KEYS[] = {"o0", "o1", "o2"};
    for (int i = 0; i < 30; i++) (void)call_schedule(k, "t", KEYS[i % 3]);
    assert_int_equal(call_claim(k, "t", 20).count, 3); // one of each line
    assert_int_equal(call_claim(k, "d", 1).count, 1);
    k->now_ms += 60000;
    assert_int_equal(kit_sweep(k), 5); // one of the four had to wait for a second change
    assert_int_equal(kit_job(k, held).state, RT_JOB_DEAD);
    assert_int_equal(call_claim(k, "d", 20).count, 3);
    assert_int_equal(call_claim(k, "t", 20).count, 3);
    k->now_ms += 60000;
    (void)kit_sweep(k);
    assert_int_equal(kit_counts(k, call_get(k, "d").queue).dead, 4);
    assert_int_equal(kit_counts(k, call_get(k, "d").queue).free, 3);
    assert_int_equal(kit_counts(k, call_get(k, "t").queue).free, 3);
    assert_int_equal(kit_counts(k, call_get(k, "t").queue).scheduled, 21);
}

static void lease__of_a_call_that_was_deleted_ends_quietly(void **state) {
    kit *k = *state;
    put_pull(k);
    const rt_id id = call_schedule(k, "t", "o"), next = call_schedule(k, "t", "o");
    const rt_call_claim c = call_claim(k, "t", 1);
    rt_job_delete d;
    rt_job_delete_init(&d);
    d.id = id;
    assert_int_equal(kit_run(k, &d.cmd), RT_OK);
    assert_int_equal(kit_job(k, next).state, RT_JOB_FREE);
    assert_int_equal(call_finish(k, id, c.calls[0].token), RT_E_FENCED);
    k->now_ms += 60000;
    assert_int_equal(kit_sweep(k), 1);
    assert_int_equal(kit_job(k, next).state, RT_JOB_FREE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_BOTH(claim__takes_the_oldest_first_with_all_that_it_holds),
        KIT_BOTH(claim__of_no_type_or_one_that_is_pushed_is_refused),
        KIT_BOTH(claim__waits_if_it_may),
        KIT_BOTH(claim__keeps_the_workers_name_in_the_history),
        KIT_BOTH(claim__keeps_to_the_concurrency_of_the_type),
        KIT_BOTH(claim__of_a_paused_type_waits),
        KIT_BOTH(claim__of_large_calls_takes_fewer),
        KIT_BOTH(claim__ends_what_is_too_old),
        KIT_BOTH(end__finish_is_done_and_may_be_repeated),
        KIT_BOTH(end__of_another_tenants_call_is_absent),
        KIT_BOTH(ends__each_have_a_verdict_of_their_own),
        KIT_BOTH(ends__fail_release_and_extend_as_one_does),
        KIT_BOTH(ends__let_the_next_of_their_lines_go),
        KIT_BOTH(ends__may_join_and_leave_one_line),
        KIT_BOTH(ends__of_a_hundred_are_one_change),
        KIT_BOTH(end__fail_follows_the_policy_and_may_be_repeated),
        KIT_BOTH(end__fail_may_ask_for_a_time_or_give_up),
        KIT_BOTH(end__immediate_retry_is_free_at_once),
        KIT_BOTH(end__release_was_no_attempt),
        KIT_BOTH(end__extend_moves_the_leases_end),
        KIT_BOTH(lease__that_runs_out_counts_as_an_attempt_until_the_call_is_dead),
        KIT_BOTH(lease__many_run_out_in_one_sweep),
        KIT_BOTH(lease__of_a_call_that_was_deleted_ends_quietly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
