/* own.h: our own lines, from being written to being known to count, or not.
 *
 * A batch ends with its line: it has been written, and lines that came before it have not changed what it
 * rests on. If whether it arrived is not known, a fence is written: once that has come back, it is known what
 * stands before it, and nothing counts that comes behind it. */
#ifndef RT_STORE_KAFKA_OWN_H
#define RT_STORE_KAFKA_OWN_H
#include "store/kafka/inside.h"

/* Returns its number. Only when the one before it has its end. */
uint64_t rt_ks_write_line(rt_ks *s, rt_entry_kind kind, rt_str payload);
/* Waits until the line that was written last has an end, and takes it in. */
RT_MUST_USE rt_code rt_ks_settle_line(rt_ks *s, rt_err *err);

/* s->line, with room for what is only known when it is sent. Out of memory shows in s->line.failed. */
void rt_ks_begin_line(rt_ks *s);
/* s->line is on its way: RT_KS_SENT. */
void rt_ks_send_batch(rt_ks *s);
/* As far as it can go now towards the end of what was sent, without waiting. RT_KS_IDLE: it has one. */
void rt_ks_go_on(rt_ks *s);
void rt_ks_end_batch(rt_ks *s, rt_batch_end end);
void rt_ks_forget_batch(rt_ks *s); /* as if it had never begun */

#endif
