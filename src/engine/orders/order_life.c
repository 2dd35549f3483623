/* order_life.c: runs of tasks: what is sent, and how an outcome reads as an answer. */
#include "engine/orders/order_life.h"

#include "engine/common/job.h"
#include "engine/common/run_request.h"
#include "engine/common/settings.h"
#include "engine/orders/order_parts.h"

enum { CANCEL_ATTEMPTS_MAX = 5 };

static rt_code gone(rt_tx *tx, rt_order_case *c, const rt_job *job) {
    const rt_str reason =
        rt_arena_printf(tx->arena, "There is no order type %.*s any more.", RT_STR_ARG(c->order.type));
    if (reason.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a reason");
    rt_job_end(tx, job, RT_REASON_UNSUBSCRIBED);
    return rt_order_fail(tx, c, RT_STR("500"), reason);
}

/* The order that `job` is the live task of. *live false: of none (any more). */
static rt_code load(rt_tx *tx, const rt_job *job, rt_order_case *c, bool *live) {
    rt_str name;
    rt_code code = rt_view_body(tx->view, job->body, &name);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_E_CORRUPT : code;
    name = rt_arena_dup(tx->arena, name);
    if (name.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a name");
    code = rt_order_load(tx, name, c);
    *live = code == RT_OK && c->order.job == job->id;
    return code == RT_E_ABSENT ? RT_OK : code;
}

/* ---- starting ---------------------------------------------------------------------------------------- */

static rt_code start_run(rt_tx *tx, const rt_job *job, const rt_order_case *c, rt_start *start) {
    const rt_order_type *t = &c->type;
    const rt_order *o = &c->order;
    const rt_run_request run = {
        .id = o->id,
        .tag = tx->store->tag,
        .project = c->tenant,
        .type = o->type,
        .task = o->task,
        .args = o->args,
        .kwargs = o->kwargs,
        .meta = o->meta,
        .state = o->state,
        .attempt = job->attempt + 1,
        .token = start->token,
        .deadline_ms = tx->now_ms + t->run_limit_ms,
        .cancel = (job->flags & RT_JOB_CANCEL) != 0,
    };
    rt_buf body = {0};
    rt_run_request_write(&body, &run);
    const rt_id_text id = rt_id_format(tx->store->tag, job->id);
    const rt_attempt like = {
        .timeout_ms = t->run_limit_ms,
        .answer_max = RT_RUN_ANSWER_MAX,
        .url = t->target,
        .headers = t->headers,
        .message_id = rt_str_of(id.s),
        .secrets = {t->secrets[0], t->secrets[1]},
        .content_type = RT_STR("application/json"),
        .body = rt_buf_str(&body),
    };
    const rt_code code = body.failed ? rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a run")
                                     : rt_start_attempt(tx, job, like, start);
    rt_buf_deinit(&body);
    return code;
}

static rt_code start(rt_tx *tx, const rt_job *job, rt_start *start) {
    rt_order_case c;
    bool live = true;
    const bool cancel = (job->flags & RT_JOB_CANCEL) != 0;
    const rt_code code = cancel ? rt_order_read_cancel(tx, job, &c) : load(tx, job, &c, &live);
    if (code != RT_OK) return code;
    if (live && c.has_type) return start_run(tx, job, &c, start);
    if (live && !cancel) return gone(tx, &c, job);
    rt_job_end(tx, job, RT_REASON_UNSUBSCRIBED);
    return RT_OK;
}

/* ---- settling ---------------------------------------------------------------------------------------- */

static bool is_success(uint16_t status) { return status >= 200 && status < 300; }

static rt_code read_answer(rt_tx *tx, const rt_outcome *o, rt_run_answer *out, rt_event *last) {
    const rt_str text = {.ptr = o->answer == NULL ? "" : o->answer, .len = o->answer_len};
    const rt_code code = tx->settings->read_run(text, tx->arena, out, tx->err);
    if (code != RT_E_INVALID) {
        if (code == RT_OK && out->action == RT_RUN_UNAVAILABLE) last->reason = RT_REASON_UNAVAILABLE;
        return code;
    }
    *out = (rt_run_answer){.action = RT_RUN_UNAVAILABLE, .after_ms = -1};
    last->reason = RT_REASON_NONSENSE;
    last->text = rt_arena_dup(tx->arena, rt_str_of(tx->err->msg));
    return last->text.ptr == NULL ? rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for an answer") : RT_OK;
}

/* An outcome as an answer; *last gets the reason that fits. */
static rt_code answer_of(rt_tx *tx, const rt_order *order, const rt_outcome *o, rt_run_answer *out,
                         rt_event *last) {
    *out = (rt_run_answer){.action = RT_RUN_UNAVAILABLE, .after_ms = -1};
    if (o->reason != RT_REASON_STATUS) return RT_OK;
    if (is_success(o->status)) return read_answer(tx, o, out, last);
    if (o->status == 429 || o->status == 503) {
        last->reason = RT_REASON_UNAVAILABLE;
        if (o->retry_after_ms > 0) out->after_ms = o->retry_after_ms;
    } else if (o->status >= 400 && o->status < 500) {
        out->action = RT_RUN_FAILED;
        out->code = RT_STR("400");
        out->reason = rt_arena_printf(tx->arena, "%.*s issue seen - %.*s", RT_STR_ARG(order->task),
                                      (int)o->text_len, o->text);
        if (out->reason.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a reason");
    } else if (o->status < 500) {
        last->reason = RT_REASON_NONSENSE;
    }
    return RT_OK;
}

static rt_code settle_run(rt_tx *tx, const rt_job *job, rt_order_case *c, rt_settle *s) {
    const rt_outcome *o = &s->outcome;
    if (o->reason == RT_REASON_STATUS && o->status == 202) { // the result comes later, by rt_order_result
        s->worked = true;
        s->again = true; // its result may come before this is durable
        rt_job_lease(tx, job, o->token, tx->now_ms + (int64_t)c->type.answer_limit_s * 1000);
        return RT_OK;
    }
    rt_run_answer answer;
    rt_event last = rt_settle_event(job, o);
    const rt_code code = answer_of(tx, &c->order, o, &answer, &last);
    if (code != RT_OK) return code;
    // What could be read was said by somebody who works.
    s->worked =
        answer.action != RT_RUN_UNAVAILABLE || (is_success(o->status) && last.reason != RT_REASON_NONSENSE);
    s->again = answer.action == RT_RUN_RETRY || answer.action == RT_RUN_UNAVAILABLE;
    return rt_order_take(tx, c, job, &answer, last);
}

static rt_code settle_task(rt_tx *tx, const rt_job *job, rt_settle *s) {
    rt_order_case c;
    bool live;
    const rt_code code = load(tx, job, &c, &live);
    if (code != RT_OK) return code;
    if (!live) {
        rt_job_end(tx, job, RT_REASON_UNSUBSCRIBED);
        return RT_OK;
    }
    if (c.order.answered == s->outcome.token) { // its result came before it; the next run may be due
        s->worked = is_success(s->outcome.status);
        s->again = true;
        return RT_OK;
    }
    return c.has_type ? settle_run(tx, job, &c, s) : gone(tx, &c, job);
}

/* Nobody waits for it: a few tries, then an operator may look at it. */
static rt_code settle_cancel(rt_tx *tx, const rt_job *job, rt_settle *s) {
    const rt_outcome *o = &s->outcome;
    rt_order_case c;
    rt_code code = rt_order_read_cancel(tx, job, &c);
    if (code != RT_OK) return code;
    rt_run_answer answer;
    rt_event last = rt_settle_event(job, o);
    code = answer_of(tx, &c.order, o, &answer, &last);
    if (code != RT_OK) return code;
    // Of what it says only "unavailable" counts: it is told again.
    const bool heard = o->reason == RT_REASON_STATUS && is_success(o->status);
    const bool done = heard && last.reason != RT_REASON_UNAVAILABLE;
    s->worked = heard || answer.action == RT_RUN_FAILED;
    uint64_t interval_s = job->interval_ms / 1000;
    if (done) rt_job_succeed(tx, job, last);
    else if (!c.has_type) rt_job_end(tx, job, RT_REASON_UNSUBSCRIBED);
    else if (answer.action == RT_RUN_FAILED) rt_job_give_up(tx, job, RT_REASON_REJECTED, last);
    else if (last.attempt >= CANCEL_ATTEMPTS_MAX) rt_job_give_up(tx, job, RT_REASON_EXHAUSTED, last);
    else rt_job_retry(tx, job, (uint64_t)rt_order_rest_ms(tx, &c.type, &interval_s), INT64_MAX, last);
    return RT_OK;
}

static rt_code settle(rt_tx *tx, const rt_job *job, rt_settle *s) {
    return job->flags & RT_JOB_CANCEL ? settle_cancel(tx, job, s) : settle_task(tx, job, s);
}

const rt_life rt_order_life = {.start = start, .settle = settle};

/* ---- a result that comes by itself ------------------------------------------------------------------- */

static rt_code refuse_token(rt_tx *tx) {
    return rt_fail(tx->err, RT_E_FENCED, 0, "This token does not hold the order's task (any more).");
}

static rt_code decide_result(rt_tx *tx, rt_command *cmd) {
    const rt_order_result *r = (rt_order_result *)cmd;
    tx->frees = true;
    rt_order_case c;
    rt_code code = rt_order_load(tx, rt_order_name(tx->arena, r->tenant, r->id), &c);
    if (code != RT_OK) return code;
    if (r->token == 0) return refuse_token(tx);
    if (c.order.answered == r->token) return RT_OK; // the same again, after a reply that was lost
    if (c.order.status != RT_ORDER_PENDING) return refuse_token(tx);
    rt_job job;
    code = rt_view_job(tx->view, c.order.job, &job);
    if (code != RT_OK) return code == RT_E_ABSENT ? refuse_token(tx) : code;
    const bool leased = job.state == RT_JOB_LEASED && job.lease == r->token && job.due_ms > tx->now_ms;
    // A worker may be faster with its result than with its 202.
    if (!leased && !rt_life_is_under_way(tx, &job, r->token)) return refuse_token(tx);
    if (!c.has_type) return gone(tx, &c, &job);
    c.order.answered = r->token;
    const rt_event last = {.attempt = job.attempt + 1};
    return rt_order_take(tx, &c, &job, &r->answer, last);
}

void rt_order_result_init(rt_order_result *c) { *c = (rt_order_result){.cmd = {.decide = decide_result}}; }
