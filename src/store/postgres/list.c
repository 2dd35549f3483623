#include "store/postgres/list.h"

#include <string.h>

#include "store/postgres/take.h"

enum { TAKE_LIMIT = 32, READ_LIMIT = 128, LIMIT_MAX = 2048 };

/* ---- finding one --------------------------------------------------------------------------------------- */

static bool same_range(const rt_job_range *x, const rt_job_range *y) {
    return x->index == y->index && x->queue == y->queue && x->after == y->after &&
           x->after_queue == y->after_queue && x->after_due_ms == y->after_due_ms &&
           x->until_ms == y->until_ms && x->skip_hash == y->skip_hash && x->backwards == y->backwards &&
           x->to_take == y->to_take;
}

static bool same_list(const rt_pg_list *x, const rt_pg_list *y) {
    if (x->kind != y->kind) return false;
    switch (x->kind) {
    case RT_PG_LIST_JOBS: return same_range(&x->range, &y->range);
    case RT_PG_LIST_DOCS:
        return x->doc_kind == y->doc_kind && rt_str_eq(x->prefix, y->prefix) && rt_str_eq(x->after, y->after);
    case RT_PG_LIST_EXPIRIES: return x->until_ms == y->until_ms;
    }
    return false;
}

rt_pg_list *rt_pg_list_know(rt_pg *s, const rt_pg_list *like) {
    for (rt_pg_list *l = s->batch.lists; l != NULL; l = l->next) {
        if (same_list(l, like)) return l;
    }
    rt_pg_list *l = rt_arena_alloc(&s->batch.arena, sizeof *l);
    if (l == NULL) return NULL;
    *l = *like;
    l->store = s;
    const bool jobs = like->kind == RT_PG_LIST_JOBS;
    l->limit = jobs && like->range.to_take ? TAKE_LIMIT : READ_LIMIT;
    if (jobs && like->range.want > 0) l->limit = like->range.want < LIMIT_MAX ? like->range.want : LIMIT_MAX;
    if (like->kind == RT_PG_LIST_DOCS) {
        l->prefix = rt_arena_dup(&s->batch.arena, like->prefix);
        l->after = rt_arena_dup(&s->batch.arena, like->after);
        if (l->prefix.ptr == NULL || l->after.ptr == NULL) return NULL;
    }
    const rt_str prefix = like->kind == RT_PG_LIST_DOCS ? like->prefix : RT_STR_EMPTY;
    // Nothing in the database can be in a queue, or have a name, that has just come into being.
    const bool new_queue = jobs && like->range.queue != 0 && rt_pg_is_fresh(&s->numbers, like->range.queue);
    l->fetched = l->complete = new_queue || rt_pg_starts_fresh(&s->numbers, prefix);
    l->next = s->batch.lists;
    s->batch.lists = l;
    return l;
}

/* ---- pages --------------------------------------------------------------------------------------------- */

static bool keep_row(rt_pg_list *l, rt_pg_row row) {
    if (l->count == l->cap) {
        const size_t cap = l->cap * 2 + 32;
        rt_pg_row *grown = rt_arena_alloc(&l->store->batch.arena, cap * sizeof *grown);
        if (grown == NULL) return false;
        if (l->count > 0) memcpy(grown, l->rows, l->count * sizeof *grown);
        l->rows = grown;
        l->cap = cap;
    }
    l->rows[l->count++] = row;
    return true;
}

static void took_page(rt_pg_list *l, int rows) {
    l->fetched = true;
    l->complete = (uint32_t)rows < l->limit;
    if (l->limit < LIMIT_MAX) l->limit *= 2;
}

static bool takes_free(const rt_pg_list *l) {
    return l->kind == RT_PG_LIST_JOBS && l->range.index == RT_INDEX_FREE && l->range.to_take &&
           l->range.after == 0 && l->range.skip_hash == 0;
}

/* What began at the front is not complete before it was looked for from the start. */
static void look_behind(rt_pg_list *l, rt_id first) {
    if (!takes_free(l)) return;
    if (l->complete && l->front != 0) {
        l->fetched = l->complete = false;
        l->count = 0;
        l->front = 0;
        l->looked_behind = true;
    } else if (!l->complete && first != 0) {
        rt_pg_front_found(&l->store->fronts, l->range.queue, first, l->front == 0);
    }
}

