/* Orders as barbican-retry.md has them: what runs are sent, what their answers make of an order, how they
 * are tried again, and how an order ends. */
#include "engine/common/key.h"
#include "order_rig.h"

static const char DONE[] = "{\"action\": \"done\"}";

/* ---- creating ------------------------------------------------------------------------------------------ */

static void order__is_pending_with_one_live_task(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("plugin:key")), RT_OK);
    const rt_id id = rig_create(r, "key");
    const rt_order o = rig_order(r, id);
    assert_int_equal(o.status, RT_ORDER_PENDING);
    assert_int_equal(o.created_ms, RIG_START_MS);
    assert_text(o.creator, "me");
    assert_false(o.has_sub_status);
    assert_int_equal(o.retries, 0);
    const rt_job task = rig_task(r, id);
    assert_int_equal(task.flags, RT_JOB_TASK);
    assert_true(task.owner == id);
    const rt_counts counts = rig_counts(r);
    assert_int_equal(counts.ready + counts.scheduled + counts.leased, 1);
    assert_int_equal(rig_metric(r, RT_ORDER_CREATED), 1);
}

static rt_code create_keyed(rig *r, const char *meta, rt_id *id) {
    rt_order_create c;
    rt_order_create_init(&c);
    c.tenant = RT_STR("p");
    c.type = RT_STR("key");
    c.meta = rt_str_of(meta);
    c.key = RT_STR("k1");
    const rt_code code = rig_run(r, &c.cmd);
    *id = c.id;
    return code;
}

static void order__asked_for_again_with_its_key_is_the_same(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("plugin:key")), RT_OK);
    rt_id first, again;
    assert_int_equal(create_keyed(r, "{}", &first), RT_OK);
    assert_int_equal(create_keyed(r, "{}", &again), RT_OK);
    assert_true(again == first);
    assert_int_equal(rig_docs(r, RT_DOC_ORDER), 1);
    assert_int_equal(rig_metric(r, RT_ORDER_CREATED), 1);
    assert_int_equal(create_keyed(r, "{\"n\": 1}", &again), RT_E_FENCED);
    rig_say(r, DONE);
    assert_int_equal(create_keyed(r, "{}", &again), RT_OK); // after its end, too
    assert_true(again == first);
    r->now_ms += RT_KEY_KEPT_MS;
    rig_settle(r);
    assert_int_equal(rig_docs(r, RT_DOC_ORDER_KEY), 0);
    assert_int_equal(create_keyed(r, "{\"n\": 1}", &again), RT_OK);
    assert_true(again != first);
    rig_say(r, DONE);
}

static void order__of_no_type_is_refused(void **state) {
    rig *r = *state;
    rt_order_create c;
    rt_order_create_init(&c);
    c.tenant = RT_STR("p");
    c.type = RT_STR("key");
    c.meta = RT_STR("{}");
    assert_int_equal(rig_run(r, &c.cmd), RT_E_ABSENT);
    c.type = RT_STR("no word");
    assert_int_equal(rig_run(r, &c.cmd), RT_E_ABSENT);
    assert_int_equal(rig_put_type(r, "key", rig_like("plugin:key")), RT_OK);
    c.tenant = RT_STR("q"); // a type of p is none of q's
    c.type = RT_STR("key");
    assert_int_equal(rig_run(r, &c.cmd), RT_E_ABSENT);
}

static void order__run_is_sent_what_there_is_to_know(void **state) {
    rig *r = *state;
    rt_order_type like = rig_like("http://127.0.0.1:9/run");
    like.headers = RT_STR("X-A: b\n");
    like.secrets[0] = RT_STR("whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0");
    like.run_limit_ms = 7000;
    assert_int_equal(rig_put_type(r, "certificate", like), RT_OK);
    const rt_id id = rig_create(r, "certificate");
    rt_attempt *a = rig_attempt(r);
    assert_text(a->url, "http://127.0.0.1:9/run");
    assert_text(a->headers, "X-A: b\n");
    assert_text(a->secrets[0], "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0");
    assert_text(a->content_type, "application/json");
    assert_int_equal(a->number, 1);
    assert_int_equal(a->timeout_ms, 7000);
    assert_int_equal(a->answer_max, 512 * 1024);
    assert_text(a->message_id, rt_id_format(RIG_TAG, rig_task(r, id).id).s);
    char want[512];
    (void)snprintf(
        want, sizeof want,
        "{\"order\":\"%s\",\"type\":\"certificate\",\"task\":\"create_order\",\"args\":[],\"kwargs\":{},"
        "\"meta\":{\"name\": \"n\"},\"state\":null,\"attempt\":1,\"token\":\"%016llx\","
        "\"deadline\":1007000,\"project\":\"p\",\"verb\":\"run\"}",
        rt_uuid_format(RIG_TAG, id).s, (unsigned long long)a->token);
    assert_text(a->body, want);
    rig_answer(r, a, 200, DONE);
}

