/* subscription.h: who is told of a queue's messages, and the commands that change it. A subscription's id is also the id
 * of its delivery queue, so that a slow endpoint has a queue, a concurrency and a backlog of its own. */
#ifndef RT_ENGINE_MESSAGES_SUBSCRIPTION_H
#define RT_ENGINE_MESSAGES_SUBSCRIPTION_H
#include "engine/common/cursor.h"
#include "engine/messages/metadata.h"
#include "port/executor.h"

enum { RT_URI_MAX = 2048, RT_SUBSCRIPTION_NAME_LEN = 16 };

typedef struct rt_subscription {
    rt_id id, queue;       /* queue: the message queue's identity (rt_metadata.id) */
    rt_str tenant, queue_name; /* of that queue: finds its metadata, and is told to the subscriber */
    rt_str uri;            /* http:, https:, mailto:; at most RT_URI_MAX */
    uint32_t ttl_s;
    int64_t created_ms;    /* creation, or the last change of its ttl: its age counts from here */
    bool confirmed;        /* by PUT …/confirm */
    bool has_policy;
    rt_delivery_policy policy;
    rt_str headers;        /* "Name: value\n"… from options.post_headers */
    rt_str post_data;      /* template from options.post_data; empty: none */
    rt_str secrets[RT_SECRETS_MAX];
    rt_str subject, from;  /* mailto */
    rt_str options_json;   /* as the client gave it; "{}" at least */
} rt_subscription;

rt_str rt_subscription_name(rt_arena *arena, rt_id queue, rt_id subscription);
rt_str rt_subscription_encode(rt_arena *arena, const rt_subscription *s);
bool rt_subscription_decode(rt_str value, rt_subscription *out); /* lends */

/* Creates one, and its queue if that is absent. A subscriber that exists already:
 * unconfirmed: RT_OK with `existed` and its id, nothing changed but its confirmation sent again;
 * confirmed: RT_E_EXISTS. */
typedef struct rt_subscription_create {
    rt_command cmd;
    rt_str tenant, queue;
    rt_subscription like;    /* id, queue, tenant, queue_name, created_ms are filled in */
    /* NULL: no confirmation is sent. Writes its body, in `arena`, once the id is known; ptr NULL: out of memory. Pure. */
    void (*confirm)(struct rt_subscription_create *c, rt_id id, int64_t expires_ms, rt_arena *arena, rt_str *body);
    rt_id id;                /* out */
    bool existed;            /* out */
} rt_subscription_create;
void rt_subscription_create_init(rt_subscription_create *c);

/* Replaces what `set_*` says, if it still has `version`. A new uri has to be confirmed anew: its owner never was asked.
 * RT_E_ABSENT, RT_E_CONFLICT (read and try again), RT_E_EXISTS (another one has that subscriber). */
typedef struct rt_subscription_patch {
    rt_command cmd;
    rt_str tenant, queue;
    rt_id id;
    uint64_t version;
    bool set_uri, set_ttl, set_options; /* options: policy, headers, post_data, secrets, subject, from, options_json */
    rt_subscription with;
} rt_subscription_patch;
void rt_subscription_patch_init(rt_subscription_patch *c);

/* Confirms it, or takes the confirmation back and says good-bye to the subscriber. RT_E_ABSENT. */
typedef struct rt_subscription_confirm {
    rt_command cmd;
    rt_str tenant, queue;
    rt_id id;
    bool confirmed;
    rt_str goodbye; /* body to send when confirmed is false; empty: nothing is sent */
} rt_subscription_confirm;
void rt_subscription_confirm_init(rt_subscription_confirm *c);

/* Deletes it; its waiting deliveries end as `unsubscribed`, those given up stay to be inspected. RT_OK also if absent. */
typedef struct rt_subscription_delete {
    rt_command cmd;
    rt_str tenant, queue;
    rt_id id;
} rt_subscription_delete;
void rt_subscription_delete_init(rt_subscription_delete *c);

/* For decisions: removes the subscription `doc` within this change (queue marked gone, a cursor empties it). */
rt_code rt_subscription_remove(rt_tx *tx, const rt_doc *doc);
/* The same for all of message queue `queue`: at once up to RT_CURSOR_SLICE of them, the rest by a cursor (*rest). */
rt_code rt_subscriptions_remove(rt_tx *tx, rt_id queue, bool *rest);

/* One slice of RT_CURSOR_UNSUBSCRIBE. */
rt_cursor_slice rt_unsubscribe_slice;

#endif