/* The body that stands behind a job; a job that has none has no row there. */
static rt_code take_body(rt_pg *s, const PGresult *rows, int row) {
    const int first = RT_PG_TABLES[RT_PG_JOBS].columns_count;
    rt_pg_record *unused;
    if (PQnfields(rows) == first || PQgetisnull(rows, row, first)) return RT_OK;
    return rt_pg_take_row(s, RT_PG_BODIES, rows, row, first, &unused);
}

static rt_code take_page(void *ctx, const PGresult *rows) {
    rt_pg_list *l = ctx;
    const int count = PQntuples(rows);
    const bool jobs = l->kind == RT_PG_LIST_JOBS;
    const bool first_page = !l->fetched;
    for (int i = 0; i < count; i++) {
        rt_pg_record *r;
        rt_code code = rt_pg_take_row(l->store, jobs ? RT_PG_JOBS : RT_PG_DOCS, rows, i, 0, &r);
        if (code == RT_OK && jobs) code = take_body(l->store, rows, i);
        if (code != RT_OK) return code;
        l->last = jobs ? rt_pg_row_of_job(&l->range, r) : rt_pg_row_of_doc(r);
        if (!r->touched) {
            if (!keep_row(l, l->last)) return RT_E_NOMEM;
            continue;
        }
        if (!jobs) continue;
        // Where it stands in the database is where the next page begins.
        rt_pg_record there = {.part = r->part};
        if (!rt_pg_read_row(&RT_PG_TABLES[RT_PG_JOBS], rows, i, 0, &l->store->batch.arena, &there.job))
            return RT_E_CORRUPT;
        l->last = rt_pg_row_of_job(&l->range, &there);
        l->last.record = NULL;
    }
    took_page(l, count);
    look_behind(l, jobs && first_page && count > 0 ? (rt_id)rt_pg_read_i64(rows, 0, 0) : 0);
    return RT_OK;
}

/* Expiries have no page behind a page: more of them is all of them again. */
static rt_code take_expiries(void *ctx, const PGresult *rows) {
    rt_pg_list *l = ctx;
    const int count = PQntuples(rows);
    l->count = 0;
    for (int i = 0; i < count; i++) {
        const rt_expiry e = {
            .at_ms = rt_pg_read_i64(rows, i, 0),
            .kind = (rt_expiry_kind)rt_pg_read_i64(rows, i, 1),
            .id = (rt_id)rt_pg_read_i64(rows, i, 2),
            .doc_kind = (rt_doc_kind)rt_pg_read_i64(rows, i, 3),
            .doc_name = rt_arena_dup(&l->store->batch.arena, rt_pg_read_bytes(rows, i, 4)),
        };
        l->last = rt_pg_row_of_expiry(&e);
        if (e.doc_name.ptr == NULL || !keep_row(l, l->last)) return RT_E_NOMEM;
    }
    took_page(l, count);
    return RT_OK;
}

void rt_pg_list_send(rt_pg *s, rt_pg_list *l) {
    if (l->limit < l->asked) l->limit = l->asked < LIMIT_MAX ? l->asked : LIMIT_MAX;
    l->asked = 0;
    rt_pg_args_clear(&s->args);
    if (l->kind == RT_PG_LIST_EXPIRIES) {
        rt_pg_arg_i64(&s->args, l->until_ms);
        rt_pg_arg_i32(&s->args, (int32_t)l->limit);
        rt_pg_send(&s->pipe, RT_SQL_EXPIRIES, &s->args, take_expiries, l);
        return;
    }
    if (l->kind == RT_PG_LIST_DOCS) {
        rt_pg_docs_args(&s->args, l->doc_kind, l->prefix, l->fetched ? l->last.name : l->after, l->limit);
        rt_pg_send(&s->pipe, RT_SQL_DOCS, &s->args, take_page, l);
        return;
    }
    rt_job_range range = l->range;
    if (takes_free(l) && !l->fetched && !l->looked_behind)
        range.after = l->front = rt_pg_front_after(&s->fronts, range.queue);
    if (l->fetched) {
        range.after = l->last.c;
        range.after_due_ms = (int64_t)l->last.a;
        range.after_queue = l->last.a;
    }
    const int number = rt_pg_jobs_args(&s->args, &range, l->limit);
    rt_pg_send(&s->pipe, number, &s->args, take_page, l);
}
