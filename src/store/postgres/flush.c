#include "store/postgres/flush.h"

#include <errno.h>
#include <stdlib.h>

#include "store/postgres/txn.h"

enum {
    CHUNK_BYTES = 4 << 20, /* of one statement's parameters, about */
    CHUNK_RECORDS = 8192,
    RECORD_BYTES = 160     /* of one without its strings, about */
};

/* Records of one kind that are written in the same way. */
typedef struct group {
    rt_pg_record **records; /* sorted */
    size_t count;
} group;

/* ---- sorting ------------------------------------------------------------------------------------------- */

static int by_key(const void *x, const void *y) {
    const rt_pg_record *a = *(rt_pg_record *const *)x;
    const rt_pg_record *b = *(rt_pg_record *const *)y;
    if (rt_pg_key(a) != rt_pg_key(b)) return rt_pg_key(a) < rt_pg_key(b) ? -1 : 1;
    return a->part == RT_PG_DOCS ? rt_str_cmp(a->doc.name, b->doc.name) : 0;
}

typedef bool picks(const rt_pg_record *r);

static bool is_new(const rt_pg_record *r) { return r->dirty && r->was == 0 && r->there; }
static bool is_changed(const rt_pg_record *r) { return r->dirty && r->was > 0 && r->there; }
static bool is_gone(const rt_pg_record *r) { return r->dirty && r->was > 0 && !r->there; }
static bool is_old(const rt_pg_record *r) { return r->dirty && r->was > 0; }
static bool is_new_body(const rt_pg_record *r) { return r->dirty && r->made && r->there; }
/* Only one job used it, and that has ended. */
static bool is_ended_body(const rt_pg_record *r) {
    return r->dirty && !r->made && r->more == -1 && (r->known ? r->body.users == 0 : r->lone);
}
static bool is_used_body(const rt_pg_record *r) {
    return r->dirty && !r->made && r->more != 0 && !is_ended_body(r);
}
static bool is_left_body(const rt_pg_record *r) { return is_used_body(r) && r->more < 0; }
static bool is_read_recalled(const rt_pg_record *r) { return r->recalled && !r->touched; }
static bool is_recalled_job(const rt_pg_record *r) { return is_read_recalled(r) && r->part == RT_PG_JOBS; }
static bool is_recalled_lease(const rt_pg_record *r) { return is_read_recalled(r) && !is_recalled_job(r); }
static bool is_guarded(const rt_pg_record *r) { return r->guarded && !r->touched && r->there; }
static bool is_guarded_absent(const rt_pg_record *r) { return r->guarded && !r->touched && !r->there; }

static bool is_counted(const rt_pg_record *r) {
    const rt_pg_sums *m = &r->more_sums;
    const int64_t jobs = m->ready | m->scheduled | m->free | m->leased | m->dead | m->done;
    return r->dirty && (jobs | m->bytes | m->events) != 0;
}

static bool has(const rt_pg_vector *records, picks *wanted) {
    size_t at = 0;
    while (at < records->count && !wanted(records->at[at])) at++;
    return at < records->count;
}

static bool pick(rt_pg *s, const rt_pg_vector *from, picks *wanted, group *out) {
    *out = (group){.records = NULL};
    for (size_t i = 0; i < from->count; i++) out->count += wanted(from->at[i]);
    if (out->count == 0) return true;
    out->records = rt_arena_alloc(&s->batch.arena, out->count * sizeof *out->records);
    if (out->records == NULL) return false;
    size_t at = 0;
    for (size_t i = 0; i < from->count; i++) {
        if (wanted(from->at[i])) out->records[at++] = from->at[i];
    }
    qsort(out->records, out->count, sizeof *out->records, by_key);
    return true;
}

/* ---- sending ------------------------------------------------------------------------------------------- */

static size_t bytes_of(const rt_pg_record *r) {
    switch (r->part) {
    case RT_PG_DOCS: return RECORD_BYTES + r->doc.name.len + r->doc.value.len;
    case RT_PG_QUEUES: return RECORD_BYTES + r->queue.name.len;
    case RT_PG_EVENTS: return RECORD_BYTES + r->event.text.len;
    case RT_PG_BODIES: return RECORD_BYTES + r->body.bytes.len;
    case RT_PG_JOBS:
    case RT_PG_LEASES:
    case RT_PG_COUNTERS:
    case RT_PG_PART_COUNT: break;
    }
    return RECORD_BYTES;
}

