/* history.h: what an event about work says beyond its time and type: the text of the event.
 *
 *     PROCESS SESSION WORK INTERVAL [CAUSE]
 *
 * Readable as it stands in the stream of all events: ids as 16 hex digits, the interval in seconds (of
 * Failed, otherwise 0). */
#ifndef RT_ENGINE_WORK_HISTORY_H
#define RT_ENGINE_WORK_HISTORY_H
#include "base/arena.h"
#include "base/id.h"

enum { RT_CAUSE_MAX = 384 }; /* bytes; longer ones are cut at a whole character */

typedef struct rt_history {
    rt_str process;
    rt_id session, work;
    uint64_t interval_s;
    rt_str cause; /* of Failed, Canceled and Expired; may be empty */
} rt_history;

/* In the arena; ptr NULL: out of memory. */
rt_str rt_history_write(rt_arena *arena, const rt_history *h);
/* Lends from `text`. False: not such a text. */
bool rt_history_read(rt_str text, rt_history *out);
/* The longest beginning of `cause` that is within RT_CAUSE_MAX and ends with a whole UTF-8 character. */
rt_str rt_cause_cut(rt_str cause);

#endif
