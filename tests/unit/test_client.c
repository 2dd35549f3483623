/* The client library against a small server that goes away, loses answers and says no. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "client_kit.h"

enum { PATIENT_MS = 10000, HASTY_MS = 400 };

typedef struct fixture {
    char folder[64], spool[96];
    kit *kit;
} fixture;

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    (void)setenv("no_proxy", "127.0.0.1", 1);
    kit_folder_make(f->folder);
    kit_spool_path(f->spool, f->folder);
    f->kit = kit_open();
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    kit_close(f->kit);
    kit_folder_remove(f->folder);
    free(f);
    return 0;
}

static retry_code schedule(retry_client *c, const char *type, const char *body, const char *order_key, retry_receipt *receipt,
                           retry_error *error) {
    retry_request request = RETRY_REQUEST(body, strlen(body));
    request.order_key = order_key;
    return retry_schedule(c, type, &request, receipt, error);
}

static void assert_field(const json_t *events, size_t i, const char *name, const char *want) {
    const char *got = json_string_value(json_object_get(json_array_get(events, i), name));
    if (want == NULL) assert_null(got);
    else assert_string_equal(got, want);
}

static void assert_bodies(kit *k, const char *const *bodies, size_t count) {
    json_t *events = kit_events(k);
    assert_int_equal(json_array_size(events), count);
    for (size_t i = 0; i < count; i++) assert_field(events, i, "body", bodies[i]);
    json_decref(events);
}

/* ---- scheduling ------------------------------------------------------------------------------------------------------ */

static void schedule__hands_over_all_that_was_said(void **state) {
    fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    retry_receipt receipt;
    retry_request request = RETRY_REQUEST("{}", 2);
    request.content_type = "application/json";
    request.key = "k1";
    request.reason = "api1-429";
    request.order_key = "card 7";
    request.deliver_after_s = 60;
    assert_int_equal(retry_schedule(c, "card.transaction", &request, &receipt, NULL), RETRY_SCHEDULED);
    assert_string_equal(receipt.id, "000000000000000000000000");
    assert_string_equal(receipt.key, "k1");
    assert_int_equal(schedule(c, "a type", "", NULL, &receipt, NULL), RETRY_SCHEDULED);
    assert_int_equal(strlen(receipt.key), 32);
    json_t *events = kit_events(f->kit);
    static const char *const WANT[][2] = {{"type", "card.transaction"}, {"body", "{}"}, {"key", "k1"}, {"reason", "api1-429"},
                                          {"order_key", "card 7"}, {"deliver_after", "60"}, {"content_type", "application/json"}};
    for (size_t i = 0; i < sizeof WANT / sizeof WANT[0]; i++) assert_field(events, 0, WANT[i][0], WANT[i][1]);
    assert_field(events, 1, "type", "a type");
    assert_field(events, 1, "key", receipt.key);
    assert_field(events, 1, "reason", NULL);
    json_decref(events);
    retry_client_close(c);
}

static void schedule__asks_again_with_the_same_key_without_a_spool(void **state) {
    fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    kit_upset(f->kit, "/t", 0, 2); // done, but the answer is lost
    assert_int_equal(schedule(c, "t", "once", NULL, NULL, NULL), RETRY_SCHEDULED);
    kit_upset(f->kit, "/t", 503, 1);
    assert_int_equal(schedule(c, "t", "twice", NULL, NULL, NULL), RETRY_SCHEDULED);
    assert_int_equal(kit_asked(f->kit, "/t"), 5);
    assert_bodies(f->kit, (const char *[]){"once", "twice"}, 2);
    retry_client_close(c);
}

static void schedule__gives_up_without_a_spool_when_its_time_is_over(void **state) {
    fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, HASTY_MS);
    kit_leave(f->kit);
    retry_error error;
    retry_receipt receipt;
    const int64_t before_ms = rtc_now_ms();
    assert_int_equal(schedule(c, "t", "x", NULL, &receipt, &error), RETRY_E_AWAY);
    assert_true(rtc_now_ms() - before_ms < 2000);
    assert_int_equal(error.code, RETRY_E_AWAY);
    assert_non_null(strstr(error.message, "no answer from http://127.0.0.1:"));
    assert_int_equal(strlen(receipt.key), 32);
    retry_client_close(c);
}

