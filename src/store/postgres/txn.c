#include "store/postgres/txn.h"

#include "os/clock.h"

static rt_code take_clock(void *ctx, const PGresult *rows) {
    rt_pg *s = ctx;
    if (PQntuples(rows) != 1) return RT_E_CORRUPT;
    rt_pg_clock_note(&s->clock, s->sent_ms, rt_boot_ms(), rt_pg_read_i64(rows, 0, 0));
    return RT_OK;
}

void rt_pg_begin(rt_pg *s) {
    if (s->batch.in_txn) return;
    s->batch.in_txn = true;
    s->sent_ms = rt_boot_ms();
    rt_pg_send(&s->pipe, RT_SQL_BEGIN, NULL, NULL, NULL);
    rt_pg_send(&s->pipe, RT_SQL_SETTINGS, NULL, take_clock, s);
    rt_pg_turn_ask(&s->turn, &s->pipe);
}

void rt_pg_batch_break(rt_pg *s, const rt_err *why) {
    if (s->batch.broken) return;
    s->batch.broken = true;
    s->batch.why = *why;
}

rt_code rt_pg_finish(rt_pg *s) {
    rt_pg_end(&s->pipe, s->server.statement_ms);
    rt_pg_wait(&s->pipe);
    if (s->pipe.code == RT_OK && !s->pipe.broken) return RT_OK;
    rt_pg_batch_break(s, &s->pipe.err);
    if (s->pipe.broken) rt_pg_link_lost(&s->link, 0, &s->pipe.err);
    return s->batch.why.code;
}

void rt_pg_roll_back(rt_pg *s) {
    if (s->pipe.conn == NULL) return;
    rt_pg_send(&s->pipe, RT_SQL_ROLLBACK, NULL, NULL, NULL);
    rt_pg_end(&s->pipe, s->server.statement_ms);
    (void)rt_pg_step(&s->pipe);
}
