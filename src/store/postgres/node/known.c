#include "store/postgres/node/known.h"

#include <stdlib.h>
#include <string.h>

enum { MAP_KEPT_MAX = 1 << 15 }; /* slots that are worth wiping instead of freeing */

static uint64_t hash_of_doc(rt_doc_kind kind, rt_str name) {
    const uint64_t hash = rt_hash_str(name) ^ rt_hash_u64((uint64_t)kind);
    return hash != 0 ? hash : 1;
}

static rt_pg_record *new_record(rt_pg_batch *b, rt_pg_part part, uint64_t key) {
    rt_pg_record *r = rt_arena_alloc(&b->arena, sizeof *r);
    if (r == NULL) return NULL;
    r->part = part;
    switch (part) {
    case RT_PG_JOBS: r->job.id = key; break;
    case RT_PG_QUEUES: r->queue.id = key; break;
    case RT_PG_LEASES: r->lease.id = key; break;
    case RT_PG_EVENTS: r->event.seq = key; break;
    case RT_PG_BODIES: r->body.id = key; break;
    case RT_PG_COUNTERS: r->sums.queue = r->more_sums.queue = key; break;
    case RT_PG_DOCS:
    case RT_PG_PART_COUNT: break;
    }
    return r;
}

/* Maps have no key 0, sums of queue 0 are those of all queues. */
static uint64_t key_of(rt_pg_part part, uint64_t key) { return part == RT_PG_COUNTERS ? ~key : key; }

rt_pg_record *rt_pg_find(const rt_pg_batch *b, rt_pg_part part, uint64_t key) {
    return rt_map_get(&b->records[part], key_of(part, key));
}

rt_pg_record *rt_pg_know(rt_pg_batch *b, rt_pg_part part, uint64_t key) {
    rt_pg_record *r = rt_pg_find(b, part, key);
    if (r != NULL) return r;
    r = new_record(b, part, key);
    return r != NULL && rt_map_put(&b->records[part], key_of(part, key), r) ? r : NULL;
}

static rt_pg_record *in_chain(rt_pg_record *r, rt_doc_kind kind, rt_str name) {
    while (r != NULL && (r->doc.kind != kind || !rt_str_eq(r->doc.name, name))) r = r->same_hash;
    return r;
}

rt_pg_record *rt_pg_find_doc(const rt_pg_batch *b, rt_doc_kind kind, rt_str name) {
    return in_chain(rt_map_get(&b->records[RT_PG_DOCS], hash_of_doc(kind, name)), kind, name);
}

rt_pg_record *rt_pg_know_doc(rt_pg_batch *b, rt_doc_kind kind, rt_str name) {
    const uint64_t hash = hash_of_doc(kind, name);
    rt_pg_record *first = rt_map_get(&b->records[RT_PG_DOCS], hash);
    rt_pg_record *r = in_chain(first, kind, name);
    if (r != NULL) return r;
    r = new_record(b, RT_PG_DOCS, 0);
    if (r == NULL) return NULL;
    r->doc.kind = kind;
    r->doc.name = rt_arena_dup(&b->arena, name);
    r->same_hash = first;
    return r->doc.name.ptr != NULL && rt_map_put(&b->records[RT_PG_DOCS], hash, r) ? r : NULL;
}

bool rt_pg_push(rt_pg_vector *v, rt_pg_record *record) {
    if (v->count == v->cap) {
        const size_t cap = v->cap * 2 + 64;
        rt_pg_record **grown = realloc(v->at, cap * sizeof *grown);
        if (grown == NULL) return false;
        v->at = grown;
        v->cap = cap;
    }
    v->at[v->count++] = record;
    return true;
}

bool rt_pg_touch(rt_pg_batch *b, rt_pg_record *record) {
    if (!record->touched && !rt_pg_push(&b->touched[record->part], record)) return false;
    record->touched = record->dirty = b->dirty = true;
    return true;
}

bool rt_pg_want(rt_pg_batch *b, rt_pg_record *record) {
    if (record->wanted) return true;
    record->wanted = rt_pg_push(&b->wanted[record->part], record);
    return record->wanted;
}

void *rt_pg_value(rt_pg_record *r) { return &r->job; } // all begin at the same place
_Static_assert(offsetof(rt_pg_record, job) == offsetof(rt_pg_record, body), "members of one union");

uint64_t rt_pg_version(const rt_pg_record *r) {
    switch (r->part) {
    case RT_PG_JOBS: return r->job.version;
    case RT_PG_QUEUES: return r->queue.version;
    case RT_PG_LEASES: return r->lease.version;
    case RT_PG_DOCS: return r->doc.version;
    case RT_PG_EVENTS:
    case RT_PG_BODIES:
    case RT_PG_COUNTERS:
    case RT_PG_PART_COUNT: break;
    }
    return 1;
}

uint64_t rt_pg_key(const rt_pg_record *r) {
    switch (r->part) {
    case RT_PG_JOBS: return r->job.id;
    case RT_PG_QUEUES: return r->queue.id;
    case RT_PG_LEASES: return r->lease.id;
    case RT_PG_DOCS: return r->doc.kind;
    case RT_PG_EVENTS: return r->event.seq;
    case RT_PG_BODIES: return r->body.id;
    case RT_PG_COUNTERS: return r->sums.queue;
    case RT_PG_PART_COUNT: break;
    }
    return 0;
}

void rt_pg_settle_absent(rt_pg_record *r) {
    r->known = true;
    r->there = r->part == RT_PG_COUNTERS; // no row, no jobs
    if (r->part == RT_PG_COUNTERS) r->sums = r->more_sums;
}

/* ---- the end of a batch -------------------------------------------------------------------------------- */

static void wipe(rt_map *m) {
    if (m->cap > MAP_KEPT_MAX) rt_map_deinit(m);
    else if (m->count > 0) memset(m->slots, 0, m->cap * sizeof *m->slots);
    m->count = 0;
}

void rt_pg_forget(rt_pg_batch *b) {
    for (int part = 0; part < RT_PG_PART_COUNT; part++) {
        wipe(&b->records[part]);
        b->touched[part].count = b->wanted[part].count = 0;
    }
    b->guarded.count = b->recalled.count = 0;
    b->lists = NULL;
    b->lists_wanted = 0;
    b->open = b->in_txn = b->dirty = b->broken = b->shout = b->holds = b->adopts = false;
    rt_arena_clear(&b->arena);
}

void rt_pg_known_deinit(rt_pg_batch *b) {
    for (int part = 0; part < RT_PG_PART_COUNT; part++) {
        rt_map_deinit(&b->records[part]);
        free(b->touched[part].at);
        free(b->wanted[part].at);
    }
    free(b->guarded.at);
    free(b->recalled.at);
    rt_arena_deinit(&b->arena);
}
