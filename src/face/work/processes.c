#include "face/common/backoff_json.h"
#include "face/work/parts.h"

static json_t *process_json(rt_str name, const rt_process *p) {
    json_t *excludes = json_array();
    for (uint32_t i = 0; i < p->excludes_count; i++) {
        (void)json_array_append_new(excludes, rt_json_str(p->excludes[i]));
    }
    return json_pack("{s:o, s:o, s:o}", "process", rt_json_str(name), "excludes", excludes, "backoff",
                     rt_json_backoff(&p->backoff));
}

static void registered(rt_exchange *x, rt_command *cmd) {
    const rt_process_put *c = (const rt_process_put *)cmd;
    if (cmd->code == RT_OK) rt_reply_json(x, 200, process_json(c->name, &c->like));
    else rt_problem_of(x, cmd->code, &cmd->err, "process");
}

void rt_page_process_put(rt_exchange *x) {
    rt_process_put *c = RT_NEW(x, rt_process_put);
    if (c == NULL) return;
    rt_process_put_init(c);
    if (!rt_param_word(x, 0, "process", &c->name)) return;
    json_t *body = rt_body_json(x);
    if (body == NULL) return;
    const rt_str *excludes;
    uint32_t count;
    const bool valid =
        RT_MEMBERS_ARE_KNOWN(x, body, "excludes", "backoff") &&
        rt_field_names(x, body, "excludes", false, RT_PROCESS_EXCLUDES_MAX, &excludes, &count) &&
        rt_field_backoff(x, json_object_get(body, "backoff"), &c->like.backoff);
    json_decref(body);
    if (!valid) return;
    for (uint32_t i = 0; i < count; i++) c->like.excludes[i] = excludes[i];
    c->like.excludes_count = count;
    c->tenant = rt_tenant_of(x);
    rt_api_submit(x, &c->cmd, sizeof *c, registered, rt_problem_busy);
}

static bool add_process(void *ctx, rt_str name, const rt_process *p) {
    return json_array_append_new(ctx, process_json(name, p)) == 0;
}

void rt_page_process_list(rt_exchange *x) {
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return;
    json_t *array = json_array();
    const rt_code code = rt_read_processes(v, rt_tenant_of(x), add_process, array);
    rt_view_close(v);
    if (code == RT_OK) {
        rt_reply_json(x, 200, array);
        return;
    }
    json_decref(array);
    rt_problem_of(x, code, NULL, "process");
}

void rt_page_process_get(rt_exchange *x) {
    rt_str name;
    rt_process process;
    if (!rt_param_word(x, 0, "process", &name)) return;
    rt_view *v = rt_problem_view(x);
    if (v == NULL) return;
    const rt_code code = rt_read_process(v, rt_exchange_arena(x), rt_tenant_of(x), name, &process);
    rt_view_close(v);
    if (code == RT_OK) rt_reply_json(x, 200, process_json(name, &process));
    else rt_problem_of(x, code, NULL, "process");
}
