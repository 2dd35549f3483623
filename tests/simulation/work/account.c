/* account.c: the invariants of monogon-work.md §9, kept from the histories and compared with what is
 * stored. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet.h"

void account_failed(const fleet *f, const char *fact, const char *fmt, ...) {
    va_list args;
    (void)fprintf(stderr, "simulate_work: seed %" PRIu64 " at %lld ms: %s\n  ", f->seed, (long long)f->now_ms,
                  fact);
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fprintf(stderr, "\n  again: simulate_work --seed %" PRIu64 "\n", f->seed);
    abort();
}

static void mix(account *a, uint64_t what) { a->hash = rt_hash_u64(a->hash ^ what); }

/* ---- sessions ------------------------------------------------------------------------------------------ */

static account_session *session_of(account *a, rt_id id) {
    for (uint32_t i = 0; i < a->sessions_count; i++) {
        if (a->sessions[i].id == id) return &a->sessions[i];
    }
    return NULL;
}

typedef struct seen {
    fleet *fleet;
    rt_id ids[SESSIONS_MAX];
    uint32_t count;
} seen;

/* 3: a deadline never moves back, and who is dead stays so. */
static bool see_session(void *ctx, const rt_session *s, int64_t deadline_ms) {
    seen *all = ctx;
    fleet *f = all->fleet;
    account *a = &f->account;
    account_session *known = session_of(a, s->id);
    if (known == NULL) {
        MUST(f, a->sessions_count < SESSIONS_MAX, "too many sessions for this simulation");
        known = &a->sessions[a->sessions_count++];
        *known = (account_session){.id = s->id, .deadline_ms = deadline_ms};
    }
    MUST(f, !known->dead, "session %" PRIx64 " lives again", s->id);
    MUST(f, deadline_ms >= known->deadline_ms, "session %" PRIx64, s->id);
    known->deadline_ms = deadline_ms;
    all->ids[all->count++] = s->id;
    return true;
}

static void bury(account *a, const seen *all) {
    for (uint32_t i = 0; i < a->sessions_count; i++) {
        bool there = false;
        for (uint32_t j = 0; j < all->count && !there; j++) there = all->ids[j] == a->sessions[i].id;
        if (!there) a->sessions[i].dead = true;
    }
}

/* ---- histories ----------------------------------------------------------------------------------------- */

static uint32_t process_index(const fleet *f, rt_str name) {
    for (uint32_t p = 0; p < PROCESSES; p++) {
        if (rt_str_eq(rt_str_of(PROCESS_NAMES[p]), name)) return p;
    }
    account_failed(f, "known process", "%.*s", RT_STR_ARG(name));
}

/* 8, 9: the k-th failure in a row rests as long as the k-th element of the sequence. */
static uint64_t element(uint32_t process, uint32_t k) {
    const rt_backoff b = process_backoff(process);
    uint64_t interval = 0;
    for (uint32_t i = 0; i < k; i++) interval = rt_work_backoff_next_s(&b.descriptor, interval);
    return interval;
}

static void take_start(fleet *f, uint32_t entity, uint32_t process, const rt_event *event,
                       const rt_history *h) {
    account_pair *pair = &f->account.pairs[entity][process];
    MUST(f, pair->open == 0, "1: %s on %s is worked on already", PROCESS_NAMES[process],
         ENTITY_NAMES[entity]);
    for (uint32_t other = 0; other < 2 && process < 2; other++) {
        MUST(f, f->account.pairs[entity][other].open == 0, "1: an excluded process works on %s",
             ENTITY_NAMES[entity]);
    }
    if (f->account.reset[entity] && event->at_ms < pair->until_ms) { // 12: a deletion dropped what rested
        pair->until_ms = 0;
        pair->failures = 0;
    }
    MUST(f, event->at_ms >= pair->until_ms, "7: %s rests", ENTITY_NAMES[entity]);
    const account_session *s = session_of(&f->account, h->session);
    // One that was never seen alive was started and over between two looks.
    MUST(f, s == NULL || event->at_ms < s->deadline_ms, "2: started by a dead session");
    pair->open = h->work;
    pair->session = h->session;
}

