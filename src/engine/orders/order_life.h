/* order_life.h: how tasks of orders live. */
#ifndef RT_ENGINE_ORDERS_ORDER_LIFE_H
#define RT_ENGINE_ORDERS_ORDER_LIFE_H
#include "engine/common/life.h"

extern const rt_life rt_order_life;

#endif
