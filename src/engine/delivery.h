/* delivery.h: the life of one pushed job: what its next attempt looks like, and what an outcome means for it. */
#ifndef RT_ENGINE_DELIVERY_H
#define RT_ENGINE_DELIVERY_H
#include "engine/subscription.h"

/* What a due job needs. */
typedef enum rt_due {
    RT_DUE_START,   /* an attempt: *attempt is owned by the caller */
    RT_DUE_WRITTEN  /* none: the decision wrote its end (expired, unsubscribed) or its freedom (a delayed message) */
} rt_due;

/* Decides about a job that is due at tx->now_ms, by its subscription and the policy that governs it now. Writes go to tx.
 * With `write_lease` (a store that others take from too) the job is also written as leased by `token` until *deadline_ms.
 * *bytes is what the attempt keeps in memory. */
typedef struct rt_start {
    uint64_t token;
    bool write_lease;
    rt_due due;           /* out */
    rt_attempt *attempt;  /* out, with RT_DUE_START */
    size_t bytes;
    int64_t deadline_ms;
} rt_start;
rt_code rt_delivery_start(rt_tx *tx, const rt_job *job, rt_start *start);

/* What the outcome of an attempt does to its job. Nothing if the job has ended meanwhile or is held by another token.
 * `leased`: the store holds the lease, so the job must carry the token. `worked`: the endpoint is alive: it gave an
 * answer that is not retried. */
typedef struct rt_settle {
    rt_command cmd;
    rt_outcome outcome;
    bool leased;
    bool worked;       /* out */
} rt_settle;
void rt_settle_init(rt_settle *s, const rt_outcome *outcome, bool leased);

/* The policy that governs a subscription now: its own, the queue's, or the defaults; the queue's alone when that says
 * ignore_subscription_override. `queue` NULL: the queue is gone or has no metadata. Never merged key by key. */
rt_delivery_policy rt_delivery_policy_of(const rt_subscription *s, const rt_metadata *queue);

#endif
