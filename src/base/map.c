#include "base/map.h"

#include <stdlib.h>

#include "base/code.h"
#include "base/id.h"

enum { CAP_MIN = 16 };

static size_t home_of(const rt_map *m, uint64_t key) { return (size_t)rt_hash_u64(key) & (m->cap - 1); }

/* The slot that holds `key`, or the empty one where it would go. The table is never full. */
static rt_map_slot *find(const rt_map *m, uint64_t key) {
    size_t at = home_of(m, key);
    while (m->slots[at].key != 0 && m->slots[at].key != key) at = (at + 1) & (m->cap - 1);
    return &m->slots[at];
}

void *rt_map_get(const rt_map *m, uint64_t key) {
    RT_ASSERT(key != 0);
    if (m->count == 0) return NULL;
    return find(m, key)->value;
}

static bool grow(rt_map *m) {
    rt_map bigger = {.cap = m->cap == 0 ? CAP_MIN : m->cap * 2, .count = m->count};
    bigger.slots = calloc(bigger.cap, sizeof *bigger.slots);
    if (bigger.slots == NULL) return false;
    for (size_t i = 0; i < m->cap; i++) {
        if (m->slots[i].key != 0) *find(&bigger, m->slots[i].key) = m->slots[i];
    }
    free(m->slots);
    *m = bigger;
    return true;
}

bool rt_map_put(rt_map *m, uint64_t key, void *value) {
    RT_ASSERT(key != 0);
    RT_ASSERT(value != NULL);
    if (m->cap == 0 || (m->count + 1) * 4 > m->cap * 3) {
        if (!grow(m)) return false;
    }
    rt_map_slot *slot = find(m, key);
    if (slot->key == 0) m->count++;
    *slot = (rt_map_slot){.key = key, .value = value};
    return true;
}

void *rt_map_remove(rt_map *m, uint64_t key) {
    RT_ASSERT(key != 0);
    if (m->count == 0) return NULL;
    rt_map_slot *slot = find(m, key);
    if (slot->key == 0) return NULL;
    void *value = slot->value;
    // Close the gap: move up what probed past it, so that no search stops short (Knuth 6.4, algorithm R).
    size_t gap = (size_t)(slot - m->slots);
    for (size_t at = (gap + 1) & (m->cap - 1); m->slots[at].key != 0; at = (at + 1) & (m->cap - 1)) {
        const size_t home = home_of(m, m->slots[at].key);
        const size_t from_home = (at - home) & (m->cap - 1);
        const size_t from_gap = (at - gap) & (m->cap - 1);
        if (from_home < from_gap) continue;
        m->slots[gap] = m->slots[at];
        gap = at;
    }
    m->slots[gap] = (rt_map_slot){0};
    m->count--;
    return value;
}

void *rt_map_next(const rt_map *m, size_t *at) {
    while (*at < m->cap) {
        const rt_map_slot *slot = &m->slots[(*at)++];
        if (slot->key != 0) return slot->value;
    }
    return NULL;
}

void rt_map_deinit(rt_map *m) {
    free(m->slots);
    *m = (rt_map){0};
}
