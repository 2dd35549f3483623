/* heap.h: a binary heap of things that wait for a time. Each knows its place, so that its time can change. */
#ifndef RT_BASE_HEAP_H
#define RT_BASE_HEAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Embedded in what waits. `place` is 0 when it is in no heap. */
typedef struct rt_heap_node {
    int64_t at_ms;
    uint64_t tie; /* equal times: the lower comes first, so that the order never depends on addresses */
    size_t place;
} rt_heap_node;

typedef struct rt_heap {
    rt_heap_node **nodes; /* nodes[1] is the first */
    size_t count, cap;
} rt_heap;

/* An all-zero rt_heap is empty and ready. Nodes are borrowed while they are in it. */
/* Puts in, or moves what is in it already, to `at_ms`. False: out of memory, unchanged. */
bool rt_heap_set(rt_heap *h, rt_heap_node *node, int64_t at_ms);
void rt_heap_remove(rt_heap *h, rt_heap_node *node); /* nothing if it is not in it */
rt_heap_node *rt_heap_first(const rt_heap *h);       /* NULL: empty */
/* Everything comes `by_ms` >= 0 earlier than it would have; INT64_MAX, which is never, stays. */
void rt_heap_hasten(rt_heap *h, int64_t by_ms);
void rt_heap_deinit(rt_heap *h);

/* Of two times. */
static inline int64_t rt_earlier(int64_t a_ms, int64_t b_ms) { return a_ms < b_ms ? a_ms : b_ms; }

#endif
