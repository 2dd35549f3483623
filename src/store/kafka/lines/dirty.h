/* dirty.h: which records lines have changed that are not in the retry topic yet. Pure. */
#ifndef RT_STORE_KAFKA_LINES_DIRTY_H
#define RT_STORE_KAFKA_LINES_DIRTY_H
#include "base/map.h"
#include "store/kafka/lines/entry.h"

enum { RT_DIRTY_MAX = 1 << 20 }; /* records; with more, only what frees is taken */

typedef struct rt_dirty_key {
    rt_op_kind kind;
    uint64_t key;         /* id or seq; 0: a document */
    rt_doc_kind doc_kind;
    rt_str name;
    int64_t offset;       /* of the last line that changed it */
    struct rt_dirty_key *next, *same_hash;
} rt_dirty_key;

/* All zero: none. */
typedef struct rt_dirty {
    rt_map by_hash;
    rt_arena arena;
    rt_dirty_key *first;
    uint32_t count;
    bool incomplete; /* memory ran out: what it says must not be relied on */
} rt_dirty;

/* What the items of the batch at `offset` name. */
void rt_dirty_add(rt_dirty *d, rt_str items, int64_t offset);
/* Adds those of `from` whose offset is at least `least`. */
void rt_dirty_add_since(rt_dirty *d, const rt_dirty *from, int64_t least);
void rt_dirty_deinit(rt_dirty *d);

#endif
