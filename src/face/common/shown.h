/* shown.h: jobs, events and brakes of queues as JSON, the same on every page. NULL where memory runs out. */
#ifndef RT_FACE_COMMON_SHOWN_H
#define RT_FACE_COMMON_SHOWN_H
#include <jansson.h>

#include "face/common/api.h"

/* Everything known about a job but its body. `queue`: the name of its queue, or empty. A dead one says what
 * its last attempt failed of, an event (engine/calls) what it was scheduled with. */
json_t *rt_json_job(const rt_exchange *x, rt_view *v, const rt_job *job, rt_str queue);
/* A line of history. */
json_t *rt_json_event(const rt_exchange *x, const rt_event *e);
/* {"state", "forced", "since", "until", "opened", "sleep_ms", "probes", "window"} of the circuit of a queue that the view
 * shows. */
json_t *rt_json_circuit(const rt_exchange *x, rt_view *v, const rt_queue *queue);
/* {"delay_ms", "until"} */
json_t *rt_json_pace(const rt_brakes *b);

rt_str rt_queue_name_of(rt_exchange *x, rt_view *v, rt_id queue); /* empty if it is gone; in the arena */

#endif
