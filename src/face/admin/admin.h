/* admin.h: the operators' pages: /v1/queues, /v1/jobs, /v1/dead, /v1/attempts, /metrics, /healthz, /readyz, /openapi.json.
 * Errors are RFC 9457 problem details. With tokens configured, all but the health pages want a token for project "*". */
#ifndef RT_FACE_ADMIN_ADMIN_H
#define RT_FACE_ADMIN_ADMIN_H
#include "face/common/api.h"

enum { RT_ADMIN_FACES = 5 };
/* Fills `out` with faces that live as long as the program; they use `api`, which must live as long. */
void rt_face_admin(rt_api *api, const rt_face *out[RT_ADMIN_FACES]);

#endif
