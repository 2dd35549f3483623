/* check_end.c: the account after each step, and what must be true when everything has ended. */
#include "world.h"

enum {
    QUIET_STEPS_MAX = 150,    /* in an hour: history is looked through once a minute; a few things end yet */
    STEPS_MAX = 60000,
    DELIVERED_BY_MS = 900000, /* after the faults: the longest delay, a lease, a rated redrive */
    ENDED_BY_MS = 3 * 3600000 /* the longest time to live, and a claim on top */
};

static uint32_t sum(const uint32_t states[RT_JOB_STATE_COUNT]) {
    uint32_t total = 0;
    for (int i = 0; i < RT_JOB_STATE_COUNT; i++) total += states[i];
    return total;
}

void check_account(world *w) {
    const ledger *l = &w->ledger;
    if (w->counted == w->landed) return;
    w->counted = w->landed;
    uint32_t kept = 0;
    uint32_t found = 0;
    for (uint32_t i = 0; i < l->posts_count; i++) {
        const post *p = &l->posts[i];
        uint32_t on_disk = 0;
        for (uint32_t m = p->first; m < p->first + p->count; m++) on_disk += l->messages[m].id != 0;
        TRACE_CHECK(&w->trace,
                    on_disk == 0 || on_disk == p->count || p->promise == PROMISE_OPEN || l->unnamed > 0,
                    "post %u is on the disk in part", i);
        if (p->promise == PROMISE_KEPT) {
            TRACE_CHECK(&w->trace, on_disk == p->count, "post %u was acknowledged and is not on the disk", i);
            kept += p->count;
        }
        found += on_disk;
    }
    const uint32_t messages = sum(l->states) + l->gone_messages;
    TRACE_CHECK(&w->trace, messages == found + l->unnamed, "%u messages were made, %u are accounted for",
                found + l->unnamed, messages);
    TRACE_CHECK(&w->trace, kept <= messages, "%u messages were acknowledged, %u are accounted for", kept,
                messages);
    rt_view *view = rt_memory_disk_view(w->disk);
    rt_counts counts;
    TRACE_CHECK(&w->trace, view != NULL && rt_view_counts(view, 0, &counts) == RT_OK, "no memory");
    rt_view_close(view);
    const int64_t all =
        counts.ready + counts.scheduled + counts.free + counts.leased + counts.dead + counts.done;
    TRACE_CHECK(&w->trace, all == (int64_t)sum(l->states) + sum(l->deliveries_states) + l->holders,
                "the disk holds %lld jobs, the ledger another number", (long long)all);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static bool stop_at_first(void *ctx, const rt_doc *doc) {
    (void)doc;
    *(bool *)ctx = true;
    return false;
}

static bool has_cursors(world *w) {
    bool any = false;
    rt_view *view = rt_memory_disk_view(w->disk);
    TRACE_CHECK(&w->trace, view != NULL, "no memory");
    const rt_code code = rt_view_docs(view, RT_DOC_CURSOR, RT_STR_EMPTY, RT_STR_EMPTY, stop_at_first, &any);
    rt_view_close(view);
    return code != RT_OK || any;
}

bool check_has_ended(world *w) {
    const ledger *l = &w->ledger;
    const uint32_t pushed = l->deliveries_states[RT_JOB_READY] + l->deliveries_states[RT_JOB_SCHEDULED] +
                            l->deliveries_states[RT_JOB_LEASED];
    const uint32_t held = l->states[RT_JOB_SCHEDULED] + l->states[RT_JOB_LEASED] + l->holders;
    // A sole owner sleeps until the next thing ends, so its messages' times can be waited for; others look
    // every moment.
    const uint32_t waiting = w->plan.disk.sole_owner ? l->states[RT_JOB_FREE] : 0;
    if (w->requests_open + w->flights_live + pushed + held + waiting > 0) return false;
    for (uint32_t i = 0; i < w->plan.nodes; i++) {
        if (w->nodes[i].life == 0) continue;
        if (rt_store_memory_untold(w->nodes[i].store) > 0) return false;
        // An attempt whose lease was lost, and which is never told, keeps its place until it must be over.
        if (!w->plan.disk.sole_owner && rt_engine_busy(w->nodes[i].engine) > 0) return false;
    }
    return !has_cursors(w);
}

static bool say_queue(void *ctx, const rt_queue *queue) {
    trace_say(ctx, "queue %llx: paused until %lld, gone %u", (unsigned long long)queue->id,
              (long long)queue->paused_until_ms, queue->gone);
    return true;
}

static _Noreturn void fail_stuck(world *w) {
    const ledger *l = &w->ledger;
    rt_view *view = rt_memory_disk_view(w->disk);
    if (view == NULL || rt_view_queues(view, 0, say_queue, &w->trace) != RT_OK)
        trace_say(&w->trace, "no memory");
    rt_view_close(view);
    for (uint32_t i = 0; i < l->shadows_count; i++) {
        const shadow *s = &l->shadows[i];
        if (s->job.id == 0 || s->gone || s->job.state == RT_JOB_DONE || s->job.state == RT_JOB_DEAD) continue;
        trace_say(&w->trace, "waiting: job %llx of queue %llx, %s, due in %lld ms, flags %u",
                  (unsigned long long)s->job.id, (unsigned long long)s->job.queue,
                  rt_job_state_name((rt_job_state)s->job.state),
                  (long long)(s->job.due_ms - world_wall_ms(w)), s->job.flags);
    }
    trace_fail(
        &w->trace,
        "it does not come to an end: requests %u, attempts %u, messages free %u scheduled %u leased %u, "
        "deliveries ready %u scheduled %u leased %u, cursors %d",
        w->requests_open, w->flights_live, l->states[RT_JOB_FREE], l->states[RT_JOB_SCHEDULED],
        l->states[RT_JOB_LEASED], l->deliveries_states[RT_JOB_READY], l->deliveries_states[RT_JOB_SCHEDULED],
        l->deliveries_states[RT_JOB_LEASED], has_cursors(w));
}

void check_in_time(world *w) {
    const ledger *l = &w->ledger;
    const bool pushed = l->deliveries_states[RT_JOB_READY] + l->deliveries_states[RT_JOB_SCHEDULED] +
                            l->deliveries_states[RT_JOB_LEASED] >
                        0;
    // What is stored is due by the wall clock, so setting it back makes everything later.
    const int64_t by_ms = (pushed ? DELIVERED_BY_MS : ENDED_BY_MS) + w->back_ms;
    if (w->now_ms > w->drain_ms + by_ms || w->steps > STEPS_MAX) fail_stuck(w);
}

void check_stopped(world *w, const node *n) {
    TRACE_CHECK(&w->trace, client_waits_for(w, n->number) == 0,
                "node %u stopped and left a request without an answer", n->number);
    for (uint32_t i = 0; i < w->flights_count; i++) {
        const flight *f = w->flights[i];
        const bool under_way =
            f->attempt != NULL && f->life == n->life && f->ends_ms > w->now_ms && f->jumps == w->jumps;
        TRACE_CHECK(&w->trace, !under_way, "node %u stopped before attempt %u of job %llx had ended",
                    n->number, f->attempt->number, (unsigned long long)f->attempt->job);
    }
}

static bool has_delivery(const message *m, rt_id subscription) {
    for (uint32_t i = 0; i < m->deliveries; i++) {
        if (m->delivered_to[i] == subscription) return true;
    }
    return false;
}

/* Who had subscribed before the message was sent, and stayed, has a delivery; who came after it was stored
 * has none. */
static void check_fan_out(world *w, uint32_t number) {
    const ledger *l = &w->ledger;
    const message *m = &l->messages[number];
    const post *p = &l->posts[m->post];
    for (uint32_t i = 0; i < l->subscribers_count; i++) {
        const subscriber *s = &l->subscribers[i];
        if (s->promise != PROMISE_KEPT || s->queue != p->queue || s->id == 0) continue;
        const bool removed = s->removal_sent != NEVER_YET || ledger_wiped(l, s->queue, false, s->sent);
        const bool must = s->answered < p->sent && s->lasting && !removed;
        const bool must_not = p->promise == PROMISE_KEPT && s->sent > p->answered;
        const bool has = has_delivery(m, s->id);
        TRACE_CHECK(&w->trace, !must || has, "message %u has no delivery to subscription %llx", number,
                    (unsigned long long)s->id);
        TRACE_CHECK(&w->trace, !must_not || !has,
                    "message %u has a delivery to subscription %llx, which is younger", number,
                    (unsigned long long)s->id);
    }
}

/* Whatever was deleted without being named was returned by a pop, or by one whose answer got lost. */
static void check_popped(world *w, const shadow *s) {
    const message *m = &w->ledger.messages[s->message];
    TRACE_CHECK(&w->trace, m->popped || w->ledger.pops_unknown > 0,
                "message %d was taken by a pop that returned something else", s->message);
}

/* Nothing is left in the engines, and they sleep. */
static void check_idle(world *w) {
    for (uint32_t i = 0; i < w->plan.nodes; i++) {
        const node *n = &w->nodes[i];
        if (n->life == 0) continue;
        TRACE_CHECK(&w->trace, rt_engine_busy(n->engine) == 0, "node %u is busy with nothing", i);
        const rt_metrics *m = rt_engine_metrics(n->engine);
        TRACE_CHECK(&w->trace, m->attempts_in_flight == 0 && m->bytes_in_flight == 0,
                    "node %u counts attempts under way", i);
    }
    TRACE_CHECK(&w->trace, !w->plan.disk.sole_owner || w->quiet_steps <= QUIET_STEPS_MAX,
                "%u steps in an hour without anything to do", w->quiet_steps);
}

void check_ended(world *w) {
    const ledger *l = &w->ledger;
    check_idle(w);
    check_account(w);
    for (uint32_t i = 0; i < l->messages_count; i++) {
        if (l->messages[i].id != 0) check_fan_out(w, i);
    }
    for (uint32_t i = 0; i < l->shadows_count; i++) {
        const shadow *s = &l->shadows[i];
        if (s->job.id == 0 || s->gone || (s->job.flags & RT_JOB_HOLDER)) continue;
        const bool ended =
            s->job.state == RT_JOB_DONE || s->job.state == RT_JOB_DEAD || s->job.state == RT_JOB_FREE;
        TRACE_CHECK(&w->trace, ended, "job %llx never ended", (unsigned long long)s->job.id);
        if (s->popped && s->message >= 0) check_popped(w, s);
    }
}
