/* numbers.h: numbers for ids and events: a pool of blocks from a sequence that all nodes share, so a node's
 * numbers are its own. They rise, and are fetched along with something else where that can be. */
#ifndef RT_STORE_POSTGRES_NODE_NUMBERS_H
#define RT_STORE_POSTGRES_NODE_NUMBERS_H
#include "store/postgres/wire/pipe.h"

/* Ids are a home (16 bits) and a number of the sequence. */
#define RT_PG_HOME (UINT64_C(1) << 48)
#define RT_PG_SEQUENCE_MASK (RT_PG_HOME - 1)

enum {
    RT_PG_BLOCKS_MAX = 32,
    RT_PG_SLOTS = 16 /* rows of a queue's sums, at most */
};

typedef struct rt_pg_numbers {
    struct {
        uint64_t next, end;
    } blocks[RT_PG_BLOCKS_MAX];
    uint32_t count, at;    /* blocks[at] is in use */
    uint32_t wants;        /* blocks that are fetched at a time; >= 1 */
    uint32_t taken, usual; /* numbers, by this batch and by the one before */
    uint64_t least;        /* none below: what was read is younger */
    struct {
        uint64_t from, end;
    } given[RT_PG_BLOCKS_MAX]; /* since the batch began: no record of the database can have them */
    uint32_t given_count;
    int64_t fetched_ms;    /* monotonic */
    int16_t slot;          /* which row of a queue's sums is ours; random before the first block */
    bool failed;           /* a number was given out that is none: what it is for must not be stored */
} rt_pg_numbers;

bool rt_pg_numbers_low(const rt_pg_numbers *n); /* worth fetching along with something else */
/* Adds that to the run. `n` is written when it is done. */
void rt_pg_numbers_send(rt_pg_numbers *n, rt_pg_pipe *pipe, rt_pg_args *args);
bool rt_pg_numbers_take(rt_pg_numbers *n, uint64_t *out); /* false: there are none left */
void rt_pg_numbers_wants_more(rt_pg_numbers *n); /* there were too few: more are fetched at a time */
void rt_pg_numbers_seen(rt_pg_numbers *n, uint64_t number);
void rt_pg_numbers_next(rt_pg_numbers *n);       /* a batch begins */

/* Given out since the batch began: an id, or what else came out of rt_pg_numbers_take. */
bool rt_pg_is_fresh(const rt_pg_numbers *n, uint64_t number);
bool rt_pg_starts_fresh(const rt_pg_numbers *n, rt_str name); /* the document's name begins with such an id */

#endif
