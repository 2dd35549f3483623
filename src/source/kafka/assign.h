/* assign.h: partitions come and go. */
#ifndef RT_SOURCE_KAFKA_ASSIGN_H
#define RT_SOURCE_KAFKA_ASSIGN_H
#include "source/kafka/inside.h"

void rt_assign_on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t *list,
                            void *opaque);
/* Frees what is revoked, except what the engine or the dead-letter topic still has. */
void rt_assign_sweep(rt_source *s);
void rt_assign_revoke_all(rt_source *s);

#endif
