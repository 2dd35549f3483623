#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parts.h"

bool rtc_check_word(const char *name, const char *word, size_t max, retry_error *error) {
    const size_t len = word == NULL ? 0 : strlen(word);
    bool printable = true;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)word[i] < 0x20 || word[i] == 0x7f) printable = false;
    if (len >= 1 && len <= max && printable) return true;
    (void)rtc_fail(error, RETRY_E_INVALID, "%s has 1 to %zu bytes and no control characters", name, max);
    return false;
}

static bool check(const rtc_event *e, retry_error *error) {
    if (!rtc_check_word("type", e->type, RETRY_TYPE_BYTES_MAX, error)) return false;
    if (!rtc_check_word("key", e->key, RETRY_WORD_BYTES_MAX, error)) return false;
    if (!rtc_check_word("content_type", e->content_type, RETRY_WORD_BYTES_MAX, error)) return false;
    if (e->reason != NULL && !rtc_check_word("reason", e->reason, RETRY_REASON_BYTES_MAX, error))
        return false;
    if (e->order_key != NULL && !rtc_check_word("order_key", e->order_key, RETRY_WORD_BYTES_MAX, error))
        return false;
    if (e->body_bytes <= RETRY_BODY_BYTES_MAX && (e->body != NULL || e->body_bytes == 0)) return true;
    (void)rtc_fail(error, RETRY_E_INVALID, "body has at most %d bytes", RETRY_BODY_BYTES_MAX);
    return false;
}

/* ---- to the server ------------------------------------------------------------------------------------- */

enum { EVENT_HEADERS = 4, HEADER_BYTES = RETRY_WORD_BYTES_MAX + 32 };

static void take_id(const rtc_answer *answer, retry_receipt *receipt) {
    json_t *json = rtc_answer_json(answer, NULL);
    const char *id = json_string_value(json_object_get(json, "id"));
    if (id != NULL) (void)snprintf(receipt->id, sizeof receipt->id, "%s", id);
    json_decref(json);
}

retry_code rtc_event_post(retry_client *c, const rtc_event *e, const atomic_int_fast64_t *until_ms,
                          const atomic_bool *stop, retry_receipt *receipt, retry_error *error) {
    char lines[EVENT_HEADERS][HEADER_BYTES];
    const char *headers[EVENT_HEADERS + 1] = {lines[0]};
    size_t count = 1;
    (void)snprintf(lines[0], HEADER_BYTES, "Idempotency-Key: %s", e->key);
    if (e->reason != NULL) {
        (void)snprintf(lines[count], HEADER_BYTES, "Retry-Reason: %s", e->reason);
        headers[count] = lines[count];
        count++;
    }
    if (e->order_key != NULL) {
        (void)snprintf(lines[count], HEADER_BYTES, "Order-Key: %s", e->order_key);
        headers[count] = lines[count];
        count++;
    }
    if (e->deliver_after_s > 0) {
        (void)snprintf(lines[count], HEADER_BYTES, "Deliver-After: %u", e->deliver_after_s);
        headers[count] = lines[count];
    }
    char *path = rtc_path("/v1/events/", e->type, "");
    if (path == NULL) return rtc_fail(error, RETRY_E_NOMEM, "out of memory");
    const rtc_ask ask = {.method = "POST",
                         .path = path,
                         .body = e->body == NULL ? "" : e->body,
                         .body_bytes = e->body_bytes,
                         .headers = headers,
                         .content_type = e->content_type,
                         .timeout_ms = c->timeout_ms,
                         .stop = stop};
    rtc_answer answer;
    const retry_code code = rtc_http_until(c, &ask, until_ms, &answer, error);
    if (code == RETRY_OK) take_id(&answer, receipt);
    free(answer.text);
    free(path);
    return code == RETRY_OK ? RETRY_SCHEDULED : code;
}

/* ---- to the spool -------------------------------------------------------------------------------------- */

static bool set_text(json_t *json, const char *name, const char *text) {
    return text == NULL || json_object_set_new(json, name, json_string(text)) == 0;
}

/* An event of the batch request, its type, and when it was spooled, since deliver_after counts from then.
 * Owned text. */
