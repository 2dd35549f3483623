#include "face/common/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "face/common/values.h"

const char *rt_problem_title(unsigned status) {
    switch (status) {
        case 400: return "Bad Request";
        case 401: return "Unauthorized";
        case 403: return "Forbidden";
        case 404: return "Not Found";
        case 405: return "Method Not Allowed";
        case 406: return "Not Acceptable";
        case 409: return "Conflict";
        case 410: return "Gone";
        case 412: return "Precondition Failed";
        case 413: return "Content Too Large";
        case 414: return "URI Too Long";
        case 415: return "Unsupported Media Type";
        case 431: return "Request Header Fields Too Large";
        case 503: return "Service Unavailable";
        default: return "Error";
    }
}

static void reply_problem(rt_exchange *x, unsigned status, const char *code, const char *detail) {
    if (status == 503) rt_exchange_set_header(x, "Retry-After", RT_STR("1"));
    if (status == 401) rt_exchange_set_header(x, "WWW-Authenticate", RT_STR("Bearer"));
    // What a client sent need not be UTF-8, and is cut anywhere.
    json_t *json = json_pack("{s:s, s:s, s:i, s:o}", "type", "about:blank", "title", rt_problem_title(status),
                             "status", (int)status, "detail", rt_json_str(rt_str_of(detail)));
    if (json != NULL && code != NULL) (void)json_object_set_new(json, "code", json_string(code));
    char *text = json == NULL ? NULL : json_dumps(json, 0);
    rt_exchange_reply(x, status, "application/problem+json", text == NULL ? RT_STR("{}") : rt_str_of(text));
    free(text);
    json_decref(json);
}

void rt_problem(rt_exchange *x, unsigned status, const char *detail_fmt, ...) {
    char detail[512];
    va_list args;
    va_start(args, detail_fmt);
    (void)vsnprintf(detail, sizeof detail, detail_fmt, args);
    va_end(args);
    reply_problem(x, status, NULL, detail);
}

void rt_problem_coded(rt_exchange *x, unsigned status, const char *code, const char *detail) {
    reply_problem(x, status, code, detail);
}

unsigned rt_problem_status(rt_code code) {
    switch (code) {
        case RT_E_ABSENT: return 404;
        case RT_E_EXISTS:
        case RT_E_FENCED:
        case RT_E_CONFLICT:
        case RT_E_INVALID: return 409;
        case RT_E_TOO_LARGE: return 413;
        case RT_E_FORBIDDEN: return 403;
        case RT_OK:
        case RT_E_AGAIN:
        case RT_E_FULL:
        case RT_E_UNAVAILABLE:
        case RT_E_IO:
        case RT_E_CORRUPT:
        case RT_E_NOMEM:
        case RT_CODE_COUNT: break;
    }
    return 503;
}

static const char *words_for(unsigned status) {
    switch (status) {
        case 403: return "Not allowed.";
        case 409: return "The state of the record does not allow this.";
        case 413: return "The request is too large.";
        default: return "The store does not answer now; try again in a moment.";
    }
}

void rt_problem_of(rt_exchange *x, rt_code code, const rt_err *err, const char *what) {
    const char *why = err != NULL && err->msg[0] != '\0' ? err->msg : NULL;
    const unsigned status = rt_problem_status(code);
    if (status == 404) rt_problem(x, 404, "There is no such %s.", what);
    else rt_problem(x, status, "%s", why != NULL ? why : words_for(status));
}

rt_view *rt_problem_view(rt_exchange *x) {
    rt_view *v;
    rt_err err = {0};
    if (rt_exchange_moves(x)) return NULL;
    const rt_code code = rt_engine_view(rt_api_of(x)->engine, &v, &err);
    if (code == RT_OK) return v;
    rt_problem_of(x, code, &err, "view");
    return NULL;
}

void rt_problem_busy(rt_exchange *x) {
    rt_problem(x, 503, "Too many requests are waiting; try again in a moment.");
}
