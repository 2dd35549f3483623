/* read.h: what faces may know: everything that is read-only, on a snapshot, from any thread, never waiting for the engine.
 *
 * Open a view (rt_engine_view), read, copy what is needed, close it before anything is sent. Strings are copies in the
 * arena that is passed. `now_ms` is the caller's clock: what has ended by then is not shown even if its record is still
 * there. */
#ifndef RT_ENGINE_QUEUES_READ_H
#define RT_ENGINE_QUEUES_READ_H
#include "engine/queues/dead.h"

rt_code rt_read_job(rt_view *v, rt_id id, rt_job *out); /* any state, DONE too while its history is kept */
/* The job's events, newest first, at most `limit`. */
rt_code rt_read_attempts(rt_view *v, const rt_job *job, uint32_t limit, rt_each_event *each, void *ctx);
/* Where a listing of dead jobs stands. All zero: at its beginning. */
typedef struct rt_dead_place {
    rt_id queue, job;
} rt_dead_place;
/* Dead jobs that match, behind *place, which is then the last one that was looked at. At most `scan_max` are;
 * those whose body is searched for a text count more if it is large. *more says that it stopped there or because
 * `each` had enough. */
rt_code rt_read_dead(rt_view *v, const rt_dead_filter *filter, rt_dead_place *place, uint32_t scan_max,
                     rt_each_job *each, void *ctx, bool *more);
/* Every queue of every kind by id, with counts. Those being emptied are not shown. */
typedef struct rt_queue_line {
    rt_queue queue;
    rt_counts counts;
    int64_t next_due_ms;  /* of its scheduled jobs; INT64_MAX: none */
    int64_t oldest_ms;    /* placed_ms of the oldest pull job, or of the first due one; 0: none */
} rt_queue_line;
typedef bool rt_each_queue_line(void *ctx, const rt_queue_line *line);
rt_code rt_read_queue_lines(rt_view *v, rt_id after, rt_each_queue_line *each, void *ctx);
rt_code rt_read_queue_line(rt_view *v, rt_id id, rt_queue_line *out); /* queue.name lent by the view */
rt_code rt_read_totals(rt_view *v, rt_counts *out);
/* All events behind `after_seq`, oldest first. */
rt_code rt_read_events(rt_view *v, uint64_t after_seq, rt_each_event *each, void *ctx);

#endif
