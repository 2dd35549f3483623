/* confirmation.h: asking a subscriber whether it wants what it will get, and saying good-bye. */
#ifndef RT_FACE_NOTIFICATIONS_CONFIRMATION_H
#define RT_FACE_NOTIFICATIONS_CONFIRMATION_H
#include "engine/messages/subscription.h"
#include "face/common/api.h"

typedef enum rt_confirmation_kind { RT_CONFIRMATION_ASK, RT_CONFIRMATION_GOODBYE } rt_confirmation_kind;

typedef struct rt_confirmation {
    rt_confirmation_kind kind;
    rt_str project, queue, path; /* path: rt_about_path */
    rt_id subscription;
    int64_t expires_ms;          /* of the pre-signed URL by which the subscriber answers */
} rt_confirmation;

/* The JSON that is posted to the subscriber, in the arena: what it is asked, and that URL. ptr NULL: out of memory. */
rt_str rt_confirmation_write(const rt_api *api, const rt_confirmation *c, rt_arena *arena);

#endif
