/* The client library against a small server that goes away, loses answers and says no. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "client_kit.h"

enum { PATIENT_MS = 10000, HASTY_MS = 400 };

static void assert_bodies(kit *k, const char *const *bodies, size_t count) {
    json_t *events = kit_events(k);
    assert_int_equal(json_array_size(events), count);
    for (size_t i = 0; i < count; i++) kit_assert_field(events, i, "body", bodies[i]);
    json_decref(events);
}

/* ---- scheduling ---------------------------------------------------------------------------------------- */

static void schedule__hands_over_all_that_was_said(void **state) {
    kit_fixture *f = *state;
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
    assert_int_equal(kit_schedule(c, "a type", "", NULL, &receipt, NULL), RETRY_SCHEDULED);
    assert_int_equal(strlen(receipt.key), 32);
    json_t *events = kit_events(f->kit);
    static const char *const WANT[][2] = {{"type", "card.transaction"},
                                          {"body", "{}"},
                                          {"key", "k1"},
                                          {"reason", "api1-429"},
                                          {"order_key", "card 7"},
                                          {"deliver_after", "60"},
                                          {"content_type", "application/json"}};
    for (size_t i = 0; i < sizeof WANT / sizeof WANT[0]; i++)
        kit_assert_field(events, 0, WANT[i][0], WANT[i][1]);
    kit_assert_field(events, 1, "type", "a type");
    kit_assert_field(events, 1, "key", receipt.key);
    kit_assert_field(events, 1, "reason", NULL);
    json_decref(events);
    retry_client_close(c);
}

static void schedule__asks_again_with_the_same_key_without_a_spool(void **state) {
    kit_fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    kit_upset(f->kit, "/t", 0, 2); // done, but the answer is lost
    assert_int_equal(kit_schedule(c, "t", "once", NULL, NULL, NULL), RETRY_SCHEDULED);
    kit_upset(f->kit, "/t", 503, 1);
    assert_int_equal(kit_schedule(c, "t", "twice", NULL, NULL, NULL), RETRY_SCHEDULED);
    assert_int_equal(kit_asked(f->kit, "/t"), 5);
    assert_bodies(f->kit, (const char *[]){"once", "twice"}, 2);
    retry_client_close(c);
}

static void schedule__gives_up_without_a_spool_when_its_time_is_over(void **state) {
    kit_fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, HASTY_MS);
    kit_leave(f->kit);
    retry_error error;
    retry_receipt receipt;
    const int64_t before_ms = rtc_now_ms();
    assert_int_equal(kit_schedule(c, "t", "x", NULL, &receipt, &error), RETRY_E_AWAY);
    assert_true(rtc_now_ms() - before_ms < 2000);
    assert_int_equal(error.code, RETRY_E_AWAY);
    assert_non_null(strstr(error.message, "no answer from http://127.0.0.1:"));
    assert_int_equal(strlen(receipt.key), 32);
    retry_client_close(c);
}

static void schedule__says_what_is_refused(void **state) {
    kit_fixture *f = *state;
    retry_client *c = kit_client(f->kit, f->spool, PATIENT_MS);
    retry_error error;
    assert_int_equal(kit_schedule(c, "unknown", "x", NULL, NULL, &error), RETRY_E_REFUSED);
    assert_int_equal(error.status, 404);
    assert_string_equal(error.message, "the server answered 404: no such luck");
    assert_int_equal(kit_schedule(c, "", "x", NULL, NULL, &error), RETRY_E_INVALID);
    assert_string_equal(error.message, "type has 1 to 128 bytes and no control characters");
    assert_int_equal(kit_schedule(c, "t", "x", "a\nb", NULL, &error), RETRY_E_INVALID);
    assert_string_equal(error.message, "order_key has 1 to 256 bytes and no control characters");
    retry_request request = RETRY_REQUEST(NULL, 5);
    assert_int_equal(retry_schedule(c, "t", &request, NULL, NULL), RETRY_E_INVALID);
    retry_client_config config = RETRY_CLIENT_CONFIG("ftp://x");
    assert_int_equal(retry_client_open(&config, &c, &error), RETRY_E_INVALID);
    assert_string_equal(error.message, "url begins with http:// or https://");
    retry_client_close(c);
}

