/* order_run.h: what a plugin or worker is sent when it is to run a task. Pure text.
 *
 *     {"order":"UUID","type":"key","task":"create_order","args":[],"kwargs":{},"meta":{},"state":null,
 *      "attempt":1,"token":"16 hex digits","deadline":UNIX_MS,"verb":"run"}
 *
 * state: a string, or null before there is any. verb "cancel": the order, with the task that was its next,
 * was deleted. */
#ifndef RT_ENGINE_ORDERS_ORDER_RUN_H
#define RT_ENGINE_ORDERS_ORDER_RUN_H
#include "engine/orders/order.h"

typedef struct rt_order_run {
    const rt_order *order;
    uint32_t tag; /* of the store */
    uint32_t attempt;
    uint64_t token;
    int64_t deadline_ms;
    bool cancel;
} rt_order_run;

/* Out of memory: out->failed. */
void rt_order_run_write(rt_buf *out, const rt_order_run *run);

#endif
