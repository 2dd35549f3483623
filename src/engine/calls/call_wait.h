/* call_wait.h: where a call waits for its turn, and for how long at most. For decisions. */
#ifndef RT_ENGINE_CALLS_CALL_WAIT_H
#define RT_ENGINE_CALLS_CALL_WAIT_H
#include "engine/calls/call_type.h"

#define RT_LINE_DUE_MS INT64_C(253402300799000) /* the end of the year 9999: it waits in line, see line.h */

/* Places a call that may be tried from `due_ms` on (now or before: at once) where its kind is tried from: state and due
 * time. */
void rt_call_wait(rt_tx *tx, rt_job *job, int64_t due_ms);
/* A call that waits, or is about to, notes when it will be too old by its type. */
void rt_call_note_age(rt_job *job, const rt_call_type *type);
/* A worker has it, or an attempt is under way: it does not wait. */
bool rt_call_is_held(const rt_tx *tx, const rt_job *job);

#endif
