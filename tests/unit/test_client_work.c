/* Callbacks that are run now and later, workers, sessions and claims, against a small server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client_kit.h"

enum { PATIENT_MS = 10000 };

/* ---- calls --------------------------------------------------------------------------------------------- */

/* Fails as often as told to, and remembers what it saw. */
typedef struct dependency {
    atomic_int failures, runs, attempts_seen;
    atomic_bool lost;
    bool wait_until_lost, gives_up;
    char body[64];
    atomic_size_t bytes; /* of the body */
} dependency;

static int depend(retry_call *call, void *arg) {
    dependency *d = arg;
    size_t bytes;
    const char *body = retry_call_body(call, &bytes);
    (void)snprintf(d->body, sizeof d->body, "%s", body);
    atomic_store(&d->bytes, bytes);
    atomic_store(&d->attempts_seen, (int)retry_call_attempt(call));
    atomic_fetch_add(&d->runs, 1);
    for (int64_t until_ms = rtc_now_ms() + PATIENT_MS; d->wait_until_lost && rtc_now_ms() < until_ms;
         rtc_sleep_ms(5)) {
        atomic_store(&d->lost, retry_call_lost(call));
        if (atomic_load(&d->lost)) return 0;
    }
    if (atomic_fetch_sub(&d->failures, 1) <= 0) return 0;
    retry_call_failed(call, "api1-429", "too many\nrequests");
    retry_call_not_before(call, 30);
    if (d->gives_up) retry_call_give_up(call);
    return 1;
}

