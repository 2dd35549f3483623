/* notes.h: what other threads send to the source's, and its sleep until then. */
#ifndef RT_SOURCE_KAFKA_NOTES_H
#define RT_SOURCE_KAFKA_NOTES_H
#include "source/kafka/inside.h"

#define RT_NEVER_MS INT64_MAX

void rt_notes_take(rt_source *s);
/* Until there is a note, or librdkafka has something if `client`. */
void rt_notes_sleep(rt_source *s, bool client, int64_t wait_ms);
/* Waits until the engine has answered for partitions that are revoked, at most `wait_ms`. */
void rt_notes_settle(rt_source *s, int64_t wait_ms);

#endif
