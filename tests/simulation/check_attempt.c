/* check_attempt.c: attempts start when they may, and what follows from their outcome is what the policy says.
 */
#include "check.h"
#include "engine/common/renew.h"
#include "engine/messages/subscription.h"

/* ---- whose policy -------------------------------------------------------------------------------------- */

typedef struct sources {
    bool has_subscription, subscription_has, has_queue;
    bool goes_there; /* the subscription's uri is the one asked about */
    bool queue_overrides;
    rt_delivery_policy subscription, queue;
} sources;

static sources read_sources(rt_view *v, const rt_job *job, rt_str uri) {
    sources out = {0};
    rt_arena arena = {0};
    rt_doc doc;
    rt_subscription s;
    rt_metadata m;
    const rt_str name = rt_subscription_name(&arena, job->owner, job->queue);
    out.has_subscription =
        rt_view_doc(v, RT_DOC_SUBSCRIPTION, name, &doc) == RT_OK && rt_subscription_decode(doc.value, &s);
    if (out.has_subscription) {
        out.subscription_has = s.has_policy;
        out.subscription = s.policy;
        out.goes_there = rt_str_eq(s.uri, uri);
        const rt_str queue = rt_name(&arena, s.tenant, s.queue_name);
        const bool there =
            rt_view_doc(v, RT_DOC_METADATA, queue, &doc) == RT_OK && rt_metadata_decode(doc.value, &m);
        out.has_queue = there && m.id == job->owner && m.has_policy;
        if (out.has_queue) {
            out.queue = m.policy;
            out.queue_overrides = m.policy.ignore_subscription_override;
        }
    }
    rt_arena_deinit(&arena);
    return out;
}

/* The document's rule, written once more: the subscription's own policy, unless the queue's says to ignore
 * it; else the queue's; else the defaults. */
static rt_delivery_policy resolve(const sources *subscription, const sources *queue) {
    if (queue->has_queue && queue->queue_overrides) return queue->queue;
    if (subscription->subscription_has) return subscription->subscription;
    return queue->has_queue ? queue->queue : rt_delivery_policy_default();
}

/* ---- starting ------------------------------------------------------------------------------------------ */

/* Nothing else of this job is under way at an endpoint. After a jump of the clock nobody can tell. */
/* A node that stands still, or whose store does not take its renewals, loses its leases while its attempts go on. Each
 * began with half a lease at least. */
static bool may_have_lost_its_lease(const world *w, const node *n, const flight *f) {
    return !w->plan.disk.sole_owner && f->life != n->life &&
           w->now_ms >= f->started_ms + RT_LEASE_MS - RT_LEASE_RENEW_MS;
}

static void check_alone(world *w, const node *n, const rt_attempt *a) {
    for (uint32_t i = 0; i < w->flights_count; i++) {
        const flight *f = w->flights[i];
        if (f->attempt == NULL || f->attempt->job != a->job) continue;
        const bool over = f->ends_ms <= w->now_ms || f->jumps != w->jumps || may_have_lost_its_lease(w, n, f);
        TRACE_CHECK(&w->trace, over, "job %llx: attempt %u while attempt %u is under way",
                    (unsigned long long)a->job, a->number, f->attempt->number);
    }
}

static void check_limits(world *w, const node *n, const rt_attempt *a) {
    uint32_t all = 0;
    uint32_t queue = 0;
    for (uint32_t i = 0; i < w->flights_count; i++) {
        const flight *f = w->flights[i];
        if (f->attempt == NULL || f->life != n->life || f->ends_ms <= w->now_ms || f->jumps != w->jumps)
            continue;
        all++;
        if (f->attempt->queue == a->queue) queue++;
    }
    TRACE_CHECK(&w->trace, all < w->plan.settings.in_flight_max, "%u attempts under way, and one more", all);
    TRACE_CHECK(&w->trace, queue < w->plan.settings.queue_in_flight_max,
                "%u attempts of one queue, and one more", queue);
}

/* Where commits wait, an attempt starts in the step that decided on it, so the disk is as it was then: what
 * is paused, too old or gone is not tried, and what is tried goes where the subscription says. */
static void check_decision(world *w, const rt_attempt *a, const rt_job *job) {
    const trace *t = &w->trace;
    const unsigned long long id = a->job;
    rt_view *view = rt_memory_disk_view(w->disk);
    TRACE_CHECK(t, view != NULL, "no memory");
    rt_queue queue;
    const bool there = rt_view_queue(view, a->queue, &queue) == RT_OK;
    const sources from = read_sources(view, job, a->url);
    rt_view_close(view);
    const rt_delivery_policy p = resolve(&from, &from);
    const int64_t now_ms = world_wall_ms(w);
    TRACE_CHECK(t, there && (queue.gone || queue.paused_until_ms <= now_ms),
                "job %llx is tried in a queue that is paused", id);
    TRACE_CHECK(t, from.has_subscription && from.goes_there, "job %llx is sent elsewhere", id);
    TRACE_CHECK(t, a->timeout_ms == p.attempt_timeout_s * 1000, "job %llx: an attempt may take %u ms", id,
                a->timeout_ms);
    TRACE_CHECK(t, a->follow_redirects == p.follow_redirects, "job %llx: another way with redirects", id);
    const int64_t limit_ms = job->placed_ms + (int64_t)p.maximum_age_s * 1000;
    TRACE_CHECK(t, p.maximum_age_s == 0 || now_ms < limit_ms, "job %llx is tried beyond its maximum age", id);
}

