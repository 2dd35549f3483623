#include "store/postgres/node/habit.h"

#include <string.h>

enum { LONG_AGO = 8 /* batches */, OFTEN = 2 };

static bool is_of(const rt_pg_habit *h, const rt_pg_record *r) {
    if (h->part != r->part || h->key != rt_pg_key(r)) return false;
    const rt_str name = {.ptr = h->name, .len = h->name_len};
    return r->part != RT_PG_DOCS || rt_str_eq(name, r->doc.name);
}

/* How much it is worth to be kept. */
static uint32_t worth(const rt_pg_habits *all, const rt_pg_habit *h) {
    return all->batch - h->seen > LONG_AGO ? 0 : h->times;
}

/* Its own place, or the one of its set that is worth least. */
static rt_pg_habit *place_of(rt_pg_habits *all, const rt_pg_record *r) {
    const uint64_t hash = rt_hash_u64(rt_pg_key(r) << 8 | (uint64_t)r->part) ^
                          (r->part == RT_PG_DOCS ? rt_hash_str(r->doc.name) : 0);
    rt_pg_habit *set = &all->of[hash % RT_PG_HABIT_SETS * RT_PG_HABIT_WAYS];
    rt_pg_habit *least = set;
    for (rt_pg_habit *h = set; h < set + RT_PG_HABIT_WAYS; h++) {
        if (h->times > 0 && is_of(h, r)) return h;
        if (worth(all, h) < worth(all, least)) least = h;
    }
    return least;
}

static bool can_be_habit(const rt_pg_record *r) {
    if (r->part == RT_PG_DOCS) return r->doc.name.len <= RT_PG_HABIT_NAME_MAX;
    return r->part == RT_PG_QUEUES || r->part == RT_PG_COUNTERS;
}

static void become(rt_pg_habit *h, const rt_pg_record *r) {
    *h = (rt_pg_habit){.part = r->part, .key = rt_pg_key(r)};
    if (r->part != RT_PG_DOCS) return;
    h->kind = r->doc.kind;
    h->name_len = (uint32_t)r->doc.name.len;
    memcpy(h->name, r->doc.name.ptr, h->name_len);
}

void rt_pg_habit_note(rt_pg_habits *all, rt_pg_record *r) {
    if (r->looked || !can_be_habit(r)) return;
    r->looked = true;
    rt_pg_habit *h = place_of(all, r);
    const bool known = h->times > 0 && is_of(h, r);
    if (!known && worth(all, h) >= OFTEN) return;
    if (!known) become(h, r);
    if (worth(all, h) == 0) h->times = 0;
    if (h->times < OFTEN) h->times++;
    h->seen = all->batch;
}

void rt_pg_habits_want(const rt_pg_habits *all, rt_pg_batch *b) {
    for (size_t i = 0; i < RT_PG_HABITS; i++) {
        const rt_pg_habit *h = &all->of[i];
        if (worth(all, h) < OFTEN) continue;
        const rt_str name = {.ptr = h->name, .len = h->name_len};
        rt_pg_record *r =
            h->part == RT_PG_DOCS ? rt_pg_know_doc(b, h->kind, name) : rt_pg_know(b, h->part, h->key);
        // Without memory for it, it is asked for when it is needed.
        if (r != NULL && !r->known) (void)rt_pg_want(b, r);
    }
}

void rt_pg_habits_next(rt_pg_habits *all) { all->batch++; }
