/* topics.h: the topics, made where they are missing, and looked at: a journal that forgets by itself would
 * lose jobs. */
#ifndef RT_STORE_KAFKA_TOPICS_H
#define RT_STORE_KAFKA_TOPICS_H
#include "store/kafka/inside.h"

/* Waits until the topics are there, and looks at them, and at who else is there if that matters. RT_OK:
 * s->partitions and what the copy is a copy of are known. */
RT_MUST_USE rt_code rt_ks_topics(rt_ks *s, rt_err *err);

#endif
