#include "engine/delivery.h"

#include "engine/engine.h"
#include "engine/message.h"
#include "engine/notice.h"

/* A delivery's subscription, and the policy that governs it at this moment. */
typedef struct governed {
    bool present; /* false: the subscription is gone */
    rt_subscription subscription;
    rt_delivery_policy policy;
} governed;

static bool is_mail(const rt_subscription *s) { return rt_str_starts(s->uri, RT_STR("mailto:")); }

rt_delivery_policy rt_delivery_policy_of(const rt_subscription *s, const rt_metadata *queue) {
    // The policy document is for webhooks only; a mail is still tried again, by the defaults.
    if (is_mail(s)) return rt_delivery_policy_default();
    const bool queue_has_one = queue != NULL && queue->has_policy;
    if (queue_has_one && queue->policy.ignore_subscription_override) return queue->policy;
    if (s->has_policy) return s->policy;
    return queue_has_one ? queue->policy : rt_delivery_policy_default();
}

/* Reads without guarding: a policy that changes at this very moment may count for this attempt or the next. */
static rt_code load_governed(rt_tx *tx, const rt_job *job, governed *out) {
    const rt_str name = rt_subscription_name(tx->arena, job->owner, job->queue);
    if (name.ptr == NULL) return RT_E_NOMEM;
    rt_doc doc;
    rt_code code = rt_view_doc(tx->view, RT_DOC_SUBSCRIPTION, name, &doc);
    out->present = code == RT_OK && (doc.expires_ms == 0 || doc.expires_ms > tx->now_ms);
    out->policy = rt_delivery_policy_default();
    if (code == RT_E_ABSENT) return RT_OK;
    if (code != RT_OK) return code;
    rt_subscription *s = &out->subscription;
    if (!rt_subscription_decode(doc.value, s))
        return rt_fail(tx->err, RT_E_CORRUPT, 0, "subscription cannot be read");

    const rt_str queue_name = rt_metadata_name(tx->arena, s->tenant, s->queue_name);
    if (queue_name.ptr == NULL) return RT_E_NOMEM;
    rt_doc queue_doc;
    rt_metadata queue;
    code = rt_view_doc(tx->view, RT_DOC_METADATA, queue_name, &queue_doc);
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    if (code == RT_OK && !rt_metadata_decode(queue_doc.value, &queue)) {
        return rt_fail(tx->err, RT_E_CORRUPT, 0, "queue metadata cannot be read");
    }
    out->policy = rt_delivery_policy_of(s, code == RT_OK && queue.id == job->owner ? &queue : NULL);
    return RT_OK;
}

/* INT64_MAX: no maximum age. */
static int64_t age_limit_ms(const rt_job *job, const rt_delivery_policy *p) {
    return p->maximum_age_s == 0 ? INT64_MAX : job->placed_ms + (int64_t)p->maximum_age_s * 1000;
}

static void give_up(rt_tx *tx, const rt_job *job, rt_reason reason, rt_event last) {
    rt_job now = *job;
    now.state = RT_JOB_DEAD;
    now.reason = (uint8_t)reason;
    now.lease = 0;
    now.due_ms = 0;
    if (last.attempt > 0) now.attempt = last.attempt;
    last.type = RT_EVENT_DEAD;
    if (last.reason == RT_REASON_NONE) last.reason = (uint8_t)reason;
    rt_tx_event(tx, &now, last);
    rt_tx_update_job(tx, job, &now);
    tx->frees = true;
}

/* ---- starting ------------------------------------------------------------------------------------------------------ */

static void free_delayed_message(rt_tx *tx, const rt_job *job) {
    rt_job now = *job;
    now.state = RT_JOB_FREE;
    now.due_ms = 0;
    rt_tx_update_job(tx, job, &now);
    tx->frees = true;
}

static void write_lease(rt_tx *tx, const rt_job *job, const rt_start *start) {
    rt_job now = *job;
    now.state = RT_JOB_LEASED;
    now.lease = start->token;
    now.due_ms = start->deadline_ms;
    rt_tx_update_job(tx, job, &now);
    tx->frees = true;
}