static void order__next_run_is_sent_what_the_last_one_said(void **state) {
    rig *r = *state;
    rt_order_type like = rig_like("plugin:x");
    like.first_task = RT_STR("issue");
    assert_int_equal(rig_put_type(r, "x", like), RT_OK);
    const rt_id id = rig_create(r, "x");
    rig_say(r, "{\"action\":\"retry\",\"after_ms\":5000,\"task\":\"che\\\"ck\",\"args\":[1,\"a\"],"
               "\"kwargs\":{\"k\":null},\"state\":\"line\\nnext \\u0001\"}");
    rig_pass(r, 5000);
    rt_attempt *a = rig_attempt(r);
    char want[512];
    (void)snprintf(want, sizeof want,
                   "{\"order\":\"%s\",\"type\":\"x\",\"task\":\"che\\\"ck\",\"args\":[1, \"a\"],"
                   "\"kwargs\":{\"k\": null},\"meta\":{\"name\": \"n\"},\"state\":\"line\\nnext \\u0001\","
                   "\"attempt\":2,\"token\":\"%016llx\",\"deadline\":1035000,\"project\":\"p\",\"verb\":\"run\"}",
                   rt_uuid_format(RIG_TAG, id).s, (unsigned long long)a->token);
    assert_text(a->body, want);
    rig_answer(r, a, 200, DONE);
}

/* ---- ending -------------------------------------------------------------------------------------------- */

static void order__is_active_once_a_run_is_done(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("plugin:key")), RT_OK);
    const rt_id id = rig_create(r, "key");
    const rt_id task = rig_task(r, id).id;
    r->now_ms += 40;
    rig_say(r, DONE);
    const rt_order o = rig_order(r, id);
    assert_int_equal(o.status, RT_ORDER_ACTIVE);
    assert_true(o.job == 0);
    assert_int_equal(o.updated_ms, RIG_START_MS + 40);
    assert_true(o.has_sub_status);
    assert_text(o.sub_status, "Unknown");
    assert_text(o.sub_status_message, "Unknown");
    assert_int_equal(o.error_code.len + o.error_reason.len, 0);
    assert_int_equal(rig_job(r, task).state, RT_JOB_DONE);
    assert_int_equal(rig_job(r, task).reason, RT_REASON_DELIVERED);
    const rt_event last = rig_last_event(r, task);
    assert_int_equal(last.type, RT_EVENT_DELIVERED);
    assert_int_equal(last.attempt, 1);
    assert_int_equal(rig_metric(r, RT_ORDER_SUCCEEDED), 1);
    assert_int_equal(r->attempts_count, 0);
}

static void order__keeps_the_secret_that_a_run_made(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("plugin:key")), RT_OK);
    const rt_id id = rig_create(r, "key");
    rig_say(r, "{\"action\":\"done\",\"secret\":{\"name\":\"k\",\"content_type\":\"a/"
               "b\",\"payload_base64\":\"AP8Q\"}}");
    const rt_order o = rig_order(r, id);
    assert_true(o.secret != 0);
    assert_true(o.container == 0);
    rt_secret s;
    assert_int_equal(rt_read_secret(r->view, &r->arena, RT_STR("p"), o.secret, &s), RT_OK);
    assert_true(s.id == o.secret && s.order == id);
    assert_text(s.name, "k");
    assert_text(s.content_type, "a/b");
    assert_int_equal(s.payload.len, 3);
    assert_memory_equal(s.payload.ptr, "\x00\xff\x10", 3);
    assert_int_equal(rt_read_secret(r->view, &r->arena, RT_STR("q"), o.secret, &s), RT_E_ABSENT);
    assert_int_equal(rig_delete(r, id), RT_OK);
    assert_int_equal(rig_docs(r, RT_DOC_SECRET), 0);
}

