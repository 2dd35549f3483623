/* call_plugin.h: a call as a plugin is asked to make it: a run of an order (engine/common/run_request.h) whose id is the
 * call's, whose task is "call", and whose meta says it all:
 *
 *     {"type":"…","reason":"…","order_key":"…","content_type":"…","body":"…"}
 *
 * body_base64 stands in place of body if the payload is no UTF-8. Its answer: done, or failed: dead; retry and unavailable:
 * tried again, by the type's policy or when the plugin says so. It has neither state nor secrets. */
#ifndef RT_ENGINE_CALLS_CALL_PLUGIN_H
#define RT_ENGINE_CALLS_CALL_PLUGIN_H
#include "engine/calls/call_over.h"

/* ptr NULL: out of memory. */
rt_str rt_call_plugin_run(rt_tx *tx, const rt_job *job, const rt_call *call, uint64_t token, int64_t deadline_ms);
/* What its answer, status 200, means: fills in `news`. */
rt_code rt_call_plugin_judge(rt_tx *tx, const rt_outcome *o, rt_call_news *news);

#endif
