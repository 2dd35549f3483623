/* Results that come by themselves (202 and PUT), orders that are deleted under way, and what their workers
 * are told. */
#include "order_rig.h"

static const char DONE[] = "{\"action\": \"done\"}";
static const rt_run_answer ANSWER_DONE = {.action = RT_RUN_DONE, .after_ms = -1};

/* An order whose worker has answered 202: its token. */
static uint64_t accepted(rig *r, rt_id *id) {
    assert_int_equal(rig_put_type(r, "key", rig_like("http://127.0.0.1:9/")), RT_OK);
    *id = rig_create(r, "key");
    rt_attempt *a = rig_attempt(r);
    const uint64_t token = a->token;
    rig_answer(r, a, 202, "");
    return token;
}

/* ---- 202 ----------------------------------------------------------------------------------------------- */

static void result__task_stays_with_the_worker_that_answered_202(void **state) {
    rig *r = *state;
    rt_id id;
    const uint64_t token = accepted(r, &id);
    const rt_job task = rig_task(r, id);
    assert_int_equal(task.state, RT_JOB_LEASED);
    assert_true(task.lease == token);
    assert_int_equal(task.due_ms, RIG_START_MS + 3600000);
    rig_pass(r, 3500000);
    assert_int_equal(r->attempts_count, 0);
    assert_int_equal(rig_result(r, id, token, ANSWER_DONE), RT_OK);
    assert_int_equal(rig_order(r, id).status, RT_ORDER_ACTIVE);
    assert_int_equal(rig_last_event(r, task.id).attempt, 1);
}

static void result__may_ask_for_another_task(void **state) {
    rig *r = *state;
    rt_id id;
    const uint64_t token = accepted(r, &id);
    const rt_run_answer retry = {
        .action = RT_RUN_RETRY, .after_ms = 5000, .has_task = true, .task = RT_STR("check")};
    assert_int_equal(rig_result(r, id, token, retry), RT_OK);
    assert_text(rig_order(r, id).task, "check");
    rig_pass(r, 5000);
    rt_attempt *a = rig_attempt(r);
    assert_int_equal(a->number, 2);
    assert_int_equal(rig_result(r, id, a->token + 1, ANSWER_DONE), RT_E_FENCED);
    rig_answer(r, a, 200, DONE);
}

static void result__same_again_changes_nothing(void **state) {
    rig *r = *state;
    rt_id id;
    const uint64_t token = accepted(r, &id);
    const rt_run_answer retry = {.action = RT_RUN_RETRY, .after_ms = 5000};
    assert_int_equal(rig_result(r, id, token, retry), RT_OK);
    assert_int_equal(rig_result(r, id, token, retry), RT_OK);
    assert_int_equal(rig_order(r, id).retries, 1);
    assert_int_equal(rig_result(r, id, token, ANSWER_DONE), RT_OK); // whatever it says now
    assert_int_equal(rig_order(r, id).status, RT_ORDER_PENDING);
}

static void result__worker_that_is_silent_too_long_has_lost_the_task(void **state) {
    rig *r = *state;
    rt_id id;
    const uint64_t token = accepted(r, &id);
    rig_pass(r, 3600000 + 250);
    assert_int_equal(rig_result(r, id, token, ANSWER_DONE), RT_E_FENCED);
    assert_int_equal(rig_last_event(r, rig_task(r, id).id).reason, RT_REASON_LOST);
    assert_int_equal(rig_order(r, id).failures, 1);
    rig_pass(r, 1250);
    rt_attempt *a = rig_attempt(r);
    assert_int_equal(a->number, 2);
    assert_int_equal(rig_result(r, id, token, ANSWER_DONE), RT_E_FENCED);
    assert_int_equal(rig_order(r, id).status, RT_ORDER_PENDING);
    rig_answer(r, a, 200, DONE);
    assert_int_equal(rig_order(r, id).status, RT_ORDER_ACTIVE);
}

static void result__202_outlives_a_restart(void **state) {
    rig *r = *state;
    rt_id id;
    const uint64_t token = accepted(r, &id);
    rig_restart(r);
    rig_pass(r, 60000);
    assert_int_equal(r->attempts_count, 0);
    assert_int_equal(rig_result(r, id, token, ANSWER_DONE), RT_OK);
    assert_int_equal(rig_order(r, id).status, RT_ORDER_ACTIVE);
}

static void result__end_of_a_202_is_noticed_after_a_restart(void **state) {
    rig *r = *state;
    rt_id id;
    (void)accepted(r, &id);
    rig_restart(r);
    rig_pass(r, 3600000 + 1500);
    rt_attempt *a = rig_attempt(r);
    assert_int_equal(a->number, 2);
    rig_answer(r, a, 200, DONE);
}

