#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

static const rtc_registration *find(retry_client *c, const char *type) {
    for (const rtc_registration *r = c->registrations; r != NULL; r = r->next)
        if (strcmp(r->type, type) == 0) return r;
    return NULL;
}

const rtc_registration *rtc_registered(retry_client *c, const char *type, retry_error *error) {
    if (!rtc_check_word("type", type, RETRY_TYPE_BYTES_MAX, error)) return NULL;
    (void)pthread_mutex_lock(&c->lock);
    const rtc_registration *r = find(c, type);
    (void)pthread_mutex_unlock(&c->lock);
    if (r == NULL) (void)rtc_fail(error, RETRY_E_INVALID, "type '%s' is not registered", type);
    return r;
}

retry_code retry_register(retry_client *client, const char *type, retry_callback callback, void *arg,
                          retry_error *error) {
    if (!rtc_check_word("type", type, RETRY_TYPE_BYTES_MAX, error)) return RETRY_E_INVALID;
    if (callback == NULL) return rtc_fail(error, RETRY_E_INVALID, "callback is not NULL");
    const size_t len = strlen(type);
    rtc_registration *r = malloc(sizeof *r + len + 1);
    if (r == NULL) return rtc_fail(error, RETRY_E_NOMEM, "out of memory");
    *r = (rtc_registration){.callback = callback, .arg = arg};
    memcpy(r->type, type, len + 1);
    (void)pthread_mutex_lock(&client->lock);
    const bool is_new = find(client, type) == NULL;
    if (is_new) {
        r->next = client->registrations;
        client->registrations = r;
    }
    (void)pthread_mutex_unlock(&client->lock);
    if (is_new) return RETRY_OK;
    free(r);
    return rtc_fail(error, RETRY_E_INVALID, "type '%s' is registered already", type);
}

retry_code retry_run(retry_client *client, const char *type, const retry_request *request,
                     retry_receipt *receipt, retry_error *error) {
    retry_request r;
    if (!rtc_take_config(&r, sizeof r, request, error)) return RETRY_E_INVALID;
    r.size = sizeof r;
    const rtc_registration *registered = rtc_registered(client, type, error);
    if (registered == NULL) return RETRY_E_INVALID;
    if (r.body_bytes > RETRY_BODY_BYTES_MAX || (r.body == NULL && r.body_bytes > 0))
        return rtc_fail(error, RETRY_E_INVALID, "body has at most %d bytes", RETRY_BODY_BYTES_MAX);
    char *body = rtc_copy(r.body, r.body_bytes); // with the NUL that a callback may rely on
    if (body == NULL) return rtc_fail(error, RETRY_E_NOMEM, "out of memory");
    retry_call call = {.type = registered->type,
                       .body = body,
                       .body_bytes = r.body_bytes,
                       .reason = "",
                       .id = "",
                       .content_type = r.content_type == NULL ? "application/octet-stream" : r.content_type,
                       .order_key = r.order_key == NULL ? "" : r.order_key};
    if (receipt != NULL) *receipt = (retry_receipt){0};
    retry_code code = RETRY_OK;
    const bool failed = registered->callback(&call, registered->arg) != 0;
    if (failed && call.gave_up) {
        code = rtc_fail(error, RETRY_E_GAVE_UP, "%s: %.200s", call.failed_reason, call.failed_details);
    } else if (failed) {
        if (call.failed_reason[0] != '\0') r.reason = call.failed_reason;
        if (call.not_before_s > r.deliver_after_s) r.deliver_after_s = call.not_before_s;
        code = retry_schedule(client, type, &r, receipt, error);
    }
    free(body);
    return code;
}

const char *retry_call_type(const retry_call *call) { return call->type; }
const char *retry_call_content_type(const retry_call *call) { return call->content_type; }
const char *retry_call_reason(const retry_call *call) { return call->reason; }
const char *retry_call_order_key(const retry_call *call) { return call->order_key; }
const char *retry_call_id(const retry_call *call) { return call->id; }
uint32_t retry_call_attempt(const retry_call *call) { return call->attempt; }
bool retry_call_lost(const retry_call *call) { return call->beat != NULL && rtc_beat_lost(call->beat); }

const void *retry_call_body(const retry_call *call, size_t *bytes) {
    if (bytes != NULL) *bytes = call->body_bytes;
    return call->body;
}

/* Cut where a character begins, so that it stays UTF-8; control characters would break a header. */
static void take_words(char *to, size_t size, const char *text) {
    size_t len = text == NULL ? 0 : strlen(text);
    if (len >= size) {
        len = size - 1;
        while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80) len--;
    }
    for (size_t i = 0; i < len; i++) to[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? ' ' : text[i];
    to[len] = '\0';
}

void retry_call_failed(retry_call *call, const char *reason, const char *details) {
    take_words(call->failed_reason, sizeof call->failed_reason, reason);
    take_words(call->failed_details, sizeof call->failed_details, details);
}

void retry_call_not_before(retry_call *call, uint32_t seconds) { call->not_before_s = seconds; }
void retry_call_give_up(retry_call *call) { call->gave_up = true; }