/* ---- the spool ----------------------------------------------------------------------------------------- */

static void spool__takes_what_the_server_does_not_and_sends_it_in_order(void **state) {
    kit_fixture *f = *state;
    retry_client *c = kit_client(f->kit, f->spool, PATIENT_MS);
    kit_leave(f->kit);
    retry_receipt receipt;
    assert_int_equal(kit_schedule(c, "a", "1", NULL, &receipt, NULL), RETRY_SPOOLED);
    assert_string_equal(receipt.id, "");
    assert_int_equal(kit_schedule(c, "a", "2", "o", NULL, NULL), RETRY_SPOOLED);
    assert_int_equal(kit_schedule(c, "b", "3", NULL, NULL, NULL), RETRY_SPOOLED);
    assert_int_equal(kit_schedule(c, "a", "4", NULL, NULL, NULL), RETRY_SPOOLED);
    retry_error error;
    assert_int_equal(retry_flush(c, 50, &error), RETRY_E_AWAY);
    kit_return(f->kit);
    assert_int_equal(retry_flush(c, PATIENT_MS, &error), RETRY_OK);
    assert_bodies(f->kit, (const char *[]){"1", "2", "3", "4"}, 4);
    json_t *events = kit_events(f->kit);
    kit_assert_field(events, 0, "key", receipt.key);
    kit_assert_field(events, 1, "order_key", "o");
    kit_assert_field(events, 2, "type", "b");
    json_decref(events);
    retry_spool_state seen;
    retry_spool_look(c, &seen);
    assert_int_equal(seen.sent, 4);
    assert_int_equal(kit_schedule(c, "a", "5", "o", NULL, NULL), RETRY_SCHEDULED);
    retry_client_close(c);
}

static void spool__doubles_nothing_when_answers_are_lost(void **state) {
    kit_fixture *f = *state;
    retry_client *c = kit_client(f->kit, f->spool, PATIENT_MS);
    kit_upset(f->kit, "/a", 0, 1);
    assert_int_equal(kit_schedule(c, "a", "1", NULL, NULL, NULL),
                     RETRY_SPOOLED); // it is there, but who knows
    assert_int_equal(retry_flush(c, PATIENT_MS, NULL), RETRY_OK);
    kit_leave(f->kit);
    assert_int_equal(kit_schedule(c, "a", "2", NULL, NULL, NULL), RETRY_SPOOLED);
    assert_int_equal(kit_schedule(c, "a", "3", NULL, NULL, NULL), RETRY_SPOOLED);
    kit_upset(f->kit, "/v1/events", 0, 2);
    kit_return(f->kit);
    assert_int_equal(retry_flush(c, PATIENT_MS, NULL), RETRY_OK);
    assert_bodies(f->kit, (const char *[]){"1", "2", "3"}, 3);
    retry_client_close(c);
}

static void spool__is_sent_by_the_next_process(void **state) {
    kit_fixture *f = *state;
    retry_client *c = kit_client(f->kit, f->spool, PATIENT_MS);
    kit_leave(f->kit);
    assert_int_equal(kit_schedule(c, "a", "1", NULL, NULL, NULL), RETRY_SPOOLED);
    retry_client_close(c);
    kit_return(f->kit);
    c = kit_client(f->kit, f->spool, PATIENT_MS);
    assert_int_equal(retry_flush(c, PATIENT_MS, NULL), RETRY_OK);
    assert_bodies(f->kit, (const char *[]){"1"}, 1);
    retry_client_close(c);
}

