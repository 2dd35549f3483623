/* ledger.h: what taking in the journal needs to remember beside the records: how far, who joined, who is
 * fenced, which lines counted last. It moves with the records, so each node has the same one at the same
 * place. Pure. */
#ifndef RT_STORE_KAFKA_LINES_LEDGER_H
#define RT_STORE_KAFKA_LINES_LEDGER_H
#include "base/pack.h"

enum {
    RT_LEDGER_FENCES_MAX = 256, /* the oldest goes: what it fences has stale versions as well */
    RT_LEDGER_WRITERS_MAX = 64  /* who has written nothing for longest goes */
};

typedef struct rt_fence {
    uint64_t node;
    uint32_t epoch; /* what the node wrote under a lower one, and stands behind the fence, does not count */
} rt_fence;

/* So that a node whose copy is made again from behind its last line learns what became of that. */
typedef struct rt_writer {
    uint64_t node;
    uint64_t no; /* of its last line that counted */
} rt_writer;

typedef struct rt_ledger {
    uint32_t tag;      /* 0: not born yet */
    int64_t position;  /* offset of the next record to take in */
    int64_t from;      /* <= position: where large lines begin that have not ended */
    int64_t cut;       /* <= position: everything before is in the retry topic */
    int64_t at_ms;     /* the latest time that a node has written */
    uint64_t counter;  /* of the largest number that is in a line; see rt_ledger_number */
    uint32_t joined;   /* nodes that ever did */
    uint32_t fences_count;
    rt_fence fences[RT_LEDGER_FENCES_MAX]; /* oldest first */
    uint32_t writers_count;
    rt_writer writers[RT_LEDGER_WRITERS_MAX]; /* who wrote last is last */
} rt_ledger;

void rt_ledger_init(rt_ledger *l);
void rt_ledger_encode(const rt_ledger *l, rt_buf *out);
RT_MUST_USE bool rt_ledger_decode(rt_str note, rt_ledger *out);

/* Where reading has to begin: at lines that have not ended, or that the retry topic does not have. */
static inline int64_t rt_ledger_start(const rt_ledger *l) { return l->from < l->cut ? l->from : l->cut; }

void rt_ledger_fence(rt_ledger *l, uint64_t node, uint32_t epoch);
bool rt_ledger_is_fenced(const rt_ledger *l, uint64_t node, uint32_t epoch);

/* A batch of that node counts. */
void rt_ledger_count_line(rt_ledger *l, uint64_t node, uint64_t no);
typedef enum rt_counted { RT_COUNTED_NOT, RT_COUNTED, RT_COUNTED_FORGOTTEN } rt_counted;
/* Did it, if it stands before `position`? Of a node's last line only. FORGOTTEN: too many others wrote. */
rt_counted rt_ledger_has_counted(const rt_ledger *l, uint64_t node, uint64_t no);

/* Ids and numbers of events. Each node has a slot, so that no two give out the same one; and counts on from
 * the largest number that it has seen, so that what is made later, knowing what was there, has a larger one,
 * whichever node makes it. */
enum { RT_LEDGER_SLOTS = 256 };
static inline uint64_t rt_ledger_number(uint64_t counter, uint32_t slot) {
    return counter * RT_LEDGER_SLOTS + slot;
}
/* The slot of the node whose JOIN is taken in. */
uint32_t rt_ledger_join(rt_ledger *l);

#endif
