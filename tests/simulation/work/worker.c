/* worker.c: what a worker does: it lives by heartbeats, claims, sleeps over its work at times, ends it,
 * and asks again whenever an answer does not come. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet.h"

enum { INTERVAL_S = 5, LOST_PERMILLE = 100, AGAIN_MS = 300 };

static bool chance(fleet *f, uint32_t permille) { return rt_rng_below(&f->rng, 1000) < permille; }
static int64_t draw(fleet *f, int64_t low, int64_t high) {
    return low + (int64_t)rt_rng_below(&f->rng, (uint64_t)(high - low) + 1);
}

/* ---- answers ------------------------------------------------------------------------------------------- */

static void lose_session(worker *w) {
    w->stage = STAGE_NO_SESSION;
    w->errand = ERRAND_NONE;
}

static void take_claim(fleet *f, worker *w, const request *r) {
    w->errand = ERRAND_NONE;
    if (!r->as.claim.found) return;
    w->work = r->as.claim.work;
    for (w->entity = 0; w->entity < ENTITIES; w->entity++) {
        if (rt_str_eq(rt_str_of(ENTITY_NAMES[w->entity]), w->work.entity)) break;
    }
    MUST(f, w->entity < ENTITIES, "a claim gives an entity that is known");
    w->stage = STAGE_WORKING;
    // Some sleep longer than their session lives.
    w->wake_ms = f->now_ms + (!f->calm && chance(f, 100) ? draw(f, 5000, 12000) : draw(f, 1, 400));
}

static void take_answer(fleet *f, worker *w, const request *r) {
    const bool fenced = r->as.cmd.code == RT_E_FENCED;
    w->wake_ms = f->now_ms + draw(f, 1, 300);
    switch (w->errand) {
    case ERRAND_NONE: return;
    case ERRAND_START:
        w->session = r->as.start.id;
        w->stage = STAGE_IDLE;
        w->errand = ERRAND_NONE;
        return;
    case ERRAND_BEAT:
        if (fenced) lose_session(w);
        w->errand = ERRAND_NONE;
        return;
    case ERRAND_CLAIM:
        if (fenced) lose_session(w);
        else take_claim(f, w, r);
        return;
    case ERRAND_END:
        w->errand = ERRAND_NONE;
        w->stage = STAGE_IDLE;
        // 11: whoever holds it and is alive is told what happened, however often it had to ask.
        if (fenced) MUST(f, r->as.end.refusal == RT_WORK_DEAD, "11: a holder is refused");
        else MUST(f, r->as.end.work.end == w->verb || w->verb == RT_EVENT_CANCELED, "11: the same answer");
        if (fenced) lose_session(w);
        return;
    case ERRAND_REMOVE:
    case ERRAND_PUT: w->errand = ERRAND_NONE; return;
    }
}

static void done(rt_command *cmd) {
    request *r = (request *)cmd->ctx;
    fleet *f = r->fleet;
    worker *w = &f->workers[r->worker];
    bool alive = false;
    for (uint32_t i = 0; i < f->nodes_count; i++) alive = alive || f->nodes[i].life == r->life;
    const bool failed = cmd->code != RT_OK && cmd->code != RT_E_FENCED && cmd->code != RT_E_ABSENT;
    const bool lost = !alive || failed || (!f->calm && chance(f, LOST_PERMILLE));
    if (w->waiting && w->number == r->number) {
        w->waiting = false;
        w->wake_ms = f->now_ms + AGAIN_MS;
        if (!lost) take_answer(f, w, r);
    }
    if (r->resets) {
        f->account.resets_open[r->entity]--;
        f->account.reset[r->entity] = true;
    }
    f->requests_open--;
    rt_arena_deinit(&r->arena);
    free(r);
}

/* ---- requests ------------------------------------------------------------------------------------------ */

static rt_code add_one(void *ctx, rt_arena *arena, rt_str value, rt_str *out, rt_err *err) {
    (void)ctx;
    int64_t n = 0;
    if (value.len > 0 && !rt_str_to_i64(value, &n)) return rt_fail(err, RT_E_CORRUPT, 0, "no number");
    *out = rt_arena_printf(arena, "%lld", (long long)n + 1);
    return out->ptr == NULL ? RT_E_NOMEM : RT_OK;
}

