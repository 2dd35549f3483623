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

/* ---- backoff ------------------------------------------------------------------------------------------- */

static void backoff__follows_the_documents_sequence_whatever_comes_between(void **state) {
    kit *k = *state;
    const uint64_t want[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17};
    const rt_backoff b = work_backoff(1, 3600, 1.1);
    work_process(k, "a", NULL, &b);
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        const rt_id s = work_session(k, 5);
        rt_work_claim c = work_claim(k, s, "a", "m");
        assert_int_equal(c.work.previous_s, i == 0 ? 0 : want[i - 1]);
        assert_int_equal(work_end(k, &c.work, RT_EVENT_CANCELED).cmd.code, RT_OK);
        if (i % 3 == 1) { // a session that dies over it
            assert_true(work_claim(k, s, "a", "m").found);
            k->now_ms += 5000;
            kit_sweep(k);
        }
        c = work_claim(k, work_session(k, 5), "a", "m");
        assert_true(c.found);
        const rt_work_end end = work_fail(k, &c.work, "no route");
        assert_int_equal(end.work.interval_s, want[i]);
        assert_int_equal(end.work.until_ms, k->now_ms + (int64_t)want[i] * 1000);
        rt_rest rest;
        assert_true(work_has_rest(k, "m", "a", &rest));
        assert_int_equal(rest.failures, i + 1);
        k->now_ms = end.work.until_ms - 1;
        assert_false(work_claim(k, work_session(k, 5), "a", "m").found);
        k->now_ms++;
    }
    const rt_work_claim c = work_claim(k, work_session(k, 5), "a", "m");
    assert_int_equal(work_end(k, &c.work, RT_EVENT_FINISHED).cmd.code, RT_OK);
    assert_false(work_has_rest(k, "m", "a", NULL));
    const rt_work_claim fresh = work_claim(k, work_session(k, 5), "a", "m");
    assert_int_equal(fresh.work.previous_s, 0);
    assert_int_equal(work_fail(k, &fresh.work, "x").work.interval_s, 1);
}

static void backoff__without_a_descriptor_repeats_the_last_interval(void **state) {
    kit *k = *state;
    const rt_backoff b = work_backoff(60, 60, 1);
    work_process(k, "a", NULL, NULL);
    const rt_id s = work_session(k, 3600);
    rt_work_claim c = work_claim(k, s, "a", "m");
    rt_work_end end;
    rt_work_end_init(&end);
    end.tenant = RT_STR("p");
    end.id = c.work.id;
    end.session = s;
    end.token = c.work.token;
    end.verb = RT_EVENT_FAILED;
    end.cause = RT_STR("x");
    end.own_backoff = true;
    end.backoff = b;
    end.arena = &k->out;
    assert_int_equal(kit_run(k, &end.cmd), RT_OK);
    assert_int_equal(end.work.interval_s, 60);
    k->now_ms += 60000;
    c = work_claim(k, s, "a", "m");
    assert_int_equal(work_fail(k, &c.work, "x").work.interval_s, 60);
}

static void backoff__stands_in_the_way_of_a_strict_claim_too_unless_it_is_ignored(void **state) {
    kit *k = *state;
    work_process(k, "a", NULL, NULL);
    const rt_id s = work_session(k, 60);
    const rt_work_claim c = work_claim(k, s, "a", "m");
    assert_int_equal(work_fail(k, &c.work, "x").cmd.code, RT_OK);
    assert_int_equal(work_claim_strict(k, s, "a", "m", false).refusal, RT_WORK_BUSY);
    assert_true(work_claim_strict(k, s, "a", "m", true).found);
}

