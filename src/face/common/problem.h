/* problem.h: errors of /v1 as RFC 9457 problem details, and replies in JSON. */
#ifndef RT_FACE_COMMON_PROBLEM_H
#define RT_FACE_COMMON_PROBLEM_H
#include <jansson.h>

#include "face/common/api.h"

/* `detail` names the field and the rule. */
void rt_problem(rt_exchange *x, unsigned status, const char *detail_fmt, ...) RT_PRINTF(3, 4);
/* The same with a "code" that programs can tell apart: "session_expired", … */
void rt_problem_coded(rt_exchange *x, unsigned status, const char *code, const char *detail);
unsigned rt_problem_status(rt_code code); /* the HTTP status of a code of the engine or of a read; 503 for RT_OK */
/* What a code of the engine or of a read means to a client. `what` is not there: "job", "queue", … */
void rt_problem_of(rt_exchange *x, rt_code code, const rt_err *err, const char *what);
void rt_problem_busy(rt_exchange *x); /* 503: the engine's ring is full */
const char *rt_problem_title(unsigned status); /* "Bad Request", … */
/* A view for this request, for rt_view_close. NULL: return; it is replied with 503, or called again (rt_exchange_moves). */
rt_view *rt_problem_view(rt_exchange *x);
/* Replies with the JSON and releases it. NULL: 503, out of memory. */
void rt_reply_json(rt_exchange *x, unsigned status, json_t *json);
/* The body as a JSON object; an empty body is an empty object. NULL: replied with 400. The caller releases it. */
json_t *rt_body_json(rt_exchange *x);
/* A whole number from the query in [low, high], or `preset` if absent. False: replied with 400. */
bool rt_arg_int(rt_exchange *x, const char *name, int64_t low, int64_t high, int64_t preset, int64_t *out);
/* The i-th path parameter as an id. False: replied with 404 for `what`. */
bool rt_param_id(rt_exchange *x, size_t i, const char *what, rt_id *out);
/* RFC 3339 in UTC with milliseconds; JSON null for 0 or "never". */
json_t *rt_json_time(int64_t ms);
json_t *rt_json_id(const rt_exchange *x, rt_id id); /* null for 0 */

/* What a member of a body may be. */
typedef struct rt_member {
    const char *name;
    json_type type; /* JSON_TRUE: either boolean */
    const char *wanted; /* "a string", … for the error */
} rt_member;
/* Is each member of `object` (NULL: it has none) one of these, and of its type? Null is as if it were not there: such ones
 * are taken out. False: replied with 400 that names the member. */
bool rt_members_are_right(rt_exchange *x, json_t *object, const rt_member *members, size_t count);

/* ---- a face of which all errors are problems ----------------------------------------------------------- */

void rt_problem_want_tenant(rt_exchange *x); /* for `before`: replies unless the project is right, and a token opens it */
void rt_problem_want_operator(rt_exchange *x); /* the same for pages that show all projects */
void rt_problem_not_found(rt_exchange *x);
void rt_problem_not_allowed(rt_exchange *x, rt_str allow);
void rt_problem_refuse(rt_exchange *x, unsigned status, rt_str why);
#define RT_PROBLEM_FACE(at, table, check)                                                                    \
    {                                                                                                        \
        .prefix = (at), .routes = (table), .routes_count = sizeof(table) / sizeof(table)[0],                 \
        .before = (check), .not_found = rt_problem_not_found, .not_allowed = rt_problem_not_allowed,         \
        .refuse = rt_problem_refuse                                                                          \
    }

#endif
