/* check.c: every record that changed did so by the rules; the account is even after every step. */
#include "check.h"

#include <stdlib.h>

#include "engine/messages/subscription.h"

static bool is_message(const rt_job *job) {
    return (job->flags & RT_JOB_PULL) != 0 && (job->flags & RT_JOB_HOLDER) == 0;
}

static bool is_pending(const rt_job *job) {
    return job->state == RT_JOB_READY || job->state == RT_JOB_SCHEDULED || job->state == RT_JOB_FREE ||
           job->state == RT_JOB_LEASED;
}

/* ---- what the events say ------------------------------------------------------------------------------- */

static bool add_event(void *ctx, const rt_event *event) {
    landing *l = ctx;
    rt_event known;
    if (rt_view_event(l->before, event->seq, &known) == RT_OK) return true;
    TRACE_CHECK(&l->world->trace, l->count < EVENTS_MAX, "too many events in one batch");
    l->events[l->count++] = *event;
    return true;
}

/* A delivery ends without success when somebody deletes it, or when its subscription is gone. */
static void check_delivery_end(const landing *l, const rt_job *job, rt_reason reason) {
    ledger *led = &l->world->ledger;
    const unsigned long long id = job->id;
    bool may =
        reason == RT_REASON_DELETED && (ledger_shadow(led, id)->deletes > 0 || led->dead_many_deletes > 0);
    if (reason == RT_REASON_UNSUBSCRIBED) {
        rt_arena arena = {0};
        rt_doc doc;
        const rt_str name = rt_subscription_name(&arena, job->owner, job->queue);
        may = rt_view_doc(l->after, RT_DOC_SUBSCRIPTION, name, &doc) != RT_OK;
        if (!may) may = doc.expires_ms > 0 && doc.expires_ms <= l->world->wall_max_ms;
        rt_arena_deinit(&arena);
    }
    TRACE_CHECK(&l->world->trace, may, "job %llx ended as %s, and nobody asked for it", id,
                rt_reason_name(reason));
}

/* Tells the story on by one event. */
static void tell(const landing *l, const rt_job *job, told_story *story, const rt_event *e) {
    const trace *t = &l->world->trace;
    const unsigned long long id = e->job;
    const bool pending = story->state == RT_JOB_SCHEDULED;
    switch ((rt_event_type)e->type) {
    case RT_EVENT_ATTEMPT:
        TRACE_CHECK(t, pending, "job %llx: an attempt of what is not pending", id);
        TRACE_CHECK(t, e->attempt == story->attempt + 1, "job %llx: attempt %u after %u", id, e->attempt,
                    story->attempt);
        check_attempt(l, job, story, e, &story->due_ms);
        story->attempt = e->attempt;
        story->interval_ms = e->delay_ms;
        return;
    case RT_EVENT_DELIVERED:
        TRACE_CHECK(t, pending, "job %llx: a delivery of what is not pending", id);
        TRACE_CHECK(t, e->attempt == story->attempt + 1, "job %llx: attempt %u after %u", id, e->attempt,
                    story->attempt);
        check_attempt(l, job, story, e, &story->due_ms);
        story->attempt = e->attempt;
        story->state = RT_JOB_DONE;
        story->reason = RT_REASON_DELIVERED;
        return;
    case RT_EVENT_DEAD:
        TRACE_CHECK(t, pending, "job %llx: given up what is not pending", id);
        check_attempt(l, job, story, e, &story->due_ms);
        if (e->attempt > 0) story->attempt = e->attempt;
        story->state = RT_JOB_DEAD;
        return;
    case RT_EVENT_ENDED:
        TRACE_CHECK(t, story->state != RT_JOB_DONE, "job %llx: ended twice", id);
        if (!is_message(job)) check_delivery_end(l, job, (rt_reason)e->reason);
        story->state = RT_JOB_DONE;
        story->reason = e->reason;
        return;
    case RT_EVENT_REDRIVEN:
        TRACE_CHECK(t, story->state == RT_JOB_DEAD, "job %llx: redriven, and was not dead", id);
        TRACE_CHECK(t,
                    l->world->ledger.dead_many_redrives + ledger_shadow(&l->world->ledger, id)->redrives > 0,
                    "job %llx: redriven, and nobody asked for it", id);
        story->state = RT_JOB_SCHEDULED;
        story->attempt = 0;
        story->interval_ms = 0;
        story->generation++;
        story->due_ms = -1;
        return;
    case RT_EVENT_MOVED: story->moved = true; return;
    case RT_EVENT_STARTED: // of work, which is simulated apart
    case RT_EVENT_FINISHED:
    case RT_EVENT_FAILED:
    case RT_EVENT_CANCELED:
    case RT_EVENT_EXPIRED:
    case RT_EVENT_PROGRESS:
    case RT_EVENT_RELEASED:
    case RT_EVENT_CIRCUIT:
    case RT_EVENT_CLAIMED:
    case RT_EVENT_NONE:
    case RT_EVENT_TYPE_COUNT: break;
    }
    trace_fail(t, "job %llx: an event of type %u", id, e->type);
}

