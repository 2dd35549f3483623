#include "engine/calls/call_life.h"

#include "engine/calls/call_over.h"
#include "engine/calls/call_plugin.h"
#include "engine/calls/circuit.h"
#include "engine/common/job.h"
#include "port/run.h"

/* ---- starting ------------------------------------------------------------------------------------------ */

/* What receivers want to know besides the payload. Nothing of it may end a header line. */
static void add_header(rt_buf *b, const char *prefix, const char *name, rt_str value) {
    if (value.len == 0) return;
    rt_buf_addf(b, "%s%s: ", prefix, name);
    for (size_t i = 0; i < value.len; i++) {
        const unsigned char c = (unsigned char)value.ptr[i];
        rt_buf_add_char(b, c < 0x20 || c == 0x7f ? '?' : (char)c);
    }
    rt_buf_add_char(b, '\n');
}

static void write_headers(rt_buf *b, const rt_call_type *type, const rt_call *call) {
    const bool kafka = rt_attempt_target(type->target) == RT_TARGET_KAFKA;
    const char *prefix = kafka ? "rtd-" : "retryd-";
    rt_buf_add(b, type->headers);
    if (type->headers.len > 0 && type->headers.ptr[type->headers.len - 1] != '\n') rt_buf_add_char(b, '\n');
    add_header(b, prefix, "type", call->type);
    add_header(b, prefix, "reason", call->reason);
    if (!kafka) add_header(b, prefix, "order-key", call->order_key); // there it is the record's key
}

static rt_code start_plugin(rt_tx *tx, const rt_job *job, const rt_call_type *type, const rt_call *call,
                            rt_start *start) {
    const uint32_t timeout_ms = type->delivery.attempt_timeout_s * 1000;
    const rt_attempt like = {
        .timeout_ms = timeout_ms,
        .answer_max = RT_RUN_ANSWER_MAX,
        .url = type->target,
        .body = rt_call_plugin_run(tx, job, call, start->token, tx->now_ms + timeout_ms),
    };
    if (like.body.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a run");
    return rt_start_attempt(tx, job, like, start);
}

static rt_code start_attempt(rt_tx *tx, const rt_job *job, const rt_call_type *type, rt_start *start) {
    rt_str body;
    rt_call call;
    rt_code code = rt_view_body(tx->view, job->body, &body);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_E_CORRUPT : code;
    if (!rt_call_decode(body, &call)) return rt_fail(tx->err, RT_E_CORRUPT, 0, "an event cannot be read");
    if (rt_attempt_target(type->target) == RT_TARGET_PLUGIN) return start_plugin(tx, job, type, &call, start);
    rt_buf headers = {0};
    write_headers(&headers, type, &call);
    const rt_id_text id = rt_id_format(tx->store->tag, job->id);
    const rt_attempt like = {
        .timeout_ms = type->delivery.attempt_timeout_s * 1000,
        .follow_redirects = type->delivery.follow_redirects,
        .url = type->target,
        .headers = rt_buf_str(&headers),
        .message_id = rt_str_of(id.s),
        .secrets = {type->secrets[0], type->secrets[1]},
        .content_type = call.content_type,
        .key = call.order_key,
        .body = call.payload,
    };
    code = headers.failed ? rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for an attempt")
                          : rt_start_attempt(tx, job, like, start);
    rt_buf_deinit(&headers);
    return code;
}

static void free_call(rt_tx *tx, const rt_job *job) {
    rt_job now = *job;
    now.state = RT_JOB_FREE;
    rt_tx_update_job(tx, job, &now);
    tx->frees = true;
}

static rt_code start(rt_tx *tx, const rt_job *job, rt_start *start) {
    rt_queue queue;
    rt_call_type type;
    rt_code code = rt_call_type_of_queue(tx, job->queue, &queue, &type);
    if (code == RT_E_ABSENT) { // its line goes with its queue
        rt_job_end(tx, job, RT_REASON_DELETED);
        return RT_OK;
    }
    if (code != RT_OK) return code;
    if (tx->now_ms >= rt_job_age_limit_ms(job->placed_ms, type.delivery.maximum_age_s))
        return rt_call_give_up(tx, job, &type, RT_REASON_EXPIRED);
    if (job->flags & RT_JOB_PULL) {
        free_call(tx, job);
        return RT_OK;
    }
    code = rt_brakes_start(tx, &queue, &type, 1);
    return code == RT_OK ? start_attempt(tx, job, &type, start) : code;
}

/* ---- settling ------------------------------------------------------------------------------------------ */

static rt_verdict judge(const rt_outcome *o, const rt_delivery_policy *policy) {
    if (o->reason == RT_REASON_STATUS) return rt_delivery_policy_judge(policy, o->status);
    return o->reason == RT_REASON_ADDRESS_REFUSED ? RT_VERDICT_REJECTED : RT_VERDICT_RETRY;
}

static rt_code settle(rt_tx *tx, const rt_job *job, rt_settle *s) {
    const rt_outcome *o = &s->outcome;
    rt_queue queue;
    rt_call_type type;
    rt_code code = rt_call_type_of_queue(tx, job->queue, &queue, &type);
    if (code == RT_E_ABSENT) {
        if (o->reason == RT_REASON_STATUS && o->status >= 200 && o->status < 300)
            rt_job_succeed(tx, job, rt_settle_event(job, o));
        else rt_job_end(tx, job, RT_REASON_DELETED);
        return RT_OK;
    }
    if (code != RT_OK) return code;
    rt_call_news news = {
        .verdict = judge(o, &type.delivery),
        .rejected_as = o->reason == RT_REASON_STATUS ? RT_REASON_REJECTED : o->reason,
        .tells_nothing = o->reason == RT_REASON_LOST, // of a node that is gone
        .retry_after_ms = o->retry_after_ms,
        .attempt = rt_settle_event(job, o),
    };
    if (o->reason == RT_REASON_STATUS && rt_attempt_target(type.target) == RT_TARGET_PLUGIN)
        code = rt_call_plugin_judge(tx, o, &news);
    if (code != RT_OK) return code;
    s->worked = news.verdict == RT_VERDICT_SUCCESS ||
                (news.verdict == RT_VERDICT_REJECTED && o->reason == RT_REASON_STATUS);
    news.target_failed = !s->worked;
    int64_t until_ms;
    return rt_call_over(tx, job, &queue, &type, &news, &until_ms);
}

const rt_life rt_call_life = {.start = start, .settle = settle};