static void schedule__says_what_is_refused(void **state) {
    fixture *f = *state;
    retry_client *c = kit_client(f->kit, f->spool, PATIENT_MS);
    retry_error error;
    assert_int_equal(schedule(c, "unknown", "x", NULL, NULL, &error), RETRY_E_REFUSED);
    assert_int_equal(error.status, 404);
    assert_string_equal(error.message, "the server answered 404: no such luck");
    assert_int_equal(schedule(c, "", "x", NULL, NULL, &error), RETRY_E_INVALID);
    assert_string_equal(error.message, "type has 1 to 128 bytes and no control characters");
    assert_int_equal(schedule(c, "t", "x", "a\nb", NULL, &error), RETRY_E_INVALID);
    assert_string_equal(error.message, "order_key has 1 to 256 bytes and no control characters");
    retry_request request = RETRY_REQUEST(NULL, 5);
    assert_int_equal(retry_schedule(c, "t", &request, NULL, NULL), RETRY_E_INVALID);
    retry_client_config config = RETRY_CLIENT_CONFIG("ftp://x");
    assert_int_equal(retry_client_open(&config, &c, &error), RETRY_E_INVALID);
    assert_string_equal(error.message, "url begins with http:// or https://");
    retry_client_close(c);
}

/* ---- the spool ------------------------------------------------------------------------------------------------------- */

static void spool__takes_what_the_server_does_not_and_sends_it_in_order(void **state) {
    fixture *f = *state;
    retry_client *c = kit_client(f->kit, f->spool, PATIENT_MS);
    kit_leave(f->kit);
    retry_receipt receipt;
    assert_int_equal(schedule(c, "a", "1", NULL, &receipt, NULL), RETRY_SPOOLED);
    assert_string_equal(receipt.id, "");
    assert_int_equal(schedule(c, "a", "2", "o", NULL, NULL), RETRY_SPOOLED);
    assert_int_equal(schedule(c, "b", "3", NULL, NULL, NULL), RETRY_SPOOLED);
    assert_int_equal(schedule(c, "a", "4", NULL, NULL, NULL), RETRY_SPOOLED);
    retry_error error;
    assert_int_equal(retry_flush(c, 50, &error), RETRY_E_AWAY);
    kit_return(f->kit);
    assert_int_equal(retry_flush(c, PATIENT_MS, &error), RETRY_OK);
    assert_bodies(f->kit, (const char *[]){"1", "2", "3", "4"}, 4);
    json_t *events = kit_events(f->kit);
    assert_field(events, 0, "key", receipt.key);
    assert_field(events, 1, "order_key", "o");
    assert_field(events, 2, "type", "b");
    json_decref(events);
    retry_spool_state seen;
    retry_spool_look(c, &seen);
    assert_int_equal(seen.sent, 4);
    assert_int_equal(schedule(c, "a", "5", "o", NULL, NULL), RETRY_SCHEDULED);
    retry_client_close(c);
}

static void spool__doubles_nothing_when_answers_are_lost(void **state) {
    fixture *f = *state;
    retry_client *c = kit_client(f->kit, f->spool, PATIENT_MS);
    kit_upset(f->kit, "/a", 0, 1);
    assert_int_equal(schedule(c, "a", "1", NULL, NULL, NULL), RETRY_SPOOLED); // it is there, but who knows
    assert_int_equal(retry_flush(c, PATIENT_MS, NULL), RETRY_OK);
    kit_leave(f->kit);
    assert_int_equal(schedule(c, "a", "2", NULL, NULL, NULL), RETRY_SPOOLED);
    assert_int_equal(schedule(c, "a", "3", NULL, NULL, NULL), RETRY_SPOOLED);
    kit_upset(f->kit, "/batch", 0, 2);
    kit_return(f->kit);
    assert_int_equal(retry_flush(c, PATIENT_MS, NULL), RETRY_OK);
    assert_bodies(f->kit, (const char *[]){"1", "2", "3"}, 3);
    retry_client_close(c);
}

static void spool__is_sent_by_the_next_process(void **state) {
    fixture *f = *state;
    retry_client *c = kit_client(f->kit, f->spool, PATIENT_MS);
    kit_leave(f->kit);
    assert_int_equal(schedule(c, "a", "1", NULL, NULL, NULL), RETRY_SPOOLED);
    retry_client_close(c);
    kit_return(f->kit);
    c = kit_client(f->kit, f->spool, PATIENT_MS);
    assert_int_equal(retry_flush(c, PATIENT_MS, NULL), RETRY_OK);
    assert_bodies(f->kit, (const char *[]){"1"}, 1);
    retry_client_close(c);
}

