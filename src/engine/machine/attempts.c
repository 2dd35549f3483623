#include <stdlib.h>

#include "engine/machine/machine.h"

void rt_attempts_ended(rt_engine *e, rt_flight *flight, rt_lane_news news) {
    rt_lane *lane = rt_map_get(&e->schedule.lanes, flight->queue);
    RT_ASSERT(lane != NULL); // never forgotten while something of it is under way
    // Others may have ended, too: what they left is seen now, not at the next look at all queues.
    if (lane->brakes != NULL && lane->brakes->others > 0) lane->known = false;
    // The job was hidden from its queue's listing while it was under way: look again.
    if (news != RT_LANE_WORKED) lane->backlog = true;
    rt_schedule_ended(&e->schedule, lane, flight->bytes, news);
    rt_flights_remove(&e->flights, flight);
}

/* ---- outcomes ------------------------------------------------------------------------------------------ */

typedef struct own_settle {
    rt_settle settle;  /* first member */
    rt_flight *flight; /* NULL: the lease was only in the store */
} own_settle;

static void free_settle(own_settle *o) {
    rt_settle_deinit(&o->settle);
    free(o);
}

static void settle_done(rt_command *cmd) {
    own_settle *o = (own_settle *)cmd;
    rt_engine *e = cmd->ctx;
    if (rt_own_repeat(e, cmd)) return;
    if (o->flight != NULL) {
        const rt_id queue = o->flight->queue;
        rt_attempts_ended(e, o->flight, o->settle.worked ? RT_LANE_WORKED : RT_LANE_FAILED);
        // It was hidden from its queue's listing while it was under way.
        if (o->settle.again && !rt_schedule_wake(&e->schedule, queue, e->now_ms)) e->wakes_pending = true;
    }
    free_settle(o);
}

static bool counts(const rt_flight *flight, const rt_outcome *outcome) {
    if (flight == NULL) return outcome->reason == RT_REASON_LOST;
    // Told twice, or late after its lease: the first word stands. Not started yet: its batch must end first.
    return !flight->settling && flight->attempt == NULL;
}

void rt_attempts_outcome(rt_engine *e, const rt_outcome *outcome) {
    rt_flight *flight = rt_flights_find(&e->flights, outcome->job, outcome->token);
    if (!counts(flight, outcome)) {
        free(outcome->answer);
        return;
    }
    own_settle *o = malloc(sizeof *o);
    if (o == NULL) { // the attempt stays open until its lease runs out, and is then told lost
        free(outcome->answer);
        return;
    }
    rt_settle_init(&o->settle, outcome, flight == NULL || !e->store->sole_owner);
    o->settle.cmd.done = settle_done;
    o->settle.cmd.ctx = e;
    o->settle.expired = flight == NULL;
    o->flight = flight;
    if (flight != NULL) {
        flight->settling = true;
        rt_heap_remove(&e->flights.deadlines, &flight->deadline);
    }
    if (outcome->took_ms > 0 && outcome->status > 0) {
        rt_histogram_add(&e->metrics.attempt_s, (double)outcome->took_ms / 1000.0);
    }
    rt_own_submit(e, &o->settle.cmd);
}

/* ---- leases that are renewed --------------------------------------------------------------------------- */

static void renewal_done(rt_command *cmd) {
    rt_renewal *r = (rt_renewal *)cmd;
    rt_engine *e = cmd->ctx;
    if (rt_own_repeat(e, cmd)) return;
    for (uint32_t i = 0; i < r->count; i++) {
        rt_flight *flight = rt_flights_find(&e->flights, r->of[i].job, r->of[i].token);
        if (flight == NULL || flight->settling) continue;
        // Lost: the attempt goes on and counts, and its outcome will be refused, as another holds the job by now.
        const bool held = cmd->code == RT_OK && r->of[i].lease_until_ms > 0;
        rt_flights_renewed(&e->flights, flight, held ? r->of[i].lease_until_ms : flight->until_ms);
    }
    free(r);
}

static void submit_renewal(rt_engine *e, rt_renewal *r) {
    if (r == NULL) return;
    r->cmd.done = renewal_done;
    r->cmd.ctx = e;
    rt_own_submit(e, &r->cmd);
}

/* Takes the flight along in `r`, or in a new one. NULL: out of memory. */
static rt_renewal *renew(rt_engine *e, rt_renewal *r, rt_flight *flight) {
    if (r != NULL && r->count == RT_RENEW_MAX) {
        submit_renewal(e, r);
        r = NULL;
    }
    if (r == NULL) {
        r = malloc(sizeof *r);
        if (r == NULL) return NULL;
        rt_renewal_init(r);
    }
    r->of[r->count].job = flight->job;
    r->of[r->count].token = flight->token;
    r->of[r->count++].until_ms = flight->until_ms;
    rt_flights_renew(&e->flights, flight);
    return r;
}

static bool has_lease_to_renew(const rt_engine *e, const rt_flight *flight) {
    return !e->store->sole_owner && flight->lease_until_ms < flight->until_ms && e->now_ms < flight->until_ms;
}

/* ---- all of them --------------------------------------------------------------------------------------- */

void rt_attempts_look(rt_engine *e) {
    rt_flight *flight;
    rt_renewal *renewal = NULL;
    while ((flight = rt_flights_overdue(&e->flights, e->now_ms)) != NULL) {
        if (has_lease_to_renew(e, flight)) {
            renewal = renew(e, renewal, flight);
            if (renewal != NULL) continue;
            flight->lease_until_ms = flight->until_ms; // no memory: it is as good as lost
        }
        const rt_outcome lost = {
            .job = flight->job, .token = flight->token, .reason = RT_REASON_LOST, .retry_after_ms = -1};
        rt_attempts_outcome(e, &lost);
        if (flight->settling) continue;
        (void)rt_heap_set(&e->flights.deadlines, &flight->deadline, e->now_ms + RT_STORE_PAUSE_MS);
        break; // no memory: try again a little later
    }
    submit_renewal(e, renewal);
}

bool rt_attempts_drop(rt_command *cmd) {
    if (cmd->done == settle_done) free_settle((own_settle *)cmd);
    else if (cmd->done == renewal_done) free(cmd);
    else return false;
    return true;
}
