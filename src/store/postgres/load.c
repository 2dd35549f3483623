/* load.c: everything that the batch's view did not know, in one round trip. */
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "store/postgres/inside.h"

/* ---- the transaction ----------------------------------------------------------------------------------- */

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
    rt_pg_turn_ask(s);
}

void rt_pg_batch_break(rt_pg *s, const rt_err *why) {
    if (s->batch.broken) return;
    s->batch.broken = true;
    s->batch.why = *why;
}

rt_code rt_pg_finish(rt_pg *s) {
    rt_pg_end(&s->pipe, s->statement_ms);
    rt_pg_wait(&s->pipe);
    if (s->pipe.code == RT_OK && !s->pipe.broken) return RT_OK;
    rt_pg_batch_break(s, &s->pipe.err);
    if (s->pipe.broken) rt_pg_link_lost(s, 0, &s->pipe.err);
    return s->batch.why.code;
}

/* ---- records ------------------------------------------------------------------------------------------- */

typedef struct taking {
    rt_pg *store;
    rt_pg_part part;
} taking;

static rt_code take_records(void *ctx, const PGresult *rows) {
    const taking *t = ctx;
    const int count = PQntuples(rows);
    for (int i = 0; i < count; i++) {
        rt_pg_record *record;
        const rt_code code = rt_pg_take_row(t->store, t->part, rows, i, 0, &record);
        if (code != RT_OK) return code;
    }
    return RT_OK;
}

static bool send_wanted(rt_pg *s, rt_pg_part part, taking *t) {
    const rt_pg_vector *wanted = &s->batch.wanted[part];
    if (wanted->count == 0) return true;
    const void **records = rt_arena_alloc(&s->batch.arena, wanted->count * sizeof *records);
    if (records == NULL) return false;
    for (size_t i = 0; i < wanted->count; i++) records[i] = rt_pg_value(wanted->at[i]);
    const rt_pg_table *table = &RT_PG_TABLES[part];
    rt_pg_args_clear(&s->args);
    for (int i = 0; i < table->keys_count; i++)
        rt_pg_arg_column(&s->args, &table->columns[i], records, wanted->count);
    *t = (taking){.store = s, .part = part};
    rt_pg_send(&s->pipe, RT_SQL_OF(part, RT_SQL_GET), &s->args, take_records, t);
    return true;
}

void rt_pg_settle_absent(rt_pg_record *r) {
    r->known = true;
    r->there = r->part == RT_PG_COUNTERS; // no row, no jobs
    if (r->part == RT_PG_COUNTERS) r->sums = r->more_sums;
}

/* What was asked for and did not come is not there. */
static void settle_wanted(rt_pg_batch *b, bool good) {
    for (int part = 0; part < RT_PG_PART_COUNT; part++) {
        for (size_t i = 0; i < b->wanted[part].count; i++) {
            rt_pg_record *r = b->wanted[part].at[i];
            r->wanted = false;
            if (good && !r->known) rt_pg_settle_absent(r);
        }
        b->wanted[part].count = 0;
    }
    for (rt_pg_list *l = b->lists; l != NULL; l = l->next) l->wanted = false;
    b->lists_wanted = 0;
}

rt_code rt_pg_load(rt_pg *s, rt_err *err) {
    rt_pg_batch *b = &s->batch;
    if (b->broken) return rt_fail(err, RT_E_UNAVAILABLE, 0, "%s", b->why.msg);
    size_t wanted = b->lists_wanted;
    for (int part = 0; part < RT_PG_PART_COUNT; part++) wanted += b->wanted[part].count;
    if (wanted == 0) return RT_OK;
    if (!b->in_txn) rt_pg_habits_want(s);
    taking takings[RT_PG_PART_COUNT];
    rt_pg_begin(s);
    bool good = true;
    for (int part = 0; part < RT_PG_PART_COUNT; part++) good = send_wanted(s, (rt_pg_part)part, &takings[part]) && good;
    for (rt_pg_list *l = b->lists; l != NULL; l = l->next) {
        if (l->wanted) rt_pg_list_send(s, l);
    }
    if (rt_pg_numbers_low(&s->numbers)) rt_pg_numbers_send(s);
    rt_code code = rt_pg_finish(s);
    if (code == RT_OK && !good) code = rt_fail(&b->why, RT_E_NOMEM, 0, "records");
    settle_wanted(b, code == RT_OK);
    return code == RT_OK ? RT_OK : rt_fail(err, RT_E_UNAVAILABLE, 0, "%s", b->why.msg);
}
