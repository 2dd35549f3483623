/* deadline.h: things that wait with one and the same time limit. First in is first over, so all is O(1).
 * One thread at a time. */
#ifndef RT_HTTP_DEADLINE_H
#define RT_HTTP_DEADLINE_H
#include <stddef.h>
#include <stdint.h>

typedef struct rt_deadline rt_deadline;
typedef struct rt_deadlines {
    rt_deadline *first, *last;
    int64_t limit_ms; /* >= 0 */
} rt_deadlines;

/* Embedded in what waits; all zero: it is in no list. */
struct rt_deadline {
    rt_deadline *before, *after;
    rt_deadlines *list;
    int64_t at_mono_ms;
};

/* Takes `d` out of the list it is in, if any, and has it wait in `list` from now on. */
void rt_deadline_set(rt_deadlines *list, rt_deadline *d, int64_t now_mono_ms);
void rt_deadline_clear(rt_deadline *d); /* takes it out of its list, if any */
/* The first whose time is over (it stays in the list), or NULL. */
rt_deadline *rt_deadlines_over(const rt_deadlines *list, int64_t now_mono_ms);
/* When the first is over; INT64_MAX: the list is empty. */
int64_t rt_deadlines_next_ms(const rt_deadlines *list);

#endif