static void order__keeps_a_container_with_its_members(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "asymmetric", rig_like("plugin:a")), RT_OK);
    const rt_id id = rig_create(r, "asymmetric");
    rig_say(r, "{\"action\":\"done\",\"container\":{\"name\":\"pair\",\"secrets\":{\"private_key\":{"
               "\"payload\":\"p\"},"
               "\"public_key\":{\"payload\":\"q\"}}}}");
    const rt_order o = rig_order(r, id);
    assert_true(o.secret == 0);
    rt_secret s, member;
    assert_int_equal(rt_read_secret(r->view, &r->arena, RT_STR("p"), o.container, &s), RT_OK);
    assert_text(s.name, "pair");
    assert_int_equal(s.members_count, 2);
    assert_text(s.members[1].role, "public_key");
    assert_int_equal(rt_read_secret(r->view, &r->arena, RT_STR("p"), s.members[1].secret, &member), RT_OK);
    assert_text(member.payload, "q");
    assert_int_equal(rig_docs(r, RT_DOC_SECRET), 3);
    assert_int_equal(rig_delete(r, id), RT_OK);
    assert_int_equal(rig_docs(r, RT_DOC_SECRET), 0);
}

static void order__is_in_error_once_a_run_has_failed(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("plugin:key")), RT_OK);
    const rt_id id = rig_create(r, "key");
    const rt_id task = rig_task(r, id).id;
    rig_say(r, "{\"action\":\"failed\",\"code\":\"400\",\"reason\":\"no such algorithm\"}");
    const rt_order o = rig_order(r, id);
    assert_int_equal(o.status, RT_ORDER_ERROR);
    assert_text(o.error_code, "400");
    assert_text(o.error_reason, "no such algorithm");
    assert_false(o.has_sub_status); // an error leaves it as it was
    assert_int_equal(rig_job(r, task).reason, RT_REASON_FAILED);
    const rt_event last = rig_last_event(r, task);
    assert_int_equal(last.type, RT_EVENT_ENDED);
    assert_int_equal(last.attempt, 1);
    assert_int_equal(rig_metric(r, RT_ORDER_FAILED), 1);
}

static void order__failure_without_words_gets_the_standard_ones(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("plugin:key")), RT_OK);
    const rt_id id = rig_create(r, "key");
    rig_say(r, "{\"action\":\"failed\"}");
    assert_text(rig_order(r, id).error_code, "500");
    assert_text(rig_order(r, id).error_reason,
                "create_order failure seen - please contact site administrator.");
}

/* `before`, then `count` times `unit`, then `after`. */
static char *repeated(rig *r, const char *before, const char *unit, size_t count, const char *after) {
    rt_buf b = {0};
    rt_buf_add(&b, rt_str_of(before));
    for (size_t i = 0; i < count; i++) rt_buf_add(&b, rt_str_of(unit));
    rt_buf_add(&b, rt_str_of(after));
    rt_buf_add_char(&b, '\0');
    char *text = rt_arena_alloc(&r->arena, b.len);
    assert_non_null(text);
    memcpy(text, b.ptr, b.len);
    rt_buf_deinit(&b);
    return text;
}

static void order__texts_are_cut_at_whole_characters(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("plugin:key")), RT_OK);
    const rt_id id = rig_create(r, "key");
    rig_say(r, repeated(r, "{\"action\":\"retry\",\"after_ms\":0,\"sub_status\":\"", "ä", 37, "\"}"));
    assert_int_equal(rig_order(r, id).sub_status.len, 36 * 2);
    rig_say(r, repeated(r, "{\"action\":\"retry\",\"after_ms\":0,\"message\":\"", "€", 256, "\"}"));
    assert_int_equal(rig_order(r, id).sub_status_message.len, 255 * 3);
    rig_say(r, repeated(r, "{\"action\":\"failed\",\"code\":\"12345678901234567\",\"reason\":\"", "😀", 256,
                        "\"}"));
    const rt_order o = rig_order(r, id);
    assert_text(o.error_code, "1234567890123456");
    assert_int_equal(o.error_reason.len, 255 * 4);
}

/* ---- again --------------------------------------------------------------------------------------------- */

