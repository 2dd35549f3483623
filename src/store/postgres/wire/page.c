#include "store/postgres/wire/page.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_PAGE = 128, PAGE_MAX = 2048, EXPIRIES_MAX = 1 << 27, NAME_BOUND = RT_DOC_NAME_MAX + 1 };

/* ---- parameters ---------------------------------------------------------------------------------------- */

static int number_of(const rt_job_range *range) {
    switch (range->index) {
    case RT_INDEX_READY: return RT_SQL_READY;
    case RT_INDEX_DUE: return RT_SQL_DUE;
    case RT_INDEX_FREE: return RT_SQL_FREE;
    case RT_INDEX_ALL: return range->backwards ? RT_SQL_ALL_BACK : RT_SQL_ALL;
    case RT_INDEX_DEAD: return range->queue == 0 ? RT_SQL_DEAD_ALL : RT_SQL_DEAD;
    case RT_INDEX_EVERY: return RT_SQL_EVERY;
    }
    return RT_SQL_READY;
}

int rt_pg_jobs_args(rt_pg_args *a, const rt_job_range *range, uint32_t limit) {
    const bool from_end = range->index == RT_INDEX_ALL && range->backwards && range->after == 0;
    const bool due = range->index == RT_INDEX_DUE;
    rt_pg_args_clear(a);
    rt_pg_arg_i64(a, (int64_t)range->queue);
    rt_pg_arg_i64(a, from_end ? INT64_MAX : (int64_t)range->after);
    rt_pg_arg_i64(a, due ? range->after_due_ms : (int64_t)range->after_queue);
    rt_pg_arg_i64(a, range->until_ms);
    rt_pg_arg_i64(a, (int64_t)range->skip_hash);
    rt_pg_arg_i32(a, (int32_t)limit);
    return number_of(range) + (range->to_take ? 1 : 0);
}

/* The first name that no longer starts with `prefix`; where there is none, one that is beyond all names. */
static rt_str end_of_prefix(rt_str prefix, char out[NAME_BOUND]) {
    size_t len = prefix.len < RT_DOC_NAME_MAX ? prefix.len : RT_DOC_NAME_MAX;
    if (len > 0) memcpy(out, prefix.ptr, len);
    while (len > 0 && (unsigned char)out[len - 1] == 0xff) len--;
    if (len > 0) {
        out[len - 1] = (char)((unsigned char)out[len - 1] + 1);
        return (rt_str){.ptr = out, .len = len};
    }
    memset(out, 0xff, NAME_BOUND);
    return (rt_str){.ptr = out, .len = NAME_BOUND};
}

void rt_pg_docs_args(rt_pg_args *a, rt_doc_kind kind, rt_str prefix, rt_str after, uint32_t limit) {
    char end[NAME_BOUND];
    rt_pg_args_clear(a);
    rt_pg_arg_i16(a, (int16_t)kind);
    rt_pg_arg_bytes(a, prefix);
    rt_pg_arg_bytes(a, after);
    rt_pg_arg_bytes(a, end_of_prefix(prefix, end));
    rt_pg_arg_i32(a, (int32_t)limit);
}

/* ---- pages --------------------------------------------------------------------------------------------- */

typedef struct page {
    rt_pg_reader *reader;
    rt_pg_part part;   /* rows that are no record have none */
    size_t bytes;      /* of one */
    char *records;
    int count;
    /* NULL: as the part's table says. */
    void (*read)(const PGresult *rows, int row, rt_arena *arena, void *record);
} page;

static rt_code take_page(void *ctx, const PGresult *rows) {
    page *p = ctx;
    p->count = PQntuples(rows);
    p->records = calloc((size_t)p->count + 1, p->bytes);
    if (p->records == NULL) return RT_E_NOMEM;
    for (int i = 0; i < p->count; i++) {
        void *record = p->records + (size_t)i * p->bytes;
        if (p->read != NULL) p->read(rows, i, p->reader->arena, record);
        else if (!rt_pg_read_row(&RT_PG_TABLES[p->part], rows, i, 0, p->reader->arena, record))
            return RT_E_CORRUPT;
    }
    return RT_OK;
}