void check_start(world *w, const node *n, const rt_attempt *a) {
    const trace *t = &w->trace;
    const unsigned long long id = a->job;
    const shadow *s = ledger_shadow(&w->ledger, a->job);
    TRACE_CHECK(t, s->job.id == a->job, "job %llx is tried and not on the disk", id);
    TRACE_CHECK(t, !(s->job.flags & RT_JOB_PULL), "message %llx is pushed", id);
    // Leases go by the wall clock: set back while a node stands still, it makes a lease seem to last that is
    // over.
    if (w->plan.nodes > 1 && w->back_ms > 0) return;
    TRACE_CHECK(t, s->job.state != RT_JOB_DEAD, "job %llx is tried and was given up", id);
    const bool done = s->job.state == RT_JOB_DONE;
    TRACE_CHECK(t, !done || s->job.reason != RT_REASON_DELIVERED, "job %llx was delivered and is tried again",
                id);
    TRACE_CHECK(t, s->success_known_by != n->life,
                "job %llx succeeded, the engine knows, and it is tried again", id);
    TRACE_CHECK(t, done || a->number == s->job.attempt + 1, "job %llx: attempt %u after %u", id, a->number,
                s->job.attempt);
    TRACE_CHECK(t, s->not_before_ms <= w->wall_max_ms, "job %llx is tried %lld ms before its time", id,
                (long long)(s->not_before_ms - w->wall_max_ms));
    if (!w->plan.disk.sole_owner && !done) {
        TRACE_CHECK(t, s->job.state == RT_JOB_LEASED && s->job.lease == a->token,
                    "job %llx is tried without its lease", id);
    }
    rt_id shown;
    TRACE_CHECK(t, rt_id_parse(w->plan.disk.tag, a->message_id, &shown) && shown == a->job,
                "job %llx has another name", id);
    if (s->message >= 0) {
        TRACE_CHECK(t, ledger_message_in(&w->ledger, a->body) == s->message, "job %llx carries another body",
                    id);
    }
    if (w->plan.disk.commit_waits && w->plan.nodes == 1) check_decision(w, a, &s->job);
    TRACE_CHECK(t, !n->stopping || !w->plan.disk.commit_waits, "job %llx is tried by a node that stops", id);
    check_alone(w, n, a);
    check_limits(w, n, a);
}

/* ---- ending -------------------------------------------------------------------------------------------- */

/* A batch may hold changes of both policies and outcomes between them: any mixture of old and new may have
 * governed. */
static uint32_t possible_policies(const landing *l, const rt_job *job, rt_delivery_policy out[5]) {
    const sources of[2] = {read_sources(l->before, job, RT_STR_EMPTY),
                           read_sources(l->after, job, RT_STR_EMPTY)};
    uint32_t count = 0;
    for (int s = 0; s < 2; s++) {
        for (int q = 0; q < 2; q++) {
            if (of[s].has_subscription) out[count++] = resolve(&of[s], &of[q]);
        }
    }
    out[count++] = rt_delivery_policy_default(); // none is left: it has been unsubscribed
    return of[0].has_subscription && of[1].has_subscription ? count - 1 : count;
}

static bool delay_fits(const rt_delivery_policy *p, uint32_t interval_ms, const rt_event *e, const told *o) {
    uint64_t plain_ms;
    rt_phase phase;
    if (!rt_delivery_policy_delay(p, e->attempt, &plain_ms, &phase)) return false;
    const uint64_t most_ms = (uint64_t)p->maximum_delay_s * 1000;
    uint64_t asked_ms = 0;
    if (p->respect_retry_after && o != NULL && o->retry_after_ms > 0) {
        asked_ms = (uint64_t)o->retry_after_ms < most_ms ? (uint64_t)o->retry_after_ms : most_ms;
    }
    uint64_t low_ms = plain_ms;
    uint64_t high_ms = plain_ms;
    if (phase != RT_PHASE_IMMEDIATE) {
        if (p->jitter == RT_JITTER_FULL) low_ms = 0;
        if (p->jitter == RT_JITTER_EQUAL) low_ms = plain_ms / 2;
        if (p->jitter == RT_JITTER_DECORRELATED) {
            low_ms = (uint64_t)p->minimum_delay_s * 1000;
            const uint64_t last_ms = interval_ms > low_ms ? interval_ms : low_ms;
            high_ms = 3 * last_ms < most_ms ? 3 * last_ms : most_ms;
        }
    }
    if (asked_ms > low_ms) low_ms = asked_ms;
    if (asked_ms > high_ms) high_ms = asked_ms;
    return e->delay_ms >= low_ms && e->delay_ms <= high_ms;
}

