/* backoff.h: an exponential backoff as it is kept with what it is for: processes, types of orders and of calls. */
#ifndef RT_ENGINE_COMMON_BACKOFF_H
#define RT_ENGINE_COMMON_BACKOFF_H
#include "base/rng.h"
#include "engine/common/stored.h"
#include "retryd/policy.h"

/* How long what failed rests. The interval that is kept for the next failure is the one without jitter. */
typedef struct rt_backoff {
    bool given; /* false: no descriptor: the larger of a second and the last interval */
    rt_work_backoff descriptor;
    rt_jitter jitter; /* NONE, FULL (from a second to the interval) or EQUAL (from half of it) */
} rt_backoff;

/* A backoff within a stored value. One that breaks its own rules counts as failed. */
void rt_backoff_pack(rt_buf *out, const rt_backoff *b);
void rt_backoff_unpack(rt_unpack *u, rt_backoff *out);

/* Seconds that count for the next failure, and how long to rest now (ms, >= 1000). `previous_s` 0: none. */
uint64_t rt_backoff_next(const rt_backoff *b, uint64_t previous_s, rt_rng *rng, int64_t *rest_ms);

#endif
