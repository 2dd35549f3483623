/* errors.h: refusals in the shape that Zaqar's clients parse: {"title": "…", "description": "…"}. Each replies. */
#ifndef RT_FACE_NOTIFICATIONS_ERRORS_H
#define RT_FACE_NOTIFICATIONS_ERRORS_H
#include "face/common/api.h"
#include "json/scan.h"

/* `description` ptr NULL: none is sent. */
void rt_zaqar_refuse(rt_exchange *x, unsigned status, const char *title, rt_str description);

void rt_zaqar_bad_request(rt_exchange *x, const char *fmt, ...) RT_PRINTF(2, 3); /* 400 Invalid API request */
void rt_zaqar_bad_body(rt_exchange *x, const char *fmt, ...) RT_PRINTF(2, 3);    /* 400 Invalid request body */
void rt_zaqar_not_found(rt_exchange *x, const char *fmt, ...) RT_PRINTF(2, 3);   /* 404 Not found */
void rt_zaqar_no_such_page(rt_exchange *x);                                      /* 404 without a description */

/* What did not work ("Messages could not be enqueued.") when the reason is ours: 503 with Retry-After, or 500 for a record
 * that cannot be read. */
void rt_zaqar_fail(rt_exchange *x, rt_code code, const char *what);
void rt_zaqar_busy(rt_exchange *x); /* the ring is full: an rt_busy_fn */

/* A body that is no JSON document. False: it is fine, and nothing was replied. */
bool rt_zaqar_refuse_json(rt_exchange *x, rt_json_fault fault);

/* For the face. */
void rt_zaqar_not_allowed(rt_exchange *x, rt_str allow);
void rt_zaqar_refuse_early(rt_exchange *x, unsigned status, rt_str why);

#endif
