/* clock.h: the time, as those who write to one journal have it together; waiting, and being woken. */
#ifndef RT_STORE_KAFKA_CLOCK_H
#define RT_STORE_KAFKA_CLOCK_H
#include "store/kafka/inside.h"

/* Any thread: Unix time, the latest that a node has written if that is a little ahead of ours. */
int64_t rt_ks_now_ms(const rt_store *store);
/* A line says that it is so late. */
void rt_ks_note_time(rt_ks *s, int64_t at_ms);

/* Until something may have come, or so many ms are over. */
void rt_ks_wait(rt_ks *s, int64_t wait_ms);
/* Any thread: has the engine step again soon. */
void rt_ks_wake(const rt_ks *s);

#endif
