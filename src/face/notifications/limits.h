/* limits.h: how much clients may ask for, and what they get when they do not say. Zaqar's settings of the group
 * [transport], under its names. */
#ifndef RT_FACE_NOTIFICATIONS_LIMITS_H
#define RT_FACE_NOTIFICATIONS_LIMITS_H
#include "face/common/api.h"

enum {
    RT_PAGE_DEFAULT = 10, /* where a client names no limit, unless the largest page is smaller */
    RT_PAGE_MAX = 100,    /* the largest that a max_…_per_page can be */
    RT_TTL_S_MIN = 60,    /* of messages, claims, their grace, and subscriptions: no setting of Zaqar's either */
    RT_METADATA_BYTES_MAX = 128 * 1024 /* the largest that max_queue_metadata can be: written with blanks it still fits
                                          into a document */
};

typedef struct rt_limits {
    uint64_t default_message_ttl, default_message_delay, default_claim_ttl, default_claim_grace; /* seconds */
    uint64_t default_subscription_ttl;
    uint64_t max_queues_per_page, max_messages_per_page, max_subscriptions_per_page; /* 1..RT_PAGE_MAX */
    uint64_t max_messages_per_claim_or_pop;              /* 1..RT_LEASE_JOBS_MAX */
    uint64_t max_queue_metadata, max_messages_post_size; /* bytes of a request's body */
    uint64_t max_message_ttl, max_message_delay, max_claim_ttl, max_claim_grace; /* seconds */
    uint64_t min_length_client_id, max_length_client_id; /* where they need be no UUIDs */
    char *client_id_uuid_safe;         /* "strict": a Client-ID is a UUID; "off": it has those lengths */
    char *subscriber_types;            /* "http,https,…": schemes */
    bool message_delete_with_claim_id; /* DELETE …/messages?ids= wants the claims that hold them */
} rt_limits;

static inline const rt_limits *rt_limits_of(const rt_exchange *x) { return rt_api_of(x)->limits; }

#endif