static void spool__lets_no_order_key_overtake_what_another_process_left(void **state) {
    kit_fixture *f = *state;
    retry_client *c = kit_client(f->kit, f->spool, PATIENT_MS);
    rtc_spool *other;
    assert_int_equal(rtc_spool_open(f->spool, 1 << 20, &other, NULL), RETRY_OK);
    assert_true(rtc_spool_lead(other)); // the client cannot send meanwhile
    static const char LINE[] =
        "{\"type\":\"a\",\"idempotency_key\":\"k\",\"content_type\":\"x/y\",\"body_base64\":\"MQ==\"}";
    assert_int_equal(rtc_spool_add(other, LINE, strlen(LINE), NULL), RETRY_OK);
    assert_int_equal(kit_schedule(c, "a", "2", "o", NULL, NULL), RETRY_SPOOLED);
    assert_int_equal(kit_schedule(c, "a", "3", NULL, NULL, NULL), RETRY_SCHEDULED);
    rtc_spool_yield(other);
    assert_int_equal(retry_flush(c, PATIENT_MS, NULL), RETRY_OK);
    assert_bodies(f->kit, (const char *[]){"3", "1", "2"}, 3);
    rtc_spool_close(other);
    retry_client_close(c);
}

static void spool__delays_count_from_when_it_was_spooled(void **state) {
    kit_fixture *f = *state;
    retry_client *c = kit_client(f->kit, f->spool, PATIENT_MS);
    kit_leave(f->kit);
    retry_request request = RETRY_REQUEST("later", 5);
    request.deliver_after_s = 1000;
    assert_int_equal(retry_schedule(c, "a", &request, NULL, NULL), RETRY_SPOOLED);
    retry_client_close(c);
    rtc_spool *spool;
    assert_int_equal(rtc_spool_open(f->spool, 1 << 20, &spool, NULL), RETRY_OK);
    char line[256];
    static const int RESTED_S[] = {400, 2000, -50}; // the last: the clock was set back
    for (size_t i = 0; i < 3; i++) {
        const int len =
            snprintf(line, sizeof line,
                     "{\"type\":\"a\",\"idempotency_key\":\"k%zu\",\"content_type\":\"x/y\",\"body_base64\":"
                     "\"MQ==\",\"deliver_after\":1000,\"spooled_at\":%lld}",
                     i, (long long)time(NULL) - RESTED_S[i]);
        assert_int_equal(rtc_spool_add(spool, line, (size_t)len, NULL), RETRY_OK);
    }
    rtc_spool_close(spool);
    kit_return(f->kit);
    c = kit_client(f->kit, f->spool, PATIENT_MS);
    assert_int_equal(retry_flush(c, PATIENT_MS, NULL), RETRY_OK);
    json_t *events = kit_events(f->kit);
    assert_int_equal(json_array_size(events), 4);
    static const json_int_t LEFT_S[] = {1000, 600, 0, 1000};
    for (size_t i = 0; i < 4; i++) {
        const json_int_t left =
            json_integer_value(json_object_get(json_array_get(events, i), "deliver_after"));
        assert_in_range(left, LEFT_S[i] < 10 ? 0 : LEFT_S[i] - 10,
                        LEFT_S[i]); // the test may take a while itself
    }
    json_decref(events);
    retry_client_close(c);
}

static void spool__puts_aside_only_what_the_server_will_not_have(void **state) {
    kit_fixture *f = *state;
    retry_client *c = kit_client(f->kit, f->spool, PATIENT_MS);
    kit_leave(f->kit);
    static const char *const SENT[][2] = {{"a", "1"}, {"a", "bad"}, {"a", "2"}, {"unknown", "x"}, {"a", "3"}};
    for (size_t i = 0; i < sizeof SENT / sizeof SENT[0]; i++)
        assert_int_equal(kit_schedule(c, SENT[i][0], SENT[i][1], NULL, NULL, NULL), RETRY_SPOOLED);
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
    json_t *first = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL),
           *second = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL);
    (void)fclose(file);
    assert_int_equal(json_integer_value(json_object_get(first, "status")), 400);
    assert_string_equal(json_string_value(json_object_get(json_object_get(first, "event"), "body_base64")),
                        "YmFk");
    assert_string_equal(json_string_value(json_object_get(json_object_get(second, "event"), "type")),
                        "unknown");
    json_decref(first);
    json_decref(second);
    retry_client_close(c);
}

static void spool__waits_where_only_the_token_is_wrong(void **state) {
    kit_fixture *f = *state;
    retry_client *c = kit_client(f->kit, f->spool, PATIENT_MS);
    kit_leave(f->kit);
    assert_int_equal(kit_schedule(c, "a", "1", NULL, NULL, NULL), RETRY_SPOOLED);
    kit_upset(f->kit, "/a", 401, 2);
    kit_return(f->kit);
    assert_int_equal(retry_flush(c, PATIENT_MS, NULL), RETRY_OK);
    assert_int_equal(kit_asked(f->kit, "/a"), 3);
    assert_bodies(f->kit, (const char *[]){"1"}, 1);
    retry_client_close(c);
}

