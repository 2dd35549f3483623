/* client.h: the consumer: opening, topics, errors. */
#ifndef RT_SOURCE_KAFKA_CLIENT_H
#define RT_SOURCE_KAFKA_CLIENT_H
#include "source/kafka/inside.h"

/* Opens, asks for topics, subscribes, opens anew: whatever is to be done now. */
void rt_client_tend(rt_source *s, int64_t now_ms);
/* Rebalances and errors. */
void rt_client_poll(rt_source *s);
void rt_client_close(rt_source *s);

#endif