/* One page; p->records is the caller's to free, also on failure. */
static rt_code fetch(rt_pg_reader *r, int number, page *p) {
    p->records = NULL;
    p->count = 0;
    if (r->pipe->broken) return RT_E_UNAVAILABLE;
    rt_pg_wait(r->pipe); // what was sent before and not waited for
    rt_pg_send(r->pipe, number, &r->args, take_page, p);
    rt_pg_end(r->pipe, r->within_ms);
    rt_pg_wait(r->pipe);
    if (r->pipe->code == RT_OK || r->pipe->code == RT_E_NOMEM || r->pipe->code == RT_E_CORRUPT)
        return r->pipe->code;
    return RT_E_UNAVAILABLE;
}

rt_code rt_pg_get(rt_pg_reader *r, rt_pg_part part, uint64_t key, rt_doc_kind kind, rt_str name,
                  void *record) {
    static const size_t BYTES[RT_PG_PART_COUNT] = {
        [RT_PG_JOBS] = sizeof(rt_job),        [RT_PG_QUEUES] = sizeof(rt_queue),
        [RT_PG_LEASES] = sizeof(rt_lease),    [RT_PG_DOCS] = sizeof(rt_doc),
        [RT_PG_EVENTS] = sizeof(rt_event),    [RT_PG_BODIES] = sizeof(rt_pg_body),
        [RT_PG_COUNTERS] = sizeof(rt_pg_sums)};
    rt_pg_args_clear(&r->args);
    const void *one = part == RT_PG_DOCS ? (const void *)&(const rt_doc){.kind = kind, .name = name}
                                         : (const void *)&key; // a number comes first in all other records
    const rt_pg_table *t = &RT_PG_TABLES[part];
    if (part == RT_PG_DOCS) {
        rt_pg_arg_column(&r->args, &t->columns[0], &one, 1);
        rt_pg_arg_column(&r->args, &t->columns[1], &one, 1);
    } else {
        rt_pg_arg_i64s(&r->args, &(const int64_t){(int64_t)key}, 1);
    }
    page p = {.reader = r, .part = part, .bytes = BYTES[part]};
    rt_code code = fetch(r, RT_SQL_OF(part, RT_SQL_GET), &p);
    if (code == RT_OK && p.count == 0) code = RT_E_ABSENT;
    if (code == RT_OK) memcpy(record, p.records, p.bytes);
    free(p.records);
    return code;
}

/* ---- page after page ----------------------------------------------------------------------------------- */

/* A listing on its way: where it is, and who is told. */
typedef struct walk {
    rt_pg_reader *reader;
    page page;
    rt_job_range range; /* jobs: after them */
    uint64_t after;     /* other records with a number: behind it */
    rt_doc_kind kind;   /* documents … */
    rt_str prefix, name; /* … behind `name` */
    int64_t until_ms;
    uint32_t limit, limit_max;
    int told;           /* of a listing whose pages all begin at its beginning */
    bool whole;         /* it is such a one */
    const void *each;   /* rt_each_job, …, as `tell` knows */
    void *ctx;
} walk;

typedef int ask(walk *w); /* fills the parameters of the next page, and says which statement */
typedef bool tell(walk *w, const void *record); /* moves on behind it; false: enough */

static rt_code go(walk *w, ask *next, tell *one) {
    bool more = true;
    while (more) {
        rt_pg_args_clear(&w->reader->args);
        const rt_code code = fetch(w->reader, next(w), &w->page);
        more = code == RT_OK && (uint32_t)w->page.count == w->limit;
        for (int i = w->told; code == RT_OK && i < w->page.count; i++) {
            if (w->whole) w->told++;
            if (one(w, w->page.records + (size_t)i * w->page.bytes)) continue;
            more = false;
            break;
        }
        free(w->page.records);
        if (code != RT_OK) return code;
        if (w->limit < w->limit_max) w->limit *= 4;
    }
    return RT_OK;
}

