/* events.h: the face of failed calls: /v1/event-types, /v1/events, /v1/jobs.
 *
 * The tenant is the request's X-Project-ID, or "default"; with tokens configured one that opens that
 * project is wanted. Single jobs are shown to whoever may see all ("*") and, if they are events, to those
 * of their project. Errors are problem details (RFC 9457) with a "code" where a program may want to know:
 * not_holder, idempotency_conflict, version_conflict. */
#ifndef RT_FACE_EVENTS_EVENTS_H
#define RT_FACE_EVENTS_EVENTS_H
#include "face/common/api.h"

enum { RT_EVENTS_FACES = 3 };
/* Fills `out` with faces that live as long as the program; they use `api`, which must live as long. */
void rt_face_events(rt_api *api, const rt_face *out[RT_EVENTS_FACES]);

#endif
