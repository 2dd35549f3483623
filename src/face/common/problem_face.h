/* problem_face.h: a face of which all errors are problems: who may come in, and what there is no page for. */
#ifndef RT_FACE_COMMON_PROBLEM_FACE_H
#define RT_FACE_COMMON_PROBLEM_FACE_H
#include "face/common/api.h"

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