/* How many of the group from `from` on go into one statement. */
static size_t chunk(const group *g, size_t from) {
    size_t bytes = 0;
    size_t count = 0;
    while (from + count < g->count && count < CHUNK_RECORDS && (count == 0 || bytes < CHUNK_BYTES))
        bytes += bytes_of(g->records[from + count++]);
    return count;
}

/* Columns first .. first + columns - 1 of `count` records. */
static bool add_columns(rt_pg *s, rt_pg_record **records, size_t count, int columns) {
    const rt_pg_table *t = &RT_PG_TABLES[records[0]->part];
    const void **values = malloc(count * sizeof *values);
    if (values == NULL) return false;
    for (size_t i = 0; i < count; i++) {
        const bool sums = records[i]->part == RT_PG_COUNTERS;
        values[i] = sums ? (void *)&records[i]->more_sums : rt_pg_value(records[i]);
    }
    for (int c = 0; c < columns; c++) rt_pg_arg_column(&s->args, &t->columns[c], values, count);
    free(values);
    return true;
}

typedef enum behind { NOTHING, WAS, MORE_USERS, SLOT } behind;

/* What comes behind the columns. */
static bool add_behind(rt_pg *s, rt_pg_record **records, size_t count, behind what) {
    if (what == SLOT) rt_pg_arg_i16(&s->args, s->numbers.slot);
    if (what == NOTHING || what == SLOT) return true;
    int64_t *numbers = malloc(count * sizeof *numbers);
    if (numbers == NULL) return false;
    for (size_t i = 0; i < count; i++) numbers[i] = what == WAS ? (int64_t)records[i]->was : records[i]->more;
    rt_pg_arg_i64s(&s->args, numbers, count);
    free(numbers);
    return true;
}

static bool send_group(rt_pg *s, const group *g, int number, int columns, behind what) {
    for (size_t from = 0; from < g->count;) {
        const size_t count = chunk(g, from);
        rt_pg_args_clear(&s->args);
        if (!add_columns(s, g->records + from, count, columns)) return false;
        if (!add_behind(s, g->records + from, count, what)) return false;
        rt_pg_send(&s->pipe, number, &s->args, NULL, NULL);
        from += count;
    }
    return true;
}

/* What is read must stay as it was until the commit. */
static bool send_guards(rt_pg *s) {
    group there;
    group absent;
    if (!pick(s, &s->batch.guarded, is_guarded, &there)) return false;
    if (!pick(s, &s->batch.guarded, is_guarded_absent, &absent)) return false;
    return send_group(s, &there, RT_SQL_GUARD, 2, WAS) &&
           send_group(s, &absent, RT_SQL_GUARD_ABSENT, 2, NOTHING) &&
           send_group(s, &absent, RT_SQL_GUARD_RELEASE, 2, NOTHING);
}

/* What was read from memory and is written is compared then. */
static bool send_recalled(rt_pg *s) {
    group g;
    if (!pick(s, &s->batch.recalled, is_recalled_job, &g)) return false;
    if (!send_group(s, &g, RT_SQL_OF(RT_PG_JOBS, RT_SQL_SAME), 1, WAS)) return false;
    if (!pick(s, &s->batch.recalled, is_recalled_lease, &g)) return false;
    return send_group(s, &g, RT_SQL_OF(RT_PG_LEASES, RT_SQL_SAME), 1, WAS);
}

static bool send_part(rt_pg *s, rt_pg_part part) {
    const rt_pg_vector *touched = &s->batch.touched[part];
    const rt_pg_table *t = &RT_PG_TABLES[part];
    group g;
    if (!pick(s, touched, is_gone, &g)) return false;
    if (!send_group(s, &g, RT_SQL_OF(part, RT_SQL_DELETE), t->keys_count, WAS)) return false;
    if (!pick(s, touched, is_changed, &g)) return false;
    if (!send_group(s, &g, RT_SQL_OF(part, RT_SQL_UPDATE), t->columns_count, WAS)) return false;
    if (!pick(s, touched, is_new, &g)) return false;
    return send_group(s, &g, RT_SQL_OF(part, RT_SQL_INSERT), t->columns_count, NOTHING);
}

