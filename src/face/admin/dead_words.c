#include <string.h>

#include "face/admin/pages.h"
#include "face/common/query.h"
#include "face/common/timestamp.h"

/* ---- words, as the query or a body has them -------------------------------------------------------- */

rt_dead_words rt_dead_words_of_query(const rt_exchange *x) {
    rt_dead_words w = {.queue = RT_STR_EMPTY};
    w.type = w.reason = w.failure = w.after = w.before = w.text = RT_STR_EMPTY;
    (void)rt_query_str(x, "queue", &w.queue);
    (void)rt_query_str(x, "type", &w.type);
    (void)rt_query_str(x, "reason", &w.reason);
    (void)rt_query_str(x, "failure", &w.failure);
    (void)rt_query_str(x, "after", &w.after);
    (void)rt_query_str(x, "before", &w.before);
    (void)rt_query_str(x, "text", &w.text);
    return w;
}

/* ---- what they mean -------------------------------------------------------------------------------- */

static bool reason_named(rt_str name, rt_reason *out) {
    for (int r = RT_REASON_NONE + 1; r < RT_REASON_COUNT; r++) {
        if (!rt_str_eq(name, rt_str_of(rt_reason_name((rt_reason)r)))) continue;
        *out = (rt_reason)r;
        return true;
    }
    return false;
}

/* "503" or "5xx". */
static bool take_status(rt_str word, rt_dead_filter *out) {
    if (word.len != 3 || word.ptr[0] < '1' || word.ptr[0] > '9') return false;
    int64_t status;
    if (rt_str_to_i64(word, &status)) {
        out->status_low = out->status_high = (uint16_t)status;
        return true;
    }
    if (memcmp(word.ptr + 1, "xx", 2) != 0) return false;
    out->status_low = (uint16_t)((word.ptr[0] - '0') * 100);
    out->status_high = (uint16_t)(out->status_low + 99);
    return true;
}

/* A timestamp, or how long ago: "90s", "15m", "2h", "7d". */
static bool take_time(rt_str word, int64_t now_ms, int64_t *out) {
    static const struct {
        char unit;
        int64_t ms;
    } UNITS[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}, {'d', 86400000}};
    int64_t number;
    for (size_t i = 0; word.len > 1 && i < sizeof UNITS / sizeof UNITS[0]; i++) {
        if (word.ptr[word.len - 1] != UNITS[i].unit) continue;
        if (!rt_str_to_i64((rt_str){.ptr = word.ptr, .len = word.len - 1}, &number)) break;
        if (number < 0 || number > now_ms / UNITS[i].ms) return false;
        *out = now_ms - number * UNITS[i].ms;
        return true;
    }
    if (!rt_timestamp_parse(word, &number)) return false;
    *out = number * 1000;
    return true;
}

static bool refuse(rt_exchange *x, const char *why) {
    rt_problem(x, 400, "%s", why);
    return false;
}

static bool take_queue(rt_exchange *x, rt_view *v, const rt_dead_words *w, rt_dead_filter *out) {
    if (w->queue.len == 0 && w->type.len == 0) return true;
    if (w->queue.len > 0 && w->type.len > 0)
        return refuse(x, "Either \"queue\" or \"type\": a type is a queue.");
    const bool type = w->type.len > 0;
    const rt_code code = rt_queue_named(x, v, type ? w->type : w->queue, type, out);
    if (code != RT_OK) rt_problem_of(x, code, NULL, type ? "event type" : "queue");
    return code == RT_OK;
}

bool rt_dead_filter_make(rt_exchange *x, rt_view *v, const rt_dead_words *w, rt_dead_filter *out) {
    const int64_t now_ms = rt_api_of(x)->now_ms();
    *out = (rt_dead_filter){.told = RT_STR_EMPTY, .text = w->text};
    // What is no reason to die of is one with which an event was scheduled.
    if (w->reason.len > 0 && !reason_named(w->reason, &out->reason)) out->told = w->reason;
    if (w->failure.len > 0 && !take_status(w->failure, out) && !reason_named(w->failure, &out->failure)) {
        return refuse(
            x,
            "\"failure\" must be what an attempt fails of (status, timeout, connect, resolve, tls, broken, "
            "lost, failed, …), a status such as 503, or 5xx.");
    }
    if (w->text.len > RT_DEAD_TEXT_MAX || w->reason.len > RT_DEAD_TEXT_MAX)
        return refuse(x, "\"text\" and \"reason\" have at most 256 bytes.");
    if ((w->after.len > 0 && !take_time(w->after, now_ms, &out->after_ms)) ||
        (w->before.len > 0 && !take_time(w->before, now_ms, &out->before_ms))) {
        return refuse(
            x,
            "\"after\" and \"before\" must be a time such as 2026-11-21T10:26:49Z, or how long ago, such as "
            "90s, 15m, 2h or 7d.");
    }
    return take_queue(x, v, w, out);
}
_Static_assert(RT_DEAD_TEXT_MAX == 256, "said in words");
