/* share.h: pre-signed URLs, made by POST …/share. What they open is signature.h's. */
#ifndef RT_FACE_NOTIFICATIONS_SHARE_H
#define RT_FACE_NOTIFICATIONS_SHARE_H
#include "http/exchange.h"

void rt_share_post(rt_exchange *x);

#endif
