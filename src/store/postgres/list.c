/* list.c: listings of the open batch. What the database has is fetched a page at a time and kept; what the batch wrote is
 * laid over it whenever it is read. */
#include <stdlib.h>
#include <string.h>

#include "store/postgres/inside.h"

enum { TAKE_LIMIT = 32, READ_LIMIT = 128, LIMIT_MAX = 2048 };

static rt_pg *store_of(rt_view *v) { return ((rt_pg_batch_view *)v)->store; }

/* ---- order --------------------------------------------------------------------------------------------- */

static int compare_rows(const rt_pg_row *x, const rt_pg_row *y) {
    if (x->a != y->a) return x->a < y->a ? -1 : 1;
    if (x->b != y->b) return x->b < y->b ? -1 : 1;
    if (x->c != y->c) return x->c < y->c ? -1 : 1;
    return rt_str_cmp(x->name, y->name);
}

static int by_place(const void *x, const void *y) { return compare_rows(x, y); }
static int by_place_back(const void *x, const void *y) { return compare_rows(y, x); }

static rt_pg_row row_of_job(const rt_job_range *range, rt_pg_record *r) {
    const bool due = range->index == RT_INDEX_DUE;
    const bool dead = range->index == RT_INDEX_DEAD && range->queue == 0;
    return (rt_pg_row){.a = due ? (uint64_t)r->job.due_ms : dead ? r->job.queue : 0,
                       .c = r->job.id,
                       .name = RT_STR_EMPTY,
                       .record = r};
}

static rt_pg_row row_of_doc(rt_pg_record *r) { return (rt_pg_row){.name = r->doc.name, .record = r}; }

static rt_pg_row row_of_expiry(const rt_expiry *e) {
    return (rt_pg_row){.a = (uint64_t)e->at_ms,
                       .b = (uint64_t)e->kind << 8 | (uint64_t)e->doc_kind,
                       .c = e->id,
                       .name = e->doc_name};
}

static rt_expiry expiry_of_row(const rt_pg_row *row) {
    return (rt_expiry){.at_ms = (int64_t)row->a,
                       .kind = (rt_expiry_kind)(row->b >> 8),
                       .id = row->c,
                       .doc_kind = (rt_doc_kind)(row->b & 0xff),
                       .doc_name = row->name};
}

static bool belongs(const rt_job *job, const rt_job_range *range) {
    const bool pull = (job->flags & RT_JOB_PULL) != 0;
    switch (range->index) {
    case RT_INDEX_READY: return job->state == RT_JOB_READY && job->id > range->after;
    case RT_INDEX_DUE:
        if (job->queue != range->queue || job->due_ms > range->until_ms) return false;
        if (job->state != RT_JOB_SCHEDULED && (pull || job->state != RT_JOB_LEASED)) return false;
        return job->due_ms > range->after_due_ms || (job->due_ms == range->after_due_ms && job->id > range->after);
    case RT_INDEX_FREE:
        return job->queue == range->queue && job->state == RT_JOB_FREE && job->id > range->after &&
               (range->skip_hash == 0 || job->key_hash != range->skip_hash);
    case RT_INDEX_ALL:
        if (!pull || job->queue != range->queue || job->state == RT_JOB_DEAD || job->state == RT_JOB_DONE) return false;
        return range->backwards ? range->after == 0 || job->id < range->after : job->id > range->after;
    case RT_INDEX_EVERY: return job->id > range->after;
    case RT_INDEX_DEAD:
        if (job->state != RT_JOB_DEAD) return false;
        if (range->queue != 0) return job->queue == range->queue && job->id > range->after;
        return job->queue > range->after_queue || (job->queue == range->after_queue && job->id > range->after);
    }
    return false;
}

/* ---- the database's part ------------------------------------------------------------------------------- */

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
    return l->kind == RT_PG_LIST_JOBS && l->range.index == RT_INDEX_FREE && l->range.to_take && l->range.after == 0 &&
           l->range.skip_hash == 0;
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
        rt_pg_front_found(l->store, l->range.queue, first, l->front == 0);
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
        l->last = jobs ? row_of_job(&l->range, r) : row_of_doc(r);
        if (!r->touched) {
            if (!keep_row(l, l->last)) return RT_E_NOMEM;
            continue;
        }
        rt_pg_record there = {.part = r->part}; // where it stands in the database is where the next page begins
        if (!jobs) continue;
        if (!rt_pg_read_row(&RT_PG_TABLES[RT_PG_JOBS], rows, i, 0, &l->store->batch.arena, &there.job))
            return RT_E_CORRUPT;
        l->last = row_of_job(&l->range, &there);
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
        l->last = row_of_expiry(&e);
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
    if (takes_free(l) && !l->fetched && !l->looked_behind) range.after = l->front = rt_pg_front_after(s, range.queue);
    if (l->fetched) {
        range.after = l->last.c;
        range.after_due_ms = (int64_t)l->last.a;
        range.after_queue = l->last.a;
    }
    const int number = rt_pg_jobs_args(&s->args, &range, l->limit);
    rt_pg_send(&s->pipe, number, &s->args, take_page, l);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

