/* check_message.c: messages end only by what clients asked for, or by their time; claims exclude each other.
 */
#include "check.h"

static const message *message_of(const landing *l, const shadow *s) {
    return s->message < 0 ? NULL : &l->world->ledger.messages[s->message];
}

static uint32_t queue_of(const landing *l, const message *m) { return l->world->ledger.posts[m->post].queue; }

/* Deleted: by its id, by a pop, or with all that its queue held. */
static void check_deletion(const landing *l, shadow *s, const rt_job *job) {
    const ledger *led = &l->world->ledger;
    const message *m = message_of(l, s);
    if (m != NULL && m->deletes > 0) return;
    const instant since = m == NULL ? NEVER_YET : led->posts[m->post].sent;
    if (m != NULL && ledger_wiped(led, queue_of(l, m), true, since)) return;
    if (s->moved && ledger_wiped(led, l->world->plan.queues - 1, true, since)) return;
    const bool popped = led->pops_open > 0 || led->pops_unknown > 0;
    TRACE_CHECK(&l->world->trace, popped, "message %llx was deleted, and nobody asked for it",
                (unsigned long long)job->id);
    s->popped = true;
}

static void check_end(const landing *l, shadow *s, const rt_job *was, const rt_job *now) {
    const trace *t = &l->world->trace;
    const unsigned long long id = now->id;
    if (now->reason == RT_REASON_DELETED || now->reason == RT_REASON_UNSUBSCRIBED) {
        check_deletion(l, s, now);
        return;
    }
    if (now->reason == RT_REASON_EXPIRED) {
        const int64_t end_ms = was == NULL ? now->expires_ms : was->expires_ms;
        TRACE_CHECK(t, end_ms > 0 && end_ms <= l->world->wall_max_ms, "message %llx expired before its time",
                    id);
        return;
    }
    trace_fail(t, "message %llx ended with reason %s", id, rt_reason_name((rt_reason)now->reason));
}

/* Is the lease over by its time, or was it released by its holder? */
static bool lease_is_over(const landing *l, rt_id id) {
    rt_lease lease;
    if (rt_view_lease(l->before, id, &lease) != RT_OK || lease.until_ms <= l->world->wall_max_ms) return true;
    return client_asked_release(l->world, id);
}

static void check_lease(const landing *l, shadow *s, const rt_job *was, const rt_job *now) {
    const trace *t = &l->world->trace;
    const unsigned long long id = now->id;
    const bool held = was != NULL && was->state == RT_JOB_LEASED;
    const bool same = held && now->state == RT_JOB_LEASED && was->lease == now->lease;
    if (held && !same)
        TRACE_CHECK(t, lease_is_over(l, was->lease), "message %llx was taken from a claim that lives", id);
    if (now->state != RT_JOB_LEASED || same) return;
    rt_lease lease;
    TRACE_CHECK(t, rt_view_lease(l->after, now->lease, &lease) == RT_OK, "message %llx is held by no claim",
                id);
    const uint32_t before = was == NULL || was->queue != now->queue ? 0 : was->claims;
    TRACE_CHECK(t, now->claims == before + 1, "message %llx: a claim was not counted", id);
    s->last_lease = now->lease;
}

void check_message_step(const landing *l, shadow *s, const rt_job *was, const rt_job *now) {
    const trace *t = &l->world->trace;
    const unsigned long long id = now->id;
    TRACE_CHECK(t, now->state != RT_JOB_DEAD, "message %llx is dead: there is no such thing", id);
    TRACE_CHECK(t, now->attempt == 0, "message %llx was pushed", id);
    if (was != NULL && was->queue != now->queue) {
        TRACE_CHECK(t, l->world->plan.dead_letters, "message %llx was moved", id);
        s->moved = true;
    }
    if (now->state == RT_JOB_DONE) {
        check_end(l, s, was, now);
        return;
    }
    if (was != NULL && was->state == RT_JOB_SCHEDULED && now->state != RT_JOB_SCHEDULED) {
        TRACE_CHECK(t, was->due_ms <= l->world->wall_max_ms,
                    "message %llx was shown before its delay was over", id);
    }
    check_lease(l, s, was, now);
}
