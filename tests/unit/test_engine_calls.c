/* Calls: types, scheduling, and attempts that are pushed. */
#include "call_kit.h"
#include "engine/common/key.h"

/* ---- types --------------------------------------------------------------------------------------------- */

static void type__is_stored_whole(void **state) {
    kit *k = *state;
    rt_call_type like = call_type();
    like.policy = RT_CALL_BACKOFF;
    like.backoff =
        (rt_backoff){.given = true,
                     .descriptor = {.initial_ns = 1000000000, .maximum_ns = 8000000000, .exponent = 2},
                     .jitter = RT_JITTER_FULL};
    like.max_attempts = 5;
    like.headers = RT_STR("A: b\n");
    like.secrets[1] = RT_STR("whsec_x");
    like.circuit.enabled = true;
    like.circuit.slow_call_s = 1.5;
    like.pace.enabled = true;
    like.concurrency = 3;
    like.rate_per_s = 9;
    like.ordered = true;
    like.dead_type = RT_STR("other");
    like.dead_keep_s = 77;
    like.buckets = 4;
    assert_int_equal(call_put(k, "t", like), RT_OK);
    const rt_call_type t = call_get(k, "t");
    assert_true(t.queue != 0);
    assert_int_equal(t.changed_ms, KIT_START_MS);
    assert_int_equal(t.policy, RT_CALL_BACKOFF);
    assert_int_equal(t.backoff.descriptor.maximum_ns, 8000000000);
    assert_int_equal(t.backoff.jitter, RT_JITTER_FULL);
    assert_int_equal(t.max_attempts, 5);
    assert_true(rt_str_eq(t.target, RT_STR("http://t/")));
    assert_true(rt_str_eq(t.headers, RT_STR("A: b\n")));
    assert_true(rt_str_eq(t.secrets[1], RT_STR("whsec_x")));
    assert_true(t.circuit.enabled && t.circuit.slow_call_s == 1.5 && t.circuit.probes == 3);
    assert_true(t.pace.enabled && t.pace.maximum_ms == 30000);
    assert_int_equal(t.concurrency, 3);
    assert_int_equal(t.rate_per_s, 9);
    assert_true(t.ordered);
    assert_true(rt_str_eq(t.dead_type, RT_STR("other")));
    assert_int_equal(t.dead_keep_s, 77);
    assert_int_equal(t.buckets, 4);
    const rt_queue q = call_queue(k, "t");
    assert_int_equal(q.kind, RT_QUEUE_CALLS);
    assert_int_equal(q.in_flight_max, 3);
    assert_true(rt_str_eq(q.name, RT_STR("p/t")));
}

static void type__is_versioned_and_keeps_its_queue(void **state) {
    kit *k = *state;
    assert_int_equal(call_put(k, "t", call_type()), RT_OK);
    const rt_id queue = call_get(k, "t").queue;
    rt_call_type_put c;
    rt_call_type_put_init(&c);
    c.tenant = RT_STR("p");
    c.name = RT_STR("t");
    c.like = call_type();
    c.version = 2;
    assert_int_equal(kit_run(k, &c.cmd), RT_E_CONFLICT);
    c.version = 1;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_false(c.created);
    assert_int_equal(c.version_now, 2);
    assert_int_equal(call_get(k, "t").queue, queue);
}

static void type__does_not_switch_between_push_and_pull_while_calls_wait(void **state) {
    kit *k = *state;
    assert_int_equal(call_put(k, "t", call_type()), RT_OK);
    assert_int_equal(call_put(k, "t", call_type_pull()), RT_OK);
    const rt_id id = call_schedule(k, "t", NULL);
    assert_int_equal(call_put(k, "t", call_type()), RT_E_FENCED);
    const rt_call_claim c = call_claim(k, "t", 1);
    assert_int_equal(call_finish(k, id, c.calls[0].token), RT_OK);
    assert_int_equal(call_put(k, "t", call_type()), RT_OK);
}

static void type__refuses_dead_types_that_lead_back(void **state) {
    kit *k = *state;
    rt_call_type a = call_type(), b = call_type(), c = call_type();
    a.dead_type = RT_STR("a");
    assert_int_equal(call_put(k, "a", a), RT_E_INVALID);
    a.dead_type = RT_STR("b");
    assert_int_equal(call_put(k, "a", a), RT_OK); // b may come later
    b.dead_type = RT_STR("c");
    assert_int_equal(call_put(k, "b", b), RT_OK);
    c.dead_type = RT_STR("a");
    assert_int_equal(call_put(k, "c", c), RT_E_INVALID);
}

