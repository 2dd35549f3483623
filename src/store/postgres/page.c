/* page.c: listings straight from the database. A page is fetched whole before its reader is told, so that the reader may
 * read on over the same connection. */
#include <stdlib.h>
#include <string.h>

#include "store/postgres/inside.h"

enum { FIRST_PAGE = 128, PAGE_MAX = 2048, NAME_BOUND = RT_DOC_NAME_MAX + 1 };

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
    void (*read)(const PGresult *rows, int row, rt_arena *arena, void *record); /* NULL: as the part's table says */
} page;

static rt_code take_page(void *ctx, const PGresult *rows) {
    page *p = ctx;
    p->count = PQntuples(rows);
    p->records = calloc((size_t)p->count + 1, p->bytes);
    if (p->records == NULL) return RT_E_NOMEM;
    for (int i = 0; i < p->count; i++) {
        void *record = p->records + (size_t)i * p->bytes;
        if (p->read != NULL) p->read(rows, i, p->reader->arena, record);
        else if (!rt_pg_read_row(&RT_PG_TABLES[p->part], rows, i, 0, p->reader->arena, record)) return RT_E_CORRUPT;
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
    if (r->pipe->code == RT_OK || r->pipe->code == RT_E_NOMEM || r->pipe->code == RT_E_CORRUPT) return r->pipe->code;
    return RT_E_UNAVAILABLE;
}

static uint32_t next_limit(uint32_t limit) { return limit < PAGE_MAX ? limit * 4 : limit; }

rt_code rt_pg_get(rt_pg_reader *r, rt_pg_part part, uint64_t key, rt_doc_kind kind, rt_str name, void *record) {
    static const size_t BYTES[RT_PG_PART_COUNT] = {
        [RT_PG_JOBS] = sizeof(rt_job),        [RT_PG_QUEUES] = sizeof(rt_queue), [RT_PG_LEASES] = sizeof(rt_lease),
        [RT_PG_DOCS] = sizeof(rt_doc),        [RT_PG_EVENTS] = sizeof(rt_event), [RT_PG_BODIES] = sizeof(rt_pg_body),
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

rt_code rt_pg_page_jobs(rt_pg_reader *r, const rt_job_range *range, rt_each_job *each, void *ctx) {
    rt_job_range next = *range;
    next.to_take = false; // a reader takes nothing
    page p = {.reader = r, .part = RT_PG_JOBS, .bytes = sizeof(rt_job)};
    bool more = true;
    for (uint32_t limit = FIRST_PAGE; more; limit = next_limit(limit)) {
        const int number = rt_pg_jobs_args(&r->args, &next, limit);
        const rt_code code = fetch(r, number, &p);
        const rt_job *jobs = (const void *)p.records;
        more = code == RT_OK && (uint32_t)p.count == limit;
        for (int i = 0; code == RT_OK && i < p.count; i++) {
            next.after = jobs[i].id;
            next.after_due_ms = jobs[i].due_ms;
            next.after_queue = jobs[i].queue;
            if (!each(ctx, &jobs[i])) {
                more = false;
                break;
            }
        }
        free(p.records);
        if (code != RT_OK) return code;
    }
    return RT_OK;
}

rt_code rt_pg_page_docs(rt_pg_reader *r, rt_doc_kind kind, rt_str prefix, rt_str after, rt_each_doc *each, void *ctx) {
    page p = {.reader = r, .part = RT_PG_DOCS, .bytes = sizeof(rt_doc)};
    bool more = true;
    for (uint32_t limit = FIRST_PAGE; more; limit = next_limit(limit)) {
        rt_pg_docs_args(&r->args, kind, prefix, after, limit);
        const rt_code code = fetch(r, RT_SQL_DOCS, &p);
        const rt_doc *docs = (const void *)p.records;
        more = code == RT_OK && (uint32_t)p.count == limit;
        for (int i = 0; code == RT_OK && i < p.count; i++) {
            after = docs[i].name;
            if (!each(ctx, &docs[i])) {
                more = false;
                break;
            }
        }
        free(p.records);
        if (code != RT_OK) return code;
    }
    return RT_OK;
}

rt_code rt_pg_page_queues(rt_pg_reader *r, rt_id after, rt_each_queue *each, void *ctx) {
    page p = {.reader = r, .part = RT_PG_QUEUES, .bytes = sizeof(rt_queue)};
    bool more = true;
    for (uint32_t limit = FIRST_PAGE; more; limit = next_limit(limit)) {
        rt_pg_args_clear(&r->args);
        rt_pg_arg_i64(&r->args, (int64_t)after);
        rt_pg_arg_i64(&r->args, limit);
        const rt_code code = fetch(r, RT_SQL_QUEUES, &p);
        const rt_queue *queues = (const void *)p.records;
        more = code == RT_OK && (uint32_t)p.count == limit;
        for (int i = 0; code == RT_OK && i < p.count; i++) {
            after = queues[i].id;
            if (!each(ctx, &queues[i])) {
                more = false;
                break;
            }
        }
        free(p.records);
        if (code != RT_OK) return code;
    }
    return RT_OK;
}

rt_code rt_pg_page_leases(rt_pg_reader *r, rt_id after, rt_each_lease *each, void *ctx) {
    page p = {.reader = r, .part = RT_PG_LEASES, .bytes = sizeof(rt_lease)};
    bool more = true;
    for (uint32_t limit = FIRST_PAGE; more; limit = next_limit(limit)) {
        rt_pg_args_clear(&r->args);
        rt_pg_arg_i64(&r->args, (int64_t)after);
        rt_pg_arg_i64(&r->args, limit);
        const rt_code code = fetch(r, RT_SQL_LEASES, &p);
        const rt_lease *leases = (const void *)p.records;
        more = code == RT_OK && (uint32_t)p.count == limit;
        for (int i = 0; code == RT_OK && i < p.count; i++) {
            after = leases[i].id;
            if (!each(ctx, &leases[i])) {
                more = false;
                break;
            }
        }
        free(p.records);
        if (code != RT_OK) return code;
    }
    return RT_OK;
}

/* Pages stay small: a body may be a megabyte. */
rt_code rt_pg_page_bodies(rt_pg_reader *r, rt_id after, rt_each_body *each, void *ctx) {
    page p = {.reader = r, .part = RT_PG_BODIES, .bytes = sizeof(rt_pg_body)};
    bool more = true;
    while (more) {
        rt_pg_args_clear(&r->args);
        rt_pg_arg_i64(&r->args, (int64_t)after);
        rt_pg_arg_i64(&r->args, FIRST_PAGE);
        const rt_code code = fetch(r, RT_SQL_BODIES, &p);
        const rt_pg_body *bodies = (const void *)p.records;
        more = code == RT_OK && p.count == FIRST_PAGE;
        for (int i = 0; code == RT_OK && i < p.count; i++) {
            after = bodies[i].id;
            if (!each(ctx, bodies[i].id, bodies[i].bytes, (uint64_t)bodies[i].users)) {
                more = false;
                break;
            }
        }
        free(p.records);
        if (code != RT_OK) return code;
    }
    return RT_OK;
}

rt_code rt_pg_page_events(rt_pg_reader *r, uint64_t after_seq, rt_each_event *each, void *ctx) {
    page p = {.reader = r, .part = RT_PG_EVENTS, .bytes = sizeof(rt_event)};
    bool more = true;
    for (uint32_t limit = FIRST_PAGE; more; limit = next_limit(limit)) {
        rt_pg_args_clear(&r->args);
        rt_pg_arg_i64(&r->args, (int64_t)after_seq);
        rt_pg_arg_i64(&r->args, limit);
        const rt_code code = fetch(r, RT_SQL_EVENTS, &p);
        const rt_event *events = (const void *)p.records;
        more = code == RT_OK && (uint32_t)p.count == limit;
        for (int i = 0; code == RT_OK && i < p.count; i++) {
            after_seq = events[i].seq;
            if (!each(ctx, &events[i])) {
                more = false;
                break;
            }
        }
        free(p.records);
        if (code != RT_OK) return code;
    }
    return RT_OK;
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

/* Each page is all of them from the first: their order has no simple place to go on from, and readers stop early. */
rt_code rt_pg_page_expiries(rt_pg_reader *r, int64_t until_ms, rt_each_expiry *each, void *ctx) {
    page p = {.reader = r, .bytes = sizeof(rt_expiry), .read = read_expiry};
    int told = 0;
    bool more = true;
    for (uint32_t limit = FIRST_PAGE; more; limit *= 4) {
        rt_pg_args_clear(&r->args);
        rt_pg_arg_i64(&r->args, until_ms);
        rt_pg_arg_i32(&r->args, (int32_t)limit);
        const rt_code code = fetch(r, RT_SQL_EXPIRIES, &p);
        const rt_expiry *expiries = (const void *)p.records;
        more = code == RT_OK && (uint32_t)p.count == limit && limit < 1u << 28;
        for (; code == RT_OK && told < p.count; told++) {
            if (!each(ctx, &expiries[told])) {
                more = false;
                break;
            }
        }
        free(p.records);
        if (code != RT_OK) return code;
    }
    return RT_OK;
}

static void read_wake(const PGresult *rows, int row, rt_arena *arena, void *record) {
    (void)arena;
    rt_wake *w = record;
    *w = (rt_wake){.queue = (rt_id)rt_pg_read_i64(rows, row, 0), .due_ms = rt_pg_read_i64(rows, row, 1)};
}

rt_code rt_pg_page_wakes(rt_pg_reader *r, rt_id after_queue, rt_each_wake *each, void *ctx) {
    page p = {.reader = r, .bytes = sizeof(rt_wake), .read = read_wake};
    bool more = true;
    for (uint32_t limit = FIRST_PAGE; more; limit = next_limit(limit)) {
        rt_pg_args_clear(&r->args);
        rt_pg_arg_i64(&r->args, (int64_t)after_queue);
        rt_pg_arg_i32(&r->args, (int32_t)limit);
        const rt_code code = fetch(r, RT_SQL_WAKES, &p);
        const rt_wake *wakes = (const void *)p.records;
        more = code == RT_OK && (uint32_t)p.count == limit;
        for (int i = 0; code == RT_OK && i < p.count; i++) {
            after_queue = wakes[i].queue;
            if (!each(ctx, &wakes[i])) {
                more = false;
                break;
            }
        }
        free(p.records);
        if (code != RT_OK) return code;
    }
    return RT_OK;
}