static told_story story_of(const landing *l, shadow *s, const rt_job *was, const rt_job *now) {
    told_story story = {.state = RT_JOB_SCHEDULED, .due_ms = -1};
    if (was != NULL) {
        story.state = is_pending(was) ? RT_JOB_SCHEDULED : was->state;
        story.reason = was->reason;
        story.attempt = was->attempt;
        story.generation = was->generation;
        story.interval_ms = was->attempt == 0 ? 0 : was->interval_ms;
    }
    for (uint32_t i = 0; i < l->count; i++) {
        const rt_event *e = &l->events[i];
        if (e->job != now->id) continue;
        TRACE_CHECK(&l->world->trace, e->prev == s->last_event, "job %llx: its history is broken",
                    (unsigned long long)now->id);
        s->last_event = e->seq;
        tell(l, was != NULL ? was : now, &story, e);
        story.told = true;
    }
    TRACE_CHECK(&l->world->trace, now->last_event == s->last_event, "job %llx: its last event is another",
                (unsigned long long)now->id);
    return story;
}

/* ---- one job ------------------------------------------------------------------------------------------- */

static void count(ledger *l, const rt_job *job, int by) {
    uint32_t *counter = is_message(job) ? &l->states[job->state] : &l->deliveries_states[job->state];
    if (job->flags & RT_JOB_HOLDER) counter = &l->holders;
    *counter = (uint32_t)((int)*counter + by);
}

/* Perhaps it was made and removed in this very batch: then somebody asked for it and has no answer yet. */
static bool may_have_been(const ledger *l) {
    for (uint32_t i = 0; i < l->subscribers_count; i++) {
        if (l->subscribers[i].promise == PROMISE_OPEN || l->subscribers[i].promise == PROMISE_UNKNOWN)
            return true;
    }
    return false;
}

/* A delivery belongs to a subscription that exists in this batch, and no message is delivered to one twice.
 */
static void check_new_delivery(landing *l, shadow *s, const rt_job *now) {
    const trace *t = &l->world->trace;
    if (now->flags & RT_JOB_CONFIRMATION) return;
    const unsigned long long id = now->id;
    if (s->message < 0) { // made and ended in one batch, so that its body was never seen
        TRACE_CHECK(t, !is_pending(now), "delivery %llx has the body of no message", id);
        return;
    }
    rt_arena arena = {0};
    const rt_str name = rt_subscription_name(&arena, now->owner, now->queue);
    rt_doc doc;
    const bool there = rt_view_doc(l->before, RT_DOC_SUBSCRIPTION, name, &doc) == RT_OK ||
                       rt_view_doc(l->after, RT_DOC_SUBSCRIPTION, name, &doc) == RT_OK;
    rt_arena_deinit(&arena);
    TRACE_CHECK(t, there || may_have_been(&l->world->ledger),
                "delivery %llx is to a subscription that does not exist", id);
    message *m = &l->world->ledger.messages[s->message];
    for (uint32_t i = 0; i < m->deliveries; i++) {
        TRACE_CHECK(t, m->delivered_to[i] != now->queue, "message %d has two deliveries to one subscription",
                    s->message);
    }
    TRACE_CHECK(t, m->deliveries < DELIVERED_TO_MAX, "message %d has too many deliveries", s->message);
    m->delivered_to[m->deliveries++] = now->queue;
}

static void check_new(landing *l, shadow *s, const rt_job *now) {
    world *w = l->world;
    ledger *led = &w->ledger;
    TRACE_CHECK(&w->trace, s->job.id == 0, "job %llx exists twice", (unsigned long long)now->id);
    TRACE_CHECK(&w->trace, now->attempt == 0 && now->version >= 1, "job %llx is new and was tried already",
                (unsigned long long)now->id);
    s->made = ledger_tick(led);
    s->message = -1;
    if (now->flags & RT_JOB_HOLDER) return;
    rt_str body;
    if (rt_view_body(l->after, now->body, &body) == RT_OK) s->message = ledger_message_in(led, body);
    if (!is_message(now)) {
        w->deliveries++;
        check_new_delivery(l, s, now);
        return;
    }
    if (s->message < 0) {
        TRACE_CHECK(&w->trace, !is_pending(now), "message %llx has no body", (unsigned long long)now->id);
        led->unnamed++;
        return;
    }
    message *m = &led->messages[s->message];
    TRACE_CHECK(&w->trace, m->id == 0, "message %d is on the disk twice", s->message);
    TRACE_CHECK(&w->trace, led->posts[m->post].promise != PROMISE_REFUSED,
                "message %d was refused and is on the disk", s->message);
    m->id = now->id;
}