static rt_code delete_type(kit *k, const char *name, bool force) {
    rt_call_type_delete c;
    rt_call_type_delete_init(&c);
    c.tenant = RT_STR("p");
    c.name = rt_str_of(name);
    c.force = force;
    return kit_run(k, &c.cmd);
}

static void type__is_deleted_with_all_its_calls(void **state) {
    kit *k = *state;
    assert_int_equal(delete_type(k, "t", false), RT_E_ABSENT);
    assert_int_equal(call_put(k, "t", call_type()), RT_OK);
    const rt_id queue = call_get(k, "t").queue;
    kit_busy(k, queue);
    rt_id ids[100];
    for (int i = 0; i < 100; i++) ids[i] = call_schedule(k, "t", i % 2 ? "k" : NULL);
    assert_int_equal(delete_type(k, "t", false), RT_E_FENCED);
    assert_int_equal(delete_type(k, "t", true), RT_OK);
    (void)kit_run_cursors(k);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(kit_job(k, ids[i]).state, RT_JOB_DONE);
        assert_int_equal(kit_last_event(k, ids[i]).reason, RT_REASON_DELETED);
        assert_false(kit_has_body(k, ids[i]));
    }
    assert_int_equal(kit_docs(k, RT_DOC_CALL_LINE), 0);
    assert_int_equal(kit_docs(k, RT_DOC_CALL_PLACE), 0);
    rt_queue q;
    assert_int_equal(rt_view_queue(kit_view(k), queue, &q), RT_E_ABSENT);
    rt_call_item item = {.payload = RT_STR("x")};
    assert_int_equal(call_schedule_item(k, "t", &item), RT_E_ABSENT);
}

static void type__deleted_while_a_call_stands_in_the_fifo_ends_it_at_its_turn(void **state) {
    kit *k = *state;
    assert_int_equal(call_put(k, "t", call_type()), RT_OK);
    const rt_id id = call_schedule(k, "t", "k");
    assert_int_equal(kit_job(k, id).state, RT_JOB_READY);
    assert_int_equal(delete_type(k, "t", true), RT_OK);
    (void)kit_run_cursors(k);
    assert_false(call_start(k, id, NULL));
    assert_int_equal(kit_job(k, id).state, RT_JOB_DONE);
}

/* ---- scheduling ---------------------------------------------------------------------------------------- */

static void schedule__keeps_what_was_given(void **state) {
    kit *k = *state;
    assert_int_equal(call_put(k, "t", call_type()), RT_OK);
    rt_call_item item = {.payload = RT_STR("{\"a\":1}"),
                         .content_type = RT_STR("application/x"),
                         .reason = RT_STR("api1-5xx"),
                         .order_key = RT_STR("key"),
                         .delay_ms = 5000};
    assert_int_equal(call_schedule_item(k, "t", &item), RT_OK);
    const rt_job job = kit_job(k, item.id);
    assert_int_equal(job.state, RT_JOB_SCHEDULED);
    assert_int_equal(job.due_ms, KIT_START_MS + 5000);
    assert_int_equal(job.flags, RT_JOB_CALL);
    rt_str body;
    rt_call call;
    assert_int_equal(rt_view_body(kit_view(k), job.body, &body), RT_OK);
    assert_true(rt_call_decode(body, &call));
    assert_true(rt_str_eq(call.tenant, RT_STR("p")));
    assert_true(rt_str_eq(call.type, RT_STR("t")));
    assert_true(rt_str_eq(call.reason, RT_STR("api1-5xx")));
    assert_true(rt_str_eq(call.order_key, RT_STR("key")));
    assert_true(rt_str_eq(call.content_type, RT_STR("application/x")));
    assert_true(rt_str_eq(call.payload, RT_STR("{\"a\":1}")));
    assert_int_equal(call.past, 0);
}

