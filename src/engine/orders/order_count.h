/* order_count.h: how many orders a project has, known without looking at them.
 *
 * Documents of the project add up to it, each changed together with the orders that it counts. Where several nodes take from
 * one store, each writes one of its own, so that none waits for another. The first one begins with the project's first order
 * and stays; a project whose orders are older than it is not counted before all of them are gone. */
#ifndef RT_ENGINE_ORDERS_ORDER_COUNT_H
#define RT_ENGINE_ORDERS_ORDER_COUNT_H
#include "engine/common/command.h"

/* The documents' names are "<tenant>\0"<number, 8 bytes big endian>. */
enum { RT_ORDER_COUNT_FIRST = 0, RT_ORDER_COUNTS_MAX = 32 };

rt_str rt_order_count_encode(rt_arena *arena, int64_t count);
bool rt_order_count_decode(rt_str value, int64_t *out);

/* For decisions: an order of the tenant comes (+1), before it is written, or goes (-1). */
RT_MUST_USE rt_code rt_order_count_add(rt_tx *tx, rt_str tenant, int64_t by);

#endif
