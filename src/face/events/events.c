#include "face/events/events.h"

#include "engine/common/name.h"
#include "face/events/parts.h"

static const rt_route TYPES[] = {
    {"GET", "/v1/event-types", rt_page_type_list, RT_ON_READER},
    {"GET", "/v1/event-types/{type}", rt_page_type_get, 0},
    {"PUT", "/v1/event-types/{type}", rt_page_type_put, 0},
    {"DELETE", "/v1/event-types/{type}", rt_page_type_delete, 0},
    {"POST", "/v1/event-types/{type}/claim", rt_page_event_claim, 0},
};
static const rt_route EVENTS[] = {
    {"POST", "/v1/events", rt_page_event_mixed, 0},
    {"GET", "/v1/events/{type}", rt_page_event_list, RT_ON_READER},
    {"POST", "/v1/events/{type}", rt_page_event_post, 0},
    {"POST", "/v1/events/{type}/batch", rt_page_event_batch, 0},
};
static const rt_route JOBS[] = {
    {"POST", "/v1/jobs/finish", rt_page_events_finish, 0},
    {"POST", "/v1/jobs/fail", rt_page_events_fail, 0},
    {"POST", "/v1/jobs/release", rt_page_events_release, 0},
    {"POST", "/v1/jobs/extend", rt_page_events_extend, 0},
    {"GET", "/v1/jobs/{job}", rt_page_job_get, 0},
    {"DELETE", "/v1/jobs/{job}", rt_page_job_delete, 0},
    {"GET", "/v1/jobs/{job}/body", rt_page_job_body, 0},
    {"GET", "/v1/jobs/{job}/attempts", rt_page_job_attempts, RT_ON_READER},
    {"POST", "/v1/jobs/{job}/finish", rt_page_event_finish, 0},
    {"POST", "/v1/jobs/{job}/fail", rt_page_event_fail, 0},
    {"POST", "/v1/jobs/{job}/release", rt_page_event_release, 0},
    {"POST", "/v1/jobs/{job}/extend", rt_page_event_extend, 0},
};

static void want_tenant(rt_exchange *x) {
    const rt_str tenant = rt_tenant_of(x);
    if (tenant.len > RT_TENANT_MAX) {
        rt_problem(x, 400, "X-Project-ID has at most %d bytes.", RT_TENANT_MAX);
        return;
    }
    const unsigned refusal = rt_api_refusal(x, tenant);
    if (refusal != 0) rt_problem(x, refusal, "This wants a token for project \"%.*s\".", RT_STR_ARG(tenant));
}

static void not_found(rt_exchange *x) { rt_problem(x, 404, "There is no such path."); }

static void not_allowed(rt_exchange *x, rt_str allow) {
    rt_exchange_set_header(x, "Allow", allow);
    rt_problem(x, 405, "This path takes %.*s.", RT_STR_ARG(allow));
}

static void refuse(rt_exchange *x, unsigned status, rt_str why) {
    rt_problem(x, status, "%.*s", RT_STR_ARG(why));
}

#define FACE(at, table)                                                                                      \
    {                                                                                                        \
        .prefix = (at), .routes = (table), .routes_count = sizeof(table) / sizeof(table)[0],                 \
        .before = want_tenant, .not_found = not_found, .not_allowed = not_allowed, .refuse = refuse          \
    }

void rt_face_events(rt_api *api, const rt_face *out[RT_EVENTS_FACES]) {
    static rt_face faces[RT_EVENTS_FACES] = {FACE("/v1/event-types", TYPES), FACE("/v1/events", EVENTS),
                                             FACE("/v1/jobs", JOBS)};
    for (int i = 0; i < RT_EVENTS_FACES; i++) {
        faces[i].app = api;
        out[i] = &faces[i];
    }
}

/* ---- what the pages share -------------------------------------------------------------------------- */

bool rt_param_type(rt_exchange *x, size_t i, rt_str *out) {
    *out = rt_exchange_param(x, i);
    if (rt_call_type_name_is_valid(*out)) return true;
    rt_problem(x, 400, "An event type is 1 to %d letters, digits, '.', '_', '-' or ':'.",
               RT_CALL_TYPE_NAME_MAX);
    return false;
}

void rt_problem_event(rt_exchange *x, const rt_command *cmd, const char *what, const char *fenced) {
    if (cmd->code == RT_E_FENCED) rt_problem_coded(x, 409, fenced, cmd->err.msg);
    else if (cmd->code == RT_E_INVALID) rt_problem(x, 400, "%s", cmd->err.msg);
    else rt_problem_of(x, cmd->code, &cmd->err, what);
}
