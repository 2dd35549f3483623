/* Backoffs, entities and stored forms of work, as monogon-work.md has them. */
#include "work_kit.h"

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
    const rt_history line = {.process = RT_STR("a.b"),
                             .session = 7,
                             .work = UINT64_MAX,
                             .interval_s = 99,
                             .cause = RT_STR("no way ")};
    const rt_str text = rt_history_write(&k->out, &line);
    assert_true(rt_str_eq(text, RT_STR("a.b 0000000000000007 ffffffffffffffff 99 no way ")));
    rt_history read;
    assert_true(rt_history_read(text, &read));
    assert_true(rt_str_eq(read.process, line.process) && rt_str_eq(read.cause, line.cause));
    assert_true(read.session == 7 && read.work == UINT64_MAX && read.interval_s == 99);
    const rt_str broken[] = {RT_STR(""), RT_STR("a"), RT_STR("a 7 7 1 x"),
                             RT_STR("a 000000000000000g 0000000000000007 1 x"),
                             RT_STR("a 0000000000000007 0000000000000007 -1 x")};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
        assert_false(rt_history_read(broken[i], &read));
}

static void stored__cut_short_is_no_record(void **state) {
    kit *k = *state;
    const rt_backoff b = work_backoff(1, 2, 1.5);
    const rt_process process = {.excludes = {RT_STR("x")}, .excludes_count = 1, .backoff = b};
    const rt_session session = {.id = 3, .component = RT_STR("c"), .runtime = RT_STR("r")};
    const rt_entity entity = {.id = 5,
                              .kind = RT_STR("k"),
                              .value = RT_STR("{}"),
                              .slots = {{.process = RT_STR("a"), .job = 9}},
                              .slots_count = 1};
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
