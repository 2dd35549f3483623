/* claim.h: Zaqar claims: a lease on up to 20 messages of one queue. */
#ifndef RT_ENGINE_MESSAGES_CLAIM_H
#define RT_ENGINE_MESSAGES_CLAIM_H
#include "engine/messages/message.h"

/* Claims the first `limit` free messages. A message that was claimed `_max_claim_count` times already goes to the queue's
 * dead-letter queue instead. count 0: nothing to claim. A message that would end before the claim lives on until its
 * end + grace. */
typedef struct rt_claim_create {
    rt_command cmd;
    rt_str tenant, queue;
    uint32_t ttl_s, grace_s, limit;
    rt_arena *arena;  /* the caller's, for bodies */
    rt_lease lease;   /* out, if count > 0 */
    rt_message messages[RT_LEASE_JOBS_MAX]; /* out */
    uint32_t count;   /* out */
} rt_claim_create;
void rt_claim_create_init(rt_claim_create *c);

/* Starts its time again with a new ttl and grace. RT_E_ABSENT: unknown, ended, or of another queue. */
typedef struct rt_claim_renew {
    rt_command cmd;
    rt_str tenant, queue;
    rt_id id;
    uint32_t ttl_s, grace_s;
} rt_claim_renew;
void rt_claim_renew_init(rt_claim_renew *c);

/* Frees its messages at once; they return to their places. RT_OK also if absent. */
typedef struct rt_claim_release {
    rt_command cmd;
    rt_str tenant, queue;
    rt_id id;
} rt_claim_release;
void rt_claim_release_init(rt_claim_release *c);

/* For decisions: the claim has ended: frees what it still holds and removes it. */
rt_code rt_claim_end(rt_tx *tx, const rt_lease *lease);

#endif
