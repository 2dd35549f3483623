/* message_read.h: what may be known of message queues, messages, claims and subscriptions, see queues/read.h. */
#ifndef RT_ENGINE_MESSAGES_MESSAGE_READ_H
#define RT_ENGINE_MESSAGES_MESSAGE_READ_H
#include "engine/messages/claim.h"
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

#endif
