/* order_read.h: what faces may know of orders, on a snapshot; see read.h. Copies in `a`, unless lent for a call. */
#ifndef RT_ENGINE_ORDERS_ORDER_READ_H
#define RT_ENGINE_ORDERS_ORDER_READ_H
#include "engine/orders/lock.h"
#include "engine/orders/secret.h"

rt_code rt_read_order(rt_view *v, rt_arena *a, rt_str tenant, rt_id id, rt_order *out); /* RT_E_ABSENT */
/* In order of creation, behind `after`. Lent for the call. */
typedef bool rt_each_order(void *ctx, const rt_order *o);
rt_code rt_read_orders(rt_view *v, rt_str tenant, rt_id after, rt_each_order *each, void *ctx);
/* How many there are, without looking at them. RT_E_ABSENT: that was not counted (order_count.h). */
rt_code rt_read_order_count(rt_view *v, rt_str tenant, int64_t *out);
/* The job of its live task; RT_E_ABSENT: none. */
rt_code rt_read_order_task(rt_view *v, const rt_order *o, rt_job *out);

rt_code rt_read_order_type(rt_view *v, rt_arena *a, rt_str tenant, rt_str name, rt_order_type *out);
typedef bool rt_each_order_type(void *ctx, rt_str name, const rt_order_type *t);
rt_code rt_read_order_types(rt_view *v, rt_str tenant, rt_each_order_type *each, void *ctx);

rt_code rt_read_secret(rt_view *v, rt_arena *a, rt_str tenant, rt_id id, rt_secret *out);

typedef bool rt_each_lock(void *ctx, rt_str name, const rt_lock *l);
rt_code rt_read_locks(rt_view *v, rt_each_lock *each, void *ctx);

#endif
