/* people.c: callers schedule calls and turn the knobs; workers fetch calls, and end them, or die. Whoever gets
 * no answer asks for the same again. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "farm.h"

enum { LOST_PERMILLE = 100, AGAIN_MS = 300, PATIENCE_MS = 4000 };

static bool is_worker(uint32_t who) { return who >= CALLERS; }

/* ---- answers ------------------------------------------------------------------------------------------- */

static void take_scheduled(farm *f, person *p, const request *r) {
    for (uint32_t i = 0; i < p->items; i++) {
        MUST(f, r->as.cmd.code == RT_OK, "a call is scheduled: %s", r->as.cmd.err.msg);
        rt_id *told = &f->account.told[p->first + i];
        MUST(f, *told == 0 || *told == r->items[i].id, "the same key, the same call");
        *told = r->items[i].id;
    }
}

static void take_claim(farm *f, person *p, const request *r) {
    p->held = 0;
    if (r->as.cmd.code != RT_OK) return;
    for (uint32_t i = 0; i < r->as.claim.count; i++) {
        const rt_claimed_call *c = &r->as.claim.calls[i];
        MUST(f, rt_str_eq(c->call.type, rt_str_of(TYPE_NAMES[p->type])), "a claim gives calls of its type");
        p->jobs[i] = c->job.id;
        p->tokens[i] = c->token;
        p->until_ms[i] = c->until_ms;
    }
    p->held = r->as.claim.count;
    if (!f->calm && farm_chance(f, 80)) p->held = 0; // it dies, and its leases run out
    // Some sleep longer than their lease lasts.
    if (p->held > 0)
        p->wake_ms =
            f->now_ms + (!f->calm && farm_chance(f, 80) ? farm_draw(f, 3000, 9000) : farm_draw(f, 1, 200));
}

static void take_end(farm *f, person *p, const request *r) {
    const known_call *known = account_call(f, p->id);
    MUST(f, known != NULL, "it was there when it was claimed");
    const bool fenced = r->as.cmd.code == RT_E_FENCED || r->as.cmd.code == RT_E_ABSENT;
    // Refused although the lease lasts, and nobody has deleted the call: only after the clock was turned.
    const bool lasts = p->until_ms[p->held - 1] > farm_wall_ms(f) && f->jumped_ms < f->now_ms - 15000;
    const bool released = p->verb == RT_CALL_RELEASE; // asked again, it is not there to be released any more
    if (fenced && lasts && !released)
        MUST(f,
             known->state == RT_JOB_DONE || known->job.generation > 0 || known->job.lease == 0 ||
                 known->job.lease != p->tokens[p->held - 1] || known->job.state != RT_JOB_LEASED,
             "a holder is refused");
    if (p->verb == RT_CALL_EXTEND && r->as.cmd.code == RT_OK) {
        p->until_ms[p->held - 1] = r->as.end.until_ms;
        return;
    }
    p->held--;
}

static void take_answer(farm *f, uint32_t who, const request *r) {
    person *p = &f->people[who];
    p->wake_ms = f->now_ms + farm_draw(f, 1, is_worker(who) ? 150 : 700);
    if (p->errand == ERRAND_SCHEDULE) take_scheduled(f, p, r);
    if (p->errand == ERRAND_CLAIM) take_claim(f, p, r);
    if (p->errand == ERRAND_END) take_end(f, p, r);
    p->errand = ERRAND_NONE;
}

/* Not an answer but trouble: asked again. */
static bool is_trouble(rt_code code) {
    return code != RT_OK && code != RT_E_FENCED && code != RT_E_ABSENT && code != RT_E_INVALID;
}

static void done(rt_command *cmd) {
    request *r = (request *)cmd->ctx;
    farm *f = r->farm;
    person *p = &f->people[r->who];
    bool alive = false;
    for (uint32_t i = 0; i < f->nodes_count; i++) alive = alive || f->nodes[i].life == r->life;
    const bool lost = !alive || is_trouble(cmd->code) || (!f->calm && farm_chance(f, LOST_PERMILLE));
    if (p->waiting && p->number == r->number) {
        p->waiting = false;
        p->wake_ms = f->now_ms + AGAIN_MS;
        if (!lost) take_answer(f, r->who, r);
        // What a lost claim got runs out by itself.
        else if (p->errand == ERRAND_CLAIM) p->errand = ERRAND_NONE;
    }
    f->requests_open--;
    rt_arena_deinit(&r->arena);
    free(r);
}

