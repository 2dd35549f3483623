/* order_parts.h: what the files of orders share among themselves. For decisions only. */
#ifndef RT_ENGINE_ORDERS_ORDER_PARTS_H
#define RT_ENGINE_ORDERS_ORDER_PARTS_H
#include "engine/orders/order.h"

/* An order as it is being decided about: copies in the arena of the decision. */
typedef struct rt_order_case {
    rt_str tenant;
    rt_doc was; /* of the order */
    rt_order order;
    bool has_type;
    rt_order_type type; /* if has_type; otherwise all zero: it is gone */
} rt_order_case;

/* The order of a document's name, with its type as it is now (not guarded). RT_E_ABSENT: no such order. */
rt_code rt_order_load(rt_tx *tx, rt_str name, rt_order_case *out);
/* Writes the order. */
rt_code rt_order_save(rt_tx *tx, rt_order_case *c);
/* RT_E_ABSENT: doc->version is 0. */
rt_code rt_order_type_load(rt_tx *tx, rt_str tenant, rt_str name, rt_doc *doc, rt_order_type *out);
/* The same; where the tenant has none, that of RT_ORDER_EVERYBODY. */
rt_code rt_order_type_find(rt_tx *tx, rt_str tenant, rt_str name, rt_doc *doc, rt_order_type *out);

/* A fresh job for the live task of an order of type `t`, whose document is called `name`: order->job names
 * it. */
void rt_order_add_task(rt_tx *tx, const rt_order_type *t, rt_str name, rt_order *o);
/* Tells whoever advances its type that the order was deleted. */
rt_code rt_order_add_cancel(rt_tx *tx, const rt_order_case *c);
/* What a job of RT_JOB_CANCEL needs to know. RT_E_CORRUPT. */
rt_code rt_order_read_cancel(rt_tx *tx, const rt_job *job, rt_order_case *out);

/* Nobody can advance the order: it is in ERROR. The job of its task is the caller's to end. */
rt_code rt_order_fail(rt_tx *tx, rt_order_case *c, rt_str code, rt_str reason);
/* The run `last` of the live task `job` has ended with this answer: writes all that follows from it. */
rt_code rt_order_take(rt_tx *tx, rt_order_case *c, const rt_job *job, const rt_run_answer *answer,
                      rt_event last);
/* How long to wait after a run that could not be done, ms. *interval_s: the last interval, and the next. */
int64_t rt_order_rest_ms(rt_tx *tx, const rt_order_type *t, uint64_t *interval_s);

#endif
