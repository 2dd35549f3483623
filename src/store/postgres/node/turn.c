#include "store/postgres/node/turn.h"

#include "os/clock.h"

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

void rt_pg_turn_ask(rt_pg_turn *t, rt_pg_pipe *pipe) {
    t->given = false;
    t->asked = t->can && rt_mono_ms() >= t->without_ms;
    if (t->asked) rt_pg_send(pipe, t->alone > 0 ? RT_SQL_TURN_ALONE : RT_SQL_TURN, NULL, take_turn, t);
}

void rt_pg_turn_over(rt_pg_turn *t, rt_batch_end end) {
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
