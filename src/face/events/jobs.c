#include "engine/orders/order_read.h"
#include "face/common/payload.h"
#include "face/common/shown.h"
#include "face/events/parts.h"

enum { ATTEMPTS_DEFAULT = 100, ATTEMPTS_MAX = 1000, BODY_SHOWN_MAX = 65536 };

/* ---- which ----------------------------------------------------------------------------------------- */

/* Operators may see every job, a project its events and the tasks of its orders. Of an event the queue says
 * whose it is, even after its end; a task may be in everybody's queue. */
static bool is_theirs(rt_exchange *x, rt_view *v, const rt_job *job) {
    rt_str tenant, type;
    rt_order order;
    if (rt_api_allows(x, RT_STR("*"))) return true;
    if (job->flags & RT_JOB_TASK)
        return rt_read_order(v, rt_exchange_arena(x), rt_tenant_of(x), job->owner, &order) == RT_OK;
    return (job->flags & RT_JOB_CALL) &&
           rt_call_type_split(rt_queue_name_of(x, v, job->queue), &tenant, &type) &&
           rt_str_eq(tenant, rt_tenant_of(x));
}

/* Opens a view and finds the job of the path; replies and returns NULL if it cannot. */
static rt_view *open_job(rt_exchange *x, rt_job *job) {
    rt_id id;
    rt_view *v = rt_param_id(x, 0, "job", &id) ? rt_problem_view(x) : NULL;
    if (v == NULL) return NULL;
    rt_code code = rt_read_job(v, id, job);
    if (code == RT_OK && !is_theirs(x, v, job)) code = RT_E_ABSENT;
    if (code == RT_OK) return v;
    rt_view_close(v);
    rt_problem_of(x, code, NULL, "job");
    return NULL;
}

/* ---- showing --------------------------------------------------------------------------------------- */

/* Lent by the view. */
static rt_code load_body(rt_view *v, const rt_job *job, rt_str *content_type, rt_str *body) {
    rt_call call;
    *content_type = RT_STR_EMPTY;
    // What the body of a task says is the engine's own.
    if (job->state == RT_JOB_DONE || job->body == 0 || (job->flags & RT_JOB_TASK)) return RT_E_ABSENT;
    if (!(job->flags & RT_JOB_CALL)) return rt_view_body(v, job->body, body);
    const rt_code code = rt_read_call(v, job, &call);
    if (code != RT_OK) return code;
    *content_type = call.content_type;
    *body = call.payload;
    return RT_OK;
}

void rt_page_job_get(rt_exchange *x) {
    rt_job job;
    rt_str content_type, body;
    rt_view *v = open_job(x, &job);
    if (v == NULL) return;
    json_t *json = rt_json_job(x, v, &job, rt_queue_name_of(x, v, job.queue));
    const bool shown = job.body_bytes <= BODY_SHOWN_MAX && load_body(v, &job, &content_type, &body) == RT_OK;
    if (json != NULL && shown) (void)rt_payload_show(json, content_type, body);
    else if (json != NULL) (void)json_object_set_new(json, "body", json_null());
    rt_view_close(v);
    rt_reply_json(x, 200, json);
}

/* The bytes themselves. A browser must not take what a stranger sent for a page of this server. */
void rt_page_job_body(rt_exchange *x) {
    rt_job job;
    rt_str content_type, body;
    rt_view *v = open_job(x, &job);
    if (v == NULL) return;
    const rt_code code = load_body(v, &job, &content_type, &body);
    rt_buf copy = {0};
    if (code == RT_OK) rt_buf_add(&copy, body);
    const rt_str type =
        rt_arena_dup(rt_exchange_arena(x), content_type.len > 0 ? content_type : RT_STR("application/json"));
    rt_view_close(v);
    if (code != RT_OK || copy.failed || type.ptr == NULL) {
        rt_buf_deinit(&copy);
        rt_problem_of(x, code != RT_OK ? code : RT_E_NOMEM, NULL, "body: the job has ended");
        return;
    }
    rt_exchange_set_header(x, "Content-Security-Policy", RT_STR("default-src 'none'; sandbox"));
    rt_exchange_set_header(x, "X-Content-Type-Options", RT_STR("nosniff"));
    rt_exchange_reply_buf(x, 200, type.ptr, &copy);
}

typedef struct event_list {
    rt_exchange *x;
    json_t *array;
} event_list;

static bool add_event(void *ctx, const rt_event *e) {
    event_list *l = ctx;
    return json_array_append_new(l->array, rt_json_event(l->x, e)) == 0;
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

/* ---- deleting -------------------------------------------------------------------------------------- */

static void deleted(rt_exchange *x, rt_command *cmd) {
    if (cmd->code == RT_OK) rt_exchange_reply(x, 204, NULL, RT_STR_EMPTY);
    else rt_problem_of(x, cmd->code, &cmd->err, "job");
}

void rt_page_job_delete(rt_exchange *x) {
    rt_job job;
    rt_job_delete *c = RT_NEW(x, rt_job_delete);
    rt_view *v = c == NULL ? NULL : open_job(x, &job);
    if (v == NULL) return;
    rt_view_close(v);
    rt_job_delete_init(c);
    c->id = job.id;
    rt_api_submit(x, &c->cmd, sizeof *c, deleted, rt_problem_busy);
}
