#include "face/common/api.h"

#include <errno.h>
#include <semaphore.h>

/* A command under way and what follows it; in the exchange's arena. */
typedef struct pending {
    rt_command *cmd;
    rt_command_done_fn *finish;
    rt_busy_fn *busy;
    bool refused; /* the ring was full */
} pending;

static void command_done(rt_command *cmd) { rt_exchange_resume(cmd->ctx); }

static void on_resumed(rt_exchange *x) {
    const pending *p = rt_exchange_ctx(x);
    if (!p->refused) rt_engine_answered(rt_api_of(x)->engine, p->cmd);
    if (rt_exchange_is_late(x)) return;
    if (p->refused) p->busy(x);
    else p->finish(x, p->cmd);
}

void rt_api_submit(rt_exchange *x, rt_command *cmd, size_t bytes, rt_command_done_fn *finish, rt_busy_fn *busy) {
    const rt_api *api = rt_api_of(x);
    pending *p = rt_arena_alloc(rt_exchange_arena(x), sizeof *p);
    if (p == NULL) {
        busy(x);
        return;
    }
    *p = (pending){.cmd = cmd, .finish = finish, .busy = busy};
    cmd->ctx = x;
    cmd->done = command_done;
    // First the suspension: the engine may be done before submit has returned.
    rt_exchange_suspend(x, on_resumed, p);
    if (api->submit(api->submit_ctx, cmd, bytes)) return;
    p->refused = true;
    rt_exchange_resume(x);
}

static void tell(rt_command *cmd) { (void)sem_post(cmd->ctx); }

rt_code rt_api_do(const rt_api *api, rt_command *cmd, size_t bytes, rt_err *err) {
    sem_t done;
    if (sem_init(&done, 0, 0) != 0) return rt_fail(err, RT_E_IO, errno, "sem_init");
    cmd->ctx = &done;
    cmd->done = tell;
    rt_code code;
    if (api->submit(api->submit_ctx, cmd, bytes)) {
        while (sem_wait(&done) != 0) continue; // a signal
        code = cmd->code;
        if (code != RT_OK) *err = cmd->err;
    } else {
        code = rt_fail(err, RT_E_FULL, 0, "the engine takes no commands");
    }
    (void)sem_destroy(&done);
    return code;
}

rt_str rt_tenant_of(const rt_exchange *x) {
    rt_str tenant;
    if (!rt_exchange_header(x, "X-Project-ID", &tenant) || tenant.len == 0) return RT_STR("default");
    return tenant;
}

static bool find_token(const rt_exchange *x, rt_str *token) {
    if (rt_exchange_header(x, "X-Auth-Token", token)) return true;
    rt_str header;
    if (!rt_exchange_header(x, "Authorization", &header)) return false;
    rt_str scheme;
    if (!rt_str_cut(header, ' ', &scheme, token) || !rt_str_eq_nocase(scheme, RT_STR("Bearer"))) return false;
    *token = rt_str_trim(*token);
    return true;
}

unsigned rt_api_refusal(const rt_exchange *x, rt_str project) {
    const rt_api *api = rt_api_of(x);
    if (api->tokens_count == 0) return 0;
    rt_str token;
    if (!find_token(x, &token)) return 401;
    bool known = false, opens = false;
    // Always all of them, so that the time says nothing about which one came close.
    for (size_t i = 0; i < api->tokens_count; i++) {
        const rt_token *t = &api->tokens[i];
        if (!rt_str_eq_secret(t->secret, token)) continue;
        known = true;
        opens = opens || rt_str_eq(t->project, RT_STR("*")) || rt_str_eq(t->project, project);
    }
    return opens ? 0 : (known ? 403 : 401);
}

bool rt_api_allows(const rt_exchange *x, rt_str project) { return rt_api_refusal(x, project) == 0; }
