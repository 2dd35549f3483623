/* ring.h: hands pointers from any number of threads to one, in order, bounded in count and in bytes.
 *
 * The consumer sleeps on rt_ring_fd; producers write to it only when it may be asleep. */
#ifndef RT_BASE_RING_H
#define RT_BASE_RING_H
#include <stdbool.h>
#include <stddef.h>

#include "base/code.h"

typedef struct rt_ring rt_ring;

/* Returns an owned ring of at most `count_max` (>= 1) pointers and `bytes_max` bytes; free with rt_ring_close. */
RT_MUST_USE rt_code rt_ring_open(size_t count_max, size_t bytes_max, rt_ring **out, rt_err *err);

/* Any thread. `bytes` is what `item` keeps alive. False: full, nothing was taken. */
RT_MUST_USE bool rt_ring_push(rt_ring *r, void *item, size_t bytes);

/* Consumer only. Takes up to `max` items, oldest first, and returns how many. */
size_t rt_ring_take(rt_ring *r, void *items[], size_t max);

/* Consumer only, before it sleeps. True: the ring is empty, and the next push makes rt_ring_fd readable.
 * False: there is something to take. */
bool rt_ring_sleep(rt_ring *r);
int rt_ring_fd(const rt_ring *r);
void rt_ring_wake(rt_ring *r);  /* any thread: makes it readable without a push */
void rt_ring_woken(rt_ring *r); /* consumer, after rt_ring_fd was readable */

/* What is still inside belongs to the caller: take it before. NULL is a no-op. */
void rt_ring_close(rt_ring *r);

#endif