static void fill_claim(const worker *w, request *r) {
    static rt_str names[ENTITIES];
    for (uint32_t i = 0; i < ENTITIES; i++) names[i] = rt_str_of(ENTITY_NAMES[(i + w->entity) % ENTITIES]);
    rt_work_claim *c = &r->as.claim;
    rt_work_claim_init(c);
    c->tenant = TENANT;
    c->session = w->session;
    c->process = rt_str_of(PROCESS_NAMES[w->process]);
    c->key = rt_str_of(w->key_text);
    c->arena = &r->arena;
    c->wait_until_ms = fleet_wall_ms(r->fleet) + 1000;
    if (w->by_kind) {
        c->kind = RT_STR("machine");
        return;
    }
    rt_str *copy = rt_arena_alloc(&r->arena, sizeof names);
    if (copy == NULL) abort();
    memcpy(copy, names, sizeof names);
    c->candidates = copy;
    c->candidates_count = 3;
}

static void fill_end(const worker *w, request *r) {
    rt_work_end *c = &r->as.end;
    rt_work_end_init(c);
    c->tenant = TENANT;
    c->id = w->work.id;
    c->session = w->session;
    c->token = w->work.token;
    c->verb = w->verb;
    c->cause = RT_STR("bad luck");
    c->arena = &r->arena;
    if (w->verb != RT_EVENT_FINISHED) return;
    c->patch = add_one;
    rt_str *again = rt_arena_alloc(&r->arena, sizeof *again);
    if (again == NULL) abort();
    *again =
        rt_str_of(PROCESS_NAMES[w->process]); // it puts itself back, so that there is always something to do
    c->processes = again;
    c->processes_count = 1;
}

static void fill(const worker *w, request *r) {
    switch (w->errand) {
    case ERRAND_NONE: abort();
    case ERRAND_START:
        rt_session_create_init(&r->as.start);
        r->as.start.tenant = TENANT;
        r->as.start.interval_s = INTERVAL_S;
        return;
    case ERRAND_BEAT:
        rt_session_beat_init(&r->as.beat);
        r->as.beat.tenant = TENANT;
        r->as.beat.id = w->session;
        return;
    case ERRAND_CLAIM: fill_claim(w, r); return;
    case ERRAND_END: fill_end(w, r); return;
    case ERRAND_REMOVE:
        rt_entity_delete_init(&r->as.remove);
        r->as.remove.tenant = TENANT;
        r->as.remove.name = rt_str_of(ENTITY_NAMES[w->entity]);
        return;
    case ERRAND_PUT:
        rt_entity_put_init(&r->as.put);
        r->as.put.tenant = TENANT;
        r->as.put.name = rt_str_of(ENTITY_NAMES[w->entity]);
        r->as.put.kind = RT_STR("machine");
        return;
    }
}

static void ask(fleet *f, uint32_t number) {
    worker *w = &f->workers[number];
    request *r = calloc(1, sizeof *r);
    if (r == NULL) abort();
    r->fleet = f;
    r->worker = number;
    r->number = ++w->number;
    fill(w, r);
    r->as.cmd.done = done;
    r->as.cmd.ctx = r;
    w->waiting = true;
    w->wake_ms = f->now_ms + 5000; // no answer by then: asked again
    f->requests_open++;
    r->entity = w->entity;
    r->resets = w->errand == ERRAND_REMOVE || w->errand == ERRAND_PUT;
    if (r->resets) f->account.resets_open[r->entity]++;
    if (fleet_submit(f, r)) return;
    if (r->resets) f->account.resets_open[r->entity]--;
    f->requests_open--;
    rt_arena_deinit(&r->arena);
    free(r);
    w->waiting = false;
    w->wake_ms = f->now_ms + AGAIN_MS;
}

/* ---- what next ----------------------------------------------------------------------------------------- */

static void choose(fleet *f, worker *w) {
    const uint64_t dice = rt_rng_below(&f->rng, 100);
    if (w->stage == STAGE_NO_SESSION) {
        w->errand = ERRAND_START;
    } else if (w->stage == STAGE_WORKING) {
        w->errand = ERRAND_END;
        w->verb = dice < 40 ? RT_EVENT_FINISHED : dice < 80 ? RT_EVENT_FAILED : RT_EVENT_CANCELED;
    } else if (dice < 50) {
        w->errand = ERRAND_CLAIM;
        w->by_kind = dice < 30;
        w->process = (uint32_t)rt_rng_below(&f->rng, PROCESSES);
        w->entity = (uint32_t)rt_rng_below(&f->rng, ENTITIES);
        (void)snprintf(w->key_text, sizeof w->key_text, "%" PRIu64, ++w->key);
    } else if (dice < 90) {
        w->errand = ERRAND_BEAT;
    } else {
        w->errand = dice < 93 ? ERRAND_REMOVE : ERRAND_PUT;
        w->entity = (uint32_t)rt_rng_below(&f->rng, ENTITIES);
    }
}

void worker_act(fleet *f, uint32_t number) {
    worker *w = &f->workers[number];
    if (w->errand == ERRAND_NONE) choose(f, w);
    ask(f, number); // its number makes whatever comes of an older one nobody's
}
