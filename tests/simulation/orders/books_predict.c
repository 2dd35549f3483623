/* books_predict.c: what an order must be after what a worker said, by barbican-retry.md §1, §5 and §8
 * alone. */
#include <stdio.h>
#include <string.h>

#include "site.h"

/* At most so many characters, counted by the bytes that begin one. */
static void cut(char *out, const char *text, size_t characters) {
    size_t len = 0;
    for (; text[len] != '\0'; len++) {
        const bool begins = ((unsigned char)text[len] & 0xc0u) != 0x80u;
        if (begins && characters-- == 0) break;
    }
    memcpy(out, text, len);
    out[len] = '\0';
}

static const char *or_empty(const char *text) { return text == NULL ? "" : text; }

static void progress(order *o, const words *w) {
    const bool said = w->sub_status != NULL || w->message != NULL;
    const bool done = w->action == RT_RUN_DONE || w->action == RT_RUN_RETRY;
    if (said) {
        cut(o->sub_status, or_empty(w->sub_status), 36);
        cut(o->message, or_empty(w->message), 255);
    } else if (done && !o->has_sub_status) {
        cut(o->sub_status, "Unknown", 36);
        cut(o->message, "Unknown", 255);
    }
    o->has_sub_status = o->has_sub_status || said || done;
}

static int64_t fail(order *o, const char *code, const char *reason, rt_event_type *event) {
    char standard[TEXT_MAX];
    (void)snprintf(standard, sizeof standard, "%s failure seen - please contact site administrator.",
                   o->task);
    o->status = RT_ORDER_ERROR;
    cut(o->code, code == NULL ? "500" : code, 16);
    cut(o->reason, reason == NULL ? standard : reason, 255);
    *event = RT_EVENT_ENDED;
    return 0;
}

/* A type without a backoff: 1 s doubling to 5 min; the other one to 8 s. */
static int64_t unavailable(order *o, int64_t after_ms, rt_event_type *event) {
    const uint64_t most_s = o->type == TYPE_PLUG ? 300 : 8;
    o->failures++;
    if (o->type == TYPE_HTTP && o->failures == HTTP_ATTEMPTS_MAX) return fail(o, NULL, NULL, event);
    o->interval_s = o->interval_s == 0 ? 1 : o->interval_s * 2;
    if (o->interval_s > most_s) o->interval_s = most_s;
    o->retries++;
    *event = RT_EVENT_ATTEMPT;
    return after_ms >= 0 ? after_ms : (int64_t)o->interval_s * 1000;
}

static int64_t retry(order *o, const words *w, rt_event_type *event) {
    if (w->task != NULL) (void)snprintf(o->task, sizeof o->task, "%s", w->task);
    if (w->args != NULL) (void)snprintf(o->args, sizeof o->args, "%s", w->args);
    if (w->kwargs != NULL) (void)snprintf(o->kwargs, sizeof o->kwargs, "%s", w->kwargs);
    o->failures = 0;
    o->interval_s = 0;
    o->retries++;
    *event = RT_EVENT_PROGRESS;
    return w->after_ms;
}

static int64_t answered(order *o, const words *w, rt_event_type *event) {
    progress(o, w);
    if (w->state[0] != '\0') (void)snprintf(o->state, sizeof o->state, "%s", w->state);
    switch (w->action) {
    case RT_RUN_RETRY: return retry(o, w, event);
    case RT_RUN_UNAVAILABLE: return unavailable(o, w->after_ms, event);
    case RT_RUN_FAILED: return fail(o, w->code, w->reason, event);
    case RT_RUN_DONE: break;
    }
    o->status = RT_ORDER_ACTIVE;
    o->made = w->made;
    *event = RT_EVENT_DELIVERED;
    return 0;
}

static int64_t refused(order *o, const words *w, rt_event_type *event) {
    const bool busy = w->status == 429 || w->status == 503;
    if (busy) return unavailable(o, w->retry_after_ms > 0 ? w->retry_after_ms : -1, event);
    if (w->status < 400 || w->status >= 500) return unavailable(o, -1, event);
    char reason[TEXT_MAX];
    (void)snprintf(reason, sizeof reason, "%s issue seen - odd", o->task);
    return fail(o, "400", reason, event);
}

int64_t books_predict(order *o, const words *w, rt_event_type *event) {
    if (w == NULL) return unavailable(o, -1, event);
    switch (w->say) {
    case SAY_ANSWER:
    case SAY_ACCEPT: return answered(o, w, event);
    case SAY_STATUS: return refused(o, w, event);
    case SAY_NONSENSE:
    case SAY_TIMEOUT:
    case SAY_CRASH:
    case SAY_NOTHING: break;
    }
    return unavailable(o, -1, event);
}
