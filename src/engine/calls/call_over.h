/* call_over.h: an attempt at a call is over: it has succeeded, is tried again, or is dead. For decisions. */
#ifndef RT_ENGINE_CALLS_CALL_OVER_H
#define RT_ENGINE_CALLS_CALL_OVER_H
#include "engine/calls/call.h"

/* What is known of the attempt. What that means for the call is the policy's. */
typedef struct rt_call_news {
    rt_verdict verdict;
    rt_reason rejected_as;  /* REJECTED: why it is dead */
    bool target_failed;     /* for circuit and pace … */
    bool tells_nothing;     /* … unless it says nothing of the target */
    bool obey;              /* retry_after_ms counts whatever the policy respects */
    int64_t retry_after_ms; /* -1: none */
    uint64_t holder;        /* kept in the job, for who asks again; 0: nobody will */
    rt_event attempt;
} rt_call_news;
/* `queue` and `type` are the job's. *until_ms: when it is tried again; 0: it is not. */
rt_code rt_call_over(rt_tx *tx, const rt_job *job, const rt_queue *queue, const rt_call_type *type,
                     const rt_call_news *news, int64_t *until_ms);
/* Dead without an attempt: too old, or its circuit did not close. `type` NULL: it has none any more. */
rt_code rt_call_give_up(rt_tx *tx, const rt_job *job, const rt_call_type *type, rt_reason reason);

#endif
