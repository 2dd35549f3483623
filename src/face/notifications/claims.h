/* claims.h: taking messages for a while, keeping and releasing them. */
#ifndef RT_FACE_NOTIFICATIONS_CLAIMS_H
#define RT_FACE_NOTIFICATIONS_CLAIMS_H
#include "http/exchange.h"

void rt_claims_post(rt_exchange *x);
void rt_claims_get(rt_exchange *x);
void rt_claims_patch(rt_exchange *x);
void rt_claims_delete(rt_exchange *x);

#endif
