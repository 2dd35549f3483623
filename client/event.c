#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parts.h"

bool rtc_event_check(const rtc_event *e, retry_error *error) {
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

/* ---- in the spool -------------------------------------------------------------------------------------- */

static bool set_text(json_t *json, const char *name, const char *text) {
    return text == NULL || json_object_set_new(json, name, json_string(text)) == 0;
}

char *rtc_event_line(const rtc_event *e, retry_error *error) {
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

json_t *rtc_event_of_line(const rtc_spool_line *line) {
    json_t *json = json_loadb(line->text, line->len, 0, NULL);
    const json_int_t rested =
        (json_int_t)time(NULL) - json_integer_value(json_object_get(json, "spooled_at"));
    json_t *delay = json_object_get(json, "deliver_after");
    if (delay != NULL && rested > 0) {
        const json_int_t left = json_integer_value(delay) - rested;
        (void)json_integer_set(delay, left > 0 ? left : 0);
    }
    (void)json_object_del(json, "spooled_at");
    return json;
}
