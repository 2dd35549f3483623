#include "store/postgres/load.h"

#include "store/postgres/list.h"
#include "store/postgres/take.h"
#include "store/postgres/txn.h"

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
    if (!b->in_txn) rt_pg_habits_want(&s->habits, b);
    taking takings[RT_PG_PART_COUNT];
    rt_pg_begin(s);
    bool good = true;
    for (int part = 0; part < RT_PG_PART_COUNT; part++)
        good = send_wanted(s, (rt_pg_part)part, &takings[part]) && good;
    for (rt_pg_list *l = b->lists; l != NULL; l = l->next) {
        if (l->wanted) rt_pg_list_send(s, l);
    }
    if (rt_pg_numbers_low(&s->numbers)) rt_pg_numbers_send(&s->numbers, &s->pipe, &s->args);
    rt_code code = rt_pg_finish(s);
    if (code == RT_OK && !good) code = rt_fail(&b->why, RT_E_NOMEM, 0, "records");
    settle_wanted(b, code == RT_OK);
    return code == RT_OK ? RT_OK : rt_fail(err, RT_E_UNAVAILABLE, 0, "%s", b->why.msg);
}