static void order__retry_waits_as_long_as_the_run_said(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("plugin:key")), RT_OK);
    const rt_id id = rig_create(r, "key");
    const rt_id task = rig_task(r, id).id;
    rig_say(r, "{\"action\":\"retry\",\"after_ms\":5000,\"task\":\"check\",\"sub_status\":\"waiting\","
               "\"message\":\"m\"}");
    rt_order o = rig_order(r, id);
    assert_int_equal(o.status, RT_ORDER_PENDING);
    assert_int_equal(o.retries, 1);
    assert_text(o.task, "check");
    assert_text(o.sub_status, "waiting");
    assert_true(rig_task(r, id).id == task); // one job for its whole life
    assert_int_equal(rig_task(r, id).due_ms, RIG_START_MS + 5000);
    assert_int_equal(rig_last_event(r, task).type, RT_EVENT_PROGRESS);
    rig_pass(r, 4999);
    assert_int_equal(r->attempts_count, 0);
    rig_pass(r, 1);
    rig_say(r, DONE);
    o = rig_order(r, id);
    assert_int_equal(o.status, RT_ORDER_ACTIVE);
    assert_text(o.sub_status, "waiting"); // the last run said nothing
}

static void order__retry_after_nothing_is_now(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("plugin:key")), RT_OK);
    const rt_id id = rig_create(r, "key");
    for (uint32_t i = 1; i <= 5; i++) {
        rig_say(r, "{\"action\":\"retry\",\"after_ms\":0}");
        assert_int_equal(rig_order(r, id).retries, i);
    }
    assert_text(rig_order(r, id).sub_status, "Unknown");
    rt_attempt *a = rig_attempt(r);
    assert_int_equal(a->number, 6);
    rig_answer(r, a, 200, DONE);
    assert_int_equal(rig_metric(r, RT_ORDER_RETRIED), 5);
}

static void order__retry_that_does_not_say_when_is_in_a_minute(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("plugin:key")), RT_OK);
    const rt_id id = rig_create(r, "key");
    rig_say(r, "{\"action\":\"retry\"}");
    assert_int_equal(rig_task(r, id).due_ms, RIG_START_MS + 60000);
}

static void order__what_cannot_be_done_now_backs_off(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("plugin:key")), RT_OK);
    const rt_id id = rig_create(r, "key");
    // Of a type without a backoff: a second, doubling to five minutes.
    static const int64_t SECONDS[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300};
    for (uint32_t i = 0; i < sizeof SECONDS / sizeof SECONDS[0]; i++) {
        rig_say(r, "{\"action\":\"unavailable\"}");
        const rt_order o = rig_order(r, id);
        assert_int_equal(o.status, RT_ORDER_PENDING);
        assert_int_equal(o.failures, i + 1);
        assert_int_equal(rig_task(r, id).due_ms, r->now_ms + SECONDS[i] * 1000);
        rig_pass(r, SECONDS[i] * 1000 - 1);
        assert_int_equal(r->attempts_count, 0);
        rig_pass(r, 1);
    }
    rig_say(r,
            "{\"action\":\"retry\",\"after_ms\":1}"); // it could be done: the next failure is the first again
    assert_int_equal(rig_order(r, id).failures, 0);
    rig_pass(r, 1);
    rig_say(r, "{\"action\":\"unavailable\"}");
    assert_int_equal(rig_task(r, id).due_ms, r->now_ms + 1000);
}

static void order__outlives_a_plugin_that_fails_for_an_hour(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "x", rig_like("plugin:x")), RT_OK);
    const rt_id id = rig_create(r, "x");
    // Runs at 0, 1, 3, 7, …, 511 seconds, then each five minutes: the last one of this hour at 3511.
    uint32_t runs = 0;
    for (uint32_t second = 0; second < 3600; second++) {
        rig_settle(r);
        if (r->attempts_count > 0) {
            runs++;
            rig_outcome(r, rig_attempt(r), &(rt_outcome){.reason = RT_REASON_CRASHED, .retry_after_ms = -1});
        }
        if (second == 1800) rig_restart(r);
        assert_int_equal(rig_order(r, id).status, RT_ORDER_PENDING);
        rig_pass(r, 1000);
    }
    assert_int_equal(runs, 20);
    rig_pass(r, 211000); // 3811
    rig_say(r, DONE);
    assert_int_equal(rig_order(r, id).status, RT_ORDER_ACTIVE);
    assert_int_equal(rig_order(r, id).retries, 20);
}

static void order__unavailable_may_say_until_when(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("plugin:key")), RT_OK);
    const rt_id id = rig_create(r, "key");
    rig_say(r, "{\"action\":\"unavailable\",\"after_ms\":123456}");
    assert_int_equal(rig_task(r, id).due_ms, RIG_START_MS + 123456);
    assert_int_equal(rig_order(r, id).failures, 1);
    assert_false(rig_order(r, id).has_sub_status);
}

