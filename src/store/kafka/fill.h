/* fill.h: the copy made what Kafka holds, from where it is, or anew if lines that it needs are gone. */
#ifndef RT_STORE_KAFKA_FILL_H
#define RT_STORE_KAFKA_FILL_H
#include "store/kafka/inside.h"

/* Up to where the journal ends as this begins. RT_E_ABSENT: lines that it needed went while it was at it. */
RT_MUST_USE rt_code rt_ks_fill(rt_ks *s, rt_err *err);

#endif
