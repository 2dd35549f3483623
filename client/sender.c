#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

enum { LOOK_AGAIN_MS = 2000 }; /* a folder may be filled by others, who then die */

typedef enum round { ROUND_EMPTY, ROUND_BUSY, ROUND_AWAY } round;

/* Keeps what the server will never have where people can find it. */
static retry_code refuse(retry_client *c, const rtc_spool_line *line, int status, const char *words,
                         retry_error *error) {
    json_t *event = json_loadb(line->text, line->len, 0, NULL);
    if (event == NULL) event = json_stringn(line->text, line->len);
    json_t *kept = json_pack("{s:i,s:s,s:O}", "status", status, "why", words, "event", event);
    char *text = kept == NULL ? NULL : json_dumps(kept, JSON_COMPACT);
    retry_code code = text == NULL ? rtc_fail(error, RETRY_E_NOMEM, "out of memory")
                                   : rtc_spool_refuse(c->spool, text, strlen(text), error);
    if (code == RETRY_OK) {
        atomic_fetch_add(&c->refused, 1);
        rtc_log(c, RETRY_LOG_WARNING, "an event of the spool is refused, see refused.ndjson: %s", words);
    }
    free(text);
    json_decref(kept);
    json_decref(event);
    return code;
}

static const char *text_of(const json_t *json, const char *name) {
    return json_string_value(json_object_get(json, name));
}

/* By itself, in the way of its first attempt: what fits into a request then fits now. */
static retry_code post_one(retry_client *c, const rtc_spool_line *line, retry_error *error) {
    static const atomic_int_fast64_t ONCE = 0;
    json_t *json = rtc_event_of_line(line);
    rtc_event e = {.type = text_of(json, "type"),
                   .key = text_of(json, "idempotency_key"),
                   .content_type = text_of(json, "content_type"),
                   .reason = text_of(json, "reason"),
                   .order_key = text_of(json, "order_key"),
                   .deliver_after_s = (uint32_t)json_integer_value(json_object_get(json, "deliver_after"))};
    const char *base64 = text_of(json, "body_base64");
    char *body = base64 == NULL ? NULL : rtc_unbase64(base64, &e.body_bytes);
    e.body = body;
    retry_receipt receipt;
    retry_code code = RETRY_OK;
    if (e.type == NULL || e.key == NULL || e.content_type == NULL || body == NULL)
        code = rtc_fail(error, RETRY_E_REFUSED, "this is no event");
    else code = rtc_event_post(c, &e, &ONCE, &c->sender_stops, &receipt, error);
    free(body);
    json_decref(json);
    return code == RETRY_SCHEDULED ? RETRY_OK : code;
}

/* Sends lines[count] in one request, of which all or none is done. */
static retry_code post_many(retry_client *c, const rtc_spool_line *lines, size_t count, retry_error *error) {
    json_t *events = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *event = rtc_event_of_line(&lines[i]);
        if (event == NULL) event = json_null(); // whole, but not of our kind: the server refuses it in words
        (void)json_array_append_new(events, event);
    }
    json_t *body = json_array_size(events) == count ? json_pack("{s:O}", "events", events) : NULL;
    char *text = body == NULL ? NULL : json_dumps(body, JSON_COMPACT);
    retry_code code = RETRY_E_NOMEM;
    if (text == NULL) {
        (void)rtc_fail(error, code, "out of memory");
    } else {
        const rtc_ask ask = {.method = "POST",
                             .path = "/v1/events",
                             .body = text,
                             .body_bytes = strlen(text),
                             .timeout_ms = c->timeout_ms,
                             .stop = &c->sender_stops};
        rtc_answer answer;
        code = rtc_http(c, &ask, &answer, error);
        free(answer.text);
    }
    free(text);
    json_decref(body);
    json_decref(events);
    return code;
}

/* All of a batch. Where a request of several events is refused they are sent one by one, to find out
 * which. */
