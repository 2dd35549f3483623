/* messages.h: posting, listing, reading, deleting and popping the messages of a queue. */
#ifndef RT_FACE_NOTIFICATIONS_MESSAGES_H
#define RT_FACE_NOTIFICATIONS_MESSAGES_H
#include "http/exchange.h"

void rt_messages_post(rt_exchange *x);
void rt_messages_list(rt_exchange *x);   /* reader; also by ids */
void rt_messages_delete_or_pop(rt_exchange *x);
void rt_messages_get(rt_exchange *x);
void rt_messages_delete_one(rt_exchange *x);

#endif
