/* policy.h: how long to wait before the next attempt, or whether to give up.
 *
 * Pure: no clock, no allocation, no I/O; every function may be called from any thread.
 * Delays are milliseconds. Retries are numbered from 1: the attempt that was made first is no retry. */
#ifndef RETRYD_POLICY_H
#define RETRYD_POLICY_H
#include <stdbool.h>
#include <stdint.h>

/* ---- delivery policy: four phases ------------------------------------------------------------------------------------
 * immediate (no delay), pre-backoff (minimum_delay), backoff (from minimum_delay to maximum_delay by a function),
 * post-backoff (maximum_delay).
 * Source: OpenStack Zaqar specs, "Notification Delivery Policy" (Pike) and "Support More Backoff Functions" (Queens). */

typedef enum rt_backoff_function {
    RT_BACKOFF_LINEAR, RT_BACKOFF_ARITHMETIC, RT_BACKOFF_GEOMETRIC, RT_BACKOFF_EXPONENTIAL, RT_BACKOFF_FUNCTION_COUNT
} rt_backoff_function;

/* none: d. full: uniform in [0, d]. equal: d/2 + uniform in [0, d/2]. decorrelated: uniform in [MIN, 3 x last], at most MAX.
 * Source: AWS Architecture Blog, "Exponential Backoff And Jitter", 2015. */
typedef enum rt_jitter {
    RT_JITTER_NONE, RT_JITTER_FULL, RT_JITTER_EQUAL, RT_JITTER_DECORRELATED, RT_JITTER_COUNT
} rt_jitter;

enum {
    RT_BACKOFF_RETRIES_MAX = 100,
    RT_PHASE_RETRIES_MAX = 100000,          /* of each of the three phases that are counted by a setting */
    RT_DELAY_S_MAX = 31536000,              /* a year */
    RT_ATTEMPT_TIMEOUT_S_MAX = 3600,
    RT_RETRY_ON_MAX = 16,
    RT_POLICY_JSON_BYTES_MAX = 16384
};

typedef struct rt_status_range {
    uint16_t low, high; /* inclusive; 0 <= low <= high <= 999 */
} rt_status_range;

typedef struct rt_delivery_policy {
    uint32_t retries_with_no_delay;   /* 3 */
    uint32_t minimum_delay_retries;   /* 3 */
    uint32_t minimum_delay_s;         /* 5 */
    uint32_t maximum_delay_s;         /* 60 */
    uint32_t maximum_delay_retries;   /* 3 */
    uint32_t backoff_retries;         /* 1..100; 0: left out, so derived: floor((MAX-MIN)/5) + 1, within 1..100 */
    uint32_t maximum_age_s;           /* from posting; past it the job is dead. 0: no limit */
    uint32_t attempt_timeout_s;       /* 30 */
    rt_backoff_function backoff_function; /* linear */
    rt_jitter jitter;                 /* none */
    bool ignore_subscription_override;    /* counts on a queue's policy only */
    bool respect_retry_after;
    bool follow_redirects;
    uint8_t retry_on_count;
    rt_status_range retry_on[RT_RETRY_ON_MAX]; /* statuses retried beyond the document's */
} rt_delivery_policy;

typedef enum rt_phase {
    RT_PHASE_IMMEDIATE, RT_PHASE_PRE_BACKOFF, RT_PHASE_BACKOFF, RT_PHASE_POST_BACKOFF, RT_PHASE_COUNT
} rt_phase;

/* The defaults of the document: 21 retries. */
rt_delivery_policy rt_delivery_policy_default(void);

/* NULL: valid. Otherwise an English sentence that names the field and the rule. */
const char *rt_delivery_policy_check(const rt_delivery_policy *p);

/* Number of retries of the backoff phase (NUM of the formulas), and of all four phases. */
uint32_t rt_delivery_policy_backoff_retries(const rt_delivery_policy *p);
uint32_t rt_delivery_policy_retries(const rt_delivery_policy *p);

/* Delay before retry `retry` without jitter, and its phase. False: there is no such retry (give up; outputs untouched).
 * `p` must be valid, retry >= 1. In the backoff phase never below MIN, never above MAX, never decreasing; for NUM >= 2 the
 * first is exactly MIN and the last exactly MAX. NUM = 1 gives MIN. */
bool rt_delivery_policy_delay(const rt_delivery_policy *p, uint32_t retry, uint64_t *delay_ms, rt_phase *phase);

/* The delay with the policy's jitter. `last_ms`: the delay that was last waited (decorrelated needs it; 0: none yet).
 * `random`: 64 uniform random bits. Immediate retries stay immediate. Always <= maximum_delay. */
uint64_t rt_delivery_policy_jittered(const rt_delivery_policy *p, uint64_t delay_ms, uint64_t last_ms, uint64_t random);

/* What an answer means under this policy. */
typedef enum rt_verdict { RT_VERDICT_SUCCESS, RT_VERDICT_RETRY, RT_VERDICT_REJECTED } rt_verdict;
/* 2xx is success; 500-599, anything outside 200-599 and what retry_on names is retried; the rest is rejected. */
rt_verdict rt_delivery_policy_judge(const rt_delivery_policy *p, uint32_t status);

/* Names on the wire: "linear", …; "none", …; "immediate", "pre_backoff", "backoff", "post_backoff". */
const char *rt_backoff_function_name(rt_backoff_function f);
const char *rt_jitter_name(rt_jitter j);
const char *rt_phase_name(rt_phase p);

/* ---- work backoff: one interval from the last ------------------------------------------------------------------------
 * Whole seconds. Source: Monogon BMaaS bmdb, Backoff.next (change 1565). Constant and first intervals are truncated to
 * whole seconds; products are computed in nanoseconds as a double, truncated, capped at the maximum, then rounded up. */

typedef struct rt_work_backoff {
    uint64_t initial_ns; /* below a second counts as a second */
    uint64_t maximum_ns; /* below initial counts as initial */
    double exponent;     /* below 1 counts as 1; exactly 0 or 1: constant, always initial. Finite. */
} rt_work_backoff;

/* NULL: valid (finite exponent, durations within INT64_MAX ns). Otherwise a sentence. */
const char *rt_work_backoff_check(const rt_work_backoff *b);
/* `b` NULL: no descriptor: the larger of 1 s and the previous interval. previous_s 0: none. Returns seconds, >= 1. */
uint64_t rt_work_backoff_next_s(const rt_work_backoff *b, uint64_t previous_s);
/* The same after an interval that need not be whole seconds; below a second counts as a second. 0: none. */
uint64_t rt_work_backoff_next_after_ns(const rt_work_backoff *b, uint64_t previous_ns);

#endif
