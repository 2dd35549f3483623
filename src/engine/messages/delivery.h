/* delivery.h: which policy governs what a subscription is sent. How a delivery lives is rt_delivery_life (engine/life.h). */
#ifndef RT_ENGINE_MESSAGES_DELIVERY_H
#define RT_ENGINE_MESSAGES_DELIVERY_H
#include "engine/messages/subscription.h"

/* The policy that governs a subscription now: its own, the queue's, or the defaults; the queue's alone when that says
 * ignore_subscription_override. `queue` NULL: the queue is gone or has no metadata. Never merged key by key. */
rt_delivery_policy rt_delivery_policy_of(const rt_subscription *s, const rt_metadata *queue);

#endif
