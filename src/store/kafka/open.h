/* open.h: a node, from nothing to having all that Kafka holds and its part in the work; and the end of it. */
#ifndef RT_STORE_KAFKA_OPEN_H
#define RT_STORE_KAFKA_OPEN_H
#include "store/kafka/inside.h"

/* As rt_store_kafka_open, but for the operations: nobody can use it as a store yet. */
RT_MUST_USE rt_code rt_ks_open(const rt_store_kafka_config *cfg, rt_ks **out, rt_err *err);
void rt_ks_close(rt_ks *s);

#endif