static void schedule__with_a_known_key_creates_nothing_new(void **state) {
    kit *k = *state;
    assert_int_equal(call_put(k, "t", call_type()), RT_OK);
    rt_call_item item = {.payload = RT_STR("x"), .key = RT_STR("k1")};
    assert_int_equal(call_schedule_item(k, "t", &item), RT_OK);
    const rt_id first = item.id;
    assert_false(item.existed);
    assert_int_equal(call_schedule_item(k, "t", &item), RT_OK);
    assert_true(item.existed);
    assert_int_equal(item.id, first);
    item.payload = RT_STR("y");
    assert_int_equal(call_schedule_item(k, "t", &item), RT_E_FENCED);
    k->now_ms += RT_KEY_KEPT_MS; // forgotten, whether it was swept or not
    assert_int_equal(call_schedule_item(k, "t", &item), RT_OK);
    assert_false(item.existed);
    assert_true(item.id != first);
}

/* What a key of it stood for is deleted as well: an acknowledgement would be a lie. */
static void schedule__keys_go_with_their_type(void **state) {
    kit *k = *state;
    rt_call_item item = {.payload = RT_STR("x"), .key = RT_STR("k1")};
    rt_id ids[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(call_put(k, "t", call_type()), RT_OK);
        assert_int_equal(call_schedule_item(k, "t", &item), RT_OK);
        assert_false(item.existed);
        ids[i] = item.id;
        assert_int_equal(delete_type(k, "t", true), RT_OK);
    }
    assert_true(ids[0] != ids[1]);
}

static void schedule__takes_keys_of_any_length(void **state) {
    kit *k = *state;
    char tenant[RT_TENANT_MAX], type[RT_CALL_TYPE_NAME_MAX], key[RT_CALL_KEY_MAX];
    memset(tenant, 'p', sizeof tenant);
    memset(type, 't', sizeof type);
    memset(key, 'k', sizeof key);
    rt_call_type_put put;
    rt_call_type_put_init(&put);
    put.tenant = (rt_str){.ptr = tenant, .len = sizeof tenant};
    put.name = (rt_str){.ptr = type, .len = sizeof type};
    put.like = call_type();
    assert_int_equal(kit_run(k, &put.cmd), RT_OK);
    rt_id ids[2];
    for (int i = 0; i < 2; i++) {
        rt_call_item item = {.payload = RT_STR("x"), .key = {.ptr = key, .len = sizeof key}};
        rt_calls_schedule c;
        rt_calls_schedule_init(&c);
        c.tenant = put.tenant;
        c.type = put.name;
        c.items = &item;
        c.count = 1;
        assert_int_equal(kit_run(k, &c.cmd), RT_OK);
        assert_int_equal(item.existed, i == 1);
        ids[i] = item.id;
    }
    assert_int_equal(ids[0], ids[1]);
}

static void schedule__is_all_or_nothing_and_names_the_bad_item(void **state) {
    kit *k = *state;
    assert_int_equal(call_put(k, "t", call_type()), RT_OK);
    rt_call_item items[3] = {
        {.payload = RT_STR("1")}, {.payload = RT_STR("2"), .type = RT_STR("none")}, {.payload = RT_STR("3")}};
    rt_calls_schedule c;
    rt_calls_schedule_init(&c);
    c.tenant = RT_STR("p");
    c.type = RT_STR("t");
    c.items = items;
    c.count = 3;
    assert_int_equal(kit_run(k, &c.cmd), RT_E_ABSENT);
    assert_int_equal(c.bad_item, 1);
    assert_int_equal(kit_counts(k, call_get(k, "t").queue).ready, 0);
}

static void schedule__of_many_with_one_key_and_one_order(void **state) {
    kit *k = *state;
    assert_int_equal(call_put(k, "t", call_type()), RT_OK);
    static rt_call_item items[RT_CALLS_PER_REQUEST_MAX];
    for (int i = 0; i < RT_CALLS_PER_REQUEST_MAX; i++)
        items[i] = (rt_call_item){
            .payload = RT_STR("x"), .order_key = RT_STR("o"), .key = i < 2 ? RT_STR("k") : RT_STR_EMPTY};
    rt_calls_schedule c;
    rt_calls_schedule_init(&c);
    c.tenant = RT_STR("p");
    c.type = RT_STR("t");
    c.items = items;
    c.count = RT_CALLS_PER_REQUEST_MAX;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_true(items[1].existed);
    assert_int_equal(items[1].id, items[0].id);
    const rt_counts counts = kit_counts(k, call_get(k, "t").queue);
    assert_int_equal(counts.ready, 1);
    assert_int_equal(counts.scheduled, RT_CALLS_PER_REQUEST_MAX - 2);
}

