/* pages.h: the handlers behind the admin face's routes, one file a noun. */
#ifndef RT_FACE_ADMIN_PAGES_H
#define RT_FACE_ADMIN_PAGES_H
#include "engine/calls/call_metrics.h"
#include "face/common/fields.h"
#include "face/common/problem.h"
#include "face/common/reply.h"
#include "face/common/shown.h"
#include "face/common/values.h"
#include "policy/circuit.h"

/* attempts.c */
void rt_page_attempts(rt_exchange *x);

/* dead.c: looking at dead jobs */
void rt_page_dead_list(rt_exchange *x);
void rt_page_dead_count(rt_exchange *x);
void rt_page_dead_sample(rt_exchange *x);
void rt_page_dead_export(rt_exchange *x);

/* dead_many.c: what is done about them */
void rt_page_dead_redrive(rt_exchange *x);
void rt_page_dead_delete(rt_exchange *x);
void rt_page_dead_redrive_many(rt_exchange *x);
void rt_page_dead_delete_many(rt_exchange *x);

/* dead_words.c: which dead jobs, in words; empty ones mean "any". */
typedef struct rt_dead_words {
    rt_str queue, type, reason, failure, after, before, text;
} rt_dead_words;
rt_dead_words rt_dead_words_of_query(const rt_exchange *x);
/* Lends from `w`. False: replied. */
bool rt_dead_filter_make(rt_exchange *x, rt_view *v, const rt_dead_words *w, rt_dead_filter *out);

/* queue.c */
void rt_page_queue_list(rt_exchange *x);
void rt_page_queue_get(rt_exchange *x);
void rt_page_queue_pause(rt_exchange *x);
void rt_page_queue_resume(rt_exchange *x);
void rt_page_queue_circuit(rt_exchange *x);

/* queue_name.c: the queue that an operator names: an id, "PROJECT/QUEUE", or "QUEUE" (of the project in
 * X-Project-ID, if one is given); a queue of messages or, failing that or with `type`, of an event type.
 * Sets filter->queue or, for the deliveries of a message queue, filter->owner. RT_E_ABSENT: there is none. */
rt_code rt_queue_named(rt_exchange *x, rt_view *v, rt_str name, bool type, rt_dead_filter *filter);

/* The same of an event type or, failing that, of a queue of any kind by its name in the listing of queues, with or without
 * the project in front. RT_E_CONFLICT: there are several. */
rt_code rt_queue_of_any_kind(rt_exchange *x, rt_view *v, rt_str name, rt_id *out);

/* event_metrics.c */
typedef struct rt_event_gauge {
    rt_str project, type; /* in the arena */
    int64_t pending, dead;
    rt_circuit_state circuit;
    uint32_t pace_ms;
} rt_event_gauge;
typedef struct rt_event_gauges {
    rt_event_gauge *list;
    uint32_t count;
} rt_event_gauges;
/* How the first types fare, while the view is open. */
rt_code rt_event_gauges_read(rt_view *v, rt_arena *arena, rt_event_gauges *out);
void rt_event_metrics_write(rt_buf *b, const rt_call_metrics *m, const rt_event_gauges *g);

/* operations.c */
void rt_page_metrics(rt_exchange *x);
void rt_page_health(rt_exchange *x);
void rt_page_ready(rt_exchange *x);
void rt_page_openapi(rt_exchange *x);

#endif
