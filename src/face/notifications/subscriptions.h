/* subscriptions.h: who is told of a queue's messages. */
#ifndef RT_FACE_NOTIFICATIONS_SUBSCRIPTIONS_H
#define RT_FACE_NOTIFICATIONS_SUBSCRIPTIONS_H
#include "http/exchange.h"

void rt_subscriptions_post(rt_exchange *x);
void rt_subscriptions_list(rt_exchange *x); /* reader */
void rt_subscriptions_get(rt_exchange *x);
void rt_subscriptions_patch(rt_exchange *x);
void rt_subscriptions_delete(rt_exchange *x);
void rt_subscriptions_confirm(rt_exchange *x);

#endif