/* ---- attempts ------------------------------------------------------------------------------------------ */

static void attempt__says_what_receivers_want_to_know(void **state) {
    kit *k = *state;
    rt_call_type like = call_type();
    like.headers = RT_STR("A: b\n");
    like.secrets[0] = RT_STR("whsec_x");
    assert_int_equal(call_put(k, "t", like), RT_OK);
    rt_call_item item = {.payload = RT_STR("body"),
                         .content_type = RT_STR("text/plain"),
                         .reason = RT_STR("a\nb"),
                         .order_key = RT_STR("o")};
    assert_int_equal(call_schedule_item(k, "t", &item), RT_OK);
    rt_attempt *a;
    assert_true(call_start(k, item.id, &a));
    assert_string_equal(a->url.ptr, "http://t/");
    assert_string_equal(a->headers.ptr, "A: b\nretryd-type: t\nretryd-reason: a?b\nretryd-order-key: o\n");
    assert_string_equal(a->content_type.ptr, "text/plain");
    assert_string_equal(a->body.ptr, "body");
    assert_string_equal(a->key.ptr, "o");
    assert_string_equal(a->secrets[0].ptr, "whsec_x");
    assert_string_equal(a->message_id.ptr, rt_id_format(0x1234, item.id).s);
    assert_int_equal(a->number, 1);
    assert_int_equal(a->timeout_ms, 30000);
    rt_attempt_free(a);
}

static void attempt__to_kafka_has_headers_of_its_own(void **state) {
    kit *k = *state;
    rt_call_type like = call_type();
    like.target = RT_STR("kafka:topic");
    assert_int_equal(call_put(k, "t", like), RT_OK);
    rt_call_item item = {.payload = RT_STR("body"), .reason = RT_STR("r"), .order_key = RT_STR("o")};
    assert_int_equal(call_schedule_item(k, "t", &item), RT_OK);
    rt_attempt *a;
    assert_true(call_start(k, item.id, &a));
    assert_string_equal(a->headers.ptr, "rtd-type: t\nrtd-reason: r\n");
    assert_string_equal(a->key.ptr, "o");
    rt_attempt_free(a);
}

static void settle__success_is_done(void **state) {
    kit *k = *state;
    assert_int_equal(call_put(k, "t", call_type()), RT_OK);
    const rt_id id = call_schedule(k, "t", NULL);
    call_settle(k, id, RT_REASON_STATUS, 204);
    assert_int_equal(kit_job(k, id).state, RT_JOB_DONE);
    assert_int_equal(kit_last_event(k, id).type, RT_EVENT_DELIVERED);
    assert_int_equal(kit_last_event(k, id).attempt, 1);
}

static void settle__follows_the_delivery_policy(void **state) {
    kit *k = *state;
    rt_call_type like = call_type();
    like.delivery.retries_with_no_delay = 1;
    like.delivery.minimum_delay_retries = 1;
    like.delivery.minimum_delay_s = 5;
    like.delivery.maximum_delay_s = 5;
    like.delivery.backoff_retries = 1;
    like.delivery.maximum_delay_retries = 0;
    assert_int_equal(call_put(k, "t", like), RT_OK);
    const rt_id id = call_schedule(k, "t", NULL);
    const int64_t delays[] = {0, 5000, 5000};
    for (int i = 0; i < 3; i++) {
        call_settle(k, id, RT_REASON_STATUS, 503);
        assert_int_equal(kit_job(k, id).state, RT_JOB_SCHEDULED);
        assert_int_equal(kit_job(k, id).due_ms, KIT_START_MS + delays[i]);
        assert_int_equal(kit_last_event(k, id).delay_ms, delays[i]);
    }
    call_settle(k, id, RT_REASON_TIMEOUT, 0);
    assert_int_equal(kit_job(k, id).state, RT_JOB_DEAD);
    assert_int_equal(kit_job(k, id).reason, RT_REASON_EXHAUSTED);
    assert_int_equal(kit_job(k, id).attempt, 4);
}

