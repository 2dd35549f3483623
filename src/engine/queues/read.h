/* read.h: what faces may know: everything that is read-only, on a snapshot, from any thread, never waiting for the engine.
 *
 * Open a view (rt_engine_view), read, copy what is needed, close it before anything is sent. Strings are copies in the
 * arena that is passed. `now_ms` is the caller's clock: what has ended by then is not shown even if its record is still
 * there. */
#ifndef RT_ENGINE_QUEUES_READ_H
#define RT_ENGINE_QUEUES_READ_H
#include "engine/messages/claim.h"
#include "engine/queues/dead.h"
#include "engine/messages/message.h"
#include "engine/messages/subscription.h"

/* RT_E_ABSENT: no such queue. *version is what rt_queue_replace wants. */
rt_code rt_read_metadata(rt_view *v, rt_arena *a, rt_str tenant, rt_str queue, rt_metadata *out, uint64_t *version);

/* Queues of a tenant by name, behind `after`. */
typedef bool rt_each_metadata(void *ctx, rt_str queue, const rt_metadata *m);
rt_code rt_read_queues(rt_view *v, rt_str tenant, rt_str after, rt_each_metadata *each, void *ctx);

typedef struct rt_message_range {
    rt_id jobs;            /* rt_metadata.jobs */
    rt_id after;           /* 0: from the oldest */
    uint32_t limit;
    uint64_t skip_hash;    /* echo=false: the asking client's hash; 0: none */
    bool include_claimed, include_delayed;
    int64_t now_ms;
} rt_message_range;
/* First in, first out. out[limit], *count. Messages that have expired are not shown. */
rt_code rt_read_messages(rt_view *v, rt_arena *a, const rt_message_range *range, rt_message out[], uint32_t *count);
/* One message of the queue that may be seen now (free, claimed or delayed). RT_E_ABSENT. */
rt_code rt_read_message(rt_view *v, rt_arena *a, rt_id jobs, rt_id id, int64_t now_ms, rt_message *out);
/* Is the message claimed at `now_ms`? Its claim's id, or 0. */
rt_id rt_read_claim_of(rt_view *v, const rt_job *job, int64_t now_ms);

/* A claim and its messages that are still held. RT_E_ABSENT: unknown, ended, of another queue. */
rt_code rt_read_claim(rt_view *v, rt_arena *a, rt_id jobs, rt_id claim, int64_t now_ms, rt_lease *lease,
                      rt_message out[RT_LEASE_JOBS_MAX], uint32_t *count);

typedef struct rt_queue_stats {
    int64_t free, claimed, total; /* delayed messages count as free, as Zaqar does */
    bool has_ends;
    rt_job oldest, newest;        /* if has_ends */
} rt_queue_stats;
rt_code rt_read_stats(rt_view *v, rt_id jobs, int64_t now_ms, rt_queue_stats *out);

rt_code rt_read_subscription(rt_view *v, rt_arena *a, rt_id queue, rt_id id, int64_t now_ms, rt_subscription *out,
                             uint64_t *version);
typedef bool rt_each_subscription(void *ctx, const rt_subscription *s);
rt_code rt_read_subscriptions(rt_view *v, rt_id queue, rt_id after, int64_t now_ms, rt_each_subscription *each, void *ctx);

/* ---- operators ----------------------------------------------------------------------------------------------------- */

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