static void spool__puts_aside_only_what_the_server_will_not_have(void **state) {
    fixture *f = *state;
    retry_client *c = kit_client(f->kit, f->spool, PATIENT_MS);
    kit_leave(f->kit);
    static const char *const SENT[][2] = {{"a", "1"}, {"a", "bad"}, {"a", "2"}, {"unknown", "x"}, {"a", "3"}};
    for (size_t i = 0; i < sizeof SENT / sizeof SENT[0]; i++)
        assert_int_equal(schedule(c, SENT[i][0], SENT[i][1], NULL, NULL, NULL), RETRY_SPOOLED);
    kit_return(f->kit);
    assert_int_equal(retry_flush(c, PATIENT_MS, NULL), RETRY_OK);
    assert_bodies(f->kit, (const char *[]){"1", "2", "3"}, 3);
    retry_spool_state seen;
    retry_spool_look(c, &seen);
    assert_int_equal(seen.sent, 3);
    assert_int_equal(seen.refused, 2);
    char path[128];
    (void)snprintf(path, sizeof path, "%s/refused.ndjson", f->spool);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    json_t *first = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL), *second = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL);
    (void)fclose(file);
    assert_int_equal(json_integer_value(json_object_get(first, "status")), 400);
    assert_string_equal(json_string_value(json_object_get(json_object_get(first, "event"), "body_base64")), "YmFk");
    assert_string_equal(json_string_value(json_object_get(json_object_get(second, "event"), "type")), "unknown");
    json_decref(first);
    json_decref(second);
    retry_client_close(c);
}

static void spool__waits_where_only_the_token_is_wrong(void **state) {
    fixture *f = *state;
    retry_client *c = kit_client(f->kit, f->spool, PATIENT_MS);
    kit_leave(f->kit);
    assert_int_equal(schedule(c, "a", "1", NULL, NULL, NULL), RETRY_SPOOLED);
    kit_upset(f->kit, "/batch", 401, 2);
    kit_return(f->kit);
    assert_int_equal(retry_flush(c, PATIENT_MS, NULL), RETRY_OK);
    assert_int_equal(kit_asked(f->kit, "/batch"), 3);
    assert_bodies(f->kit, (const char *[]){"1"}, 1);
    retry_client_close(c);
}

static void spool__is_full_at_its_bound(void **state) {
    fixture *f = *state;
    retry_client_config config = RETRY_CLIENT_CONFIG(kit_url(f->kit));
    config.spool_dir = f->spool;
    config.spool_bytes_max = 600;
    retry_client *c;
    assert_int_equal(retry_client_open(&config, &c, NULL), RETRY_OK);
    kit_leave(f->kit);
    retry_error error;
    retry_code code;
    int spooled = 0;
    while ((code = schedule(c, "a", "x", NULL, NULL, &error)) == RETRY_SPOOLED) spooled++;
    assert_int_equal(code, RETRY_E_FULL);
    assert_in_range(spooled, 1, 5);
    kit_return(f->kit);
    assert_int_equal(retry_flush(c, PATIENT_MS, NULL), RETRY_OK);
    json_t *events = kit_events(f->kit);
    assert_int_equal(json_array_size(events), spooled);
    json_decref(events);
    retry_client_close(c);
}

/* ---- calls ----------------------------------------------------------------------------------------------------------- */

/* Fails as often as told to, and remembers what it saw. */
typedef struct dependency {
    atomic_int failures, runs, attempts_seen;
    atomic_bool lost;
    bool wait_until_lost;
    char body[64];
} dependency;

static int depend(retry_call *call, void *arg) {
    dependency *d = arg;
    size_t bytes;
    const char *body = retry_call_body(call, &bytes);
    (void)snprintf(d->body, sizeof d->body, "%s", body);
    atomic_store(&d->attempts_seen, (int)retry_call_attempt(call));
    atomic_fetch_add(&d->runs, 1);
    for (int64_t until_ms = rtc_now_ms() + PATIENT_MS; d->wait_until_lost && rtc_now_ms() < until_ms; rtc_sleep_ms(5)) {
        atomic_store(&d->lost, retry_call_lost(call));
        if (atomic_load(&d->lost)) return 0;
    }
    if (atomic_fetch_sub(&d->failures, 1) <= 0) return 0;
    retry_call_failed(call, "api1-429", "too many\nrequests");
    return 1;
}

