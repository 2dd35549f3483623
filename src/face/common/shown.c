#include "face/common/shown.h"

#include "engine/calls/call_read.h"
#include "engine/calls/line.h"
#include "engine/calls/window.h"
#include "face/common/values.h"

rt_str rt_queue_name_of(rt_exchange *x, rt_view *v, rt_id queue) {
    rt_queue record;
    if (rt_view_queue(v, queue, &record) != RT_OK) return RT_STR_EMPTY;
    const rt_str name = rt_arena_dup(rt_exchange_arena(x), record.name);
    return name.ptr == NULL ? RT_STR_EMPTY : name;
}

/* ---- jobs ------------------------------------------------------------------------------------------ */

static const char *kind_name(const rt_job *job) {
    if (job->flags & RT_JOB_CALL) return "event";
    if (job->flags & RT_JOB_WORK) return "work";
    if (job->flags & RT_JOB_TASK) return "task";
    return job->flags & RT_JOB_PULL ? "message" : "delivery";
}

static json_t *text_or_null(rt_str text) { return text.len == 0 ? json_null() : rt_json_str(text); }

/* What has ended has no body any more, but its queue is still named after its type. */
static void add_call(const rt_exchange *x, rt_view *v, const rt_job *job, rt_str queue, json_t *json) {
    rt_call c;
    rt_str tenant, type;
    if (rt_read_call(v, job, &c) != RT_OK) {
        if (rt_call_type_split(queue, &tenant, &type))
            (void)json_object_set_new(json, "type", rt_json_str(type));
        return;
    }
    const rt_id_text id = rt_id_format(rt_engine_tag(rt_api_of(x)->engine), job->id);
    (void)json_object_set_new(json, "type", rt_json_str(c.type));
    (void)json_object_set_new(json, "retry_reason", text_or_null(c.reason));
    (void)json_object_set_new(json, "order_key", text_or_null(c.order_key));
    (void)json_object_set_new(json, "in_line", json_boolean(rt_line_waits(job)));
    (void)json_object_set_new(json, "content_type", text_or_null(c.content_type));
    (void)json_object_set_new(json, "continues", rt_json_id(x, c.past));
    (void)json_object_set_new(json, "body_bytes", json_integer((json_int_t)c.payload.len));
    (void)json_object_set_new(json, "body_url", json_sprintf("/v1/jobs/%s/body", id.s));
}

/* The event that it died of. */
static void add_death(rt_view *v, const rt_job *job, json_t *json) {
    rt_event e;
    if (job->last_event == 0 || rt_view_event(v, job->last_event, &e) != RT_OK) return;
    (void)json_object_set_new(json, "died", rt_json_time(e.at_ms));
    (void)json_object_set_new(json, "failure",
                              json_pack("{s:s, s:i, s:o}", "reason", rt_reason_name(e.reason), "status",
                                        (int)e.status, "text", rt_json_str(e.text)));
}

/* 0: nobody knows. */
static int64_t next_attempt_ms(const rt_job *job) {
    if ((job->flags & RT_JOB_CALL) && rt_line_waits(job)) return 0; // when those before it have ended
    return job->state == RT_JOB_READY ? job->placed_ms : job->due_ms;
}

json_t *rt_json_job(const rt_exchange *x, rt_view *v, const rt_job *job, rt_str queue) {
    json_t *json =
        json_pack("{s:o, s:o, s:o, s:s, s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:I, s:o}", "id",
                  rt_json_id(x, job->id), "queue_id", rt_json_id(x, job->queue), "queue",
                  rt_json_str(queue), "kind", kind_name(job), "state",
                  rt_job_state_name(job->state), "reason", rt_reason_name(job->reason), "attempts",
                  (int)job->attempt, "redriven", (int)job->generation, "posted", rt_json_time(job->placed_ms),
                  "next_attempt", rt_json_time(next_attempt_ms(job)),
                  "expires", rt_json_time(job->expires_ms), "body_bytes", (json_int_t)job->body_bytes,
                  "message", job->body != job->id ? rt_json_id(x, job->body) : json_null());
    if (json == NULL) return NULL;
    if (job->flags & RT_JOB_CALL) add_call(x, v, job, queue, json);
    if (job->state == RT_JOB_DEAD) add_death(v, job, json);
    return json;
}

json_t *rt_json_event(const rt_exchange *x, const rt_event *e) {
    return json_pack("{s:I, s:o, s:o, s:o, s:s, s:s, s:i, s:i, s:I, s:I, s:o}", "seq", (json_int_t)e->seq,
                     "job", rt_json_id(x, e->job), "queue_id", rt_json_id(x, e->queue), "time",
                     rt_json_time(e->at_ms), "event", rt_event_type_name(e->type), "reason",
                     rt_reason_name(e->reason), "attempt", (int)e->attempt, "status", (int)e->status,
                     "took_ms", (json_int_t)e->took_ms, "delay_ms", (json_int_t)e->delay_ms, "text",
                     rt_json_str(e->text));
}

/* ---- brakes ---------------------------------------------------------------------------------------- */

/* What all nodes have counted together. */
static json_t *window_json(const rt_exchange *x, rt_view *v, const rt_queue *queue) {
    rt_circuit_counts c;
    if (queue->kind != RT_QUEUE_CALLS) return json_null();
    if (rt_read_window(v, queue, rt_api_of(x)->now_ms(), &c) != RT_OK) return json_null();
    return json_pack("{s:I, s:I, s:I}", "attempts", (json_int_t)c.attempts, "failures", (json_int_t)c.failures,
                     "slow", (json_int_t)c.slow);
}

json_t *rt_json_circuit(const rt_exchange *x, rt_view *v, const rt_queue *queue) {
    const rt_brakes *b = &queue->brakes;
    const bool open = b->circuit == RT_CIRCUIT_OPEN;
    return json_pack("{s:s, s:b, s:o, s:o, s:o, s:I, s:i, s:o}", "state",
                     rt_circuit_state_name((rt_circuit_state)b->circuit), "forced", b->forced != 0, "since",
                     rt_json_time(b->circuit_since_ms), "until", rt_json_time(open ? b->circuit_until_ms : 0),
                     "opened", rt_json_time(b->opened_ms), "sleep_ms", (json_int_t)b->sleep_ms, "probes",
                     (int)b->probes, "window", window_json(x, v, queue));
}

json_t *rt_json_pace(const rt_brakes *b) {
    return json_pack("{s:I, s:o}", "delay_ms", (json_int_t)b->pace_ms, "until",
                     rt_json_time(b->pace_until_ms));
}
