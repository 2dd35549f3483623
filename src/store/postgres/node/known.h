/* known.h: what the open batch has read or written, by key. All of it goes with the batch.
 * No I/O; the engine's thread. */
#ifndef RT_STORE_POSTGRES_NODE_KNOWN_H
#define RT_STORE_POSTGRES_NODE_KNOWN_H
#include "base/map.h"
#include "store/postgres/wire/columns.h"

typedef struct rt_pg_record {
    rt_pg_part part;
    bool known;   /* read, or written by the batch */
    bool there;
    bool wanted;  /* by the next load */
    bool touched; /* written by the batch */
    bool dirty;   /* … and not yet sent */
    bool guarded; /* a change rests on its version */
    bool looked;  /* habit.h has taken note of it */
    bool recalled; /* known from memory.h: to be compared at the commit */
    bool lone;    /* body: not read, but one job used it when it was last written */
    bool made;    /* body: by the batch, and not yet sent */
    bool coming, named; /* body, while a change is compared: brought by it, used by it */
    uint64_t was; /* its version in the database; 0: not there */
    struct rt_pg_record *same_hash; /* the next document of this hash */
    union {
        rt_job job;
        rt_queue queue;
        rt_lease lease;
        rt_doc doc;
        rt_event event;
        struct { rt_pg_body body; int64_t more; /* users, not yet sent */ };
        struct { rt_pg_sums sums; rt_pg_sums more_sums; /* … */ };
    };
} rt_pg_record;

typedef struct rt_pg_vector {
    rt_pg_record **at; /* owned; the records are the batch's */
    size_t count, cap;
} rt_pg_vector;

/* All zero is ready. */
typedef struct rt_pg_batch {
    bool open;
    bool in_txn;  /* BEGIN is sent */
    bool dirty;   /* there is something to commit */
    bool broken;  /* it can only fail: `why` */
    bool shout;   /* other nodes may find something to do */
    bool holds;   /* others may wait for what it has locked */
    bool adopts;  /* it imports, and the store goes on where another one was: */
    uint32_t tag;
    uint64_t numbers_from; /* one sequence for ids and events: what both are below */
    rt_err why;
    rt_arena arena;
    rt_map records[RT_PG_PART_COUNT];
    rt_pg_vector touched[RT_PG_PART_COUNT], wanted[RT_PG_PART_COUNT];
    rt_pg_vector guarded, recalled;
    struct rt_pg_list *lists; /* list.h; in the arena */
    uint32_t lists_wanted;
} rt_pg_batch;

/* NULL or false: out of memory; rt_pg_find…: not known either. */
/* …know…: finds or makes. */
rt_pg_record *rt_pg_know(rt_pg_batch *b, rt_pg_part part, uint64_t key); /* not for documents */
rt_pg_record *rt_pg_find(const rt_pg_batch *b, rt_pg_part part, uint64_t key);
rt_pg_record *rt_pg_know_doc(rt_pg_batch *b, rt_doc_kind kind, rt_str name);
rt_pg_record *rt_pg_find_doc(const rt_pg_batch *b, rt_doc_kind kind, rt_str name);
bool rt_pg_push(rt_pg_vector *v, rt_pg_record *record);
bool rt_pg_touch(rt_pg_batch *b, rt_pg_record *record); /* it is about to be written */
bool rt_pg_want(rt_pg_batch *b, rt_pg_record *record);
void rt_pg_forget(rt_pg_batch *b);                      /* everything: the batch is over */
void rt_pg_known_deinit(rt_pg_batch *b);

void *rt_pg_value(rt_pg_record *record);                /* its job, queue, … */
uint64_t rt_pg_version(const rt_pg_record *record);
uint64_t rt_pg_key(const rt_pg_record *record);         /* of documents: their kind */
void rt_pg_settle_absent(rt_pg_record *record);         /* the database does not have it */

#endif