static void take_end(fleet *f, uint32_t entity, uint32_t process, const rt_event *event,
                     const rt_history *h) {
    account_pair *pair = &f->account.pairs[entity][process];
    MUST(f, pair->open == h->work, "5: an end without a start on %s", ENTITY_NAMES[entity]);
    MUST(f, pair->session == h->session, "5: ended by another session");
    pair->open = 0;
    const account_session *s = session_of(&f->account, h->session);
    const bool by_holder = event->type != RT_EVENT_EXPIRED;
    if (s != NULL && by_holder) MUST(f, event->at_ms < s->deadline_ms, "2: ended by a dead session");
    if (s != NULL && !by_holder) MUST(f, event->at_ms >= s->deadline_ms, "2: expired too early");
    if (event->type == RT_EVENT_FINISHED) {
        pair->failures = 0;
        pair->until_ms = 0;
        f->account.finished[entity]++;
    } else if (event->type == RT_EVENT_FAILED) {
        const bool anew = f->account.reset[entity] && h->interval_s == element(process, 1);
        pair->failures = anew ? 1 : pair->failures + 1;
        MUST(f, h->interval_s == element(process, pair->failures), "8: failure %u rests %" PRIu64 " s",
             pair->failures, h->interval_s);
        pair->until_ms = event->at_ms + (int64_t)h->interval_s * 1000;
    }
}

typedef struct lines {
    fleet *fleet;
    uint32_t entity;
    uint64_t newest;
    rt_event events[4096];
    char texts[4096][RT_EVENT_TEXT_MAX];
    uint32_t count;
} lines;

static bool keep_line(void *ctx, const rt_event *event, const rt_history *h) {
    lines *l = ctx;
    (void)h;
    if (event->seq <= l->newest) return false;
    MUST(l->fleet, l->count < 4096, "too many events at once");
    memcpy(l->texts[l->count], event->text.ptr, event->text.len);
    l->events[l->count] = *event;
    l->events[l->count].text.ptr = l->texts[l->count];
    l->count++;
    return true;
}

static void take_history(fleet *f, rt_view *view, uint32_t entity, const rt_entity *e) {
    static lines l;
    l.fleet = f;
    l.entity = entity;
    l.newest = f->account.last_event[entity];
    l.count = 0;
    MUST(f, rt_read_history(view, e, 0, keep_line, &l) == RT_OK, "history of %s", ENTITY_NAMES[entity]);
    while (l.count > 0) {
        const rt_event *event = &l.events[--l.count];
        rt_history h;
        MUST(f, rt_history_read(event->text, &h), "a line of history");
        const uint32_t process = process_index(f, h.process);
        if (event->type == RT_EVENT_STARTED) take_start(f, entity, process, event, &h);
        else take_end(f, entity, process, event, &h);
        f->account.counts[event->type]++;
        mix(&f->account, (uint64_t)event->type << 56 ^ h.work ^ (uint64_t)event->at_ms << 8);
    }
    f->account.last_event[entity] = e->last_event;
}

/* ---- what is stored ------------------------------------------------------------------------------------ */

