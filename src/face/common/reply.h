/* reply.h: replies in JSON. */
#ifndef RT_FACE_COMMON_REPLY_H
#define RT_FACE_COMMON_REPLY_H
#include <jansson.h>

#include "http/exchange.h"

/* Replies with the JSON and releases it. NULL: a problem, 503, out of memory. */
void rt_reply_json(rt_exchange *x, unsigned status, json_t *json);

#endif