static void run__keeps_nothing_of_a_call_that_succeeds(void **state) {
    fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    dependency d = {0};
    retry_error error;
    const retry_request request = RETRY_REQUEST("charge", 6);
    assert_int_equal(retry_run(c, "card", &request, NULL, &error), RETRY_E_INVALID);
    assert_string_equal(error.message, "type 'card' is not registered");
    assert_int_equal(retry_register(c, "card", depend, &d, NULL), RETRY_OK);
    assert_int_equal(retry_register(c, "card", depend, &d, &error), RETRY_E_INVALID);
    assert_int_equal(retry_run(c, "card", &request, NULL, NULL), RETRY_OK);
    assert_string_equal(d.body, "charge");
    assert_int_equal(d.attempts_seen, 0);
    assert_int_equal(kit_asked(f->kit, ""), 0);
    retry_client_close(c);
}

static void run__schedules_what_fails_for_a_worker_to_finish(void **state) {
    fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    dependency d = {.failures = 1};
    assert_int_equal(retry_register(c, "card", depend, &d, NULL), RETRY_OK);
    const retry_request request = RETRY_REQUEST("charge", 6);
    assert_int_equal(retry_run(c, "card", &request, NULL, NULL), RETRY_SCHEDULED);
    json_t *events = kit_events(f->kit);
    assert_field(events, 0, "reason", "api1-429");
    json_decref(events);
    retry_workers *w = NULL;
    retry_workers_config config = RETRY_WORKERS_CONFIG;
    config.threads = 3;
    config.wait_ms = 10;
    assert_int_equal(retry_workers_start(c, "card", &config, &w, NULL), RETRY_OK);
    kit_wait_ends(f->kit, 1);
    retry_workers_stop(w);
    json_t *ends = kit_ends(f->kit);
    assert_int_equal(json_array_size(ends), 1);
    assert_string_equal(json_string_value(json_array_get(ends, 0)), "finish job0");
    json_decref(ends);
    assert_int_equal(d.attempts_seen, 1);
    assert_int_equal(d.runs, 2);
    retry_client_close(c);
}

static void workers__say_why_a_call_failed_and_repeat_a_lost_end(void **state) {
    fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    dependency d = {.failures = 1};
    assert_int_equal(retry_register(c, "card", depend, &d, NULL), RETRY_OK);
    assert_int_equal(schedule(c, "card", "x", NULL, NULL, NULL), RETRY_SCHEDULED);
    kit_upset(f->kit, "/fail", 503, 2);
    retry_workers *w = NULL;
    retry_workers_config config = RETRY_WORKERS_CONFIG;
    config.wait_ms = 10;
    assert_int_equal(retry_workers_start(c, "card", &config, &w, NULL), RETRY_OK);
    kit_wait_ends(f->kit, 1);
    json_t *ends = kit_ends(f->kit);
    assert_string_equal(json_string_value(json_array_get(ends, 0)), "fail job0 api1-429 too many requests");
    json_decref(ends);
    assert_int_equal(kit_asked(f->kit, "/fail"), 3);
    kit_leave(f->kit); // and they outlive a server that goes and comes back
    kit_return(f->kit);
    assert_int_equal(schedule(c, "card", "y", NULL, NULL, NULL), RETRY_SCHEDULED);
    kit_wait_ends(f->kit, 2);
    retry_workers_stop(w);
    retry_client_close(c);
}

static void workers__extend_leases_and_tell_when_one_is_lost(void **state) {
    fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    dependency d = {.wait_until_lost = true};
    assert_int_equal(retry_register(c, "card", depend, &d, NULL), RETRY_OK);
    assert_int_equal(schedule(c, "card", "x", NULL, NULL, NULL), RETRY_SCHEDULED);
    retry_workers *w = NULL;
    retry_workers_config config = RETRY_WORKERS_CONFIG;
    config.lease_s = 3;
    config.wait_ms = 10;
    assert_int_equal(retry_workers_start(c, "card", &config, &w, NULL), RETRY_OK);
    kit_wait_asked(f->kit, "/extend", 1);
    assert_false(d.lost);
    kit_forget_leases(f->kit);
    kit_wait_asked(f->kit, "/finish", 1);
    assert_true(d.lost);
    retry_workers_stop(w);
    retry_client_close(c);
}