static void compare_pair(fleet *f, rt_view *view, rt_arena *arena, rt_entity *e, uint32_t entity,
                         uint32_t process) {
    account_pair *pair = &f->account.pairs[entity][process];
    const rt_slot *slot = rt_entity_slot(e, rt_str_of(PROCESS_NAMES[process]));
    MUST(f, (slot == NULL ? 0 : slot->work) == pair->open,
         "5: active without a start, or the other way round");
    rt_rest rest = {0};
    const rt_code code = rt_read_rest(view, arena, TENANT, rt_str_of(ENTITY_NAMES[entity]),
                                      rt_str_of(PROCESS_NAMES[process]), &rest);
    if (e->gone || (f->account.reset[entity] && code == RT_E_ABSENT)) { // 12: a deletion drops what rests
        pair->failures = 0;
        pair->until_ms = 0;
    }
    // Where all rests are as long, only what is stored tells whether a failure came before a deletion or behind it.
    if (code == RT_OK && f->account.reset[entity] && pair->failures > 0 &&
        element(process, rest.failures) == element(process, pair->failures))
        pair->failures = rest.failures;
    MUST(f, (code == RT_OK) == (pair->failures > 0), "6: backoff of %s on %s", PROCESS_NAMES[process],
         ENTITY_NAMES[entity]);
    if (code == RT_OK) {
        MUST(f, rest.failures == pair->failures && rest.until_ms == pair->until_ms,
             "6: backoff as in the history");
        MUST(f, slot != NULL && slot->until_ms == rest.until_ms, "6: entity and backoff agree");
    }
    if (slot == NULL) return;
    rt_job job;
    MUST(f, rt_view_job(view, slot->job, &job) == RT_OK, "a slot's job");
    const bool held = slot->work != 0;
    MUST(f, (job.state == RT_JOB_LEASED) == held, "a job is held as long as its pair is");
    if (job.state == RT_JOB_SCHEDULED)
        MUST(f, job.due_ms == slot->until_ms, "a job rests as long as its pair");
}

void account_take(fleet *f, rt_view *view) {
    static seen all;
    rt_arena arena = {0};
    all.fleet = f;
    all.count = 0;
    // Whatever their deadline: who is over but not yet swept is still in the store.
    MUST(f, rt_read_sessions(view, TENANT, 0, INT64_MIN, see_session, &all) == RT_OK, "sessions");
    for (uint32_t i = 0; i < ENTITIES; i++) {
        rt_entity e;
        const rt_code code = rt_read_entity(view, &arena, TENANT, rt_str_of(ENTITY_NAMES[i]), &e);
        if (code == RT_E_ABSENT) continue;
        f->account.reset[i] = f->account.reset[i] || f->account.resets_open[i] > 0;
        MUST(f, code == RT_OK, "entity %s", ENTITY_NAMES[i]);
        take_history(f, view, i, &e);
        for (uint32_t p = 0; p < PROCESSES; p++) compare_pair(f, view, &arena, &e, i, p);
        // 10: each finish adds one to the value in the same change.
        int64_t value = 0;
        MUST(f, e.value.len == 0 || rt_str_to_i64(e.value, &value), "10: %.*s", RT_STR_ARG(e.value));
        if (f->account.reset[i] && value < (int64_t)f->account.finished[i])
            f->account.finished[i] = (uint64_t)value;
        MUST(f, value == (int64_t)f->account.finished[i], "10: %.*s finished %" PRIu64, RT_STR_ARG(e.value),
             f->account.finished[i]);
        f->account.reset[i] = false;
    }
    bury(&f->account, &all);
    rt_arena_deinit(&arena);
}

void account_close(fleet *f, rt_view *view) {
    for (uint32_t i = 0; i < ENTITIES; i++) {
        for (uint32_t p = 0; p < PROCESSES; p++) {
            MUST(f, f->account.pairs[i][p].open == 0, "4: %s is still worked on", ENTITY_NAMES[i]);
        }
    }
    for (uint32_t i = 0; i < f->account.sessions_count; i++) {
        MUST(f, f->account.sessions[i].dead, "4: a session is still there");
    }
    const uint64_t *c = f->account.counts;
    MUST(f,
         c[RT_EVENT_STARTED] ==
             c[RT_EVENT_FINISHED] + c[RT_EVENT_FAILED] + c[RT_EVENT_CANCELED] + c[RT_EVENT_EXPIRED],
         "13: starts and ends");
    rt_counts counts;
    MUST(f, rt_view_counts(view, 0, &counts) == RT_OK && counts.leased == 0, "nothing is held");
}