/* ---- requests ------------------------------------------------------------------------------------------ */

static rt_str text_of(request *r, const char *what, uint32_t number) {
    const rt_str text = rt_arena_printf(&r->arena, "%s%" PRIu32, what, number);
    if (text.ptr == NULL) abort();
    return text;
}

static void fill_schedule(const person *p, request *r) {
    rt_calls_schedule *c = &r->as.schedule;
    rt_calls_schedule_init(c);
    c->tenant = TENANT;
    c->type = rt_str_of(TYPE_NAMES[p->type]);
    c->items = r->items;
    c->count = p->items;
    for (uint32_t i = 0; i < p->items; i++) {
        r->items[i] = (rt_call_item){
            .payload = text_of(r, "", p->first + i),
            .key = text_of(r, "k", p->first + i),
            .reason = RT_STR("api1-5xx"),
            .order_key = p->keys[i] == 0 ? RT_STR_EMPTY : text_of(r, "o", p->keys[i]),
            .delay_ms = p->delay_ms,
        };
    }
}

static void fill_knob(const person *p, request *r) {
    const farm *f = r->farm;
    switch (p->errand) {
    case ERRAND_PUT:
        rt_call_type_put_init(&r->as.put);
        r->as.put.tenant = TENANT;
        r->as.put.name = rt_str_of(TYPE_NAMES[p->type]);
        r->as.put.like = p->put;
        return;
    case ERRAND_CIRCUIT:
        rt_queue_circuit_init(&r->as.circuit);
        r->as.circuit.id = f->queues[p->type];
        r->as.circuit.order = p->order;
        return;
    case ERRAND_PAUSE:
        rt_queue_pause_init(&r->as.pause);
        r->as.pause.id = f->queues[p->type];
        r->as.pause.until_ms = p->pause_ms;
        return;
    case ERRAND_REDRIVE:
        rt_dead_redrive_init(&r->as.redrive);
        r->as.redrive.id = p->id;
        return;
    case ERRAND_REDRIVE_MANY:
        rt_dead_many_init(&r->as.many);
        r->as.many.filter.queue = f->queues[p->type];
        return;
    case ERRAND_REMOVE:
        rt_job_delete_init(&r->as.remove);
        r->as.remove.id = p->id;
        return;
    case ERRAND_NONE:
    case ERRAND_SCHEDULE:
    case ERRAND_CLAIM:
    case ERRAND_END: abort();
    }
}

static void fill_work(const person *p, request *r) {
    if (p->errand == ERRAND_CLAIM) {
        rt_call_claim_init(&r->as.claim);
        r->as.claim.tenant = TENANT;
        r->as.claim.type = rt_str_of(TYPE_NAMES[p->type]);
        r->as.claim.worker = RT_STR("w");
        r->as.claim.limit = 1 + r->who % 4;
        r->as.claim.lease_s = 3;
        r->as.claim.wait_until_ms = farm_wall_ms(r->farm) + 2000;
        r->as.claim.arena = &r->arena;
        return;
    }
    rt_call_end_init(&r->as.end);
    r->as.end.tenant = TENANT;
    r->as.end.id = p->id;
    r->as.end.token = p->tokens[p->held - 1];
    r->as.end.verb = p->verb;
    r->as.end.lease_s = 3;
    r->as.end.error = RT_STR("bad luck");
}

static void ask(farm *f, uint32_t who) {
    person *p = &f->people[who];
    request *r = calloc(1, sizeof *r);
    if (r == NULL) abort();
    r->farm = f;
    r->who = who;
    r->number = ++p->number;
    if (p->errand == ERRAND_SCHEDULE) fill_schedule(p, r);
    else if (is_worker(who)) fill_work(p, r);
    else fill_knob(p, r);
    r->as.cmd.done = done;
    r->as.cmd.ctx = r;
    p->waiting = true;
    p->wake_ms = f->now_ms + PATIENCE_MS; // no answer by then: asked again
    f->requests_open++;
    if (farm_submit(f, r)) return;
    f->requests_open--;
    rt_arena_deinit(&r->arena);
    free(r);
    p->waiting = false;
    p->wake_ms = f->now_ms + AGAIN_MS;
}

