/* problem.h: errors of /v1 as RFC 9457 problem details. */
#ifndef RT_FACE_COMMON_PROBLEM_H
#define RT_FACE_COMMON_PROBLEM_H
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

#endif
