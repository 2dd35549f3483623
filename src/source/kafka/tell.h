/* tell.h: what is told to who opened the source, and to Kafka of offsets. */
#ifndef RT_SOURCE_KAFKA_TELL_H
#define RT_SOURCE_KAFKA_TELL_H
#include "source/kafka/inside.h"

/* `partition`, `offset`: -1 where they mean nothing. */
void rt_tell(rt_source *s, rt_source_news news, const char *topic, int32_t partition, int64_t offset,
             const char *text);
/* Tells Kafka how far partitions are that are revoked, or all of the others. */
void rt_tell_offsets(rt_source *s, bool revoked);

#endif
