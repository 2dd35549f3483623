/* endpoint.c: the executor of the simulation: endpoints of every temper, and answers that come late, twice or
 * never. */
#include <stdlib.h>
#include <string.h>

#include "world.h"

typedef enum mood {
    MOOD_WELL,
    MOOD_FLAKY,
    MOOD_ERROR,
    MOOD_REFUSES,
    MOOD_HANGS,
    MOOD_MISSING,
    MOOD_REDIRECTS,
    MOOD_LIMITS,
    MOOD_BREAKS,
    MOOD_ODD,
    MOOD_FORBIDDEN,
    MOOD_SLOW,
    MOOD_COUNT
} mood;

enum { OVERTIME_MS = 1000 };

static mood mood_of(const world *w, const rt_attempt *a) {
    RT_ASSERT(a->url.len > 0);
    const uint32_t endpoint = (uint32_t)(a->url.ptr[a->url.len - 1] - '0');
    RT_ASSERT(endpoint < ENDPOINTS_MAX);
    return (mood)w->moods[endpoint];
}

static rt_outcome answered(uint16_t status) {
    rt_outcome o = {.reason = RT_REASON_STATUS, .status = status, .retry_after_ms = -1, .text_len = 6};
    memcpy(o.text, "answer", 6);
    return o;
}

static rt_outcome unanswered(rt_reason reason) {
    return (rt_outcome){.reason = reason, .retry_after_ms = -1};
}

static rt_outcome choose(world *w, const rt_attempt *a, mood m) {
    static const uint16_t ODD[] = {0, 100, 199, 304, 410, 418, 600, 999};
    static const uint16_t GOOD[] = {200, 201, 204};
    rt_outcome o;
    if (m == MOOD_FLAKY)
        m = chance(&w->rng, w->plan.failing) ? (mood)draw(&w->rng, MOOD_ERROR, MOOD_COUNT - 1) : MOOD_WELL;
    switch (m) {
    case MOOD_ERROR: return answered((uint16_t)(500 + rt_rng_below(&w->rng, 100)));
    case MOOD_REFUSES: return unanswered(chance(&w->rng, 500) ? RT_REASON_CONNECT : RT_REASON_RESOLVE);
    case MOOD_HANGS:
        o = unanswered(RT_REASON_TIMEOUT);
        o.took_ms = a->timeout_ms + (uint32_t)rt_rng_below(&w->rng, OVERTIME_MS);
        return o;
    case MOOD_MISSING: return answered(404);
    case MOOD_REDIRECTS: return answered(302);
    case MOOD_LIMITS:
        o = answered(429);
        o.retry_after_ms = (int64_t)rt_rng_below(&w->rng, 300) * 1000;
        return o;
    case MOOD_BREAKS: return unanswered(chance(&w->rng, 500) ? RT_REASON_BROKEN : RT_REASON_TLS);
    case MOOD_ODD: return answered(ODD[rt_rng_below(&w->rng, sizeof ODD / sizeof ODD[0])]);
    case MOOD_FORBIDDEN:
        return unanswered(chance(&w->rng, 500) ? RT_REASON_ADDRESS_REFUSED : RT_REASON_NO_MAIL_RELAY);
    case MOOD_SLOW:
        o = answered(200);
        o.took_ms = (uint32_t)rt_rng_below(&w->rng, a->timeout_ms);
        return o;
    case MOOD_WELL:
    case MOOD_FLAKY:
    case MOOD_COUNT: break;
    }
    return answered(GOOD[rt_rng_below(&w->rng, 3)]);
}

static flight *free_slot(world *w) {
    for (uint32_t i = 0; i < w->flights_count; i++) {
        if (w->flights[i]->attempt == NULL) return w->flights[i];
    }
    RT_ASSERT(w->flights_count < FLIGHTS_MAX);
    flight *f = calloc(1, sizeof *f);
    flight **all = realloc(w->flights, (w->flights_count + 1) * sizeof *all);
    if (f == NULL || all == NULL) abort();
    w->flights = all;
    w->flights[w->flights_count++] = f;
    return f;
}

static void clear_slot(world *w, flight *f) {
    rt_heap_remove(&w->agenda, &f->answer.node);
    rt_attempt_free(f->attempt);
    f->attempt = NULL;
    w->flights_live--;
}

/* ---- telling ------------------------------------------------------------------------------------------- */