static void workers__check_their_configuration(void **state) {
    fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    dependency d = {0};
    assert_int_equal(retry_register(c, "card", depend, &d, NULL), RETRY_OK);
    const retry_workers_config rows[] = {{.size = sizeof rows[0], .threads = 257}, {.size = sizeof rows[0], .lease_s = 2},
                                         {.size = sizeof rows[0], .batch = 21}, {.size = sizeof rows[0], .wait_ms = 60001}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        retry_workers *w = NULL;
        assert_int_equal(retry_workers_start(c, "card", &rows[i], &w, NULL), RETRY_E_INVALID);
        assert_null(w);
    }
    retry_client_close(c);
}

/* ---- work ------------------------------------------------------------------------------------------------------------ */

static retry_session *session(retry_client *c, uint32_t interval_s) {
    retry_session *s = NULL;
    retry_session_config config = RETRY_SESSION_CONFIG;
    config.component = "test";
    config.interval_s = interval_s;
    retry_error error = {0};
    if (retry_session_open(c, &config, &s, &error) != RETRY_OK) fail_msg("%s", error.message);
    return s;
}

static retry_code claim(retry_session *s, const char *process, bool strict, retry_work **work) {
    static const char *const NAMES[] = {"m 1"};
    retry_claim_config config = RETRY_CLAIM_CONFIG;
    config.process = process;
    config.candidates = NAMES;
    config.candidate_count = 1;
    config.strict = strict;
    return retry_claim(s, &config, work, NULL);
}

static void work__is_claimed_and_ended(void **state) {
    fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    retry_session *s = session(c, 5);
    retry_work *work = NULL;
    assert_int_equal(claim(s, "idle", false, &work), RETRY_NOTHING);
    assert_int_equal(claim(s, "install", true, &work), RETRY_NOTHING);
    kit_upset(f->kit, "/v1/work/claim", 0, 1);
    assert_int_equal(claim(s, "install", false, &work), RETRY_OK);
    assert_string_equal(retry_work_id(work), "w1");
    assert_string_equal(retry_work_entity(work), "m 1");
    assert_string_equal(retry_work_process(work), "install");
    assert_string_equal(retry_work_value(work), "{\"rack\":7}");
    assert_true(retry_work_previous_interval_s(work) == 2.5);
    assert_false(retry_work_lost(work));
    retry_error error;
    assert_int_equal(retry_work_finish(work, "{\"installed\": true}", NULL), RETRY_OK);
    assert_int_equal(claim(s, "install", false, &work), RETRY_OK);
    assert_int_equal(retry_work_finish(work, "{", &error), RETRY_E_INVALID);
    assert_string_equal(error.message, "entity_patch is JSON");
    assert_int_equal(claim(s, "install", false, &work), RETRY_OK);
    kit_upset(f->kit, "/fail", 500, 1);
    assert_int_equal(retry_work_fail(work, "no route", "null", NULL), RETRY_OK);
    assert_int_equal(claim(s, "install", false, &work), RETRY_OK);
    assert_int_equal(retry_work_cancel(work, NULL), RETRY_OK);
    retry_session_close(s);
    json_t *ends = kit_ends(f->kit);
    static const char *const WANT[] = {"finish w1", "fail w1 no route", "cancel w1"};
    assert_int_equal(json_array_size(ends), 3);
    for (size_t i = 0; i < 3; i++) assert_string_equal(json_string_value(json_array_get(ends, i)), WANT[i]);
    json_decref(ends);
    assert_int_equal(kit_asked(f->kit, "/v1/sessions/session0"), 1); // it was ended
    retry_client_close(c);
}

static void work__of_a_session_that_expired_is_lost_and_a_new_one_begins(void **state) {
    fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    retry_session *s = session(c, 1);
    retry_work *work = NULL, *other = NULL;
    assert_int_equal(claim(s, "install", false, &work), RETRY_OK);
    kit_wait_asked(f->kit, "/heartbeat", 2);
    assert_false(retry_work_lost(work));
    kit_forget_leases(f->kit);
    for (const int64_t until_ms = rtc_now_ms() + PATIENT_MS; !retry_work_lost(work) && rtc_now_ms() < until_ms;) rtc_sleep_ms(5);
    assert_true(retry_work_lost(work));
    assert_int_equal(claim(s, "install", false, &other), RETRY_OK);
    assert_int_equal(kit_asked(f->kit, "/v1/sessions"), 2);
    retry_error error;
    assert_int_equal(retry_work_finish(work, NULL, &error), RETRY_E_STALE);
    assert_int_equal(error.code, RETRY_E_STALE);
    assert_int_equal(retry_work_cancel(other, NULL), RETRY_E_STALE); // this server has forgotten all leases
    retry_session_close(s);
    retry_client_close(c);
}

