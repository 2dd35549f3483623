/* habit.c: what batch after batch reads is fetched along with the first that a batch asks for: the type of an event, its
 * queue, their sums. A decision that comes upon them one after the other then waits for one round trip, not for three. */
#include <string.h>

#include "store/postgres/inside.h"

enum { LONG_AGO = 8 /* batches */, OFTEN = 2 };

static bool is_of(const rt_pg_habit *h, const rt_pg_record *r) {
    if (h->part != r->part) return false;
    if (r->part != RT_PG_DOCS) return h->key == rt_pg_key(r);
    const rt_str name = {.ptr = h->name, .len = h->name_len};
    return h->kind == r->doc.kind && rt_str_eq(name, r->doc.name);
}

/* How much it is worth to be kept. */
static uint32_t worth(const rt_pg_habits *all, const rt_pg_habit *h) {
    return all->batch - h->seen > LONG_AGO ? 0 : h->times;
}

static rt_pg_habit *least(rt_pg_habits *all) {
    rt_pg_habit *found = &all->of[0];
    for (size_t i = 1; i < RT_PG_HABITS; i++) {
        if (worth(all, &all->of[i]) < worth(all, found)) found = &all->of[i];
    }
    return found;
}

void rt_pg_habit_note(rt_pg_habits *all, rt_pg_record *r) {
    const bool kind = r->part == RT_PG_QUEUES || r->part == RT_PG_DOCS || r->part == RT_PG_COUNTERS;
    if (!kind || r->looked || all->noted == RT_PG_HABITS_NOTED) return;
    r->looked = true;
    all->noted++;
    rt_pg_habit *h = NULL;
    for (size_t i = 0; i < RT_PG_HABITS && h == NULL; i++) {
        if (is_of(&all->of[i], r)) h = &all->of[i];
    }
    if (h == NULL) {
        h = least(all);
        if (worth(all, h) >= OFTEN) return;
        *h = (rt_pg_habit){.part = r->part, .key = r->part == RT_PG_DOCS ? 0 : rt_pg_key(r)};
        if (r->part == RT_PG_DOCS) {
            h->kind = r->doc.kind;
            h->name_len = r->doc.name.len;
            memcpy(h->name, r->doc.name.ptr, h->name_len);
        }
    } else if (worth(all, h) == 0) {
        h->times = 0;
    }
    if (h->times < OFTEN) h->times++;
    h->seen = all->batch;
}

void rt_pg_habits_want(rt_pg *s) {
    rt_pg_habits *all = &s->habits;
    for (size_t i = 0; i < RT_PG_HABITS; i++) {
        const rt_pg_habit *h = &all->of[i];
        if (worth(all, h) < OFTEN) continue;
        const rt_str name = {.ptr = h->name, .len = h->name_len};
        rt_pg_record *r = h->part == RT_PG_DOCS ? rt_pg_know_doc(&s->batch, h->kind, name)
                                                : rt_pg_know(&s->batch, h->part, h->key);
        // Without memory for it, it is asked for when it is needed.
        if (r != NULL && !r->known) (void)rt_pg_want(&s->batch, r);
    }
}

void rt_pg_habits_next(rt_pg_habits *all) {
    all->batch++;
    all->noted = 0;
}
