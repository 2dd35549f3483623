/* turn.c: nodes decide side by side; of two that wrote the same one has to decide again. Where all of them write
 * the same all the time (what is under way in a queue with a limit, its pace, the lines of order keys) most would
 * decide in vain, and who is slow for ever. So a batch that met others is followed by one that is made alone: the
 * others wait until it is over, which makes sure that it comes to its end. If they meet again soon, more are made
 * alone the next time: nodes take turns then, each with all that has gathered meanwhile, and together do about what
 * one of them would.
 *
 * It is a courtesy that no correctness rests on. A node that was stopped in its turn is not waited for, and a
 * database that has no such locks does without. */
#include "os/clock.h"
#include "store/postgres/inside.h"

enum {
    SOON = 2,         /* batches */
    LENGTH_MAX = 64,  /* batches */
    WITHOUT_MS = 5000 /* as long as the session of a node that was stopped lasts */
};

static rt_code take_turn(void *ctx, const PGresult *rows) {
    (void)rows;
    ((rt_pg_turn *)ctx)->given = true;
    return RT_OK;
}

void rt_pg_turn_ask(rt_pg *s) {
    rt_pg_turn *t = &s->turn;
    t->given = false;
    t->asked = s->can_turn && rt_mono_ms() >= t->without_ms;
    if (t->asked) rt_pg_send(&s->pipe, t->alone > 0 ? RT_SQL_TURN_ALONE : RT_SQL_TURN, NULL, take_turn, t);
}

void rt_pg_turn_over(rt_pg *s, rt_batch_end end) {
    rt_pg_turn *t = &s->turn;
    if (!t->asked) return;
    t->asked = false;
    if (end == RT_BATCH_CONFLICT && !t->given) {
        t->alone = 0;
        t->without_ms = rt_mono_ms() + WITHOUT_MS;
    } else if (t->alone > 0) {
        t->alone--;
    } else if (end != RT_BATCH_CONFLICT) {
        t->since++;
    } else {
        const bool again = t->length > 0 && t->since <= SOON;
        t->length = !again ? 1 : t->length < LENGTH_MAX ? t->length * 2 : LENGTH_MAX;
        t->alone = t->length;
        t->since = 0;
    }
}
