/* confirmation.h: asking a subscriber whether it wants what it will get, and saying good-bye. */
#ifndef RT_FACE_NOTIFICATIONS_CONFIRMATION_H
#define RT_FACE_NOTIFICATIONS_CONFIRMATION_H
#include "engine/messages/subscription.h"
#include "face/common/api.h"

typedef enum rt_confirmation_kind { RT_CONFIRMATION_ASK, RT_CONFIRMATION_GOODBYE } rt_confirmation_kind;

/* The JSON that is posted to the subscriber, in the arena: what it is asked, and the pre-signed URL (valid until
 * `expires_ms`) by which it answers. ptr NULL: out of memory. */
rt_str rt_confirmation_write(const rt_api *api, rt_confirmation_kind kind, rt_str project, rt_str queue, rt_id subscription,
                             int64_t expires_ms, rt_arena *arena);

#endif