static void run__keeps_nothing_of_a_call_that_succeeds(void **state) {
    kit_fixture *f = *state;
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
    kit_fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    dependency d = {.failures = 1};
    assert_int_equal(retry_register(c, "card", depend, &d, NULL), RETRY_OK);
    const retry_request request = RETRY_REQUEST("charge", 6);
    assert_int_equal(retry_run(c, "card", &request, NULL, NULL), RETRY_SCHEDULED);
    json_t *events = kit_events(f->kit);
    kit_assert_field(events, 0, "reason", "api1-429");
    kit_assert_field(events, 0, "deliver_after", "30");
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

static void run__gives_up_where_the_callback_says_so(void **state) {
    kit_fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    dependency d = {.failures = 2, .gives_up = true};
    assert_int_equal(retry_register(c, "card", depend, &d, NULL), RETRY_OK);
    const retry_request request = RETRY_REQUEST("charge", 6);
    retry_error error;
    assert_int_equal(retry_run(c, "card", &request, NULL, &error), RETRY_E_GAVE_UP);
    assert_string_equal(error.message, "api1-429: too many requests");
    assert_int_equal(kit_asked(f->kit, ""), 0);
    assert_int_equal(kit_schedule(c, "card", "x", NULL, NULL, NULL), RETRY_SCHEDULED);
    retry_workers *w = NULL;
    retry_workers_config config = RETRY_WORKERS_CONFIG;
    config.wait_ms = 10;
    assert_int_equal(retry_workers_start(c, "card", &config, &w, NULL), RETRY_OK);
    kit_wait_ends(f->kit, 1);
    retry_workers_stop(w);
    json_t *ends = kit_ends(f->kit);
    assert_string_equal(json_string_value(json_array_get(ends, 0)),
                        "fail job0 api1-429: too many requests (gave up)");
    json_decref(ends);
    retry_client_close(c);
}

static void workers__say_why_a_call_failed_and_repeat_a_lost_end(void **state) {
    kit_fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    dependency d = {.failures = 1};
    assert_int_equal(retry_register(c, "card", depend, &d, NULL), RETRY_OK);
    assert_int_equal(kit_schedule(c, "card", "x", NULL, NULL, NULL), RETRY_SCHEDULED);
    kit_upset(f->kit, "/fail", 503, 2);
    retry_workers *w = NULL;
    retry_workers_config config = RETRY_WORKERS_CONFIG;
    config.wait_ms = 10;
    assert_int_equal(retry_workers_start(c, "card", &config, &w, NULL), RETRY_OK);
    kit_wait_ends(f->kit, 1);
    json_t *ends = kit_ends(f->kit);
    assert_string_equal(json_string_value(json_array_get(ends, 0)), "fail job0 api1-429: too many requests");
    json_decref(ends);
    assert_int_equal(kit_asked(f->kit, "/fail"), 3);
    kit_leave(f->kit); // and they outlive a server that goes and comes back
    kit_return(f->kit);
    assert_int_equal(kit_schedule(c, "card", "y", NULL, NULL, NULL), RETRY_SCHEDULED);
    kit_wait_ends(f->kit, 2);
    retry_workers_stop(w);
    retry_client_close(c);
}

static void workers__take_a_nul_in_a_body_for_a_character(void **state) {
    kit_fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    dependency d = {0};
    assert_int_equal(retry_register(c, "card", depend, &d, NULL), RETRY_OK);
    const retry_request request = RETRY_REQUEST("a\0b", 3);
    assert_int_equal(retry_schedule(c, "card", &request, NULL, NULL), RETRY_SCHEDULED);
    retry_workers *w = NULL;
    retry_workers_config config = RETRY_WORKERS_CONFIG;
    config.wait_ms = 10;
    assert_int_equal(retry_workers_start(c, "card", &config, &w, NULL), RETRY_OK);
    kit_wait_ends(f->kit, 1);
    retry_workers_stop(w);
    assert_int_equal(d.bytes, 3);
    retry_client_close(c);
}

static void workers__extend_leases_and_tell_when_one_is_lost(void **state) {
    kit_fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    dependency d = {.wait_until_lost = true};
    assert_int_equal(retry_register(c, "card", depend, &d, NULL), RETRY_OK);
    assert_int_equal(kit_schedule(c, "card", "x", NULL, NULL, NULL), RETRY_SCHEDULED);
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

static void workers__have_the_whole_lease_of_what_ends_a_long_poll(void **state) {
    kit_fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    dependency d = {0};
    assert_int_equal(retry_register(c, "card", depend, &d, NULL), RETRY_OK);
    retry_workers *w = NULL;
    retry_workers_config config = RETRY_WORKERS_CONFIG;
    config.lease_s = 3;
    config.wait_ms = 4000;
    assert_int_equal(retry_workers_start(c, "card", &config, &w, NULL), RETRY_OK);
    kit_wait_asked(f->kit, "/claim", 1);
    rtc_sleep_ms(3200); // longer than the lease
    assert_int_equal(kit_schedule(c, "card", "x", NULL, NULL, NULL), RETRY_SCHEDULED);
    kit_wait_ends(f->kit, 1);
    json_t *ends = kit_ends(f->kit);
    assert_string_equal(json_string_value(json_array_get(ends, 0)), "finish job0");
    json_decref(ends);
    retry_workers_stop(w);
    retry_client_close(c);
}

static void workers__check_their_configuration(void **state) {
    kit_fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    dependency d = {0};
    assert_int_equal(retry_register(c, "card", depend, &d, NULL), RETRY_OK);
    const retry_workers_config rows[] = {{.size = sizeof rows[0], .threads = 257},
                                         {.size = sizeof rows[0], .lease_s = 2},
                                         {.size = sizeof rows[0], .batch = 21},
                                         {.size = sizeof rows[0], .wait_ms = 60001}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        retry_workers *w = NULL;
        assert_int_equal(retry_workers_start(c, "card", &rows[i], &w, NULL), RETRY_E_INVALID);
        assert_null(w);
    }
    retry_client_close(c);
}

/* ---- work ---------------------------------------------------------------------------------------------- */

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
    kit_fixture *f = *state;
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
    kit_fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    retry_session *s = session(c, 1);
    retry_work *work = NULL, *other = NULL;
    assert_int_equal(claim(s, "install", false, &work), RETRY_OK);
    kit_wait_asked(f->kit, "/heartbeat", 2);
    assert_false(retry_work_lost(work));
    kit_forget_leases(f->kit);
    for (const int64_t until_ms = rtc_now_ms() + PATIENT_MS;
         !retry_work_lost(work) && rtc_now_ms() < until_ms;)
        rtc_sleep_ms(5);
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
    kit_fixture *f = *state;
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

int main(void) {
#define WITH_SERVER(name) cmocka_unit_test_setup_teardown(name, kit_set_up, kit_tear_down)
    const struct CMUnitTest tests[] = {
        WITH_SERVER(run__keeps_nothing_of_a_call_that_succeeds),
        WITH_SERVER(run__schedules_what_fails_for_a_worker_to_finish),
        WITH_SERVER(run__gives_up_where_the_callback_says_so),
        WITH_SERVER(workers__say_why_a_call_failed_and_repeat_a_lost_end),
        WITH_SERVER(workers__take_a_nul_in_a_body_for_a_character),
        WITH_SERVER(workers__extend_leases_and_tell_when_one_is_lost),
        WITH_SERVER(workers__have_the_whole_lease_of_what_ends_a_long_poll),
        WITH_SERVER(workers__check_their_configuration),
        WITH_SERVER(work__is_claimed_and_ended),
        WITH_SERVER(work__of_a_session_that_expired_is_lost_and_a_new_one_begins),
        WITH_SERVER(work__is_claimed_by_kind_or_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
