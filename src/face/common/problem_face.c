#include "face/common/problem_face.h"

#include "engine/common/name.h"
#include "face/common/problem.h"

void rt_problem_want_tenant(rt_exchange *x) {
    const rt_str tenant = rt_tenant_of(x);
    if (tenant.len > RT_TENANT_MAX) {
        rt_problem(x, 400, "X-Project-ID has at most %d bytes.", RT_TENANT_MAX);
        return;
    }
    const unsigned refusal = rt_api_refusal(x, tenant);
    if (refusal != 0) rt_problem(x, refusal, "This wants a token for project \"%.*s\".", RT_STR_ARG(tenant));
}

void rt_problem_want_operator(rt_exchange *x) {
    const unsigned refusal = rt_api_refusal(x, RT_STR("*"));
    if (refusal != 0) rt_problem(x, refusal, "This page wants a token for all projects (\"*\").");
}

void rt_problem_not_found(rt_exchange *x) { rt_problem(x, 404, "There is no such path."); }

void rt_problem_not_allowed(rt_exchange *x, rt_str allow) {
    rt_exchange_set_header(x, "Allow", allow);
    rt_problem(x, 405, "This path takes %.*s.", RT_STR_ARG(allow));
}

void rt_problem_refuse(rt_exchange *x, unsigned status, rt_str why) {
    rt_problem(x, status, "%.*s", RT_STR_ARG(why));
}