/* `each` is a function that is kept as a pointer to one: functions of several kinds have no pointer in
 * common. */
static walk walk_of(rt_pg_reader *r, rt_pg_part part, size_t bytes, const void *each, void *ctx) {
    return (walk){.reader = r,
                  .page = {.reader = r, .part = part, .bytes = bytes},
                  .limit = FIRST_PAGE,
                  .limit_max = PAGE_MAX,
                  .each = each,
                  .ctx = ctx};
}

static int ask_jobs(walk *w) { return rt_pg_jobs_args(&w->reader->args, &w->range, w->limit); }

static bool tell_job(walk *w, const void *record) {
    const rt_job *job = record;
    w->range.after = job->id;
    w->range.after_due_ms = job->due_ms;
    w->range.after_queue = job->queue;
    return (*(rt_each_job *const *)w->each)(w->ctx, job);
}

rt_code rt_pg_page_jobs(rt_pg_reader *r, const rt_job_range *range, rt_each_job *each, void *ctx) {
    walk w = walk_of(r, RT_PG_JOBS, sizeof(rt_job), &each, ctx);
    w.range = *range;
    w.range.to_take = false; // a reader takes nothing
    return go(&w, ask_jobs, tell_job);
}

static int ask_docs(walk *w) {
    rt_pg_docs_args(&w->reader->args, w->kind, w->prefix, w->name, w->limit);
    return RT_SQL_DOCS;
}

static bool tell_doc(walk *w, const void *record) {
    const rt_doc *doc = record;
    w->name = doc->name;
    return (*(rt_each_doc *const *)w->each)(w->ctx, doc);
}

rt_code rt_pg_page_docs(rt_pg_reader *r, rt_doc_kind kind, rt_str prefix, rt_str after, rt_each_doc *each,
                        void *ctx) {
    walk w = walk_of(r, RT_PG_DOCS, sizeof(rt_doc), &each, ctx);
    w.kind = kind;
    w.prefix = prefix;
    w.name = after;
    return go(&w, ask_docs, tell_doc);
}

/* Records of a number, behind the last one. */
static int ask_behind(walk *w, int number) {
    rt_pg_arg_i64(&w->reader->args, (int64_t)w->after);
    rt_pg_arg_i64(&w->reader->args, w->limit);
    return number;
}

static int ask_queues(walk *w) { return ask_behind(w, RT_SQL_QUEUES); }
static int ask_leases(walk *w) { return ask_behind(w, RT_SQL_LEASES); }
static int ask_bodies(walk *w) { return ask_behind(w, RT_SQL_BODIES); }
static int ask_events(walk *w) { return ask_behind(w, RT_SQL_EVENTS); }

static bool tell_queue(walk *w, const void *record) {
    const rt_queue *queue = record;
    w->after = queue->id;
    return (*(rt_each_queue *const *)w->each)(w->ctx, queue);
}

rt_code rt_pg_page_queues(rt_pg_reader *r, rt_id after, rt_each_queue *each, void *ctx) {
    walk w = walk_of(r, RT_PG_QUEUES, sizeof(rt_queue), &each, ctx);
    w.after = after;
    return go(&w, ask_queues, tell_queue);
}

static bool tell_lease(walk *w, const void *record) {
    const rt_lease *lease = record;
    w->after = lease->id;
    return (*(rt_each_lease *const *)w->each)(w->ctx, lease);
}

rt_code rt_pg_page_leases(rt_pg_reader *r, rt_id after, rt_each_lease *each, void *ctx) {
    walk w = walk_of(r, RT_PG_LEASES, sizeof(rt_lease), &each, ctx);
    w.after = after;
    return go(&w, ask_leases, tell_lease);
}