/* Where the batch's own records stand in the listing, in its order. */
typedef struct overlay {
    rt_pg_row *rows;
    size_t count, cap;
    bool failed;
} overlay;

static void lay(overlay *o, rt_pg_row row) {
    if (o->count == o->cap) {
        const size_t cap = o->cap * 2 + 64;
        rt_pg_row *grown = realloc(o->rows, cap * sizeof *grown);
        if (grown == NULL) {
            o->failed = true;
            return;
        }
        o->rows = grown;
        o->cap = cap;
    }
    o->rows[o->count++] = row;
}

static void lay_jobs(overlay *o, const rt_pg_list *l, const rt_pg_vector *touched) {
    for (size_t i = 0; i < touched->count; i++) {
        rt_pg_record *r = touched->at[i];
        if (r->there && belongs(&r->job, &l->range)) lay(o, row_of_job(&l->range, r));
    }
}

static void lay_docs(overlay *o, const rt_pg_list *l, const rt_pg_vector *touched) {
    for (size_t i = 0; i < touched->count; i++) {
        rt_pg_record *r = touched->at[i];
        if (!r->there || r->doc.kind != l->doc_kind || !rt_str_starts(r->doc.name, l->prefix)) continue;
        if (l->after.len == 0 || rt_str_cmp(r->doc.name, l->after) > 0) lay(o, row_of_doc(r));
    }
}

static void lay_expiry(overlay *o, const rt_pg_list *l, const rt_expiry *e) {
    if (e->at_ms > 0 && e->at_ms <= l->until_ms) lay(o, row_of_expiry(e));
}

static void lay_expiries(overlay *o, const rt_pg_list *l, const rt_pg_batch *b) {
    for (size_t i = 0; i < b->touched[RT_PG_JOBS].count; i++) {
        const rt_pg_record *r = b->touched[RT_PG_JOBS].at[i];
        const bool over = r->job.state == RT_JOB_DEAD || r->job.state == RT_JOB_DONE;
        const rt_expiry e = {
            .at_ms = r->job.expires_ms, .kind = RT_EXPIRY_JOB, .id = r->job.id, .doc_name = RT_STR_EMPTY};
        if (r->there && !over) lay_expiry(o, l, &e);
    }
    for (size_t i = 0; i < b->touched[RT_PG_LEASES].count; i++) {
        const rt_pg_record *r = b->touched[RT_PG_LEASES].at[i];
        const rt_expiry e = {
            .at_ms = r->lease.until_ms, .kind = RT_EXPIRY_LEASE, .id = r->lease.id, .doc_name = RT_STR_EMPTY};
        if (r->there) lay_expiry(o, l, &e);
    }
    for (size_t i = 0; i < b->touched[RT_PG_DOCS].count; i++) {
        const rt_pg_record *r = b->touched[RT_PG_DOCS].at[i];
        const rt_expiry e = {
            .at_ms = r->doc.expires_ms, .kind = RT_EXPIRY_DOC, .doc_kind = r->doc.kind, .doc_name = r->doc.name};
        if (r->there) lay_expiry(o, l, &e);
    }
}

/* The batch has written it, or it was read again since and is no longer what was listed. */
static bool is_stale(const rt_pg_list *l, const rt_pg_row *row) {
    if (row->record != NULL && row->record->touched) return true;
    if (l->kind == RT_PG_LIST_JOBS) return !belongs(&row->record->job, &l->range);
    if (l->kind == RT_PG_LIST_DOCS) return false;
    const rt_expiry e = expiry_of_row(row);
    const rt_pg_batch *b = &l->store->batch;
    const rt_pg_record *r = e.kind == RT_EXPIRY_JOB     ? rt_pg_find(b, RT_PG_JOBS, e.id)
                            : e.kind == RT_EXPIRY_LEASE ? rt_pg_find(b, RT_PG_LEASES, e.id)
                                                        : rt_pg_find_doc(b, e.doc_kind, e.doc_name);
    return r != NULL && r->touched;
}

typedef bool tell_row(void *ctx, const rt_pg_row *row);

/* Both parts in order. AGAIN: the reader wants more than was fetched. */
static rt_code merge(const rt_pg_list *l, const overlay *o, tell_row *tell, void *ctx) {
    const bool back = l->kind == RT_PG_LIST_JOBS && l->range.backwards;
    const size_t count = l->count; // a reader that lists the same again may have more fetched
    size_t at = 0;
    size_t over = 0;
    for (;;) {
        while (at < count && is_stale(l, &l->rows[at])) at++;
        const rt_pg_row *stored = at < count ? &l->rows[at] : NULL;
        const rt_pg_row *own = over < o->count ? &o->rows[over] : NULL;
        if (stored == NULL && own == NULL) return l->complete ? RT_OK : RT_E_AGAIN;
        int order = stored == NULL ? 1 : own == NULL ? -1 : compare_rows(stored, own);
        if (back && stored != NULL && own != NULL) order = -order;
        if (order > 0 && stored == NULL && !l->complete) {
            const int behind = compare_rows(own, &l->last);
            if (back ? behind < 0 : behind > 0) return RT_E_AGAIN;
        }
        if (!tell(ctx, order < 0 ? stored : own)) return RT_OK;
        if (order < 0) at++;
        else over++;
    }
}

