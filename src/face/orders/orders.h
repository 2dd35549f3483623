/* orders.h: the face of long-lived orders: /v1/orders as Barbican's clients know it, with /v1/secrets and /v1/containers for
 * what orders made; and beyond Barbican /v1/order-types (who advances them) and /v1/locks.
 *
 * The tenant is the request's X-Project-Id, or "default"; with tokens configured one that opens that project is wanted.
 * Errors of the first three are {"code", "title", "description"}, of the others problem details (RFC 9457). */
#ifndef RT_FACE_ORDERS_ORDERS_H
#define RT_FACE_ORDERS_ORDERS_H
#include "face/common/api.h"

enum { RT_ORDERS_FACES = 5 };
/* Fills `out` with faces that live as long as the program; they use `api`, which must live as long. */
void rt_face_orders(rt_api *api, const rt_face *out[RT_ORDERS_FACES]);

/* Registers the demo types certificate, key and asymmetric for all projects that have none of their own, unless they are
 * there. Before the first request. */
RT_MUST_USE rt_code rt_orders_demo(const rt_api *api, rt_err *err);

#endif
