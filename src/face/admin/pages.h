/* pages.h: the handlers behind the admin face's routes, one file a noun. */
#ifndef RT_FACE_ADMIN_PAGES_H
#define RT_FACE_ADMIN_PAGES_H
#include "face/common/problem.h"

/* job.c */
void rt_page_job_get(rt_exchange *x);
void rt_page_job_attempts(rt_exchange *x);
void rt_page_job_delete(rt_exchange *x);
void rt_page_dead_delete(rt_exchange *x);
void rt_page_attempts(rt_exchange *x);
/* Everything known about a job but its body. `queue`: the name of its queue, or empty. */
json_t *rt_json_job(const rt_exchange *x, const rt_job *job, rt_str queue);

/* dead.c */
void rt_page_dead_list(rt_exchange *x);
void rt_page_dead_redrive(rt_exchange *x);
void rt_page_dead_redrive_many(rt_exchange *x);
void rt_page_dead_delete_many(rt_exchange *x);

/* queue.c */
void rt_page_queue_list(rt_exchange *x);
void rt_page_queue_get(rt_exchange *x);
void rt_page_queue_pause(rt_exchange *x);
void rt_page_queue_resume(rt_exchange *x);
/* The queue that an operator names: an id, "PROJECT/QUEUE", or "QUEUE" (of the project in X-Project-ID, if one is given).
 * Sets filter->queue or filter->owner. RT_E_ABSENT: there is none. */
rt_code rt_queue_named(rt_exchange *x, rt_view *v, rt_str name, rt_dead_filter *filter);
rt_str rt_queue_name_of(rt_exchange *x, rt_view *v, rt_id queue); /* empty if it is gone; in the arena */

/* operations.c */
void rt_page_metrics(rt_exchange *x);
void rt_page_health(rt_exchange *x);
void rt_page_ready(rt_exchange *x);
void rt_page_openapi(rt_exchange *x);

#endif