static void settle__follows_the_backoff(void **state) {
    kit *k = *state;
    rt_call_type like = call_type();
    like.policy = RT_CALL_BACKOFF;
    like.backoff = (rt_backoff){
        .given = true, .descriptor = {.initial_ns = 2000000000, .maximum_ns = 5000000000, .exponent = 2}};
    like.max_attempts = 4;
    assert_int_equal(call_put(k, "t", like), RT_OK);
    const rt_id id = call_schedule(k, "t", NULL);
    const int64_t delays[] = {2000, 4000, 5000};
    for (int i = 0; i < 3; i++) {
        call_settle(k, id, RT_REASON_CONNECT, 0);
        assert_int_equal(kit_job(k, id).due_ms, KIT_START_MS + delays[i]);
    }
    call_settle(k, id, RT_REASON_CONNECT, 0);
    assert_int_equal(kit_job(k, id).state, RT_JOB_DEAD);
}

static void settle__heeds_retry_after_if_the_policy_says_so(void **state) {
    kit *k = *state;
    rt_call_type like = call_type();
    assert_int_equal(call_put(k, "t", like), RT_OK);
    const rt_id id = call_schedule(k, "t", NULL);
    rt_outcome o = {.job = id, .token = 7, .reason = RT_REASON_STATUS, .status = 503, .retry_after_ms = 7000};
    call_settle_outcome(k, &o);
    assert_int_equal(kit_job(k, id).due_ms, KIT_START_MS); // not respected: at once
    like.delivery.respect_retry_after = true;
    assert_int_equal(call_put(k, "t", like), RT_OK);
    call_settle_outcome(k, &o);
    assert_int_equal(kit_job(k, id).due_ms, KIT_START_MS + 7000);
    o.retry_after_ms = 100000;
    call_settle_outcome(k, &o);
    assert_int_equal(kit_job(k, id).due_ms, KIT_START_MS + 60000); // at most maximum_delay
}

static void settle__what_is_rejected_or_too_old_is_dead(void **state) {
    kit *k = *state;
    rt_call_type like = call_type();
    like.delivery.maximum_age_s = 100;
    assert_int_equal(call_put(k, "t", like), RT_OK);
    const rt_id rejected = call_schedule(k, "t", NULL);
    const rt_id refused = call_schedule(k, "t", NULL);
    const rt_id old = call_schedule(k, "t", NULL);
    call_settle(k, rejected, RT_REASON_STATUS, 404);
    assert_int_equal(kit_job(k, rejected).reason, RT_REASON_REJECTED);
    call_settle(k, refused, RT_REASON_ADDRESS_REFUSED, 0);
    assert_int_equal(kit_job(k, refused).reason, RT_REASON_ADDRESS_REFUSED);
    k->now_ms += 100000;
    assert_false(call_start(k, old, NULL));
    assert_int_equal(kit_job(k, old).state, RT_JOB_DEAD);
    assert_int_equal(kit_job(k, old).reason, RT_REASON_EXPIRED);
}

/* ---- plugins ------------------------------------------------------------------------------------------- */

/* In place of the reader of JSON: one letter an answer. */
static rt_code read_letter(rt_str text, rt_arena *arena, rt_run_answer *out, rt_err *err) {
    (void)arena;
    *out = (rt_run_answer){.after_ms = -1, .reason = RT_STR("why")};
    switch (text.len == 1 ? text.ptr[0] : '?') {
    case 'd': out->action = RT_RUN_DONE; return RT_OK;
    case 'f': out->action = RT_RUN_FAILED; return RT_OK;
    case 'u': out->action = RT_RUN_UNAVAILABLE; return RT_OK;
    case 'r':
        out->action = RT_RUN_RETRY;
        out->after_ms = 70000;
        return RT_OK;
    default: return rt_fail(err, RT_E_INVALID, 0, "no such letter");
    }
}

static void plugin_says(kit *k, rt_id id, char letter) {
    // The store may make the decision start over: the outcome is lent for as long as that takes.
    char answer[] = {letter};
    rt_settle s;
    const rt_outcome o = {.job = id,
                          .token = 7,
                          .reason = RT_REASON_STATUS,
                          .status = 200,
                          .retry_after_ms = -1,
                          .answer = answer,
                          .answer_len = 1};
    rt_settle_init(&s, &o, false);
    assert_int_equal(kit_run(k, &s.cmd), RT_OK);
}