static rt_code build_attempt(rt_tx *tx, const rt_job *job, const governed *by, rt_start *start) {
    rt_str body;
    rt_code code = rt_view_body(tx->view, job->body, &body);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_E_CORRUPT : code;
    const rt_subscription *s = &by->subscription;
    rt_buf notice = {0};
    if (!(job->flags & RT_JOB_CONFIRMATION)) {
        rt_notice_write(&notice, job, body, s);
        body = rt_buf_str(&notice);
    }
    const rt_id_text id = rt_id_format(tx->store->tag, job->id);
    const rt_attempt like = {
        .job = job->id,
        .queue = job->queue,
        .token = start->token,
        .number = job->attempt + 1,
        .timeout_ms = by->policy.attempt_timeout_s * 1000,
        .follow_redirects = by->policy.follow_redirects,
        .url = s->uri,
        .headers = s->headers,
        .message_id = rt_str_of(id.s),
        .secrets = {s->secrets[0], s->secrets[1]},
        .subject = s->subject,
        .from = s->from,
        .body = body,
    };
    start->attempt = notice.failed ? NULL : rt_attempt_new(&like);
    start->bytes = sizeof like + body.len + s->headers.len + s->uri.len;
    rt_buf_deinit(&notice);
    return start->attempt == NULL ? rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for an attempt") : RT_OK;
}

rt_code rt_delivery_start(rt_tx *tx, const rt_job *job, rt_start *start) {
    start->due = RT_DUE_WRITTEN;
    start->attempt = NULL;
    if (job->flags & RT_JOB_PULL) {
        free_delayed_message(tx, job);
        return RT_OK;
    }
    governed by;
    rt_code code = load_governed(tx, job, &by);
    if (code != RT_OK) return code;
    if (!by.present) {
        rt_job_end(tx, job, RT_REASON_UNSUBSCRIBED);
        return RT_OK;
    }
    if (tx->now_ms >= age_limit_ms(job, &by.policy)) {
        give_up(tx, job, RT_REASON_EXPIRED, (rt_event){0});
        return RT_OK;
    }
    code = build_attempt(tx, job, &by, start);
    if (code != RT_OK) return code;
    start->due = RT_DUE_START;
    start->deadline_ms = tx->now_ms + start->attempt->timeout_ms + tx->settings->lease_margin_ms;
    if (start->write_lease) write_lease(tx, job, start);
    return RT_OK;
}

/* ---- settling ------------------------------------------------------------------------------------------------------ */

static rt_verdict judge(const rt_outcome *o, const rt_delivery_policy *policy) {
    switch (o->reason) {
        case RT_REASON_STATUS: return rt_delivery_policy_judge(policy, o->status);
        case RT_REASON_ADDRESS_REFUSED:
        case RT_REASON_NO_MAIL_RELAY: return RT_VERDICT_REJECTED;
        case RT_REASON_TIMEOUT:
        case RT_REASON_CONNECT:
        case RT_REASON_RESOLVE:
        case RT_REASON_TLS:
        case RT_REASON_BROKEN:
        case RT_REASON_LOST: return RT_VERDICT_RETRY;
        case RT_REASON_NONE:
        case RT_REASON_DELIVERED:
        case RT_REASON_EXPIRED:
        case RT_REASON_DELETED:
        case RT_REASON_UNSUBSCRIBED:
        case RT_REASON_EXHAUSTED:
        case RT_REASON_REJECTED:
        case RT_REASON_CLAIMS_EXCEEDED:
        case RT_REASON_COUNT: break;
    }
    RT_ASSERT(false && "an executor reports only what executor.h lists");
    return RT_VERDICT_RETRY;
}

static void deliver(rt_tx *tx, const rt_job *job, const rt_event *attempt) {
    rt_job now = *job;
    now.state = RT_JOB_DONE;
    now.reason = RT_REASON_DELIVERED;
    now.attempt = attempt->attempt;
    now.lease = 0;
    now.due_ms = 0;
    rt_event event = *attempt;
    event.type = RT_EVENT_DELIVERED;
    event.reason = RT_REASON_DELIVERED;
    rt_tx_event(tx, &now, event);
    rt_tx_update_job(tx, job, &now);
}

