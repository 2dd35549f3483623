/* queue_metadata.h: Zaqar's queue metadata: free JSON with some reserved keys that mean something. */
#ifndef RT_FACE_NOTIFICATIONS_QUEUE_METADATA_H
#define RT_FACE_NOTIFICATIONS_QUEUE_METADATA_H
#include <jansson.h>

#include "engine/messages/metadata.h"
#include "face/notifications/limits.h"

/* What clients see of metadata beside their own: reserved keys, which have a value also where none is stored. Topics have
 * fewer of them. A reserved key may be removed or replaced though it is absent. */
typedef struct rt_metadata_shown {
    const rt_limits *limits;
    bool of_topic;
} rt_metadata_shown;
rt_metadata_shown rt_metadata_shown_of(const rt_exchange *x);
bool rt_metadata_is_reserved(const char *key);
bool rt_metadata_is_reserved_of_topics(const char *key);

/* Checks the reserved keys of an object and fills *out with what the engine needs (not id and jobs); its strings live in
 * `arena`. RT_E_INVALID: *why is what Zaqar says, in the arena. RT_E_NOMEM. */
RT_MUST_USE rt_code rt_metadata_from_json(const json_t *json, const rt_limits *limits, rt_arena *arena, rt_metadata *out,
                                          rt_str *why);

/* `_retry_policy` of a queue's metadata or of a subscription's options. *given: there is one; an empty one is that of all
 * defaults. RT_E_INVALID and *why as above. RT_E_NOMEM. */
RT_MUST_USE rt_code rt_retry_policy_take(const json_t *json, rt_arena *arena, bool *given, rt_delivery_policy *out,
                                         rt_str *why);

/* Adds the metadata as a client sees it: what is stored, and the defaults of reserved keys that are absent or falsy.
 * `stored` is the text of an object ("{}" for a queue that is not there). False: it is none. */
bool rt_metadata_write(rt_buf *out, rt_str stored, rt_metadata_shown shown);

#endif