static void backoff__cleared_makes_free_at_once(void **state) {
    kit *k = *state;
    work_process(k, "a", NULL, NULL);
    work_put(k, "m");
    const rt_id s = work_session(k, 60);
    const rt_work_claim c = work_claim_kind(k, s, "a");
    assert_int_equal(work_fail(k, &c.work, "x").cmd.code, RT_OK);
    assert_int_equal(work_job(k, "m", "a").state, RT_JOB_SCHEDULED);
    rt_backoff_clear clear;
    rt_backoff_clear_init(&clear);
    clear.tenant = RT_STR("p");
    clear.entity = RT_STR("m");
    clear.process = RT_STR("a");
    assert_int_equal(kit_run(k, &clear.cmd), RT_OK);
    assert_false(work_has_rest(k, "m", "a", NULL));
    assert_int_equal(work_job(k, "m", "a").state, RT_JOB_FREE);
    assert_int_equal(kit_run(k, &clear.cmd), RT_OK);
    assert_true(work_claim_kind(k, s, "a").found);
}

static void backoff__jitter_stays_within_its_bounds_and_out_of_the_sequence(void **state) {
    (void)state;
    rt_rng rng = rt_rng_seeded(1);
    rt_backoff b = work_backoff(10, 10, 1);
    int64_t rest_ms;
    for (int i = 0; i < 1000; i++) {
        b.jitter = RT_JITTER_FULL;
        assert_int_equal(rt_backoff_next(&b, 0, &rng, &rest_ms), 10);
        assert_in_range(rest_ms, 1000, 10000);
        b.jitter = RT_JITTER_EQUAL;
        assert_int_equal(rt_backoff_next(&b, 0, &rng, &rest_ms), 10);
        assert_in_range(rest_ms, 5000, 10000);
    }
    b.jitter = RT_JITTER_NONE;
    assert_int_equal(rt_backoff_next(&b, 0, &rng, &rest_ms), 10);
    assert_int_equal(rest_ms, 10000);
}

/* ---- entities ------------------------------------------------------------------------------------------ */

static void entity__is_not_deleted_while_it_is_worked_on_and_leaves_only_its_history(void **state) {
    kit *k = *state;
    work_process(k, "a", NULL, NULL);
    work_put(k, "m");
    const rt_id s = work_session(k, 60);
    rt_work_claim c = work_claim_kind(k, s, "a");
    assert_int_equal(work_delete(k, "m"), RT_E_FENCED);
    assert_int_equal(work_fail(k, &c.work, "x").cmd.code, RT_OK);
    assert_int_equal(work_delete(k, "m"), RT_OK);
    assert_false(work_has_rest(k, "m", "a", NULL));
    assert_string_equal(work_history(k, "m"), "SF");
    assert_int_equal(work_delete(k, "m"), RT_E_ABSENT);
    k->now_ms += 10000;
    assert_false(work_claim_kind(k, s, "a").found);
    const rt_counts all = kit_counts(k, 0);
    assert_int_equal(all.free + all.scheduled + all.leased, 0);
    work_put(k, "m"); // it comes back with its history
    assert_int_equal(work_claim_kind(k, s, "a").work.previous_s, 0);
    assert_string_equal(work_history(k, "m"), "SFS");
}

static void entity__is_forgotten_when_its_history_is_too_old(void **state) {
    kit *k = *state;
    work_process(k, "a", NULL, NULL);
    const rt_work_claim c = work_claim(k, work_session(k, 5), "a", "m"); // named by a claim only
    assert_int_equal(work_end(k, &c.work, RT_EVENT_FINISHED).cmd.code, RT_OK);
    k->now_ms += WORK_HISTORY_MS - 1;
    kit_sweep(k);
    assert_int_equal(kit_docs(k, RT_DOC_ENTITY), 1);
    k->now_ms++;
    kit_sweep(k);
    assert_int_equal(kit_docs(k, RT_DOC_ENTITY), 0);
}

static void entity__unwanted_work_that_failed_is_not_found_by_kind(void **state) {
    kit *k = *state;
    work_process(k, "a", NULL, NULL);
    work_put(k, "m");
    work_process(k, "b", NULL, NULL);
    const rt_id s = work_session(k, 60);
    const rt_work_claim c = work_claim(k, s, "b", "m");
    assert_int_equal(work_fail(k, &c.work, "x").cmd.code, RT_OK);
    k->now_ms += 5000;
    assert_false(work_claim_kind(k, s, "b").found);
    assert_true(work_claim(k, s, "b", "m").found);
}