static void spool__is_full_at_its_bound(void **state) {
    kit_fixture *f = *state;
    retry_client_config config = RETRY_CLIENT_CONFIG(kit_url(f->kit));
    config.spool_dir = f->spool;
    config.spool_bytes_max = 600;
    retry_client *c;
    assert_int_equal(retry_client_open(&config, &c, NULL), RETRY_OK);
    kit_leave(f->kit);
    retry_error error;
    retry_code code;
    int spooled = 0;
    while ((code = kit_schedule(c, "a", "x", NULL, NULL, &error)) == RETRY_SPOOLED) spooled++;
    assert_int_equal(code, RETRY_E_FULL);
    assert_in_range(spooled, 1, 5);
    kit_return(f->kit);
    assert_int_equal(retry_flush(c, PATIENT_MS, NULL), RETRY_OK);
    json_t *events = kit_events(f->kit);
    assert_int_equal(json_array_size(events), spooled);
    json_decref(events);
    retry_client_close(c);
}

/* ---- the rest ------------------------------------------------------------------------------------------ */

static void ask__hands_back_answers_and_refusals(void **state) {
    kit_fixture *f = *state;
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
    assert_true(rtc_take_config(&taken, sizeof taken, &old, NULL));
    assert_string_equal(taken.url, "http://x");
    assert_null(taken.project);
    assert_int_equal(taken.timeout_ms, 0);
}

static void config__without_a_size_is_refused(void **state) {
    kit_fixture *f = *state;
    retry_client *c = kit_client(f->kit, NULL, PATIENT_MS);
    const retry_request without = {.body = "x", .body_bytes = 1};
    retry_error error;
    assert_int_equal(retry_schedule(c, "t", &without, NULL, &error), RETRY_E_INVALID);
    assert_string_equal(error.message, "size is not set; the macros of client.h set it");
    retry_client_close(c);
}

static void pauses__double_from_100_ms_to_10_s_with_half_of_it_by_chance(void **state) {
    (void)state;
    static const int64_t FULL[] = {100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000};
    for (uint32_t n = 0; n < sizeof FULL / sizeof FULL[0]; n++)
        for (int i = 0; i < 50; i++) assert_in_range(rtc_pause_ms(n), FULL[n] / 2, FULL[n]);
    assert_in_range(rtc_pause_ms(UINT32_MAX), 5000, 10000);
}

int main(void) {
#define WITH_SERVER(name) cmocka_unit_test_setup_teardown(name, kit_set_up, kit_tear_down)
    const struct CMUnitTest tests[] = {
        WITH_SERVER(schedule__hands_over_all_that_was_said),
        WITH_SERVER(schedule__asks_again_with_the_same_key_without_a_spool),
        WITH_SERVER(schedule__gives_up_without_a_spool_when_its_time_is_over),
        WITH_SERVER(schedule__says_what_is_refused),
        WITH_SERVER(spool__takes_what_the_server_does_not_and_sends_it_in_order),
        WITH_SERVER(spool__doubles_nothing_when_answers_are_lost),
        WITH_SERVER(spool__is_sent_by_the_next_process),
        WITH_SERVER(spool__lets_no_order_key_overtake_what_another_process_left),
        WITH_SERVER(spool__delays_count_from_when_it_was_spooled),
        WITH_SERVER(spool__puts_aside_only_what_the_server_will_not_have),
        WITH_SERVER(spool__waits_where_only_the_token_is_wrong),
        WITH_SERVER(spool__is_full_at_its_bound),
        WITH_SERVER(ask__hands_back_answers_and_refusals),
        cmocka_unit_test(config__of_an_older_program_has_zeros_where_it_ends),
        WITH_SERVER(config__without_a_size_is_refused),
        cmocka_unit_test(pauses__double_from_100_ms_to_10_s_with_half_of_it_by_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
