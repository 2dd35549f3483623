/* Work as monogon-work.md has it: sessions, exclusion, fencing, backoffs, what repeated requests do. */
#include "work_kit.h"

/* ---- sessions ------------------------------------------------------------------------------------------ */

static void session__lives_until_its_deadline_and_never_again(void **state) {
    kit *k = *state;
    const rt_id s = work_session(k, 5);
    int64_t deadline;
    k->now_ms = KIT_START_MS + 4999;
    assert_int_equal(work_beat(k, s, &deadline), RT_OK);
    assert_int_equal(deadline, KIT_START_MS + 9999);
    k->now_ms = KIT_START_MS + 9999; // at the deadline it is dead: alive is strictly before
    assert_int_equal(work_beat(k, s, NULL), RT_E_FENCED);
    kit_sweep(k);
    k->now_ms = KIT_START_MS + 1000; // the clock is set back: what has been swept is gone for good
    assert_int_equal(work_beat(k, s, NULL), RT_E_FENCED);
    assert_int_equal(kit_docs(k, RT_DOC_SESSION), 0);
}

static void session__deadline_never_moves_back_with_the_clock(void **state) {
    kit *k = *state;
    const rt_id s = work_session(k, 5);
    k->now_ms = KIT_START_MS - 3000;
    int64_t deadline;
    assert_int_equal(work_beat(k, s, &deadline), RT_OK);
    assert_int_equal(deadline, KIT_START_MS + 5000);
}

static void session__dead_one_commits_nothing(void **state) {
    kit *k = *state;
    work_process(k, "install", NULL, NULL);
    const rt_id s = work_session(k, 5);
    const rt_work_claim c = work_claim(k, s, "install", "m");
    assert_true(c.found);
    k->now_ms += 5000;
    const rt_event_type verbs[] = {RT_EVENT_FINISHED, RT_EVENT_FAILED, RT_EVENT_CANCELED};
    for (size_t i = 0; i < 3; i++) {
        const rt_work_end end = work_end(k, &c.work, verbs[i]);
        assert_int_equal(end.cmd.code, RT_E_FENCED);
        assert_int_equal(end.refusal, RT_WORK_DEAD);
    }
    assert_int_equal(work_claim(k, s, "install", "other").cmd.code, RT_E_FENCED);
    assert_string_equal(work_history(k, "m"), "S");
    kit_sweep(k); // noticed: the answer stays
    for (size_t i = 0; i < 3; i++) assert_int_equal(work_end(k, &c.work, verbs[i]).refusal, RT_WORK_DEAD);
    assert_string_equal(work_history(k, "m"), "SX");
}

static void session__end_frees_its_work_with_an_event(void **state) {
    kit *k = *state;
    work_process(k, "install", NULL, NULL);
    work_put(k, "m");
    const rt_id s = work_session(k, 5);
    assert_true(work_claim_kind(k, s, "install").found);
    assert_int_equal(work_job(k, "m", "install").state, RT_JOB_LEASED);
    k->now_ms += 5000;
    kit_sweep(k);
    assert_string_equal(work_history(k, "m"), "SX");
    assert_int_equal(work_job(k, "m", "install").state, RT_JOB_FREE);
    assert_int_equal(kit_docs(k, RT_DOC_WORK), 0);
    assert_true(work_claim_kind(k, work_session(k, 5), "install").found);
}

static void session__work_of_a_dead_one_is_free_before_any_sweep(void **state) {
    kit *k = *state;
    work_process(k, "install", "wipe", NULL);
    work_process(k, "wipe", NULL, NULL);
    const rt_work_claim old = work_claim(k, work_session(k, 5), "install", "m");
    k->now_ms += 5000;
    const rt_id s = work_session(k, 5);
    assert_true(work_claim(k, s, "wipe", "m").found); // of the process that was excluded by it
    assert_string_equal(work_history(k, "m"), "SXS");
    kit_sweep(k);
    assert_string_equal(work_history(k, "m"), "SXS");
    const rt_work_end late = work_end(k, &old.work, RT_EVENT_FINISHED);
    assert_int_equal(late.cmd.code, RT_E_FENCED);
}