static void result__may_come_before_its_202(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("http://127.0.0.1:9/")), RT_OK);
    const rt_id id = rig_create(r, "key");
    rt_attempt *a = rig_attempt(r);
    const rt_run_answer retry = {.action = RT_RUN_RETRY, .after_ms = 0};
    assert_int_equal(rig_result(r, id, a->token, retry), RT_OK);
    rig_answer(r, a, 202, "");
    rig_settle(r);
    const rt_order o = rig_order(r, id);
    assert_int_equal(o.retries, 1);
    assert_int_equal(o.failures, 0);
    rt_attempt *b = rig_attempt(r); // the next run, and no lease of the last one
    assert_int_equal(b->number, 2);
    rig_answer(r, b, 200, DONE);
    assert_int_equal(rig_order(r, id).status, RT_ORDER_ACTIVE);
}

static void result__may_come_in_the_moment_of_its_202(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("http://127.0.0.1:9/")), RT_OK);
    const rt_id id = rig_create(r, "key");
    rt_attempt *a = rig_attempt(r);
    const uint64_t token = a->token;
    const rt_outcome accepted = {
        .job = a->job, .token = token, .reason = RT_REASON_STATUS, .status = 202, .retry_after_ms = -1};
    rt_engine_outcome(r->engine, &accepted); // decided in the same step as what follows
    rt_attempt_free(a);
    const rt_run_answer retry = {.action = RT_RUN_RETRY, .after_ms = 0};
    assert_int_equal(rig_result(r, id, token, retry), RT_OK);
    rt_attempt *b = rig_attempt(r);
    assert_int_equal(b->number, 2);
    rig_answer(r, b, 200, DONE);
    assert_int_equal(rig_order(r, id).status, RT_ORDER_ACTIVE);
}

static void result__that_came_early_is_not_undone_by_an_error(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("http://127.0.0.1:9/")), RT_OK);
    const rt_id id = rig_create(r, "key");
    rt_attempt *a = rig_attempt(r);
    assert_int_equal(rig_result(r, id, a->token, ANSWER_DONE), RT_OK);
    rig_answer(r, a, 500, "");
    assert_int_equal(rig_order(r, id).status, RT_ORDER_ACTIVE);
}

static void result__without_a_run_is_refused(void **state) {
    rig *r = *state;
    rt_id id;
    const uint64_t token = accepted(r, &id);
    assert_int_equal(rig_result(r, id, 0, ANSWER_DONE), RT_E_FENCED);
    assert_int_equal(rig_result(r, id, token + 1, ANSWER_DONE), RT_E_FENCED);
    assert_int_equal(rig_result(r, id + 100, token, ANSWER_DONE), RT_E_ABSENT);
    assert_int_equal(rig_result(r, id, token, ANSWER_DONE), RT_OK);
    assert_int_equal(rig_result(r, id, token + 1, ANSWER_DONE), RT_E_FENCED); // ACTIVE is final
}

static void result__run_of_a_life_before_is_made_anew(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("http://127.0.0.1:9/")), RT_OK);
    const rt_id id = rig_create(r, "key");
    rt_attempt *a = rig_attempt(r);
    const uint64_t token = a->token;
    rt_attempt_free(a);
    rig_restart(r);
    rt_attempt *b = rig_attempt(r);
    assert_true(b->token != token);
    assert_int_equal(rig_result(r, id, token, ANSWER_DONE), RT_E_FENCED);
    rig_answer(r, b, 200, DONE);
}

/* ---- deleting ------------------------------------------------------------------------------------------ */

static void delete__ends_the_task_and_what_is_under_way_changes_nothing(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("plugin:key")), RT_OK);
    const rt_id id = rig_create(r, "key");
    const rt_id task = rig_task(r, id).id;
    rt_attempt *a = rig_attempt(r);
    const uint64_t token = a->token;
    assert_int_equal(rig_delete(r, id), RT_OK);
    assert_int_equal(rig_job(r, task).state, RT_JOB_DONE);
    assert_int_equal(rig_job(r, task).reason, RT_REASON_DELETED);
    rig_answer(r, a, 200, "{\"action\":\"done\",\"secret\":{\"payload\":\"p\"}}");
    assert_false(rig_has_order(r, id));
    assert_int_equal(rig_docs(r, RT_DOC_SECRET), 0);
    assert_int_equal(rig_result(r, id, token, ANSWER_DONE), RT_E_ABSENT);
    assert_int_equal(rig_delete(r, id), RT_E_ABSENT);
    rig_pass(r, 120000);
    assert_int_equal(r->attempts_count, 0);
    assert_int_equal(rig_metric(r, RT_ORDER_DELETED), 1);
}

