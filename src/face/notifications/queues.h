/* queues.h: /v2/queues, one queue and its metadata, statistics, purge. */
#ifndef RT_FACE_NOTIFICATIONS_QUEUES_H
#define RT_FACE_NOTIFICATIONS_QUEUES_H
#include "http/exchange.h"

void rt_queues_list(rt_exchange *x); /* reader */
void rt_queues_get(rt_exchange *x);
void rt_queues_put(rt_exchange *x);
void rt_queues_patch(rt_exchange *x);
void rt_queues_delete(rt_exchange *x);
void rt_queues_stats(rt_exchange *x); /* reader */
void rt_queues_purge(rt_exchange *x);

#endif
