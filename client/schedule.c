#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

static retry_code spool(retry_client *c, const rtc_event *e, retry_error *error) {
    char *text = rtc_event_line(e, error);
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
    if (rtc_event_check(&e, error)) {
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