static void delete__worker_that_wants_to_is_told_once(void **state) {
    rig *r = *state;
    rt_order_type like = rig_like("http://127.0.0.1:9/");
    like.cancel = true;
    assert_int_equal(rig_put_type(r, "key", like), RT_OK);
    const rt_id id = rig_create(r, "key");
    rig_say(r, "{\"action\":\"retry\",\"after_ms\":60000,\"task\":\"check\",\"state\":\"s\"}");
    assert_int_equal(rig_delete(r, id), RT_OK);
    rt_attempt *a = rig_attempt(r);
    assert_int_equal(a->number, 1);
    char want[512];
    (void)snprintf(want, sizeof want,
                   "{\"order\":\"%s\",\"type\":\"key\",\"task\":\"check\",\"args\":[],\"kwargs\":{},"
                   "\"meta\":{\"name\": \"n\"},\"state\":\"s\",\"attempt\":1,\"token\":\"%016llx\","
                   "\"deadline\":1030000,\"project\":\"p\",\"verb\":\"cancel\"}",
                   rt_uuid_format(RIG_TAG, id).s, (unsigned long long)a->token);
    assert_text(a->body, want);
    rig_answer(r, a, 204, "");
    rig_pass(r, 120000);
    assert_int_equal(r->attempts_count, 0);
    const rt_counts counts = rig_counts(r);
    assert_int_equal(counts.ready + counts.scheduled + counts.leased + counts.dead, 0);
}

static void delete__nobody_is_told_of_an_order_that_had_ended(void **state) {
    rig *r = *state;
    rt_order_type like = rig_like("http://127.0.0.1:9/");
    like.cancel = true;
    assert_int_equal(rig_put_type(r, "key", like), RT_OK);
    const rt_id id = rig_create(r, "key");
    rig_say(r, DONE);
    assert_int_equal(rig_delete(r, id), RT_OK);
    assert_int_equal(r->attempts_count, 0);
}

static void delete__good_bye_is_tried_five_times(void **state) {
    rig *r = *state;
    rt_order_type like = rig_like("plugin:key");
    like.cancel = true;
    assert_int_equal(rig_put_type(r, "key", like), RT_OK);
    const rt_id id = rig_create(r, "key");
    rig_say(r, "{\"action\":\"retry\",\"after_ms\":3600000}");
    assert_int_equal(rig_delete(r, id), RT_OK);
    static const char *const ANSWERS[] = {"{\"action\":\"unavailable\"}", NULL, NULL, NULL, NULL};
    for (uint32_t i = 0; i < 5; i++) {
        rt_attempt *a = rig_attempt(r);
        assert_int_equal(a->number, i + 1);
        if (ANSWERS[i] != NULL) rig_answer(r, a, 200, ANSWERS[i]);
        else rig_answer(r, a, 500, "");
        rig_pass(r, 999);
        assert_int_equal(r->attempts_count, 0);
        rig_pass(r, 16000);
    }
    assert_int_equal(r->attempts_count, 0);
    assert_int_equal(rig_counts(r).dead, 1);
}

static void delete__whatever_else_a_good_bye_is_answered_is_fine(void **state) {
    rig *r = *state;
    static const char *const ANSWERS[] = {DONE, "{\"action\":\"failed\"}", "{\"action\":\"retry\"}", "ok",
                                          ""};
    rt_order_type like = rig_like("plugin:key");
    like.cancel = true;
    assert_int_equal(rig_put_type(r, "key", like), RT_OK);
    for (size_t i = 0; i < sizeof ANSWERS / sizeof ANSWERS[0]; i++) {
        const rt_id id = rig_create(r, "key");
        rig_say(r, "{\"action\":\"retry\",\"after_ms\":3600000}");
        assert_int_equal(rig_delete(r, id), RT_OK);
        rig_say(r, ANSWERS[i]);
        const rt_counts counts = rig_counts(r);
        assert_int_equal(counts.ready + counts.scheduled + counts.leased + counts.dead, 0);
    }
}

static void delete__of_the_job_alone_is_refused(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("plugin:key")), RT_OK);
    const rt_id id = rig_create(r, "key");
    rig_say(r, "{\"action\":\"retry\",\"after_ms\":3600000}");
    rt_job_delete c;
    rt_job_delete_init(&c);
    c.id = rig_task(r, id).id;
    assert_int_equal(rig_run(r, &c.cmd), RT_E_INVALID);
    assert_int_equal(rig_task(r, id).state, RT_JOB_SCHEDULED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RIG_BOTH(result__task_stays_with_the_worker_that_answered_202),
        RIG_BOTH(result__may_ask_for_another_task),
        RIG_BOTH(result__same_again_changes_nothing),
        RIG_BOTH(result__worker_that_is_silent_too_long_has_lost_the_task),
        RIG_BOTH(result__202_outlives_a_restart),
        RIG_BOTH(result__end_of_a_202_is_noticed_after_a_restart),
        RIG_BOTH(result__may_come_before_its_202),
        RIG_BOTH(result__may_come_in_the_moment_of_its_202),
        RIG_BOTH(result__that_came_early_is_not_undone_by_an_error),
        RIG_BOTH(result__without_a_run_is_refused),
        RIG_SOLE(result__run_of_a_life_before_is_made_anew),
        RIG_BOTH(delete__ends_the_task_and_what_is_under_way_changes_nothing),
        RIG_BOTH(delete__worker_that_wants_to_is_told_once),
        RIG_BOTH(delete__nobody_is_told_of_an_order_that_had_ended),
        RIG_BOTH(delete__good_bye_is_tried_five_times),
        RIG_BOTH(delete__whatever_else_a_good_bye_is_answered_is_fine),
        RIG_BOTH(delete__of_the_job_alone_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
