/* record.h: the records of retryd/record.h, in words for JSON, logs and metrics. */
#ifndef RT_PORT_RECORD_H
#define RT_PORT_RECORD_H
#include "base/id.h"
#include "retryd/record.h"

const char *rt_reason_name(rt_reason reason); /* "delivered", "address_refused", … for JSON, logs and metrics */
const char *rt_job_state_name(rt_job_state state); /* "ready", "scheduled", "free", "leased", "dead", "done" */
const char *rt_event_type_name(rt_event_type type); /* "attempt", "delivered", …; of work "Started", "Finished", … */

#endif
