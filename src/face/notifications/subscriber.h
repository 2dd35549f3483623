/* subscriber.h: where notifications may go. Pure. */
#ifndef RT_FACE_NOTIFICATIONS_SUBSCRIBER_H
#define RT_FACE_NOTIFICATIONS_SUBSCRIBER_H
#include "base/str.h"

typedef struct rt_subscriber {
    bool mail; /* mailto: */
    rt_str host; /* of http and https, without brackets; lent from the URI */
} rt_subscriber;

/* `uri` is http:, https: or mailto:, whichever of them `types` ("http,https") admits, in characters that a request line may
 * hold, at most RT_URI_MAX bytes. RT_E_INVALID: err->msg is fit for the client. RT_E_NOMEM. */
RT_MUST_USE rt_code rt_subscriber_parse(rt_str uri, rt_str types, rt_subscriber *out, rt_err *err);

#endif