static rt_code read_list(rt_pg *s, rt_pg_list *l, tell_row *tell, void *ctx) {
    if (!l->fetched) return RT_E_AGAIN;
    overlay o = {0};
    switch (l->kind) {
    case RT_PG_LIST_JOBS: lay_jobs(&o, l, &s->batch.touched[RT_PG_JOBS]); break;
    case RT_PG_LIST_DOCS: lay_docs(&o, l, &s->batch.touched[RT_PG_DOCS]); break;
    case RT_PG_LIST_EXPIRIES: lay_expiries(&o, l, &s->batch); break;
    }
    const bool back = l->kind == RT_PG_LIST_JOBS && l->range.backwards;
    if (o.count > 1) qsort(o.rows, o.count, sizeof *o.rows, back ? by_place_back : by_place);
    const rt_code code = o.failed ? RT_E_NOMEM : merge(l, &o, tell, ctx);
    free(o.rows);
    return code;
}

/* What cannot be told yet is wanted: `want` rows of it, 0: who knows, besides those that others want. */
static rt_code read_or_want(rt_pg *s, rt_pg_list *l, uint32_t want, tell_row *tell, void *ctx) {
    if (l == NULL) return RT_E_NOMEM;
    if (s->eager) { // the reader is told each row once only, so all rows must be there before
        rt_err err;
        while (!l->fetched || !l->complete) {
            if (!l->wanted) s->batch.lists_wanted++;
            l->wanted = true;
            if (rt_pg_load(s, &err) != RT_OK) return RT_E_UNAVAILABLE;
        }
    }
    const rt_code code = read_list(s, l, tell, ctx);
    if (code != RT_E_AGAIN) return code;
    if (!l->wanted) s->batch.lists_wanted++;
    l->wanted = true;
    l->asked += want;
    return RT_E_AGAIN;
}

/* ---- finding one --------------------------------------------------------------------------------------- */

static bool same_range(const rt_job_range *x, const rt_job_range *y) {
    return x->index == y->index && x->queue == y->queue && x->after == y->after && x->after_queue == y->after_queue &&
           x->after_due_ms == y->after_due_ms && x->until_ms == y->until_ms && x->skip_hash == y->skip_hash &&
           x->backwards == y->backwards && x->to_take == y->to_take;
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

static rt_pg_list *know_list(rt_pg *s, const rt_pg_list *like) {
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

/* ---- the view's functions ------------------------------------------------------------------------------ */

typedef struct telling {
    rt_each_job *job;
    rt_each_doc *doc;
    rt_each_expiry *expiry;
    void *ctx;
} telling;

static bool tell_job(void *ctx, const rt_pg_row *row) {
    const telling *t = ctx;
    return t->job(t->ctx, &row->record->job);
}

static bool tell_doc(void *ctx, const rt_pg_row *row) {
    const telling *t = ctx;
    return t->doc(t->ctx, &row->record->doc);
}

static bool tell_expiry(void *ctx, const rt_pg_row *row) {
    const telling *t = ctx;
    const rt_expiry e = expiry_of_row(row);
    return t->expiry(t->ctx, &e);
}

rt_code rt_pg_batch_jobs(rt_view *v, const rt_job_range *range, rt_each_job *each, void *ctx) {
    rt_pg *s = store_of(v);
    const rt_pg_list like = {.kind = RT_PG_LIST_JOBS, .range = *range};
    telling t = {.job = each, .ctx = ctx};
    return read_or_want(s, know_list(s, &like), range->want, tell_job, &t);
}

rt_code rt_pg_batch_docs(rt_view *v, rt_doc_kind kind, rt_str prefix, rt_str after, rt_each_doc *each, void *ctx) {
    rt_pg *s = store_of(v);
    const rt_pg_list like = {.kind = RT_PG_LIST_DOCS, .doc_kind = kind, .prefix = prefix, .after = after};
    telling t = {.doc = each, .ctx = ctx};
    return read_or_want(s, know_list(s, &like), 0, tell_doc, &t);
}

rt_code rt_pg_batch_expiries(rt_view *v, int64_t until_ms, rt_each_expiry *each, void *ctx) {
    rt_pg *s = store_of(v);
    const rt_pg_list like = {.kind = RT_PG_LIST_EXPIRIES, .until_ms = until_ms};
    telling t = {.expiry = each, .ctx = ctx};
    return read_or_want(s, know_list(s, &like), 0, tell_expiry, &t);
}
