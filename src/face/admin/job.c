#include <stdlib.h>

#include "face/admin/pages.h"

enum { ATTEMPTS_DEFAULT = 100, ATTEMPTS_MAX = 1000, BODY_SHOWN_MAX = 65536 };

static const char *kind_name(const rt_job *job) {
    return job->flags & RT_JOB_WORK ? "work" : job->flags & RT_JOB_PULL ? "message" : "delivery";
}

json_t *rt_json_job(const rt_exchange *x, const rt_job *job, rt_str queue) {
    return json_pack(
        "{s:o, s:o, s:s%, s:s, s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:I, s:o}", "id", rt_json_id(x, job->id),
        "queue_id", rt_json_id(x, job->queue), "queue", queue.len > 0 ? queue.ptr : "", queue.len, "kind",
        kind_name(job), "state", rt_job_state_name(job->state), "reason",
        rt_reason_name(job->reason), "attempts", (int)job->attempt, "redriven", (int)job->generation,
        "posted", rt_json_time(job->placed_ms), "next_attempt",
        rt_json_time(job->state == RT_JOB_READY ? job->placed_ms : job->due_ms), "expires",
        rt_json_time(job->expires_ms), "body_bytes", (json_int_t)job->body_bytes, "message",
        job->body != job->id ? rt_json_id(x, job->body) : json_null());
}

static json_t *body_of(rt_view *v, const rt_job *job) {
    rt_str body;
    if (job->state == RT_JOB_DONE || job->body == 0 || job->body_bytes > BODY_SHOWN_MAX) return json_null();
    if (rt_view_body(v, job->body, &body) != RT_OK) return json_null();
    json_t *json = json_loadb(body.ptr, body.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    return json == NULL ? json_null() : json;
}

/* Opens a view and finds the job of the path; replies and returns NULL if it cannot. */
static rt_view *open_job(rt_exchange *x, rt_job *job) {
    rt_id id;
    rt_view *v = rt_param_id(x, 0, "job", &id) ? rt_problem_view(x) : NULL;
    if (v == NULL) return NULL;
    const rt_code code = rt_read_job(v, id, job);
    if (code == RT_OK) return v;
    rt_view_close(v);
    rt_problem_of(x, code, NULL, "job");
    return NULL;
}

void rt_page_job_get(rt_exchange *x) {
    rt_job job;
    rt_view *v = open_job(x, &job);
    if (v == NULL) return;
    json_t *json = rt_json_job(x, &job, rt_queue_name_of(x, v, job.queue));
    if (json != NULL) (void)json_object_set_new(json, "body", body_of(v, &job));
    rt_view_close(v);
    rt_reply_json(x, 200, json);
}

static json_t *event_json(const rt_exchange *x, const rt_event *e) {
    json_t *text = json_stringn(e->text.len > 0 ? e->text.ptr : "", e->text.len);
    return json_pack("{s:I, s:o, s:o, s:s, s:s, s:i, s:i, s:I, s:I, s:o}", "seq", (json_int_t)e->seq, "job",
                     rt_json_id(x, e->job), "time", rt_json_time(e->at_ms), "event",
                     rt_event_type_name(e->type), "reason", rt_reason_name(e->reason), "attempt",
                     (int)e->attempt, "status", (int)e->status, "took_ms", (json_int_t)e->took_ms, "delay_ms",
                     (json_int_t)e->delay_ms, "text", text == NULL ? json_string("") : text);
}

typedef struct event_list {
    rt_exchange *x;
    json_t *array;
} event_list;

static bool add_event(void *ctx, const rt_event *e) {
    event_list *l = ctx;
    return json_array_append_new(l->array, event_json(l->x, e)) == 0;
}

void rt_page_job_attempts(rt_exchange *x) {
    rt_job job;
    int64_t limit;
    if (!rt_arg_int(x, "limit", 1, ATTEMPTS_MAX, ATTEMPTS_DEFAULT, &limit)) return;
    rt_view *v = open_job(x, &job);
    if (v == NULL) return;
    event_list l = {.x = x, .array = json_array()};
    const rt_code code = rt_read_attempts(v, &job, (uint32_t)limit, add_event, &l);
    rt_view_close(v);
    if (code != RT_OK) {
        json_decref(l.array);
        rt_problem_of(x, code, NULL, "job");
        return;
    }
    rt_reply_json(x, 200, json_pack("{s:o, s:o}", "job", rt_json_id(x, job.id), "attempts", l.array));
}

/* ---- deleting -------------------------------------------------------------------------------------------------------- */

static const char *name_of(const rt_job_delete *c) { return c->only_dead ? "dead job" : "job"; }

static void deleted(rt_exchange *x, rt_command *cmd) {
    if (cmd->code == RT_OK) rt_exchange_reply(x, 204, NULL, RT_STR_EMPTY);
    else if (cmd->code == RT_E_FENCED)
        rt_problem(x, 409, "The job is not dead; DELETE /v1/jobs/ID deletes any job.");
    else rt_problem_of(x, cmd->code, &cmd->err, name_of((const rt_job_delete *)cmd));
}

static void delete_job(rt_exchange *x, bool only_dead) {
    rt_job_delete *c = rt_arena_alloc(rt_exchange_arena(x), sizeof *c);
    if (c == NULL) {
        rt_problem_of(x, RT_E_NOMEM, NULL, "job");
        return;
    }
    rt_job_delete_init(c);
    c->only_dead = only_dead;
    if (!rt_param_id(x, 0, name_of(c), &c->id)) return;
    rt_api_submit(x, &c->cmd, sizeof *c, deleted, rt_problem_busy);
}

void rt_page_job_delete(rt_exchange *x) { delete_job(x, false); }
void rt_page_dead_delete(rt_exchange *x) { delete_job(x, true); }

/* ---- all attempts as one stream -------------------------------------------------------------------------------------- */

typedef struct stream {
    rt_exchange *x;
    rt_buf lines;
    int64_t left;
} stream;

static bool add_line(void *ctx, const rt_event *e) {
    stream *s = ctx;
    json_t *json = event_json(s->x, e);
    char *line = json == NULL ? NULL : json_dumps(json, JSON_COMPACT);
    json_decref(json);
    if (line == NULL) return false;
    rt_buf_add(&s->lines, rt_str_of(line));
    rt_buf_add_char(&s->lines, '\n');
    free(line);
    return --s->left > 0 && !s->lines.failed;
}

void rt_page_attempts(rt_exchange *x) {
    int64_t after;
    stream s = {.x = x};
    if (!rt_arg_int(x, "after", 0, INT64_MAX, 0, &after)) return;
    if (!rt_arg_int(x, "limit", 1, ATTEMPTS_MAX, ATTEMPTS_DEFAULT, &s.left)) return;
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return;
    const rt_code code = rt_read_events(v, (uint64_t)after, add_line, &s);
    rt_view_close(v);
    if (code != RT_OK) {
        rt_buf_deinit(&s.lines);
        rt_problem_of(x, code, NULL, "event");
        return;
    }
    rt_exchange_reply_buf(x, 200, "application/x-ndjson", &s.lines);
}