static bool tell_body(walk *w, const void *record) {
    const rt_pg_body *body = record;
    w->after = body->id;
    return (*(rt_each_body *const *)w->each)(w->ctx, body->id, body->bytes, (uint64_t)body->users);
}

rt_code rt_pg_page_bodies(rt_pg_reader *r, rt_id after, rt_each_body *each, void *ctx) {
    walk w = walk_of(r, RT_PG_BODIES, sizeof(rt_pg_body), &each, ctx);
    w.after = after;
    w.limit_max = FIRST_PAGE; // pages stay small: a body may be a megabyte
    return go(&w, ask_bodies, tell_body);
}

static bool tell_event(walk *w, const void *record) {
    const rt_event *event = record;
    w->after = event->seq;
    return (*(rt_each_event *const *)w->each)(w->ctx, event);
}

rt_code rt_pg_page_events(rt_pg_reader *r, uint64_t after_seq, rt_each_event *each, void *ctx) {
    walk w = walk_of(r, RT_PG_EVENTS, sizeof(rt_event), &each, ctx);
    w.after = after_seq;
    return go(&w, ask_events, tell_event);
}

static void read_expiry(const PGresult *rows, int row, rt_arena *arena, void *record) {
    rt_expiry *e = record;
    *e = (rt_expiry){
        .at_ms = rt_pg_read_i64(rows, row, 0),
        .kind = (rt_expiry_kind)rt_pg_read_i64(rows, row, 1),
        .id = (rt_id)rt_pg_read_i64(rows, row, 2),
        .doc_kind = (rt_doc_kind)rt_pg_read_i64(rows, row, 3),
        .doc_name = rt_arena_dup(arena, rt_pg_read_bytes(rows, row, 4)),
    };
}

static int ask_expiries(walk *w) {
    rt_pg_arg_i64(&w->reader->args, w->until_ms);
    rt_pg_arg_i32(&w->reader->args, (int32_t)w->limit);
    return RT_SQL_EXPIRIES;
}

static bool tell_expiry(walk *w, const void *record) {
    return (*(rt_each_expiry *const *)w->each)(w->ctx, record);
}

/* Each page is all of them from the first: their order has no simple place to go on from, and readers stop
 * early. */
rt_code rt_pg_page_expiries(rt_pg_reader *r, int64_t until_ms, rt_each_expiry *each, void *ctx) {
    walk w = walk_of(r, RT_PG_JOBS, sizeof(rt_expiry), &each, ctx);
    w.page.read = read_expiry;
    w.until_ms = until_ms;
    w.limit_max = EXPIRIES_MAX;
    w.whole = true;
    return go(&w, ask_expiries, tell_expiry);
}

static void read_wake(const PGresult *rows, int row, rt_arena *arena, void *record) {
    (void)arena;
    rt_wake *w = record;
    *w = (rt_wake){.queue = (rt_id)rt_pg_read_i64(rows, row, 0), .due_ms = rt_pg_read_i64(rows, row, 1)};
}

static int ask_wakes(walk *w) {
    rt_pg_arg_i64(&w->reader->args, (int64_t)w->after);
    rt_pg_arg_i32(&w->reader->args, (int32_t)w->limit);
    return RT_SQL_WAKES;
}

static bool tell_wake(walk *w, const void *record) {
    const rt_wake *wake = record;
    w->after = wake->queue;
    return (*(rt_each_wake *const *)w->each)(w->ctx, wake);
}

rt_code rt_pg_page_wakes(rt_pg_reader *r, rt_id after_queue, rt_each_wake *each, void *ctx) {
    walk w = walk_of(r, RT_PG_JOBS, sizeof(rt_wake), &each, ctx);
    w.page.read = read_wake;
    w.after = after_queue;
    return go(&w, ask_wakes, tell_wake);
}
