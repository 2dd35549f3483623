#include "store/postgres/merge.h"

#include <stdlib.h>

#include "store/postgres/list.h"
#include "store/postgres/load.h"

/* Where the batch's own records stand in the listing, in its order. */
typedef struct overlay {
    rt_pg_row *rows;
    size_t count, cap;
    bool failed;
} overlay;

static int by_place(const void *x, const void *y) { return rt_pg_row_cmp(x, y); }
static int by_place_back(const void *x, const void *y) { return rt_pg_row_cmp(y, x); }

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
        if (r->there && rt_pg_row_is_in(&r->job, &l->range)) lay(o, rt_pg_row_of_job(&l->range, r));
    }
}

static void lay_docs(overlay *o, const rt_pg_list *l, const rt_pg_vector *touched) {
    for (size_t i = 0; i < touched->count; i++) {
        rt_pg_record *r = touched->at[i];
        if (!r->there || r->doc.kind != l->doc_kind || !rt_str_starts(r->doc.name, l->prefix)) continue;
        if (l->after.len == 0 || rt_str_cmp(r->doc.name, l->after) > 0) lay(o, rt_pg_row_of_doc(r));
    }
}

static void lay_expiry(overlay *o, const rt_pg_list *l, const rt_expiry *e) {
    if (e->at_ms > 0 && e->at_ms <= l->until_ms) lay(o, rt_pg_row_of_expiry(e));
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
        const rt_doc *doc = &r->doc;
        const rt_expiry e = {
            .at_ms = doc->expires_ms, .kind = RT_EXPIRY_DOC, .doc_kind = doc->kind, .doc_name = doc->name};
        if (r->there) lay_expiry(o, l, &e);
    }
}

/* The batch has written it, or it was read again since and is no longer what was listed. */
static bool is_stale(const rt_pg_list *l, const rt_pg_row *row) {
    if (row->record != NULL && row->record->touched) return true;
    if (l->kind == RT_PG_LIST_JOBS) return !rt_pg_row_is_in(&row->record->job, &l->range);
    if (l->kind == RT_PG_LIST_DOCS) return false;
    const rt_expiry e = rt_pg_row_expiry(row);
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
        int order = stored == NULL ? 1 : own == NULL ? -1 : rt_pg_row_cmp(stored, own);
        if (back && stored != NULL && own != NULL) order = -order;
        if (order > 0 && stored == NULL && !l->complete) {
            const int behind = rt_pg_row_cmp(own, &l->last);
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
    const rt_expiry e = rt_pg_row_expiry(row);
    return t->expiry(t->ctx, &e);
}

rt_code rt_pg_batch_jobs(rt_view *v, const rt_job_range *range, rt_each_job *each, void *ctx) {
    rt_pg *s = ((rt_pg_batch_view *)v)->store;
    const rt_pg_list like = {.kind = RT_PG_LIST_JOBS, .range = *range};
    telling t = {.job = each, .ctx = ctx};
    return read_or_want(s, rt_pg_list_know(s, &like), range->want, tell_job, &t);
}

rt_code rt_pg_batch_docs(rt_view *v, rt_doc_kind kind, rt_str prefix, rt_str after, rt_each_doc *each,
                         void *ctx) {
    rt_pg *s = ((rt_pg_batch_view *)v)->store;
    const rt_pg_list like = {.kind = RT_PG_LIST_DOCS, .doc_kind = kind, .prefix = prefix, .after = after};
    telling t = {.doc = each, .ctx = ctx};
    return read_or_want(s, rt_pg_list_know(s, &like), 0, tell_doc, &t);
}

rt_code rt_pg_batch_expiries(rt_view *v, int64_t until_ms, rt_each_expiry *each, void *ctx) {
    rt_pg *s = ((rt_pg_batch_view *)v)->store;
    const rt_pg_list like = {.kind = RT_PG_LIST_EXPIRIES, .until_ms = until_ms};
    telling t = {.expiry = each, .ctx = ctx};
    return read_or_want(s, rt_pg_list_know(s, &like), 0, tell_expiry, &t);
}
