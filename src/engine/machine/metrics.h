/* metrics.h: what the engine counts since it started. Written by the engine's thread, read by any. */
#ifndef RT_ENGINE_MACHINE_METRICS_H
#define RT_ENGINE_MACHINE_METRICS_H
#include <stdatomic.h>

#include "engine/calls/call_metrics.h"

/* Upper bounds, inclusive; the last bucket is +Inf. */
enum { RT_HISTOGRAM_BUCKETS = 16 };
typedef struct rt_histogram {
    const double *bounds; /* RT_HISTOGRAM_BUCKETS - 1 of them */
    atomic_uint_fast64_t buckets[RT_HISTOGRAM_BUCKETS]; /* not cumulative */
    atomic_uint_fast64_t sum_micro; /* sum of the values, in millionths */
} rt_histogram;
void rt_histogram_add(rt_histogram *h, double value);

extern const double RT_BOUNDS_SECONDS[RT_HISTOGRAM_BUCKETS - 1]; /* 0.0005 … 60 */
extern const double RT_BOUNDS_COUNT[RT_HISTOGRAM_BUCKETS - 1];   /* 1 … 16384 */

/* Work by process, the first RT_WORK_COUNTED of them; what comes later counts together as the last. A process has its
 * counters from its first event on; names[i] is there for all readers once `processes` is above i. */
enum { RT_WORK_COUNTED = 64, RT_WORK_COUNTER_NAME_MAX = 64 };
typedef enum rt_work_count {
    RT_WORK_STARTED,
    RT_WORK_FINISHED,
    RT_WORK_FAILED,
    RT_WORK_CANCELED,
    RT_WORK_EXPIRED,
    RT_WORK_COUNT_COUNT
} rt_work_count;
typedef struct rt_work_metrics {
    atomic_uint processes;
    char names[RT_WORK_COUNTED + 1][RT_WORK_COUNTER_NAME_MAX + 1]; /* the last: "other" */
    atomic_uint_fast64_t counts[RT_WORK_COUNTED + 1][RT_WORK_COUNT_COUNT];
    atomic_uint_fast64_t sessions_started, sessions_ended;
} rt_work_metrics;
/* Engine's thread: the index of a process's counters, made if there are none. */
uint32_t rt_work_metrics_at(rt_work_metrics *m, rt_str process);

/* Orders: what has become of them. */
typedef enum rt_order_count {
    RT_ORDER_CREATED,
    RT_ORDER_DELETED,
    RT_ORDER_SUCCEEDED, /* ACTIVE */
    RT_ORDER_FAILED,    /* in ERROR */
    RT_ORDER_RETRIED,   /* tasks and repetitions that were scheduled */
    RT_ORDER_REPAIRED,  /* given a task by the patrol: must never happen */
    RT_ORDER_COUNT_COUNT
} rt_order_count;
typedef struct rt_order_metrics {
    atomic_uint_fast64_t runs, counts[RT_ORDER_COUNT_COUNT];
} rt_order_metrics;

typedef struct rt_metrics {
    rt_work_metrics work;
    rt_order_metrics orders;
    rt_call_metrics calls;
    atomic_uint_fast64_t messages_posted, messages_claimed, messages_deleted, messages_expired;
    atomic_uint_fast64_t deliveries_created, deliveries_done;
    atomic_uint_fast64_t attempts_started, attempts_failed[RT_REASON_COUNT];
    atomic_uint_fast64_t jobs_dead[RT_REASON_COUNT], jobs_redriven;
    atomic_uint_fast64_t commits, commits_failed, commands, commands_refused[RT_CODE_COUNT], conflicts;
    atomic_uint_fast64_t attempts_in_flight, bytes_in_flight; /* gauges */
    atomic_int_fast64_t oldest_due_ms; /* gauge: due time of the first job that waits for its turn; 0: none */
    rt_histogram lateness_s;   /* start of an attempt after its due time */
    rt_histogram attempt_s;    /* duration of attempts that got an answer */
    rt_histogram commit_s;     /* duration of commits */
    rt_histogram commit_size;  /* changes a commit */
} rt_metrics;
void rt_metrics_init(rt_metrics *m);

#endif