static retry_code send_batch(retry_client *c, const rtc_spool_batch *batch, retry_error *error) {
    size_t done = 0, at_once = batch->count;
    while (done < batch->count && !atomic_load(&c->sender_stops)) {
        const rtc_spool_line *first = &batch->lines[done];
        retry_code code = at_once == 1 ? post_one(c, first, error) : post_many(c, first, at_once, error);
        // A token that is wrong may be put right; no event is to blame for it.
        if (code == RETRY_E_REFUSED && (error->status == 401 || error->status == 403)) return RETRY_E_AWAY;
        if (code == RETRY_E_REFUSED && at_once > 1) {
            at_once = 1;
            continue;
        }
        if (code == RETRY_E_REFUSED) code = refuse(c, first, error->status, error->message, error);
        else if (code == RETRY_OK) atomic_fetch_add(&c->sent, at_once);
        if (code != RETRY_OK) return code;
        // Before the spool is empty: whoever sees that it is must find the server back as well.
        if (atomic_exchange(&c->away, false)) rtc_log(c, RETRY_LOG_INFO, "%s answers again", c->url);
        code = rtc_spool_done(c->spool, batch, done + at_once, error);
        if (code != RETRY_OK) return code;
        done += at_once;
    }
    return RETRY_OK;
}

/* Sends until the spool is empty or something is in the way. */
static round send_all(retry_client *c) {
    if (rtc_spool_is_empty(c->spool)) {
        atomic_store(&c->away, false); // others may have sent it; the next one to schedule finds out
        return ROUND_EMPTY;
    }
    if (!rtc_spool_lead(c->spool)) return ROUND_BUSY;
    round end = ROUND_AWAY;
    while (end == ROUND_AWAY && !atomic_load(&c->sender_stops)) {
        retry_error error = {0};
        rtc_spool_batch batch;
        retry_code code = rtc_spool_read(c->spool, &batch, &error);
        if (code == RETRY_OK && batch.count == 0) end = ROUND_EMPTY;
        if (code == RETRY_OK) code = send_batch(c, &batch, &error);
        rtc_spool_release(&batch);
        if (code == RETRY_E_IO || code == RETRY_E_NOMEM)
            rtc_log(c, RETRY_LOG_WARNING, "spool: %s", error.message);
        if (code != RETRY_OK) break;
    }
    rtc_spool_yield(c->spool);
    return end;
}

/* Until `until_ms`, or until told that there is news, or to stop. */
static void rest(retry_client *c, int64_t until_ms, bool for_news) {
    (void)pthread_mutex_lock(&c->sender_lock);
    while (!atomic_load(&c->sender_stops) && !(for_news && c->sender_news) && rtc_now_ms() < until_ms)
        rtc_cond_wait_until(&c->sender_wake, &c->sender_lock, until_ms);
    c->sender_news = false;
    (void)pthread_mutex_unlock(&c->sender_lock);
}

static void *run(void *arg) {
    retry_client *c = arg;
    uint32_t failures = 0;
    while (!atomic_load(&c->sender_stops)) {
        const round end = send_all(c);
        if (end == ROUND_AWAY) {
            rest(c, rtc_now_ms() + rtc_pause_ms(failures++), false);
        } else {
            failures = 0;
            rest(c, rtc_now_ms() + (end == ROUND_EMPTY ? LOOK_AGAIN_MS : rtc_pause_ms(0)),
                 end == ROUND_EMPTY);
        }
    }
    return NULL;
}

retry_code rtc_sender_start(retry_client *c, retry_error *error) {
    c->sender_runs = rtc_thread_start(&c->sender, run, c);
    return c->sender_runs ? RETRY_OK : rtc_fail(error, RETRY_E_IO, "no thread to send what is in the spool");
}

void rtc_sender_wake(retry_client *c) {
    (void)pthread_mutex_lock(&c->sender_lock);
    c->sender_news = true;
    (void)pthread_cond_signal(&c->sender_wake);
    (void)pthread_mutex_unlock(&c->sender_lock);
}

void rtc_sender_stop(retry_client *c) {
    (void)pthread_mutex_lock(&c->sender_lock);
    atomic_store(&c->sender_stops, true);
    (void)pthread_cond_signal(&c->sender_wake);
    (void)pthread_mutex_unlock(&c->sender_lock);
    if (c->sender_runs) (void)pthread_join(c->sender, NULL);
}
