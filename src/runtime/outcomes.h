/* outcomes.h: hands outcomes from executors to the engine's thread. What is accepted is never lost or
 * refused: room is reserved for every attempt that may be under way, and if that were ever not enough, the
 * executor waits. */
#ifndef RT_RUNTIME_OUTCOMES_H
#define RT_RUNTIME_OUTCOMES_H
#include "port/executor.h"

typedef struct rt_outcomes rt_outcomes;

/* Returns owned room for `max` (>= 1) outcomes; freed by rt_outcomes_close. */
RT_MUST_USE rt_code rt_outcomes_open(uint32_t max, rt_outcomes **out, rt_err *err);
/* Copies. Waits while there is no room, so the taking thread may only call it when it knows that there is some: for an
 * attempt that is under way there always is. Any thread. */
void rt_outcomes_put(rt_outcomes *o, const rt_outcome *outcome);
/* The taking thread. Up to `max` of them, oldest first; returns how many. */
size_t rt_outcomes_take(rt_outcomes *o, rt_outcome *out, size_t max);
/* The taking thread, before it sleeps. True: there are none, and the next makes rt_outcomes_fd readable. */
bool rt_outcomes_sleep(rt_outcomes *o);
int rt_outcomes_fd(const rt_outcomes *o);
void rt_outcomes_wake(rt_outcomes *o);  /* any thread: makes the descriptor readable */
void rt_outcomes_woken(rt_outcomes *o); /* the taking thread, after it was */
/* Nobody waits for room any more: what is put from now on is dropped, as by a crash. */
void rt_outcomes_shut(rt_outcomes *o);
void rt_outcomes_close(rt_outcomes *o); /* NULL is a no-op */

#endif
