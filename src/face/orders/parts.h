/* parts.h: what the pages of this face share: errors as Barbican writes them, references, what is shown of an order. */
#ifndef RT_FACE_ORDERS_PARTS_H
#define RT_FACE_ORDERS_PARTS_H
#include <jansson.h>

#include "base/uuid.h"
#include "engine/orders/order_read.h"
#include "face/common/fields.h"
#include "face/common/problem.h"
#include "face/common/reply.h"
#include "face/common/values.h"

/* ---- refusal.c ----------------------------------------------------------------------------------------- */

/* {"code", "title", "description"}: Barbican's client wants a title. */
void rt_refusal(rt_exchange *x, unsigned status, const char *fmt, ...) RT_PRINTF(3, 4);
/* What a code of the engine or of a read means to a client. `what`: "Order", … that is not there, if it is RT_E_ABSENT. */
void rt_refusal_of(rt_exchange *x, rt_code code, const rt_err *err, const char *what);
void rt_refusal_busy(rt_exchange *x);
/* A view for this request, for rt_view_close. NULL: return; it is replied with 503, or called again (rt_exchange_moves). */
rt_view *rt_refusal_view(rt_exchange *x);
/* For rt_face. */
void rt_refusal_want_tenant(rt_exchange *x);
void rt_refusal_not_found(rt_exchange *x);
void rt_refusal_not_allowed(rt_exchange *x, rt_str allow);
void rt_refusal_by_server(rt_exchange *x, unsigned status, rt_str why);

/* ---- show.c -------------------------------------------------------------------------------------------- */

/* The i-th path parameter as the UUID of `what` ("Order", …). False: replied with 404. */
bool rt_param_uuid(rt_exchange *x, size_t i, const char *what, rt_id *out);
json_t *rt_json_uuid(const rt_exchange *x, rt_id id);
/* "…/v1/NOUN", in the exchange's arena: behind orders.host_href, or behind the request's Host. */
rt_str rt_show_place(rt_exchange *x, const char *noun);
/* The same with "/UUID". */
json_t *rt_show_ref(rt_exchange *x, const char *noun, rt_id id);
/* UTC with microseconds and without a zone, as Barbican writes it. */
json_t *rt_show_time(int64_t ms);
json_t *rt_show_order(rt_exchange *x, const rt_order *o); /* NULL: out of memory */
json_t *rt_show_task(rt_exchange *x, const rt_order *o, const rt_job *task);
/* `tenant`: whose type it is. Without its secrets. */
json_t *rt_show_order_type(rt_str tenant, rt_str name, const rt_order_type *t);

/* ---- pages, one file a noun ---------------------------------------------------------------------------- */
void rt_page_order_post(rt_exchange *x), rt_page_order_list(rt_exchange *x), rt_page_order_get(rt_exchange *x);
void rt_page_order_delete(rt_exchange *x), rt_page_order_retries(rt_exchange *x);
void rt_page_order_result(rt_exchange *x), rt_page_order_wake(rt_exchange *x);
void rt_page_order_type_put(rt_exchange *x), rt_page_order_type_get(rt_exchange *x);
void rt_page_order_type_list(rt_exchange *x), rt_page_order_type_delete(rt_exchange *x);
void rt_page_secret_get(rt_exchange *x), rt_page_secret_payload(rt_exchange *x), rt_page_container_get(rt_exchange *x);
void rt_page_lock_list(rt_exchange *x);

#endif
