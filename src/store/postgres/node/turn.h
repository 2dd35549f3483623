/* turn.h: nodes decide side by side; of two that wrote the same one has to decide again. Where all of them
 * write the same all the time (what is under way in a queue with a limit, its pace, the lines of order keys)
 * most would decide in vain, and who is slow for ever. So a batch that met others is followed by one that is
 * made alone: the others wait until it is over, which makes sure that it comes to its end. If they meet again
 * soon, more are made alone the next time: nodes take turns then, each with all that has gathered meanwhile,
 * and together do about what one of them would.
 *
 * It is a courtesy that no correctness rests on. A node that was stopped in its turn is not waited for, and a
 * database that has no such locks does without. */
#ifndef RT_STORE_POSTGRES_NODE_TURN_H
#define RT_STORE_POSTGRES_NODE_TURN_H
#include "store/postgres/wire/pipe.h"

typedef struct rt_pg_turn {
    bool can;            /* the database has such locks */
    bool asked, given;   /* by this batch, to it */
    uint32_t alone;      /* batches that are made alone from here on */
    uint32_t length;     /* how many they were the last time … */
    uint32_t since;      /* … and how many were made beside others since */
    int64_t without_ms;  /* monotonic: until then nobody is asked */
} rt_pg_turn;

/* Adds it to the run that begins the transaction. `t` is written when that is done. */
void rt_pg_turn_ask(rt_pg_turn *t, rt_pg_pipe *pipe);
void rt_pg_turn_over(rt_pg_turn *t, rt_batch_end end); /* the batch has ended */

#endif