static bool send_bodies(rt_pg *s) {
    const rt_pg_vector *touched = &s->batch.touched[RT_PG_BODIES];
    const rt_pg_table *t = &RT_PG_TABLES[RT_PG_BODIES];
    group g;
    if (!pick(s, touched, is_ended_body, &g)) return false;
    if (!send_group(s, &g, RT_SQL_BODIES_END, 1, NOTHING)) return false;
    if (!pick(s, touched, is_used_body, &g)) return false;
    if (!send_group(s, &g, RT_SQL_BODIES_LOCK, 1, NOTHING)) return false;
    group left;
    if (!pick(s, touched, is_left_body, &left)) return false;
    if (!send_group(s, &left, RT_SQL_BODIES_DROP, 1, MORE_USERS)) return false;
    if (!send_group(s, &g, RT_SQL_BODIES_COUNT, 1, MORE_USERS)) return false;
    if (!pick(s, touched, is_new_body, &g)) return false;
    return send_group(s, &g, RT_SQL_OF(RT_PG_BODIES, RT_SQL_INSERT), t->columns_count, NOTHING);
}

static bool send_counters(rt_pg *s) {
    group g;
    if (!pick(s, &s->batch.touched[RT_PG_COUNTERS], is_counted, &g)) return false;
    const int columns = RT_PG_TABLES[RT_PG_COUNTERS].columns_count;
    return send_group(s, &g, RT_SQL_OF(RT_PG_COUNTERS, RT_SQL_INSERT), columns, SLOT);
}

static void send_adopt(rt_pg *s) {
    if (!s->batch.adopts) return;
    rt_pg_args_clear(&s->args);
    rt_pg_arg_i64(&s->args, s->batch.tag);
    rt_pg_arg_i64(&s->args, (int64_t)s->batch.numbers_from);
    rt_pg_send(&s->pipe, RT_SQL_ADOPT, &s->args, NULL, NULL);
}

/* What goes is sent before what changes, so of documents that do either the order would not be that of their
 * keys. Who has never met others need not care. */
static bool send_docs_lock(rt_pg *s) {
    const rt_pg_vector *touched = &s->batch.touched[RT_PG_DOCS];
    if (s->turn.length == 0 || !has(touched, is_gone) || !has(touched, is_changed)) return true;
    group g;
    return pick(s, touched, is_old, &g) && send_group(s, &g, RT_SQL_DOCS_LOCK, 2, NOTHING);
}

/* Records in their order. Whoever waits out of that order holds others up who may hold him up, until the
 * database looks for deadlocks, a second later, and leases run out meanwhile: such waits end after a moment,
 * in a conflict. Jobs are locked as they are listed to be taken, and more of them than are taken in the end,
 * so nobody waits for jobs. */
static bool send_records(rt_pg *s) {
    if (s->batch.holds) rt_pg_send(&s->pipe, RT_SQL_IMPATIENT, NULL, NULL, NULL);
    if (!send_docs_lock(s) || !send_part(s, RT_PG_DOCS)) return false;
    if (!send_part(s, RT_PG_QUEUES) || !send_part(s, RT_PG_LEASES)) return false;
    const bool jobs = has(&s->batch.touched[RT_PG_JOBS], is_old);
    if (jobs && !s->batch.holds) rt_pg_send(&s->pipe, RT_SQL_IMPATIENT, NULL, NULL, NULL);
    if (!send_part(s, RT_PG_JOBS)) return false;
    if (jobs || s->batch.holds) rt_pg_send(&s->pipe, RT_SQL_PATIENT, NULL, NULL, NULL);
    return send_bodies(s) && send_part(s, RT_PG_EVENTS) && send_counters(s);
}

rt_code rt_pg_flush(rt_pg *s, rt_err *err) {
    rt_pg_begin(s);
    send_adopt(s);
    const bool good = send_guards(s) && send_recalled(s) && send_records(s);
    return good ? RT_OK : rt_fail(err, RT_E_NOMEM, ENOMEM, "out of memory");
}

/* ---- in the middle of a batch -------------------------------------------------------------------------- */

static void settle(rt_pg_record *r) {
    r->dirty = r->made = false;
    r->was = r->there ? rt_pg_version(r) : 0;
    if (r->part == RT_PG_BODIES) r->more = 0;
    if (r->part == RT_PG_COUNTERS) r->more_sums = (rt_pg_sums){.queue = r->sums.queue};
}

void rt_pg_flushed(rt_pg *s) {
    for (int part = 0; part < RT_PG_PART_COUNT; part++) {
        const rt_pg_vector *touched = &s->batch.touched[part];
        for (size_t i = 0; i < touched->count; i++) settle(touched->at[i]);
    }
    s->batch.guarded.count = 0; // locked now
    s->batch.recalled.count = 0; // compared
    s->batch.holds = true;
}