/* ---- stored forms -------------------------------------------------------------------------------------- */

static void history__is_read_as_it_was_written(void **state) {
    kit *k = *state;
    char cause[RT_CAUSE_MAX + 3];
    memset(cause, 'x', sizeof cause);
    memcpy(cause + RT_CAUSE_MAX - 1, "\xc3\xa4", 2); // a character across the limit
    const rt_str cut = rt_cause_cut((rt_str){.ptr = cause, .len = sizeof cause});
    assert_int_equal(cut.len, RT_CAUSE_MAX - 1);
    const rt_history line = {
        .process = RT_STR("a.b"), .session = 7, .work = UINT64_MAX, .interval_s = 99, .cause = RT_STR("no way ")};
    const rt_str text = rt_history_write(&k->out, &line);
    assert_true(rt_str_eq(text, RT_STR("a.b 0000000000000007 ffffffffffffffff 99 no way ")));
    rt_history read;
    assert_true(rt_history_read(text, &read));
    assert_true(rt_str_eq(read.process, line.process) && rt_str_eq(read.cause, line.cause));
    assert_true(read.session == 7 && read.work == UINT64_MAX && read.interval_s == 99);
    const rt_str broken[] = {RT_STR(""), RT_STR("a"), RT_STR("a 7 7 1 x"),
                             RT_STR("a 000000000000000g 0000000000000007 1 x"),
                             RT_STR("a 0000000000000007 0000000000000007 -1 x")};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) assert_false(rt_history_read(broken[i], &read));
}

static void stored__cut_short_is_no_record(void **state) {
    kit *k = *state;
    const rt_backoff b = work_backoff(1, 2, 1.5);
    const rt_process process = {.excludes = {RT_STR("x")}, .excludes_count = 1, .backoff = b};
    const rt_session session = {.id = 3, .component = RT_STR("c"), .runtime = RT_STR("r")};
    const rt_entity entity = {.id = 5, .kind = RT_STR("k"), .value = RT_STR("{}"),
                              .slots = {{.process = RT_STR("a"), .job = 9}}, .slots_count = 1};
    const rt_work work = {.id = 1, .entity = RT_STR("e"), .process = RT_STR("a")};
    const rt_rest rest = {.until_ms = 1, .cause = RT_STR("c")};
    const rt_str all[] = {rt_process_encode(&k->out, &process), rt_session_encode(&k->out, &session),
                          rt_entity_encode(&k->out, &entity), rt_work_encode(&k->out, &work),
                          rt_rest_encode(&k->out, &rest)};
    for (size_t i = 0; i < 5; i++) {
        for (size_t len = 0; len <= all[i].len; len++) {
            const rt_str value = {.ptr = all[i].ptr, .len = len};
            rt_process p;
            rt_session s;
            rt_entity e;
            rt_work w;
            rt_rest r;
            const bool read = i == 0   ? rt_process_decode(value, &p)
                              : i == 1 ? rt_session_decode(value, &s)
                              : i == 2 ? rt_entity_decode(value, &e)
                              : i == 3 ? rt_work_decode(value, &w)
                                       : rt_rest_decode(value, &r);
            assert_int_equal(read, len == all[i].len);
        }
    }
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
        WORK_BOTH(backoff__follows_the_documents_sequence_whatever_comes_between),
        WORK_BOTH(backoff__without_a_descriptor_repeats_the_last_interval),
        WORK_BOTH(backoff__stands_in_the_way_of_a_strict_claim_too_unless_it_is_ignored),
        WORK_BOTH(backoff__cleared_makes_free_at_once),
        WORK_BOTH(backoff__jitter_stays_within_its_bounds_and_out_of_the_sequence),
        WORK_BOTH(entity__is_not_deleted_while_it_is_worked_on_and_leaves_only_its_history),
        WORK_BOTH(entity__is_forgotten_when_its_history_is_too_old),
        WORK_BOTH(entity__unwanted_work_that_failed_is_not_found_by_kind),
        WORK_BOTH(history__is_read_as_it_was_written),
        WORK_BOTH(stored__cut_short_is_no_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
