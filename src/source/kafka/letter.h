/* letter.h: records on their way to the dead-letter topic; rt_source_outcome says how that went. */
#ifndef RT_SOURCE_KAFKA_LETTER_H
#define RT_SOURCE_KAFKA_LETTER_H
#include "source/kafka/inside.h"

/* Sends record `i` of the batch. False: no room now, or no memory. */
bool rt_letter_send(rt_partition *p, uint32_t i, bool bare);
/* Takes it off the list of those on their way and frees it. */
void rt_letter_free(rt_source *s, rt_letter *letter);

#endif
