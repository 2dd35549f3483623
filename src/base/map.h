/* map.h: an open-addressing hash table from u64 to pointer. Grows; never shrinks. One thread at a time. */
#ifndef RT_BASE_MAP_H
#define RT_BASE_MAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rt_map_slot {
    uint64_t key; /* 0 = empty */
    void *value;
} rt_map_slot;

typedef struct rt_map {
    rt_map_slot *slots;
    size_t cap, count; /* cap: 0 or a power of two */
} rt_map;

/* An all-zero rt_map is empty and ready. Keys are never 0; values never NULL and not owned by the map. */
void *rt_map_get(const rt_map *m, uint64_t key);         /* NULL: absent */
bool rt_map_put(rt_map *m, uint64_t key, void *value);   /* inserts or replaces; false: out of memory, unchanged */
void *rt_map_remove(rt_map *m, uint64_t key);            /* the value that was there, or NULL */
/* Walks all entries in no order that means anything: start with *at = 0; NULL at the end. No changes meanwhile. */
void *rt_map_next(const rt_map *m, size_t *at);
void rt_map_deinit(rt_map *m);

#endif