static void check_gone(landing *l, shadow *s, const rt_job *was) {
    if (!(was->flags & RT_JOB_HOLDER)) {
        const bool may_go = was->state == RT_JOB_DONE && l->trimmed;
        TRACE_CHECK(&l->world->trace, may_go, "job %llx has vanished", (unsigned long long)was->id);
    }
    s->gone = true;
    if (is_message(was)) l->world->ledger.gone_messages++;
    count(&l->world->ledger, was, -1);
}

/* Deliveries: what happened to it is what its events say, and its next attempt is due when they say. */
static void check_delivery_step(landing *l, shadow *s, const told_story *story, const rt_job *was,
                                const rt_job *now) {
    const trace *t = &l->world->trace;
    const unsigned long long id = now->id;
    const uint8_t state = is_pending(now) ? RT_JOB_SCHEDULED : now->state;
    TRACE_CHECK(t, state == story->state, "job %llx is %s without an event that says so", id,
                rt_job_state_name((rt_job_state)now->state));
    TRACE_CHECK(t, now->attempt == story->attempt, "job %llx counts %u attempts, its events %u", id,
                now->attempt, story->attempt);
    TRACE_CHECK(t, now->generation == story->generation, "job %llx is of another generation", id);
    if (now->state == RT_JOB_DONE) {
        TRACE_CHECK(t, now->reason == story->reason, "job %llx is done for another reason than its event's",
                    id);
    }
    if (now->state == RT_JOB_SCHEDULED) {
        if (story->due_ms >= 0) {
            TRACE_CHECK(t, now->due_ms == story->due_ms,
                        "job %llx is due %lld ms away from its policy's time", id,
                        (long long)(now->due_ms - story->due_ms));
        }
        if (was != NULL && !story->told && was->state != RT_JOB_READY) {
            TRACE_CHECK(t, now->due_ms == was->due_ms, "job %llx has another due time without an event", id);
        }
        s->not_before_ms = now->due_ms;
    }
    if (now->state == RT_JOB_READY) {
        TRACE_CHECK(t, was == NULL || was->state != RT_JOB_SCHEDULED || story->told,
                    "job %llx need not wait any more", id);
        s->not_before_ms = 0;
    }
    const bool taken_back =
        was != NULL && was->state == RT_JOB_LEASED && is_pending(now) && now->lease != was->lease;
    TRACE_CHECK(t, !taken_back || story->told, "job %llx lost its lease without an event", id);
}

static void check_job(void *ctx, const rt_job *was, const rt_job *now) {
    landing *l = ctx;
    world *w = l->world;
    shadow *s = ledger_shadow(&w->ledger, was != NULL ? was->id : now->id);
    if (now == NULL) {
        check_gone(l, s, was);
        return;
    }
    if (was == NULL) check_new(l, s, now);
    if (was != NULL) count(&w->ledger, was, -1);
    count(&w->ledger, now, 1);
    if (!(now->flags & RT_JOB_HOLDER)) {
        if (was != NULL)
            TRACE_CHECK(&w->trace, was->state != RT_JOB_DONE, "job %llx was done",
                        (unsigned long long)now->id);
        const told_story story = story_of(l, s, was, now);
        if (is_message(now)) check_message_step(l, s, was, now);
        else check_delivery_step(l, s, &story, was, now);
    }
    s->job = *now;
    trace_note(&w->trace, rt_job_state_name((rt_job_state)now->state), now->id,
               (uint64_t)now->due_ms + now->attempt);
}

/* ---- one batch ----------------------------------------------------------------------------------------- */

void check_landed(void *ctx, rt_view *before, rt_view *after) {
    world *w = ctx;
    w->landed++;
    landing *l = w->landing;
    l->world = w;
    l->before = before;
    l->after = after;
    l->count = 0;
    l->trimmed = w->plan.disk.retention.events > 0;
    // With two nodes the numbers of one may land after higher ones of the other.
    const uint64_t back = w->plan.nodes > 1 ? 2000 : 0;
    const uint64_t from = w->last_event > back ? w->last_event - back : 0;
    if (rt_view_events(after, from, add_event, l) != RT_OK) abort();
    for (uint32_t i = 0; i < l->count; i++) {
        if (l->events[i].seq > w->last_event) w->last_event = l->events[i].seq;
        TRACE_CHECK(&w->trace, l->events[i].at_ms <= w->wall_max_ms, "an event of the future");
    }
    rt_memory_each_changed_job(before, after, check_job, l);
}

void check_init(world *w) {
    w->landing = calloc(1, sizeof *w->landing);
    if (w->landing == NULL) abort();
}

void check_deinit(world *w) { free(w->landing); }