static void work__is_claimed_by_kind_or_by_name(void **state) {
    fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    retry_session *s = session(c, 5);
    retry_work *work = NULL;
    retry_error error;
    retry_claim_config config = RETRY_CLAIM_CONFIG;
    config.process = "install";
    assert_int_equal(retry_claim(s, &config, &work, &error), RETRY_E_INVALID);
    assert_string_equal(error.message, "either kind or 1 to 1000 candidates");
    config.kind = "machine";
    assert_int_equal(retry_claim(s, &config, &work, NULL), RETRY_OK);
    assert_int_equal(retry_work_cancel(work, NULL), RETRY_OK);
    config.candidates = (const char *[]){"m1"};
    config.candidate_count = 1;
    assert_int_equal(retry_claim(s, &config, &work, NULL), RETRY_E_INVALID);
    retry_session_close(s);
    retry_client_close(c);
}

/* ---- the rest -------------------------------------------------------------------------------------------------------- */

static void ask__hands_back_answers_and_refusals(void **state) {
    fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    char *answer = NULL;
    retry_error error;
    assert_int_equal(retry_ask(c, "POST", "/v1/sessions", "{}", &answer, NULL), RETRY_OK);
    assert_string_equal(answer, "{\"session\":\"session0\"}");
    retry_free(answer);
    assert_int_equal(retry_ask(c, "GET", "/nowhere", NULL, NULL, &error), RETRY_E_REFUSED);
    assert_int_equal(error.status, 404);
    retry_client_close(c);
}

static void config__of_an_older_program_has_zeros_where_it_ends(void **state) {
    (void)state;
    struct {
        size_t size;
        const char *url;
        uint64_t beyond;
    } old = {.size = 2 * sizeof(size_t), .url = "http://x", .beyond = UINT64_MAX};
    retry_client_config taken;
    rtc_take_config(&taken, sizeof taken, &old);
    assert_string_equal(taken.url, "http://x");
    assert_null(taken.project);
    assert_int_equal(taken.timeout_ms, 0);
}

static void pauses__double_from_100_ms_to_10_s_with_half_of_it_by_chance(void **state) {
    (void)state;
    static const int64_t FULL[] = {100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000};
    for (uint32_t n = 0; n < sizeof FULL / sizeof FULL[0]; n++)
        for (int i = 0; i < 50; i++) assert_in_range(rtc_pause_ms(n), FULL[n] / 2, FULL[n]);
    assert_in_range(rtc_pause_ms(UINT32_MAX), 5000, 10000);
}

int main(void) {
#define WITH_SERVER(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_SERVER(schedule__hands_over_all_that_was_said),
        WITH_SERVER(schedule__asks_again_with_the_same_key_without_a_spool),
        WITH_SERVER(schedule__gives_up_without_a_spool_when_its_time_is_over),
        WITH_SERVER(schedule__says_what_is_refused),
        WITH_SERVER(spool__takes_what_the_server_does_not_and_sends_it_in_order),
        WITH_SERVER(spool__doubles_nothing_when_answers_are_lost),
        WITH_SERVER(spool__is_sent_by_the_next_process),
        WITH_SERVER(spool__puts_aside_only_what_the_server_will_not_have),
        WITH_SERVER(spool__waits_where_only_the_token_is_wrong),
        WITH_SERVER(spool__is_full_at_its_bound),
        WITH_SERVER(run__keeps_nothing_of_a_call_that_succeeds),
        WITH_SERVER(run__schedules_what_fails_for_a_worker_to_finish),
        WITH_SERVER(workers__say_why_a_call_failed_and_repeat_a_lost_end),
        WITH_SERVER(workers__extend_leases_and_tell_when_one_is_lost),
        WITH_SERVER(workers__check_their_configuration),
        WITH_SERVER(work__is_claimed_and_ended),
        WITH_SERVER(work__of_a_session_that_expired_is_lost_and_a_new_one_begins),
        WITH_SERVER(work__is_claimed_by_kind_or_by_name),
        WITH_SERVER(ask__hands_back_answers_and_refusals),
        cmocka_unit_test(config__of_an_older_program_has_zeros_where_it_ends),
        cmocka_unit_test(pauses__double_from_100_ms_to_10_s_with_half_of_it_by_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