static void session__close_cancels_its_work(void **state) {
    kit *k = *state;
    work_process(k, "a", NULL, NULL);
    work_process(k, "b", NULL, NULL);
    const rt_id s = work_session(k, 5);
    assert_true(work_claim(k, s, "a", "m").found);
    assert_true(work_claim(k, s, "a", "n").found);
    assert_true(work_claim(k, s, "b", "m").found); // a second one on the same entity
    assert_int_equal(work_close(k, s), RT_OK);
    assert_int_equal(work_beat(k, s, NULL), RT_E_FENCED);
    kit_sweep(k);
    assert_string_equal(work_history(k, "m"), "SSCC");
    assert_string_equal(work_history(k, "n"), "SC");
    assert_int_equal(work_close(k, s), RT_OK); // again: nothing
}

static void session__with_more_work_than_a_change_holds_is_released_whole(void **state) {
    kit *k = *state;
    work_process(k, "a", NULL, NULL);
    const rt_id s = work_session(k, 5);
    char name[16];
    for (int i = 0; i < 150; i++) {
        (void)snprintf(name, sizeof name, "m%d", i);
        assert_true(work_claim(k, s, "a", name).found);
    }
    k->now_ms += 5000;
    kit_sweep(k);
    assert_int_equal(kit_docs(k, RT_DOC_WORK), 0);
    assert_int_equal(kit_docs(k, RT_DOC_SESSION), 0);
    assert_string_equal(work_history(k, "m149"), "SX");
}

/* ---- claiming ------------------------------------------------------------------------------------------ */

static void claim__same_process_on_an_entity_once_also_for_one_session(void **state) {
    kit *k = *state;
    work_process(k, "a", NULL, NULL);
    work_process(k, "b", NULL, NULL);
    const rt_id s = work_session(k, 5);
    const rt_work_claim first = work_claim_strict(k, s, "a", "m", false);
    assert_true(first.found);
    const rt_work_claim again = work_claim_strict(k, s, "a", "m", false);
    assert_int_equal(again.cmd.code, RT_E_FENCED);
    assert_int_equal(again.refusal, RT_WORK_BUSY);
    const rt_work_claim mild = work_claim(k, work_session(k, 5), "a", "m");
    assert_int_equal(mild.cmd.code, RT_OK);
    assert_false(mild.found);
    assert_true(work_claim(k, s, "b", "m").found); // another process: at once
    assert_int_equal(work_end(k, &first.work, RT_EVENT_CANCELED).cmd.code, RT_OK);
    assert_true(work_claim(k, s, "a", "m").found);
}

static void claim__exclusion_holds_whichever_of_the_two_says_so(void **state) {
    kit *k = *state;
    work_process(k, "start", "recover", NULL);
    work_process(k, "recover", NULL, NULL);
    work_process(k, "access", NULL, NULL);
    const rt_id s = work_session(k, 5);
    assert_true(work_claim(k, s, "start", "m").found);
    assert_false(work_claim(k, s, "recover", "m").found);
    assert_true(work_claim(k, s, "access", "m").found);
    assert_true(work_claim(k, s, "recover", "n").found);
    assert_false(work_claim(k, s, "start", "n").found);
}

static void claim__takes_the_first_candidate_that_is_free(void **state) {
    kit *k = *state;
    work_process(k, "a", NULL, NULL);
    const rt_id s = work_session(k, 5);
    assert_true(work_claim(k, s, "a", "m").found);
    const rt_str names[] = {RT_STR("m"), RT_STR("n"), RT_STR("o")};
    rt_work_claim c;
    rt_work_claim_init(&c);
    c.tenant = RT_STR("p");
    c.session = s;
    c.process = RT_STR("a");
    c.candidates = names;
    c.candidates_count = 3;
    c.arena = &k->out;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_true(c.found);
    assert_true(rt_str_eq(c.work.entity, RT_STR("n")));
    c.candidates_count = 0; // nobody to choose from: nothing to do
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_false(c.found);
}

static void claim__of_a_process_that_is_not_registered_is_refused(void **state) {
    kit *k = *state;
    assert_int_equal(work_claim(k, work_session(k, 5), "a", "m").cmd.code, RT_E_ABSENT);
}

static void claim__by_kind_gives_each_entity_once(void **state) {
    kit *k = *state;
    work_process(k, "a", NULL, NULL);
    const char *const names[] = {"m1", "m2", "m3", "m4", "m5", "m6"};
    for (int i = 0; i < 6; i++) work_put(k, names[i]);
    const rt_id s = work_session(k, 5);
    for (int i = 0; i < 6; i++) {
        const rt_work_claim c = work_claim_kind(k, s, "a");
        assert_true(c.found);
        assert_true(rt_str_eq(c.work.entity, rt_str_of(names[i])));
        if (i % 2 == 0) assert_int_equal(work_end(k, &c.work, RT_EVENT_FINISHED).cmd.code, RT_OK);
    }
    assert_false(work_claim_kind(k, s, "a").found); // what is finished is not wanted any more
}

