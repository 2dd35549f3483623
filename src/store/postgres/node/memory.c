#include "store/postgres/node/memory.h"

enum { GENERATION_MAX = 4096 }; /* records; of the older of two generations all are forgotten at once */

typedef struct kept {
    union {
        rt_job job;
        rt_lease lease;
    };
    bool lone; /* job: nobody else uses its body */
} kept;

static rt_map *map_of(rt_pg_generation *g, rt_pg_part part) {
    return part == RT_PG_JOBS ? &g->jobs : &g->leases;
}

static void *take_out(rt_pg_memory *m, rt_pg_part part, uint64_t key) {
    void *older = rt_map_remove(map_of(&m->older, part), key);
    void *younger = rt_map_remove(map_of(&m->younger, part), key);
    return younger != NULL ? younger : older;
}

static void clear(rt_pg_generation *g) {
    rt_map_deinit(&g->jobs);
    rt_map_deinit(&g->leases);
    rt_arena_clear(&g->arena);
    g->count = 0;
}

static void age(rt_pg_memory *m) {
    clear(&m->older);
    const rt_pg_generation empty = m->older;
    m->older = m->younger;
    m->younger = empty;
}

/* Without memory it is read again, that is all. */
static void keep(rt_pg_memory *m, rt_pg_part part, uint64_t key, const kept *value) {
    if (m->younger.count == GENERATION_MAX) age(m);
    kept *k = rt_arena_alloc(&m->younger.arena, sizeof *k);
    if (k == NULL) return;
    *k = *value;
    if (rt_map_put(map_of(&m->younger, part), key, k)) m->younger.count++;
}

static void keep_job(rt_pg_memory *m, const rt_pg_batch *b, const rt_pg_record *r) {
    if (!r->there || r->job.state != RT_JOB_LEASED) return;
    const rt_pg_record *body = r->job.body == 0 ? NULL : rt_pg_find(b, RT_PG_BODIES, r->job.body);
    const bool lone = body != NULL && (body->known ? body->body.users == 1 : body->lone && body->more == 0);
    keep(m, RT_PG_JOBS, r->job.id, &(kept){.job = r->job, .lone = lone});
}

static void keep_lease(rt_pg_memory *m, const rt_pg_record *r) {
    if (r->there) keep(m, RT_PG_LEASES, r->lease.id, &(kept){.lease = r->lease});
}

static void keep_all(rt_pg_memory *m, const rt_pg_batch *b, const rt_pg_vector *records) {
    for (size_t i = 0; i < records->count; i++) {
        const rt_pg_record *r = records->at[i];
        (void)take_out(m, r->part, rt_pg_key(r));
        if (r->part == RT_PG_JOBS) keep_job(m, b, r);
        else keep_lease(m, r);
    }
}

void rt_pg_remember(rt_pg_memory *m, const rt_pg_batch *b) {
    if (b->adopts) return;
    keep_all(m, b, &b->recalled);
    keep_all(m, b, &b->touched[RT_PG_JOBS]);
    keep_all(m, b, &b->touched[RT_PG_LEASES]);
}

bool rt_pg_recall(rt_pg_memory *m, rt_pg_batch *b, rt_pg_record *r) {
    if (r->part != RT_PG_JOBS && r->part != RT_PG_LEASES) return false;
    const kept *k = take_out(m, r->part, rt_pg_key(r));
    if (k == NULL || !rt_pg_push(&b->recalled, r)) return false;
    if (r->part == RT_PG_JOBS) r->job = k->job;
    else r->lease = k->lease;
    r->known = r->there = r->recalled = true;
    r->was = rt_pg_version(r);
    b->dirty = true; // it is compared at the commit
    rt_pg_record *body = k->lone ? rt_pg_know(b, RT_PG_BODIES, r->job.body) : NULL;
    if (body != NULL) body->lone = true;
    return true;
}

void rt_pg_forget_all(rt_pg_memory *m) {
    clear(&m->younger);
    clear(&m->older);
}

void rt_pg_memory_deinit(rt_pg_memory *m) {
    rt_pg_forget_all(m);
    rt_arena_deinit(&m->younger.arena);
    rt_arena_deinit(&m->older.arena);
}
