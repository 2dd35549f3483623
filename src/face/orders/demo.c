#include "face/orders/orders.h"

#include "engine/orders/order_type.h"

enum { RUN_LIMIT_MS = 30000, ANSWER_LIMIT_S = 3600 };

rt_code rt_orders_demo(const rt_api *api, rt_err *err) {
    static const struct {
        const char *type, *target;
        bool cancel;
    } TYPES[] = {{"certificate", "plugin:simple_certificate", true},
                 {"key", "plugin:key", false},
                 {"asymmetric", "plugin:asymmetric", false}};
    rt_code code = RT_OK;
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0] && code == RT_OK; i++) {
        rt_order_type_put c;
        rt_order_type_put_init(&c);
        c.tenant = RT_ORDER_EVERYBODY;
        c.name = rt_str_of(TYPES[i].type);
        c.only_new = true;
        c.like = (rt_order_type){.target = rt_str_of(TYPES[i].target),
                                 .run_limit_ms = RUN_LIMIT_MS,
                                 .answer_limit_s = ANSWER_LIMIT_S,
                                 .cancel = TYPES[i].cancel};
        code = rt_api_do(api, &c.cmd, sizeof c, err);
    }
    return code;
}