static void claim__by_kind_passes_over_what_another_process_excludes(void **state) {
    kit *k = *state;
    work_process(k, "a", "b", NULL);
    work_process(k, "b", NULL, NULL);
    work_put(k, "m1");
    work_put(k, "m2");
    const rt_id s = work_session(k, 5);
    assert_true(work_claim(k, s, "a", "m1").found);
    const rt_work_claim c = work_claim_kind(k, s, "b");
    assert_true(c.found);
    assert_true(rt_str_eq(c.work.entity, RT_STR("m2")));
    assert_false(work_claim_kind(k, s, "b").found);
}

static void claim__what_failed_lines_up_behind_the_others(void **state) {
    kit *k = *state;
    work_process(k, "a", NULL, NULL);
    work_put(k, "m1");
    work_put(k, "m2");
    const rt_id s = work_session(k, 60);
    rt_work_claim c = work_claim_kind(k, s, "a");
    assert_true(rt_str_eq(c.work.entity, RT_STR("m1")));
    assert_int_equal(work_fail(k, &c.work, "x").cmd.code, RT_OK);
    k->now_ms += 2000;
    c = work_claim_kind(k, s, "a");
    assert_true(rt_str_eq(c.work.entity, RT_STR("m2")));
    c = work_claim_kind(k, s, "a");
    assert_true(rt_str_eq(c.work.entity, RT_STR("m1"))); // due, though no engine has freed it yet
}

static void claim__repeated_with_its_key_gets_the_same_work(void **state) {
    kit *k = *state;
    work_process(k, "a", NULL, NULL);
    work_put(k, "m1");
    work_put(k, "m2");
    rt_work_claim c;
    rt_work_claim_init(&c);
    c.tenant = RT_STR("p");
    c.session = work_session(k, 5);
    c.process = RT_STR("a");
    c.kind = RT_STR("machine");
    c.key = RT_STR("k1");
    c.arena = &k->out;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    const rt_work first = c.work;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_int_equal(c.work.id, first.id);
    assert_int_equal(c.work.token, first.token);
    c.key = RT_STR("k2");
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_true(c.work.id != first.id);
}

/* ---- ending -------------------------------------------------------------------------------------------- */

static void end__repeated_gets_the_same_answer_and_changes_nothing(void **state) {
    kit *k = *state;
    const rt_event_type verbs[] = {RT_EVENT_FINISHED, RT_EVENT_FAILED, RT_EVENT_CANCELED};
    const char *const histories[] = {"SD", "SF", "SC"};
    const char *const names[] = {"m1", "m2", "m3"};
    work_process(k, "a", NULL, NULL);
    for (int i = 0; i < 3; i++) {
        const rt_work_claim c = work_claim(k, work_session(k, 5), "a", names[i]);
        const rt_work_end first = work_end(k, &c.work, verbs[i]);
        assert_int_equal(first.cmd.code, RT_OK);
        k->now_ms += 10;
        const rt_work_end again = work_end(k, &c.work, verbs[i]);
        assert_int_equal(again.cmd.code, RT_OK);
        assert_int_equal(again.work.until_ms, first.work.until_ms);
        assert_int_equal(again.work.interval_s, first.work.interval_s);
        assert_string_equal(work_history(k, names[i]), histories[i]);
        // Over in whatever way is what a cancel wants; another end than the first is refused.
        assert_int_equal(work_end(k, &c.work, RT_EVENT_CANCELED).cmd.code, RT_OK);
        const rt_work_end other = work_end(k, &c.work, verbs[(i + 1) % 2]);
        if (verbs[i] != verbs[(i + 1) % 2]) assert_int_equal(other.cmd.code, RT_E_FENCED);
        assert_string_equal(work_history(k, names[i]), histories[i]);
    }
}

