/* inside.h: the store of one node; and the files of this folder, each of which uses only those below it.
 *
 *   store.c      the port's operations
 *   open.c       opening and closing
 *   look.c       the open batch's view
 *   merge.c      … its listings: what the database has, with what the batch wrote laid over it
 *   tidy.c       history within its bounds
 *   apply.c      a change: compared, then noted
 *   batch.c      the life of a batch
 *   flush.c      what was noted, as statements
 *   load.c       fetching what is wanted
 *   list.c       listings, a page at a time; take.c: rows that were read, become known
 *   txn.c        the batch's transaction
 *   inside.h     this
 *   view.c       readers' views
 *   listen.c     what other nodes shout
 *   link.c       the engine's connection: made, lost, made again
 *   node/        what a node knows by itself: of the open batch, and from one batch to the next
 *   wire/        the tables, the statements, a connection and what is on its way over it: no thread */
#ifndef RT_STORE_POSTGRES_INSIDE_H
#define RT_STORE_POSTGRES_INSIDE_H
#include "store/postgres/listen.h"
#include "store/postgres/node/clock.h"
#include "store/postgres/node/front.h"
#include "store/postgres/node/habit.h"
#include "store/postgres/node/memory.h"
#include "store/postgres/node/numbers.h"
#include "store/postgres/node/turn.h"
#include "store/postgres/view.h"

enum { RT_PG_ENDS_MAX = 8 };

typedef struct rt_pg_history {
    bool looked;
    int64_t looked_ms;   /* monotonic */
    int64_t gone_seq;    /* none was left up to here … */
    int64_t gone_ms;     /* … a while ago; monotonic */
    int64_t oldest_ms;   /* of the oldest event there was; INT64_MAX: none */
    int64_t count;       /* about; with our own since */
} rt_pg_history;

typedef struct rt_pg_batch_view {
    rt_view base; /* first */
    struct rt_pg *store;
} rt_pg_batch_view;

typedef struct rt_pg_end_of {
    uint64_t no;
    rt_batch_end end;
    rt_err why;
} rt_pg_end_of;

typedef struct rt_pg {
    rt_store base; /* first */
    rt_pg_server server;
    rt_retention retention;
    bool eager;            /* the batch's view fetches by itself */
    bool can_shout;        /* the database has LISTEN */
    rt_arena life;
    rt_pg_clock clock;
    rt_pg_link link;
    rt_pg_listener listener;
    rt_pg_views views;

    /* From one batch to the next. */
    rt_pg_numbers numbers;
    rt_pg_habits habits;
    rt_pg_turn turn;
    rt_pg_memory memory;
    rt_pg_fronts fronts;
    rt_pg_history history;

    /* The batch. */
    rt_pg_pipe pipe;       /* the engine's connection */
    rt_pg_args args;
    int64_t sent_ms;       /* when the run was sent, boot time */
    rt_pg_batch batch;
    rt_pg_batch_view batch_view;
    rt_pg_reader reader;   /* over the engine's connection, in the batch's transaction */

    /* Its end. */
    bool committing;       /* a commit is on its way */
    bool unsure;           /* … or was, and its end is being found out */
    uint64_t commit_no;    /* of either */
    bool commit_shouts;    /* … has something for other nodes */
    rt_pg_end_of ends[RT_PG_ENDS_MAX]; /* wait for rt_store_poll, oldest first */
    uint32_t ends_count;
} rt_pg;

#endif
