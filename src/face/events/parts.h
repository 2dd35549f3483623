/* parts.h: what the pages of this face share. An "event" of the wire is a call in the engine
 * (engine/calls/call.h). */
#ifndef RT_FACE_EVENTS_PARTS_H
#define RT_FACE_EVENTS_PARTS_H
#include "engine/calls/call_claim.h"
#include "engine/calls/call_read.h"
#include "face/common/fields.h"
#include "face/common/problem.h"
#include "face/common/reply.h"
#include "face/common/values.h"

enum { RT_EVENT_TYPES_PAGE_DEFAULT = 100, RT_EVENT_TYPES_PAGE_MAX = 1000 };

/* ---- refusal.c ------------------------------------------------------------------------------------- */
/* The i-th path parameter as the name of an event type. False: replied with 400. */
bool rt_param_type(rt_exchange *x, size_t i, rt_str *out);
/* What a refused command means; `what` is not there, if it is RT_E_ABSENT. RT_E_FENCED has `fenced` as its
 * "code". */
void rt_problem_event(rt_exchange *x, const rt_command *cmd, const char *what, const char *fenced);

/* ---- pages, one file a noun ------------------------------------------------------------------------ */
void rt_page_type_list(rt_exchange *x), rt_page_type_get(rt_exchange *x), rt_page_type_put(rt_exchange *x),
    rt_page_type_delete(rt_exchange *x);
void rt_page_event_list(rt_exchange *x);
void rt_page_event_post(rt_exchange *x), rt_page_event_batch(rt_exchange *x),
    rt_page_event_mixed(rt_exchange *x);
void rt_page_event_claim(rt_exchange *x);
void rt_page_event_finish(rt_exchange *x), rt_page_event_fail(rt_exchange *x),
    rt_page_event_release(rt_exchange *x), rt_page_event_extend(rt_exchange *x);
void rt_page_events_finish(rt_exchange *x), rt_page_events_fail(rt_exchange *x),
    rt_page_events_release(rt_exchange *x), rt_page_events_extend(rt_exchange *x);
void rt_page_job_get(rt_exchange *x), rt_page_job_body(rt_exchange *x), rt_page_job_attempts(rt_exchange *x),
    rt_page_job_delete(rt_exchange *x);

#endif