static void end__with_a_stale_or_wrong_token_is_refused(void **state) {
    kit *k = *state;
    work_process(k, "a", NULL, NULL);
    const rt_id s = work_session(k, 60);
    const rt_work_claim old = work_claim(k, s, "a", "m");
    assert_int_equal(work_end(k, &old.work, RT_EVENT_CANCELED).cmd.code, RT_OK);
    const rt_work_claim now = work_claim(k, s, "a", "m");
    rt_work wrong = now.work;
    wrong.token ^= 2;
    assert_int_equal(work_end(k, &wrong, RT_EVENT_FINISHED).refusal, RT_WORK_NOT_HELD);
    wrong = now.work;
    wrong.session = work_session(k, 60);
    assert_int_equal(work_end(k, &wrong, RT_EVENT_FINISHED).refusal, RT_WORK_NOT_HELD);
    assert_int_equal(work_end(k, &wrong, RT_EVENT_CANCELED).refusal, RT_WORK_NOT_HELD); // it would think that it is over
    assert_int_equal(work_end(k, &old.work, RT_EVENT_FINISHED).refusal, RT_WORK_NOT_HELD);
    assert_string_equal(work_history(k, "m"), "SCS");
}

static rt_code set_value(void *ctx, rt_arena *arena, rt_str value, rt_str *out, rt_err *err) {
    (void)arena;
    if (!rt_str_eq(value, RT_STR("{}"))) return rt_fail(err, RT_E_INVALID, 0, "odd");
    *out = rt_str_of(ctx);
    return RT_OK;
}

static rt_code finish_with(kit *k, const rt_work *work, const char *value, const char *process) {
    const rt_str wanted = rt_str_of(process);
    static char copy[64];
    (void)snprintf(copy, sizeof copy, "%s", value);
    rt_work_end c;
    rt_work_end_init(&c);
    c.tenant = RT_STR("p");
    c.id = work->id;
    c.session = work->session;
    c.token = work->token;
    c.verb = RT_EVENT_FINISHED;
    c.patch = set_value;
    c.patch_ctx = copy;
    c.processes = &wanted;
    c.processes_count = process == NULL ? 0 : 1;
    c.arena = &k->out;
    return kit_run(k, &c.cmd);
}

static void finish__patches_and_may_put_itself_or_others_back(void **state) {
    kit *k = *state;
    work_process(k, "a", NULL, NULL);
    work_put(k, "m");
    work_process(k, "b", NULL, NULL); // registered later: the entity does not want it yet
    const rt_id s = work_session(k, 60);
    assert_false(work_claim_kind(k, s, "b").found);
    const rt_work_claim c = work_claim_kind(k, s, "a");
    assert_int_equal(finish_with(k, &c.work, "{\"done\":1}", "b"), RT_OK);
    assert_true(rt_str_eq(work_entity(k, "m").value, RT_STR("{\"done\":1}")));
    assert_false(work_claim_kind(k, s, "a").found);
    assert_true(work_claim_kind(k, s, "b").found);
}

static void finish__whose_patch_does_not_fit_ends_nothing(void **state) {
    kit *k = *state;
    work_process(k, "a", NULL, NULL);
    const rt_work_claim c = work_claim(k, work_session(k, 5), "a", "m"); // no value: not the "{}" it wants
    assert_int_equal(finish_with(k, &c.work, "1", NULL), RT_E_INVALID);
    assert_string_equal(work_history(k, "m"), "S");
    assert_int_equal(work_end(k, &c.work, RT_EVENT_FINISHED).cmd.code, RT_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WORK_BOTH(session__lives_until_its_deadline_and_never_again),
        WORK_BOTH(session__deadline_never_moves_back_with_the_clock),
        WORK_BOTH(session__dead_one_commits_nothing),
        WORK_BOTH(session__end_frees_its_work_with_an_event),
        WORK_BOTH(session__work_of_a_dead_one_is_free_before_any_sweep),
        WORK_BOTH(session__close_cancels_its_work),
        WORK_BOTH(session__with_more_work_than_a_change_holds_is_released_whole),
        WORK_BOTH(claim__same_process_on_an_entity_once_also_for_one_session),
        WORK_BOTH(claim__exclusion_holds_whichever_of_the_two_says_so),
        WORK_BOTH(claim__takes_the_first_candidate_that_is_free),
        WORK_BOTH(claim__of_a_process_that_is_not_registered_is_refused),
        WORK_BOTH(claim__by_kind_gives_each_entity_once),
        WORK_BOTH(claim__by_kind_passes_over_what_another_process_excludes),
        WORK_BOTH(claim__what_failed_lines_up_behind_the_others),
        WORK_BOTH(claim__repeated_with_its_key_gets_the_same_work),
        WORK_BOTH(end__repeated_gets_the_same_answer_and_changes_nothing),
        WORK_BOTH(end__with_a_stale_or_wrong_token_is_refused),
        WORK_BOTH(finish__patches_and_may_put_itself_or_others_back),
        WORK_BOTH(finish__whose_patch_does_not_fit_ends_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