static bool gives_up(const rt_delivery_policy *p, const rt_job *job, const rt_event *e) {
    uint64_t delay_ms;
    rt_phase phase;
    if (e->attempt == 0) { // its maximum age
        return p->maximum_age_s > 0 && e->at_ms >= job->placed_ms + (int64_t)p->maximum_age_s * 1000;
    }
    if (e->reason == RT_REASON_ADDRESS_REFUSED || e->reason == RT_REASON_NO_MAIL_RELAY) return true;
    if (e->reason == RT_REASON_STATUS && rt_delivery_policy_judge(p, e->status) == RT_VERDICT_REJECTED)
        return true;
    if (e->reason == RT_REASON_STATUS && rt_delivery_policy_judge(p, e->status) == RT_VERDICT_SUCCESS)
        return false;
    return !rt_delivery_policy_delay(p, e->attempt, &delay_ms, &phase);
}

static bool tries_again(const rt_delivery_policy *p, const told_story *story, const rt_event *e,
                        const told *o) {
    if (e->reason == RT_REASON_ADDRESS_REFUSED || e->reason == RT_REASON_NO_MAIL_RELAY) return false;
    if (e->reason == RT_REASON_STATUS && rt_delivery_policy_judge(p, e->status) != RT_VERDICT_RETRY)
        return false;
    return delay_fits(p, story->interval_ms, e, o);
}

/* The next due time: after the delay, but not beyond the maximum age. */
static int64_t due_of(const rt_delivery_policy *p, const rt_job *job, const rt_event *e) {
    const int64_t due_ms = e->at_ms + (int64_t)e->delay_ms;
    if (p->maximum_age_s == 0) return due_ms;
    const int64_t limit_ms = job->placed_ms + (int64_t)p->maximum_age_s * 1000;
    if (due_ms <= limit_ms) return due_ms;
    return limit_ms > e->at_ms ? limit_ms : e->at_ms;
}

static void check_told(const landing *l, const rt_event *e, const told *o) {
    const bool needs_outcome = e->attempt > 0 && e->reason != RT_REASON_LOST;
    TRACE_CHECK(&l->world->trace, !needs_outcome || o != NULL,
                "job %llx: attempt %u ended with status %u, which no endpoint said",
                (unsigned long long)e->job, e->attempt, e->status);
}

static void say_policy(trace *t, const rt_delivery_policy *p) {
    trace_say(
        t, "policy: %u immediate, %u after %u s, %u %s, %u after %u s, jitter %s, age %u s, retry after %d",
        p->retries_with_no_delay, p->minimum_delay_retries, p->minimum_delay_s,
        rt_delivery_policy_backoff_retries(p), rt_backoff_function_name(p->backoff_function),
        p->maximum_delay_retries, p->maximum_delay_s, rt_jitter_name(p->jitter), p->maximum_age_s,
        p->respect_retry_after);
}

void check_attempt(const landing *l, const rt_job *job, const told_story *story, const rt_event *e,
                   int64_t *due_ms) {
    const shadow *s = ledger_shadow(&l->world->ledger, e->job);
    const told *o = ledger_was_told(s, e->attempt, e->status);
    check_told(l, e, o);
    if (e->type == RT_EVENT_DELIVERED) {
        TRACE_CHECK(&l->world->trace, e->status >= 200 && e->status < 300,
                    "job %llx: delivered with status %u", (unsigned long long)e->job, e->status);
        return;
    }
    rt_delivery_policy policies[5];
    const uint32_t count = possible_policies(l, job, policies);
    for (uint32_t i = 0; i < count; i++) {
        const rt_delivery_policy *p = &policies[i];
        if (e->type == RT_EVENT_DEAD && gives_up(p, job, e)) return;
        if (e->type == RT_EVENT_ATTEMPT && tries_again(p, story, e, o)) {
            *due_ms = due_of(p, job, e);
            return;
        }
    }
    for (uint32_t i = 0; i < count; i++) say_policy(&l->world->trace, &policies[i]);
    trace_say(&l->world->trace, "the last delay was %u ms, Retry-After %lld ms", story->interval_ms,
              o == NULL ? -1LL : (long long)o->retry_after_ms);
    trace_fail(&l->world->trace,
               "job %llx: after attempt %u (%s, status %u) %s with a delay of %u ms: no policy says so",
               (unsigned long long)e->job, e->attempt, rt_reason_name((rt_reason)e->reason), e->status,
               e->type == RT_EVENT_DEAD ? "given up" : "tried again", e->delay_ms);
}