static void order__a_time_beyond_reason_is_ten_years(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("plugin:key")), RT_OK);
    const rt_id id = rig_create(r, "key");
    rig_say(r, "{\"action\":\"retry\",\"after_ms\":9223372036854775807}");
    assert_int_equal(rig_task(r, id).due_ms, RIG_START_MS + INT64_C(315360000000));
}

static void order__failures_in_a_row_end_it_if_the_type_says_so(void **state) {
    rig *r = *state;
    rt_order_type like = rig_like("plugin:key");
    like.max_attempts = 3;
    assert_int_equal(rig_put_type(r, "key", like), RT_OK);
    const rt_id id = rig_create(r, "key");
    rig_say(r, "{\"action\":\"unavailable\",\"after_ms\":0}");
    rig_say(r, "{\"action\":\"unavailable\",\"after_ms\":0}");
    rig_say(r, "{\"action\":\"retry\",\"after_ms\":0}"); // not in a row
    rig_say(r, "{\"action\":\"unavailable\",\"after_ms\":0}");
    rig_say(r, "{\"action\":\"unavailable\",\"after_ms\":0}");
    assert_int_equal(rig_order(r, id).status, RT_ORDER_PENDING);
    rig_say(r, "{\"action\":\"unavailable\",\"after_ms\":0}");
    const rt_order o = rig_order(r, id);
    assert_int_equal(o.status, RT_ORDER_ERROR);
    assert_text(o.error_code, "500");
    assert_text(o.error_reason, "create_order failure seen - please contact site administrator.");
}

static void order__outcomes_that_are_no_answer_are_tried_again(void **state) {
    rig *r = *state;
    static const struct {
        rt_reason reason;
        uint16_t status;
        int64_t retry_after_ms, wait_ms;
        const char *answer;
        rt_reason event;
    } rows[] = {
        {RT_REASON_TIMEOUT, 0, -1, 1000, NULL, RT_REASON_TIMEOUT},
        {RT_REASON_CRASHED, 0, -1, 1000, NULL, RT_REASON_CRASHED},
        {RT_REASON_NO_PLUGIN, 0, -1, 1000, NULL, RT_REASON_NO_PLUGIN},
        {RT_REASON_CONNECT, 0, -1, 1000, NULL, RT_REASON_CONNECT},
        {RT_REASON_ADDRESS_REFUSED, 0, -1, 1000, NULL, RT_REASON_ADDRESS_REFUSED},
        {RT_REASON_STATUS, 500, -1, 1000, NULL, RT_REASON_STATUS},
        {RT_REASON_STATUS, 502, 90000, 1000, NULL, RT_REASON_STATUS}, // Retry-After is for 429 and 503
        {RT_REASON_STATUS, 503, -1, 1000, NULL, RT_REASON_UNAVAILABLE},
        {RT_REASON_STATUS, 503, 90000, 90000, NULL, RT_REASON_UNAVAILABLE},
        {RT_REASON_STATUS, 429, 90000, 90000, NULL, RT_REASON_UNAVAILABLE},
        {RT_REASON_STATUS, 429, -1, 1000, NULL, RT_REASON_UNAVAILABLE},
        {RT_REASON_STATUS, 302, -1, 1000, NULL, RT_REASON_NONSENSE},
        {RT_REASON_STATUS, 200, -1, 1000, "oops", RT_REASON_NONSENSE},
        {RT_REASON_STATUS, 204, -1, 1000, NULL, RT_REASON_NONSENSE},
    };
    assert_int_equal(rig_put_type(r, "key", rig_like("http://127.0.0.1:9/")), RT_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rt_id id = rig_create(r, "key");
        const rt_outcome o = {
            .reason = rows[i].reason,
            .status = rows[i].status,
            .retry_after_ms = rows[i].retry_after_ms,
            .answer = rows[i].answer == NULL ? NULL : rt_str_dup(rt_str_of(rows[i].answer)),
            .answer_len = (uint32_t)rt_str_of(rows[i].answer).len,
        };
        rig_outcome(r, rig_attempt(r), &o);
        assert_int_equal(rig_order(r, id).status, RT_ORDER_PENDING);
        assert_int_equal(rig_order(r, id).failures, 1);
        assert_int_equal(rig_task(r, id).due_ms, r->now_ms + rows[i].wait_ms);
        const rt_event event = rig_last_event(r, rig_task(r, id).id);
        assert_int_equal(event.type, RT_EVENT_ATTEMPT);
        assert_int_equal(event.reason, rows[i].event);
        assert_int_equal(event.delay_ms, rows[i].wait_ms);
        assert_int_equal(rig_delete(r, id), RT_OK);
        rig_settle(r);
    }
}

