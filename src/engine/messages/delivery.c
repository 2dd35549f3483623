#include "engine/messages/delivery.h"

#include "engine/common/job.h"
#include "engine/common/life.h"
#include "engine/messages/message.h"
#include "engine/messages/notice.h"

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

    const rt_str queue_name = rt_name(tx->arena, s->tenant, s->queue_name);
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

/* ---- starting ------------------------------------------------------------------------------------------ */

static void free_delayed_message(rt_tx *tx, const rt_job *job) {
    rt_job now = *job;
    now.state = RT_JOB_FREE;
    now.due_ms = 0;
    rt_tx_update_job(tx, job, &now);
    tx->frees = true;
}

static rt_code start_attempt(rt_tx *tx, const rt_job *job, const governed *by, rt_start *start) {
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
    code = notice.failed ? rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a notice")
                         : rt_start_attempt(tx, job, like, start);
    rt_buf_deinit(&notice);
    return code;
}

static rt_code start(rt_tx *tx, const rt_job *job, rt_start *start) {
    if (job->flags & RT_JOB_PULL) {
        free_delayed_message(tx, job);
        return RT_OK;
    }
    governed by;
    const rt_code code = load_governed(tx, job, &by);
    if (code != RT_OK) return code;
    if (!by.present) {
        rt_job_end(tx, job, RT_REASON_UNSUBSCRIBED);
        return RT_OK;
    }
    if (tx->now_ms >= rt_job_age_limit_ms(job->placed_ms, by.policy.maximum_age_s)) {
        rt_job_give_up(tx, job, RT_REASON_EXPIRED, (rt_event){0});
        return RT_OK;
    }
    return start_attempt(tx, job, &by, start);
}

/* ---- settling ------------------------------------------------------------------------------------------ */

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
    case RT_REASON_LOST:
    case RT_REASON_UNAVAILABLE:
    case RT_REASON_CRASHED:
    case RT_REASON_NONSENSE:
    case RT_REASON_NO_PLUGIN: return RT_VERDICT_RETRY;
    case RT_REASON_NONE:
    case RT_REASON_DELIVERED:
    case RT_REASON_EXPIRED:
    case RT_REASON_DELETED:
    case RT_REASON_UNSUBSCRIBED:
    case RT_REASON_EXHAUSTED:
    case RT_REASON_REJECTED:
    case RT_REASON_CLAIMS_EXCEEDED:
    case RT_REASON_FAILED:
    case RT_REASON_CIRCUIT_OPEN:
    case RT_REASON_COUNT: break;
    }
    RT_ASSERT(false && "an executor reports only what executor.h lists");
    return RT_VERDICT_RETRY;
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

static rt_reason reason_of_rejection(const rt_outcome *o) {
    return o->reason == RT_REASON_STATUS ? RT_REASON_REJECTED : o->reason;
}

static rt_code settle(rt_tx *tx, const rt_job *job, rt_settle *s) {
    const rt_outcome *o = &s->outcome;
    governed by;
    const rt_code code = load_governed(tx, job, &by);
    if (code != RT_OK) return code;
    const rt_event attempt = rt_settle_event(job, o);
    const rt_verdict verdict = judge(o, &by.policy);
    s->worked =
        verdict == RT_VERDICT_SUCCESS || (verdict == RT_VERDICT_REJECTED && o->reason == RT_REASON_STATUS);
    uint64_t delay_ms;
    if (verdict == RT_VERDICT_SUCCESS) {
        rt_job_succeed(tx, job, attempt);
    } else if (!by.present) {
        rt_job_end(tx, job, RT_REASON_UNSUBSCRIBED);
    } else if (verdict == RT_VERDICT_REJECTED) {
        rt_job_give_up(tx, job, reason_of_rejection(o), attempt);
    } else if (next_delay(tx, job, &by.policy, o, &delay_ms)) {
        rt_job_retry(tx, job, delay_ms, rt_job_age_limit_ms(job->placed_ms, by.policy.maximum_age_s),
                     attempt);
    } else {
        rt_job_give_up(tx, job, RT_REASON_EXHAUSTED, attempt);
    }
    return RT_OK;
}

const rt_life rt_delivery_life = {.start = start, .settle = settle};
