#include <string.h>

#include "engine/calls/call.h"
#include "engine/queues/dead.h"

static bool contains(rt_str s, rt_str part) {
    return part.len <= s.len && memmem(s.ptr, s.len, part.ptr, part.len) != NULL;
}

static bool wants_end(const rt_dead_filter *f) {
    return f->failure != RT_REASON_NONE || f->status_high > 0 || f->after_ms > 0 || f->before_ms > 0;
}

/* The event that it died of says when, and of what. Trimmed: nobody knows, so it matches nothing of the
 * kind. */
static bool end_matches(const rt_dead_filter *f, const rt_job *job, const rt_event *end) {
    if (f->failure != RT_REASON_NONE && end->reason != f->failure && job->reason != f->failure) return false;
    if (f->status_high > 0 && (end->status < f->status_low || end->status > f->status_high)) return false;
    if (f->after_ms > 0 && end->at_ms < f->after_ms) return false;
    return f->before_ms == 0 || end->at_ms < f->before_ms;
}

static bool body_matches(const rt_dead_filter *f, const rt_job *job, rt_str body, rt_str end_text) {
    rt_call call;
    if (!(job->flags & RT_JOB_CALL))
        return f->told.len == 0 && (contains(body, f->text) || contains(end_text, f->text));
    if (!rt_call_decode(body, &call)) return false;
    if (f->told.len > 0 && !rt_str_eq(call.reason, f->told)) return false;
    return f->text.len == 0 || contains(call.payload, f->text) || contains(end_text, f->text);
}

rt_code rt_dead_matches(rt_view *v, const rt_dead_filter *f, const rt_job *job, bool *matches) {
    *matches = false;
    if (f->queue != 0 && job->queue != f->queue) return RT_OK;
    if (f->owner != 0 && job->owner != f->owner) return RT_OK;
    if (f->reason != RT_REASON_NONE && job->reason != f->reason) return RT_OK;
    if (f->told.len > 0 && !(job->flags & RT_JOB_CALL)) return RT_OK;
    rt_event end = {.text = RT_STR_EMPTY};
    if (wants_end(f) || f->text.len > 0) {
        const rt_code code = job->last_event == 0 ? RT_E_ABSENT : rt_view_event(v, job->last_event, &end);
        if (code != RT_OK && code != RT_E_ABSENT) return code;
        if (wants_end(f) && (code != RT_OK || !end_matches(f, job, &end))) return RT_OK;
    }
    if (f->told.len == 0 && f->text.len == 0) {
        *matches = true;
        return RT_OK;
    }
    rt_str body;
    const rt_code code = rt_view_body(v, job->body, &body);
    if (code == RT_OK) *matches = body_matches(f, job, body, end.text);
    return code == RT_E_ABSENT ? RT_OK : code;
}
