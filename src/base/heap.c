#include "base/heap.h"

#include <stdlib.h>

#include "base/code.h"

static bool before(const rt_heap_node *a, const rt_heap_node *b) {
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->tie < b->tie;
}

static void put(rt_heap *h, size_t place, rt_heap_node *node) {
    h->nodes[place] = node;
    node->place = place;
}

static void rise(rt_heap *h, rt_heap_node *node) {
    size_t place = node->place;
    while (place > 1 && before(node, h->nodes[place / 2])) {
        put(h, place, h->nodes[place / 2]);
        place /= 2;
    }
    put(h, place, node);
}

static void sink(rt_heap *h, rt_heap_node *node) {
    size_t place = node->place;
    for (;;) {
        size_t child = place * 2;
        if (child > h->count) break;
        if (child < h->count && before(h->nodes[child + 1], h->nodes[child])) child++;
        if (!before(h->nodes[child], node)) break;
        put(h, place, h->nodes[child]);
        place = child;
    }
    put(h, place, node);
}

static bool make_room(rt_heap *h) {
    if (h->count + 1 < h->cap) return true;
    const size_t cap = h->cap == 0 ? 64 : h->cap * 2;
    rt_heap_node **grown = realloc(h->nodes, cap * sizeof(rt_heap_node *));
    if (grown == NULL) return false;
    h->nodes = grown;
    h->cap = cap;
    return true;
}

bool rt_heap_set(rt_heap *h, rt_heap_node *node, int64_t at_ms) {
    if (node->place == 0) {
        if (!make_room(h)) return false;
        put(h, ++h->count, node);
    }
    RT_ASSERT(h->nodes[node->place] == node);
    node->at_ms = at_ms;
    rise(h, node);
    sink(h, node);
    return true;
}

void rt_heap_remove(rt_heap *h, rt_heap_node *node) {
    if (node->place == 0) return;
    RT_ASSERT(h->nodes[node->place] == node);
    rt_heap_node *last = h->nodes[h->count--];
    if (last != node) {
        put(h, node->place, last);
        rise(h, last);
        sink(h, last);
    }
    node->place = 0;
}

rt_heap_node *rt_heap_first(const rt_heap *h) { return h->count == 0 ? NULL : h->nodes[1]; }

void rt_heap_hasten(rt_heap *h, int64_t by_ms) {
    RT_ASSERT(by_ms >= 0);
    // The same for all, so that the order stays.
    for (size_t i = 1; i <= h->count; i++) {
        if (h->nodes[i]->at_ms != INT64_MAX) h->nodes[i]->at_ms -= by_ms;
    }
}

void rt_heap_deinit(rt_heap *h) {
    free(h->nodes);
    *h = (rt_heap){0};
}
