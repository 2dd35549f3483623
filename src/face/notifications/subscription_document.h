/* subscription_document.h: what a client says about a subscription, checked. */
#ifndef RT_FACE_NOTIFICATIONS_SUBSCRIPTION_DOCUMENT_H
#define RT_FACE_NOTIFICATIONS_SUBSCRIPTION_DOCUMENT_H
#include "engine/messages/subscription.h"
#include "face/notifications/errors.h"

typedef struct rt_subscription_document {
    rt_subscription said; /* uri, ttl_s and what the options say; strings in the exchange's arena */
    bool has_uri, has_ttl, has_options;
} rt_subscription_document;

/* Reads the request's body, in Zaqar's order of checks. `is_new`: a subscriber must be there, and what is left out has its
 * default; otherwise the body must say something. False: replied. */
bool rt_subscription_document_take(rt_exchange *x, bool is_new, rt_subscription_document *out);

#endif