static void order__other_refusals_of_a_worker_are_failures(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("http://127.0.0.1:9/")), RT_OK);
    const rt_id id = rig_create(r, "key");
    rig_answer(r, rig_attempt(r), 422, "no algorithm");
    const rt_order o = rig_order(r, id);
    assert_int_equal(o.status, RT_ORDER_ERROR);
    assert_text(o.error_code, "400");
    assert_text(o.error_reason, "create_order issue seen - no algorithm");
}

static void order__run_that_nobody_hears_of_again_is_lost_and_made_anew(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("plugin:key")), RT_OK);
    const rt_id id = rig_create(r, "key");
    rt_attempt *a = rig_attempt(r);
    rig_pass(r, 35000 + 250); // its limit and the margin; where others take too, they look every 250 ms
    assert_int_equal(rig_last_event(r, rig_task(r, id).id).reason, RT_REASON_LOST);
    rig_pass(r, 1250);
    rt_attempt *b = rig_attempt(r);
    assert_int_equal(b->number, 2);
    assert_true(b->token != a->token);
    rig_answer(r, a, 200, "{\"action\":\"failed\"}"); // too late
    assert_int_equal(rig_order(r, id).status, RT_ORDER_PENDING);
    rig_answer(r, b, 200, DONE);
    assert_int_equal(rig_order(r, id).status, RT_ORDER_ACTIVE);
}

static void order__wake_makes_it_due_at_once(void **state) {
    rig *r = *state;
    assert_int_equal(rig_put_type(r, "key", rig_like("plugin:key")), RT_OK);
    const rt_id id = rig_create(r, "key");
    rig_say(r, "{\"action\":\"retry\",\"after_ms\":86400000}");
    assert_int_equal(rig_wake(r, id), RT_OK);
    assert_int_equal(r->attempts_count, 1);
    assert_int_equal(rig_wake(r, id), RT_OK); // under way: nothing
    assert_int_equal(r->attempts_count, 1);
    rig_say(r, DONE);
    assert_int_equal(rig_wake(r, id), RT_E_FENCED);
    assert_int_equal(rig_wake(r, id + 1), RT_E_ABSENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RIG_BOTH(order__is_pending_with_one_live_task),
        RIG_BOTH(order__asked_for_again_with_its_key_is_the_same),
        RIG_BOTH(order__of_no_type_is_refused),
        RIG_BOTH(order__run_is_sent_what_there_is_to_know),
        RIG_BOTH(order__next_run_is_sent_what_the_last_one_said),
        RIG_BOTH(order__is_active_once_a_run_is_done),
        RIG_BOTH(order__keeps_the_secret_that_a_run_made),
        RIG_BOTH(order__keeps_a_container_with_its_members),
        RIG_BOTH(order__is_in_error_once_a_run_has_failed),
        RIG_BOTH(order__failure_without_words_gets_the_standard_ones),
        RIG_BOTH(order__texts_are_cut_at_whole_characters),
        RIG_BOTH(order__retry_waits_as_long_as_the_run_said),
        RIG_BOTH(order__retry_after_nothing_is_now),
        RIG_BOTH(order__retry_that_does_not_say_when_is_in_a_minute),
        RIG_SOLE(order__what_cannot_be_done_now_backs_off),
        RIG_BOTH(order__outlives_a_plugin_that_fails_for_an_hour),
        RIG_BOTH(order__unavailable_may_say_until_when),
        RIG_BOTH(order__a_time_beyond_reason_is_ten_years),
        RIG_BOTH(order__failures_in_a_row_end_it_if_the_type_says_so),
        RIG_BOTH(order__outcomes_that_are_no_answer_are_tried_again),
        RIG_BOTH(order__other_refusals_of_a_worker_are_failures),
        RIG_BOTH(order__run_that_nobody_hears_of_again_is_lost_and_made_anew),
        RIG_BOTH(order__wake_makes_it_due_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
