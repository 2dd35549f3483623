#include "face/common/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/common/name.h"
#include "face/common/fields.h"
#include "face/common/query.h"
#include "face/common/timestamp.h"

#include "json/tree.h"

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

void rt_reply_json(rt_exchange *x, unsigned status, json_t *json) {
    rt_buf b = {0};
    if (json != NULL) rt_json_write(&b, json); // its reals are as short as they can be
    char *text = json == NULL || !b.failed ? NULL : json_dumps(json, JSON_ENCODE_ANY); // very deep
    json_decref(json);
    if (json != NULL && !b.failed) {
        rt_exchange_reply_buf(x, status, "application/json", &b);
        return;
    }
    rt_buf_deinit(&b);
    if (text == NULL) rt_problem(x, 503, "Out of memory.");
    else rt_exchange_reply(x, status, "application/json", rt_str_of(text));
    free(text);
}

json_t *rt_body_json(rt_exchange *x) {
    const rt_str body = rt_str_trim(rt_exchange_body(x));
    if (body.len == 0) return json_object();
    rt_json_scan depth = {.rows_max = 1, .arena = rt_exchange_arena(x)};
    if (rt_json_scan_text(&depth, body) == RT_JSON_TOO_DEEP) {
        rt_problem(x, 400, "The body is more than %d levels deep.", RT_JSON_DEPTH_MAX);
        return NULL;
    }
    json_error_t why;
    json_t *json = json_loadb(body.ptr, body.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (json == NULL) {
        rt_problem(x, 400, "The body cannot be read as JSON: %s at line %d, column %d.", why.text, why.line, why.column);
        return NULL;
    }
    if (!json_is_object(json)) {
        json_decref(json);
        rt_problem(x, 400, "The body must be a JSON object.");
        return NULL;
    }
    return json;
}

bool rt_arg_int(rt_exchange *x, const char *name, int64_t low, int64_t high, int64_t preset, int64_t *out) {
    *out = preset;
    const rt_query found = rt_query_int(x, name, out);
    if (found == RT_QUERY_ABSENT || (found == RT_QUERY_FOUND && *out >= low && *out <= high)) return true;
    rt_problem(x, 400, "The query parameter \"%s\" must be a whole number from %lld to %lld.", name,
               (long long)low, (long long)high);
    return false;
}

bool rt_param_id(rt_exchange *x, size_t i, const char *what, rt_id *out) {
    if (rt_id_parse(rt_engine_tag(rt_api_of(x)->engine), rt_exchange_param(x, i), out)) return true;
    rt_problem(x, 404, "There is no such %s: ids have %d hex digits, as listings show them.", what, RT_ID_TEXT_LEN);
    return false;
}

json_t *rt_json_time(int64_t ms) {
    if (ms <= 0 || ms == INT64_MAX) return json_null();
    return json_sprintf("%s.%03dZ", rt_timestamp_format(ms / 1000).s, (int)(ms % 1000));
}

json_t *rt_json_id(const rt_exchange *x, rt_id id) {
    if (id == 0) return json_null();
    return json_string(rt_id_format(rt_engine_tag(rt_api_of(x)->engine), id).s);
}

bool rt_members_are_right(rt_exchange *x, json_t *object, const rt_member *members, size_t count) {
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(object, next, key, value) {
        const rt_member *m = members;
        while (m < members + count && strcmp(m->name, key) != 0) m++;
        if (m == members + count) {
            rt_problem(x, 400, "\"%.64s\" is not known here.", key);
            return false;
        }
        if (json_is_null(value)) {
            (void)json_object_del(object, key);
            continue;
        }
        if (json_typeof(value) == m->type || (m->type == JSON_TRUE && json_is_false(value))) continue;
        rt_problem(x, 400, "\"%s\" must be %s.", key, m->wanted);
        return false;
    }
    return true;
}

/* ---- a face of which all errors are problems ----------------------------------------------------------- */

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
