/* work.h: the face of worker fleets: /v1/sessions, /v1/processes, /v1/work, /v1/backoffs, /v1/entities.
 *
 * The tenant is the request's X-Project-ID, or "default"; with tokens configured one that opens that
 * project is wanted. Errors are problem details (RFC 9457) with a "code" where a program may want to know:
 * session_expired (410), not_holder, conflict (409). Listings are arrays; ?marker= of the last element
 * goes on behind it. */
#ifndef RT_FACE_WORK_WORK_H
#define RT_FACE_WORK_WORK_H
#include "face/common/api.h"

enum { RT_WORK_FACES = 5 };
/* Fills `out` with faces that live as long as the program; they use `api`, which must live as long. */
void rt_face_work(rt_api *api, const rt_face *out[RT_WORK_FACES]);

#endif
