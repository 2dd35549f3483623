/* message.h: posting, deleting and popping messages. */
#ifndef RT_ENGINE_MESSAGES_MESSAGE_H
#define RT_ENGINE_MESSAGES_MESSAGE_H
#include "engine/messages/metadata.h"

enum {
    RT_POST_MESSAGES_MAX = 1024, /* in one request: bounds one change */
    RT_FANOUT_INLINE_MAX = 64,   /* deliveries made in the post's own change; the rest follow by a cursor */
    RT_MESSAGES_PER_REQUEST_MAX = 100
};

typedef struct rt_post_item {
    rt_str body;      /* JSON text, stored and returned as it came in */
    int64_t ttl_s;    /* 0: the queue's default */
    int64_t delay_s;  /* -1: the queue's default; counts only on queues that have one */
    rt_id id;         /* out */
} rt_post_item;

/* Stores all messages or none, creates the queue if absent, and makes a delivery job for each subscription.
 * RT_E_TOO_LARGE: `bytes` is over the queue's own limit (which is in `limit_bytes`). */
typedef struct rt_post {
    rt_command cmd;
    rt_str tenant, queue;
    uint64_t client_hash;  /* rt_hash_str of the canonical Client-ID */
    uint32_t bytes;        /* of the request, for the queue's limit */
    rt_post_item *items;
    uint32_t count;        /* 1..RT_POST_MESSAGES_MAX */
    bool confirmed_only;   /* deliver to confirmed subscriptions only (notification.require_confirmation) */
    uint32_t limit_bytes;  /* out */
} rt_post;
void rt_post_init(rt_post *p);

/* Deletes one message. What stands in the way is told by `refusal` with RT_E_FENCED. RT_OK also if it is absent. */
typedef enum rt_delete_refusal {
    RT_DELETE_CLAIMED,      /* claimed, and no claim was named, or another live one */
    RT_DELETE_NOT_CLAIMED,  /* a claim was named, but the message is free */
    RT_DELETE_CLAIM_UNKNOWN /* the claim that was named does not exist or has ended */
} rt_delete_refusal;
typedef struct rt_message_delete {
    rt_command cmd;
    rt_str tenant, queue;
    rt_id id;
    bool has_claim;
    rt_id claim;              /* 0 with has_claim: not an id at all */
    rt_delete_refusal refusal; /* out */
} rt_message_delete;
void rt_message_delete_init(rt_message_delete *c);

/* Deletes up to RT_MESSAGES_PER_REQUEST_MAX by id, claimed or not; unknown ones are passed over. With `has_claims` each one
 * that is there has to be held by one of `claims`, or none is deleted: RT_E_FENCED, and `refusal` says why. */
typedef struct rt_messages_delete {
    rt_command cmd;
    rt_str tenant, queue;
    rt_id ids[RT_MESSAGES_PER_REQUEST_MAX];
    uint32_t count;
    bool has_claims;
    rt_id claims[RT_MESSAGES_PER_REQUEST_MAX];
    uint32_t claims_count;
    rt_delete_refusal refusal; /* out */
} rt_messages_delete;
void rt_messages_delete_init(rt_messages_delete *c);

/* A message as a command returns it; `body` is a copy in the command's `arena`. */
typedef struct rt_message {
    rt_job job;
    rt_str body;
} rt_message;

/* Takes the first `limit` free messages and deletes them in the same change. */
typedef struct rt_pop {
    rt_command cmd;
    rt_str tenant, queue;
    uint32_t limit;        /* 1..RT_LEASE_JOBS_MAX */
    rt_arena *arena;       /* the caller's, for bodies; not used by others meanwhile */
    rt_message messages[RT_LEASE_JOBS_MAX]; /* out */
    uint32_t count;        /* out */
} rt_pop;
void rt_pop_init(rt_pop *c);

/* A message of list `jobs` that a client may see now: neither ended nor expired; claimed or delayed it may be. */
bool rt_message_is_there(const rt_job *job, rt_id jobs, int64_t now_ms);
/* m->body: a copy in `arena` of what m->job names. RT_E_CORRUPT: there is none. */
rt_code rt_message_copy_body(rt_view *v, rt_arena *arena, rt_message *m);
/* The same for the answer of a decision, within the bound of answers.h. */
rt_code rt_message_answer_body(rt_tx *tx, rt_command *cmd, rt_arena *arena, rt_message *m);

#endif
