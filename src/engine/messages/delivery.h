/* delivery.h: how deliveries and delayed messages live, and which policy governs what a subscription is sent. */
#ifndef RT_ENGINE_MESSAGES_DELIVERY_H
#define RT_ENGINE_MESSAGES_DELIVERY_H
#include "engine/common/life.h"
#include "engine/messages/subscription.h"

extern const rt_life rt_delivery_life;

/* The policy that governs a subscription now: its own, the queue's, or the defaults; the queue's alone when that says
 * ignore_subscription_override. `queue` NULL: the queue is gone or has no metadata. Never merged key by key. */
rt_delivery_policy rt_delivery_policy_of(const rt_subscription *s, const rt_metadata *queue);

#endif
