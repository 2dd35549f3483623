#include "engine/common/stored.h"

rt_str rt_pack_finish(rt_buf *b, rt_arena *arena) {
    const rt_str out = b->failed ? (rt_str){0} : rt_arena_dup(arena, rt_buf_str(b));
    rt_buf_deinit(b);
    return out;
}

bool rt_unpack_bool(rt_unpack *u) {
    const uint8_t v = rt_unpack_u8(u);
    if (v > 1) u->failed = true;
    return v == 1;
}

void rt_policy_pack(rt_buf *b, const rt_delivery_policy *p) {
    rt_pack_u32(b, p->retries_with_no_delay);
    rt_pack_u32(b, p->minimum_delay_retries);
    rt_pack_u32(b, p->minimum_delay_s);
    rt_pack_u32(b, p->maximum_delay_s);
    rt_pack_u32(b, p->maximum_delay_retries);
    rt_pack_u32(b, p->backoff_retries);
    rt_pack_u32(b, p->maximum_age_s);
    rt_pack_u32(b, p->attempt_timeout_s);
    rt_pack_u8(b, (uint8_t)p->backoff_function);
    rt_pack_u8(b, (uint8_t)p->jitter);
    rt_pack_u8(b, p->ignore_subscription_override);
    rt_pack_u8(b, p->respect_retry_after);
    rt_pack_u8(b, p->follow_redirects);
    rt_pack_u8(b, p->retry_on_count);
    for (uint8_t i = 0; i < p->retry_on_count; i++) {
        rt_pack_u16(b, p->retry_on[i].low);
        rt_pack_u16(b, p->retry_on[i].high);
    }
}

void rt_policy_unpack(rt_unpack *u, rt_delivery_policy *p) {
    *p = (rt_delivery_policy){
        .retries_with_no_delay = rt_unpack_u32(u),
    };
    p->minimum_delay_retries = rt_unpack_u32(u);
    p->minimum_delay_s = rt_unpack_u32(u);
    p->maximum_delay_s = rt_unpack_u32(u);
    p->maximum_delay_retries = rt_unpack_u32(u);
    p->backoff_retries = rt_unpack_u32(u);
    p->maximum_age_s = rt_unpack_u32(u);
    p->attempt_timeout_s = rt_unpack_u32(u);
    const uint8_t function = rt_unpack_u8(u);
    const uint8_t jitter = rt_unpack_u8(u);
    p->ignore_subscription_override = rt_unpack_bool(u);
    p->respect_retry_after = rt_unpack_bool(u);
    p->follow_redirects = rt_unpack_bool(u);
    p->retry_on_count = rt_unpack_u8(u);
    const bool known = function < RT_BACKOFF_FUNCTION_COUNT && jitter < RT_JITTER_COUNT;
    if (!known || p->retry_on_count > RT_RETRY_ON_MAX) {
        u->failed = true;
        return;
    }
    p->backoff_function = (rt_backoff_function)function;
    p->jitter = (rt_jitter)jitter;
    for (uint8_t i = 0; i < p->retry_on_count; i++) {
        p->retry_on[i].low = rt_unpack_u16(u);
        p->retry_on[i].high = rt_unpack_u16(u);
    }
    // Attempts are timed by it, and the arithmetic relies on its rules.
    if (!u->failed && rt_delivery_policy_check(p) != NULL) u->failed = true;
}