static void plugin__is_asked_to_run_the_call_and_believed(void **state) {
    kit *k = *state;
    k->settings.read_run = read_letter;
    rt_call_type like = call_type();
    like.target = RT_STR("plugin:x");
    assert_int_equal(call_put(k, "t", like), RT_OK);
    rt_call_item item = {.payload = RT_STR("a\"b"), .reason = RT_STR("r")};
    assert_int_equal(call_schedule_item(k, "t", &item), RT_OK);
    rt_attempt *a;
    assert_true(call_start(k, item.id, &a));
    assert_string_equal(a->url.ptr, "plugin:x");
    assert_true(a->answer_max > 0);
    assert_non_null(strstr(a->body.ptr, "\"task\":\"call\""));
    assert_non_null(strstr(
        a->body.ptr, "\"meta\":{\"type\":\"t\",\"reason\":\"r\",\"order_key\":\"\",\"content_type\":\"\","
                     "\"body\":\"a\\\"b\"}"));
    rt_attempt_free(a);
    plugin_says(k, item.id, 'r');
    assert_int_equal(kit_job(k, item.id).due_ms, KIT_START_MS + 70000);
    assert_int_equal(kit_last_event(k, item.id).reason, RT_REASON_UNAVAILABLE);
    plugin_says(k, item.id, '?');
    assert_int_equal(kit_last_event(k, item.id).reason, RT_REASON_NONSENSE);
    plugin_says(k, item.id, 'd');
    assert_int_equal(kit_job(k, item.id).state, RT_JOB_DONE);
    const rt_id second = call_schedule(k, "t", NULL);
    plugin_says(k, second, 'u');
    assert_int_equal(kit_job(k, second).state, RT_JOB_SCHEDULED);
    plugin_says(k, second, 'f');
    assert_int_equal(kit_job(k, second).state, RT_JOB_DEAD);
    assert_int_equal(kit_job(k, second).reason, RT_REASON_FAILED);
    assert_true(rt_str_eq(kit_last_event(k, second).text, RT_STR("why")));
}

static void plugin__gets_what_is_no_utf8_as_base64(void **state) {
    kit *k = *state;
    rt_call_type like = call_type();
    like.target = RT_STR("plugin:x");
    assert_int_equal(call_put(k, "t", like), RT_OK);
    rt_call_item item = {.payload = RT_STR("\xff\x00z")};
    assert_int_equal(call_schedule_item(k, "t", &item), RT_OK);
    rt_attempt *a;
    assert_true(call_start(k, item.id, &a));
    assert_non_null(strstr(a->body.ptr, "\"body_base64\":\"/wB6\""));
    rt_attempt_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_BOTH(type__is_stored_whole),
        KIT_BOTH(type__is_versioned_and_keeps_its_queue),
        KIT_BOTH(type__does_not_switch_between_push_and_pull_while_calls_wait),
        KIT_BOTH(type__refuses_dead_types_that_lead_back),
        KIT_BOTH(type__is_deleted_with_all_its_calls),
        KIT_BOTH(type__deleted_while_a_call_stands_in_the_fifo_ends_it_at_its_turn),
        KIT_BOTH(schedule__keeps_what_was_given),
        KIT_BOTH(schedule__with_a_known_key_creates_nothing_new),
        KIT_BOTH(schedule__keys_go_with_their_type),
        KIT_BOTH(schedule__takes_keys_of_any_length),
        KIT_BOTH(schedule__is_all_or_nothing_and_names_the_bad_item),
        KIT_CALM(schedule__of_many_with_one_key_and_one_order),
        KIT_BOTH(attempt__says_what_receivers_want_to_know),
        KIT_BOTH(attempt__to_kafka_has_headers_of_its_own),
        KIT_BOTH(settle__success_is_done),
        KIT_BOTH(settle__follows_the_delivery_policy),
        KIT_BOTH(settle__follows_the_backoff),
        KIT_BOTH(settle__heeds_retry_after_if_the_policy_says_so),
        KIT_BOTH(settle__what_is_rejected_or_too_old_is_dead),
        KIT_BOTH(plugin__is_asked_to_run_the_call_and_believed),
        KIT_BOTH(plugin__gets_what_is_no_utf8_as_base64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