/* Notes what the engine has been told of this attempt. Only a lie that it must not believe is not noted. */
static void note_told(world *w, const flight *f) {
    shadow *s = ledger_shadow(&w->ledger, f->attempt->job);
    const rt_outcome *o = &f->outcome;
    const told t = {.number = f->attempt->number,
                    .reason = (uint8_t)o->reason,
                    .status = o->status,
                    .retry_after_ms = o->retry_after_ms};
    ledger_told(s, &t);
    const bool success = o->reason == RT_REASON_STATUS && o->status >= 200 && o->status < 300;
    const bool in_time =
        w->now_ms <= f->started_ms + f->attempt->timeout_ms + OVERTIME_MS && f->jumps == w->jumps;
    if (success && in_time && w->plan.disk.sole_owner) s->success_known_by = f->life;
}

/* Somebody else's word, or a word too many: an engine that believes it delivers what was not delivered. */
static void lie(node *n, const flight *f, bool same_token) {
    rt_outcome o = answered(f->outcome.status >= 200 && f->outcome.status < 300 ? 500 : 200);
    o.job = f->attempt->job;
    o.token = same_token ? f->attempt->token : f->attempt->token ^ 0x5555;
    rt_engine_outcome(n->engine, &o);
}

static void answer(world *w, appointment *a) {
    flight *f = (flight *)a;
    node *n = &w->nodes[f->node];
    RT_ASSERT(n->life == f->life); // those of a life that ended are forgotten
    if (n->paused) {               // its executor stands still with it
        world_appoint(w, a, 100);
        return;
    }
    if (f->answered) { // one that was lost: only its room is given back
        clear_slot(w, f);
        return;
    }
    trace_note(&w->trace, "outcome", f->attempt->job, f->outcome.status);
    const bool lies = !w->draining && chance(&w->rng, w->plan.lies);
    if (lies) lie(n, f, false);
    note_told(w, f);
    rt_engine_outcome(n->engine, &f->outcome);
    if (lies) lie(n, f, true);
    n->input = true;
    clear_slot(w, f);
}

/* ---- the port ------------------------------------------------------------------------------------------ */

static void plan_answer(world *w, flight *f) {
    const rt_attempt *a = f->attempt;
    const bool honest = w->draining || !chance(&w->rng, w->plan.lost + w->plan.late);
    f->outcome = choose(w, a, w->draining ? MOOD_WELL : mood_of(w, a));
    f->outcome.job = a->job;
    f->outcome.token = a->token;
    if (f->outcome.took_ms == 0) f->outcome.took_ms = (uint32_t)draw(&w->rng, 1, 300);
    if (f->outcome.took_ms > a->timeout_ms + OVERTIME_MS) f->outcome.took_ms = a->timeout_ms;
    int64_t in_ms = f->outcome.took_ms;
    f->ends_ms = w->now_ms + in_ms;
    if (!honest && chance(&w->rng, 500)) {
        f->answered = true; // never
        in_ms = a->timeout_ms + OVERTIME_MS;
        f->ends_ms = w->now_ms + in_ms;
    } else if (!honest) {
        in_ms = a->timeout_ms + w->plan.settings.lease_margin_ms + (int64_t)draw(&w->rng, 0, 20000);
        f->ends_ms = w->now_ms + a->timeout_ms + OVERTIME_MS;
    }
    world_appoint(w, &f->answer, in_ms);
}

static void start(void *ctx, rt_attempt *attempt) {
    node *n = ctx;
    world *w = n->world;
    trace_note(&w->trace, "attempt", attempt->job, attempt->number);
    check_start(w, n, attempt);
    w->attempts++;
    flight *f = free_slot(w);
    *f = (flight){.answer.happen = answer,
                  .attempt = attempt,
                  .node = n->number,
                  .life = n->life,
                  .started_ms = w->now_ms,
                  .jumps = w->jumps};
    w->flights_live++;
    plan_answer(w, f);
}

rt_executor endpoint_executor(node *n) { return (rt_executor){.ctx = n, .start = start}; }

void endpoint_forget(world *w, const node *n) {
    for (uint32_t i = 0; i < w->flights_count; i++) {
        flight *f = w->flights[i];
        if (f->attempt != NULL && f->life == n->life) clear_slot(w, f);
    }
}

void endpoint_change_mood(world *w) {
    const uint32_t endpoint = (uint32_t)rt_rng_below(&w->rng, w->plan.endpoints);
    const bool well = !chance(&w->rng, w->plan.failing);
    w->moods[endpoint] = (uint8_t)(well ? MOOD_WELL : draw(&w->rng, MOOD_FLAKY, MOOD_COUNT - 1));
    trace_note(&w->trace, "mood", endpoint, w->moods[endpoint]);
}

void endpoint_deinit(world *w) {
    for (uint32_t i = 0; i < w->flights_count; i++) {
        if (w->flights[i]->attempt != NULL) clear_slot(w, w->flights[i]);
        free(w->flights[i]);
    }
    free(w->flights);
}
