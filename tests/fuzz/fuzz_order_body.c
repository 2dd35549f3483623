/* The body of an order: stripping it twice is stripping it once, and whether it is taken does not depend on anything but
 * what it says. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "face/orders/order_body.h"
#include "json/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NOW_MS = 1000000 };

static rt_buf written(const json_t *body) {
    rt_buf text = {0};
    rt_json_write(&text, body);
    RT_ASSERT(!text.failed);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    json_t *body;
    if (rt_json_parse((rt_str){.ptr = (const char *)data, .len = size}, &body) != RT_JSON_FINE) return 0;
    rt_err err = {0};
    RT_ASSERT(rt_order_body_strip(body));
    const rt_code code = rt_order_body_check(body, NOW_MS, &err);
    RT_ASSERT(code == RT_OK || (code == RT_E_INVALID && err.msg[0] != '\0'));
    rt_buf once = written(body);
    RT_ASSERT(rt_order_body_strip(body));
    rt_buf twice = written(body);
    RT_ASSERT(rt_str_eq(rt_buf_str(&once), rt_buf_str(&twice)));
    RT_ASSERT(rt_order_body_check(body, NOW_MS, &err) == code);
    rt_buf_deinit(&once);
    rt_buf_deinit(&twice);
    json_decref(body);
    return 0;
}
