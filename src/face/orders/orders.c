#include "face/orders/orders.h"

#include "face/common/problem_face.h"
#include "face/orders/parts.h"

static const rt_route ORDERS[] = {
    {"GET", "/v1/orders", rt_page_order_list, RT_ON_READER},
    {"POST", "/v1/orders", rt_page_order_post, 0},
    {"GET", "/v1/orders/{order}", rt_page_order_get, 0},
    {"DELETE", "/v1/orders/{order}", rt_page_order_delete, 0},
    {"GET", "/v1/orders/{order}/retries", rt_page_order_retries, 0},
    {"PUT", "/v1/orders/{order}/result", rt_page_order_result, 0},
    {"POST", "/v1/orders/{order}/retry-now", rt_page_order_wake, 0},
};
static const rt_route SECRETS[] = {
    {"GET", "/v1/secrets/{secret}", rt_page_secret_get, 0},
    {"GET", "/v1/secrets/{secret}/payload", rt_page_secret_payload, 0},
};
static const rt_route CONTAINERS[] = {{"GET", "/v1/containers/{container}", rt_page_container_get, 0}};
static const rt_route TYPES[] = {
    {"GET", "/v1/order-types", rt_page_order_type_list, RT_ON_READER},
    {"GET", "/v1/order-types/{type}", rt_page_order_type_get, 0},
    {"PUT", "/v1/order-types/{type}", rt_page_order_type_put, 0},
    {"DELETE", "/v1/order-types/{type}", rt_page_order_type_delete, 0},
};
static const rt_route LOCKS[] = {{"GET", "/v1/locks", rt_page_lock_list, RT_ON_READER}};

#define BARBICAN_FACE(at, table)                                                                             \
    {                                                                                                        \
        .prefix = (at), .routes = (table), .routes_count = sizeof(table) / sizeof(table)[0],                 \
        .before = rt_refusal_want_tenant, .not_found = rt_refusal_not_found,                                 \
        .not_allowed = rt_refusal_not_allowed, .refuse = rt_refusal_by_server                                \
    }

void rt_face_orders(rt_api *api, const rt_face *out[RT_ORDERS_FACES]) {
    static rt_face faces[RT_ORDERS_FACES] = {
        BARBICAN_FACE("/v1/orders", ORDERS),
        BARBICAN_FACE("/v1/secrets", SECRETS),
        BARBICAN_FACE("/v1/containers", CONTAINERS),
        RT_PROBLEM_FACE("/v1/order-types", TYPES, rt_problem_want_tenant),
        RT_PROBLEM_FACE("/v1/locks", LOCKS, rt_problem_want_operator),
    };
    for (int i = 0; i < RT_ORDERS_FACES; i++) {
        faces[i].app = api;
        out[i] = &faces[i];
    }
}