static char *spool_text(const rtc_event *e, retry_error *error) {
    char *body = rtc_base64(e->body, e->body_bytes);
    json_t *json = json_object();
    bool ok = body != NULL && json != NULL && set_text(json, "type", e->type) &&
              set_text(json, "idempotency_key", e->key) && set_text(json, "content_type", e->content_type) &&
              set_text(json, "reason", e->reason) && set_text(json, "order_key", e->order_key) &&
              set_text(json, "body_base64", body) &&
              json_object_set_new(json, "spooled_at", json_integer((json_int_t)time(NULL))) == 0;
    if (ok && e->deliver_after_s > 0)
        ok = json_object_set_new(json, "deliver_after", json_integer((json_int_t)e->deliver_after_s)) == 0;
    char *text = ok ? json_dumps(json, JSON_COMPACT) : NULL;
    if (text == NULL)
        (void)rtc_fail(error, RETRY_E_INVALID, "type, key, reason, order_key and content_type are UTF-8");
    json_decref(json);
    free(body);
    return text;
}

static retry_code spool(retry_client *c, const rtc_event *e, retry_error *error) {
    char *text = spool_text(e, error);
    if (text == NULL) return RETRY_E_INVALID;
    const retry_code code = rtc_spool_add(c->spool, text, strlen(text), error);
    free(text);
    rtc_sender_wake(c); // also where nothing was added: it finds out whether the server is back
    return code == RETRY_OK ? RETRY_SPOOLED : code;
}

/* What has an order key must not overtake what waits. */
static bool must_wait(retry_client *c, const rtc_event *e) {
    if (c->spool == NULL) return false;
    return atomic_load(&c->away) || (e->order_key != NULL && !rtc_spool_is_empty(c->spool));
}

retry_code retry_schedule(retry_client *client, const char *type, const retry_request *request,
                          retry_receipt *receipt, retry_error *error) {
    retry_request r;
    if (!rtc_take_config(&r, sizeof r, request, error)) return RETRY_E_INVALID;
    retry_receipt mine = {0};
    rtc_new_key(mine.key);
    const rtc_event e = {.type = type,
                         .key = r.key == NULL ? mine.key : r.key,
                         .reason = r.reason,
                         .order_key = r.order_key,
                         .content_type = r.content_type == NULL ? "application/octet-stream" : r.content_type,
                         .body = r.body,
                         .body_bytes = r.body_bytes,
                         .deliver_after_s = r.deliver_after_s};
    retry_code code = RETRY_E_INVALID;
    if (check(&e, error)) {
        const bool waits = must_wait(client, &e);
        // With a spool there is a better place to wait than this call.
        const atomic_int_fast64_t until_ms = client->spool == NULL ? rtc_now_ms() + client->timeout_ms : 0;
        if (!waits) code = rtc_event_post(client, &e, &until_ms, NULL, &mine, error);
        if (!waits && code == RETRY_E_AWAY && client->spool != NULL && !atomic_exchange(&client->away, true))
            rtc_log(client, RETRY_LOG_WARNING, "%s does not answer; events go to the spool", client->url);
        if (client->spool != NULL && (waits || code == RETRY_E_AWAY)) code = spool(client, &e, error);
    }
    if (receipt != NULL) {
        if (r.key != NULL) (void)snprintf(mine.key, sizeof mine.key, "%s", r.key);
        *receipt = mine;
    }
    return code;
}

retry_code retry_flush(retry_client *client, uint32_t timeout_ms, retry_error *error) {
    enum { LOOK_MS = 10 };
    if (client->spool == NULL) return RETRY_OK;
    const int64_t until_ms = rtc_now_ms() + timeout_ms;
    rtc_sender_wake(client);
    while (!rtc_spool_is_empty(client->spool)) {
        if (rtc_now_ms() >= until_ms)
            return rtc_fail(error, RETRY_E_AWAY, "the spool is not empty after %u ms", timeout_ms);
        rtc_sleep_ms(LOOK_MS);
    }
    return RETRY_OK;
}

void retry_spool_look(retry_client *client, retry_spool_state *out) {
    *out = (retry_spool_state){0};
    if (client->spool == NULL) return;
    rtc_spool_measure(client->spool, out);
    out->sent = client->sent;
    out->refused = client->refused;
}