/* The delay before the next attempt; false: there is none. */
static bool next_delay(rt_tx *tx, const rt_job *job, const rt_delivery_policy *p, const rt_outcome *o,
                       uint64_t *delay_ms) {
    rt_phase phase;
    if (!rt_delivery_policy_delay(p, job->attempt + 1, delay_ms, &phase)) return false;
    *delay_ms = rt_delivery_policy_jittered(p, *delay_ms, job->interval_ms, rt_rng_next(tx->rng));
    if (p->respect_retry_after && o->retry_after_ms > 0) {
        const uint64_t most = (uint64_t)p->maximum_delay_s * 1000;
        const uint64_t asked = (uint64_t)o->retry_after_ms < most ? (uint64_t)o->retry_after_ms : most;
        if (*delay_ms < asked) *delay_ms = asked;
    }
    return true;
}

static void try_again(rt_tx *tx, const rt_job *job, const rt_delivery_policy *p, uint64_t delay_ms,
                      rt_event event) {
    rt_job now = *job;
    now.state = RT_JOB_SCHEDULED;
    now.lease = 0;
    now.attempt = event.attempt;
    now.interval_ms = (uint32_t)delay_ms;
    now.due_ms = tx->now_ms + (int64_t)delay_ms;
    // At its maximum age the job is looked at once more, and dies: neither before nor a whole delay later.
    const int64_t limit = age_limit_ms(job, p);
    if (now.due_ms > limit) now.due_ms = limit > tx->now_ms ? limit : tx->now_ms;
    event.type = RT_EVENT_ATTEMPT;
    event.delay_ms = (uint32_t)delay_ms;
    rt_tx_event(tx, &now, event);
    rt_tx_update_job(tx, job, &now);
}

static rt_reason reason_of_rejection(const rt_outcome *o) {
    return o->reason == RT_REASON_STATUS ? RT_REASON_REJECTED : o->reason;
}

static rt_code decide_settle(rt_tx *tx, rt_command *cmd) {
    rt_settle *s = (rt_settle *)cmd;
    const rt_outcome *o = &s->outcome;
    tx->frees = true;
    rt_job job;
    rt_code code = rt_view_job(tx->view, o->job, &job);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    if (job.state == RT_JOB_DONE || job.state == RT_JOB_DEAD) return RT_OK;
    if (s->leased && (job.state != RT_JOB_LEASED || job.lease != o->token)) return RT_OK;

    governed by;
    code = load_governed(tx, &job, &by);
    if (code != RT_OK) return code;
    const rt_event attempt = {
        .attempt = job.attempt + 1,
        .took_ms = o->took_ms,
        .status = o->status,
        .reason = (uint8_t)o->reason,
        .text = {.ptr = o->text, .len = o->text_len},
    };
    const rt_verdict verdict = judge(o, &by.policy);
    s->worked =
        verdict == RT_VERDICT_SUCCESS || (verdict == RT_VERDICT_REJECTED && o->reason == RT_REASON_STATUS);
    uint64_t delay_ms;
    if (verdict == RT_VERDICT_SUCCESS) {
        deliver(tx, &job, &attempt);
    } else if (!by.present) {
        rt_job_end(tx, &job, RT_REASON_UNSUBSCRIBED);
    } else if (verdict == RT_VERDICT_REJECTED) {
        give_up(tx, &job, reason_of_rejection(o), attempt);
    } else if (next_delay(tx, &job, &by.policy, o, &delay_ms)) {
        try_again(tx, &job, &by.policy, delay_ms, attempt);
    } else {
        give_up(tx, &job, RT_REASON_EXHAUSTED, attempt);
    }
    return RT_OK;
}

void rt_settle_init(rt_settle *s, const rt_outcome *outcome, bool leased) {
    *s = (rt_settle){.cmd = {.decide = decide_settle}, .outcome = *outcome, .leased = leased};
}
