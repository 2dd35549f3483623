#include <stdarg.h>
#include <stdio.h>

#include "base/quote.h"
#include "face/orders/parts.h"

void rt_refusal(rt_exchange *x, unsigned status, const char *fmt, ...) {
    char description[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(description, sizeof description, fmt, args);
    va_end(args);
    if (status == 503) rt_exchange_set_header(x, "Retry-After", RT_STR("1"));
    if (status == 401) rt_exchange_set_header(x, "WWW-Authenticate", RT_STR("Bearer"));
    rt_buf body = {0};
    rt_buf_addf(&body, "{\"code\": %u, \"title\": \"%s\", \"description\": ", status,
                rt_problem_title(status));
    rt_quote(&body, rt_str_of(description)); // what a client sent need not be UTF-8
    rt_buf_add_char(&body, '}');
    rt_exchange_reply_buf(x, status, "application/json", &body);
}

void rt_refusal_of(rt_exchange *x, rt_code code, const rt_err *err, const char *what) {
    const char *why = err != NULL && err->msg[0] != '\0' ? err->msg : NULL;
    const unsigned status = rt_problem_status(code);
    if (status == 404) rt_refusal(x, 404, "%s not found.", what);
    else if (why != NULL) rt_refusal(x, status, "%s", why);
    else if (status == 503) rt_refusal(x, 503, "The store does not answer now; try again in a moment.");
    else rt_refusal(x, status, "The state of the %s does not allow this.", what);
}

void rt_refusal_busy(rt_exchange *x) {
    rt_refusal(x, 503, "Too many requests are waiting; try again in a moment.");
}

rt_view *rt_refusal_view(rt_exchange *x) {
    rt_view *v;
    rt_err err = {0};
    if (rt_exchange_moves(x)) return NULL;
    const rt_code code = rt_engine_view(rt_api_of(x)->engine, &v, &err);
    if (code == RT_OK) return v;
    rt_refusal_of(x, code, &err, "store");
    return NULL;
}

void rt_refusal_want_tenant(rt_exchange *x) {
    const rt_str tenant = rt_tenant_of(x);
    if (tenant.len > RT_TENANT_MAX) {
        rt_refusal(x, 400, "X-Project-Id has at most %d bytes.", RT_TENANT_MAX);
        return;
    }
    rt_str project;
    const unsigned status = rt_api_refusal(x, tenant);
    const bool named = rt_exchange_header(x, "X-Project-Id", &project) && project.len > 0;
    if (!named && status != 401) rt_refusal(x, 400, "X-Project-Id is missing: it says whose orders these are.");
    else if (status != 0) rt_refusal(x, status, "This wants a token for project '%.*s'.", RT_STR_ARG(tenant));
}

void rt_refusal_not_found(rt_exchange *x) { rt_refusal(x, 404, "There is no such path."); }

void rt_refusal_not_allowed(rt_exchange *x, rt_str allow) {
    rt_exchange_set_header(x, "Allow", allow);
    rt_refusal(x, 405, "This path takes %.*s.", RT_STR_ARG(allow));
}

void rt_refusal_by_server(rt_exchange *x, unsigned status, rt_str why) {
    rt_refusal(x, status, "%.*s", RT_STR_ARG(why));
}