/* ---- what next ----------------------------------------------------------------------------------------- */

static void choose_items(farm *f, person *p) {
    p->errand = ERRAND_SCHEDULE;
    p->items = (uint32_t)farm_draw(f, 1, ITEMS_MAX);
    p->first = f->next_number;
    f->next_number += p->items;
    for (uint32_t i = 0; i < p->items; i++)
        p->keys[i] = farm_chance(f, 400) ? 0 : (uint32_t)farm_draw(f, 1, 3);
    p->delay_ms = farm_chance(f, 200) ? farm_draw(f, 1, 5000) : 0;
}

static void choose_type(farm *f, person *p) {
    p->errand = ERRAND_PUT;
    p->put = type_like(p->type);
    if (farm_chance(f, 300)) p->put.circuit.enabled = !p->put.circuit.enabled;
    if (farm_chance(f, 300)) p->put.pace.enabled = !p->put.pace.enabled;
    if (farm_chance(f, 300)) p->put.concurrency = (uint32_t)farm_draw(f, 1, 5);
    if (farm_chance(f, 300)) p->put.circuit.max_open_s = (uint32_t)farm_draw(f, 5, 60);
    if (farm_chance(f, 500)) p->put.delivery.maximum_age_s = (uint32_t)farm_draw(f, 0, 2) * MAXIMUM_AGE_S;
}

/* A call that is known, any of them; 0: none yet. */
static rt_id any_call(farm *f) {
    if (f->account.count == 0) return 0;
    return f->account.calls[rt_rng_below(&f->rng, f->account.count)].job.id;
}

static void choose_errand(farm *f, person *p) {
    const uint64_t dice = rt_rng_below(&f->rng, 100);
    p->type = (uint32_t)rt_rng_below(&f->rng, TYPES);
    p->id = any_call(f);
    p->errand = ERRAND_NONE;
    if (f->calm) return;
    if (dice < 70 || p->id == 0) {
        if (f->next_number + ITEMS_MAX < NUMBERS_MAX) choose_items(f, p);
    } else if (dice < 75) {
        choose_type(f, p);
    } else if (dice < 80) {
        p->errand = ERRAND_CIRCUIT;
        p->order = farm_chance(f, 600)   ? RT_CIRCUIT_AUTO
                   : farm_chance(f, 500) ? RT_CIRCUIT_FORCE_OPEN
                                         : RT_CIRCUIT_FORCE_CLOSED;
    } else if (dice < 83) {
        p->errand = ERRAND_PAUSE;
        p->pause_ms = farm_chance(f, 500) ? 0 : farm_wall_ms(f) + farm_draw(f, 1, 5000);
    } else if (dice < 92) {
        p->errand = ERRAND_REDRIVE;
    } else if (dice < 96) {
        p->errand = ERRAND_REDRIVE_MANY;
    } else {
        p->errand = ERRAND_REMOVE;
    }
}

static void choose_work(farm *f, uint32_t who) {
    static const uint32_t PULLED[] = {2, 3, 5};
    person *p = &f->people[who];
    if (p->held == 0) {
        p->errand = ERRAND_CLAIM;
        p->type = PULLED[rt_rng_below(&f->rng, 3)];
        return;
    }
    const bool fails = !f->calm && farm_chance(f, f->down[p->type] ? 900 : 200);
    p->errand = ERRAND_END;
    p->id = p->jobs[p->held - 1];
    p->verb = fails ? RT_CALL_FAIL : RT_CALL_FINISH;
    if (!f->calm && farm_chance(f, 60)) p->verb = RT_CALL_RELEASE;
    if (!f->calm && farm_chance(f, 60)) p->verb = RT_CALL_EXTEND;
}

void person_act(farm *f, uint32_t who) {
    person *p = &f->people[who];
    if (p->errand == ERRAND_NONE && is_worker(who)) choose_work(f, who);
    else if (p->errand == ERRAND_NONE) choose_errand(f, p);
    if (p->errand == ERRAND_NONE) p->wake_ms = f->now_ms + 1000;
    else ask(f, who); // its number makes whatever comes of an older one nobody's
}
