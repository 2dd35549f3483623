#include "engine/common/backoff.h"

#include <string.h>

#define REST_MAX_S (INT64_MAX / 4000) /* so that sums with a time of the clock stay far from overflow */

void rt_backoff_pack(rt_buf *out, const rt_backoff *b) {
    rt_pack_u8(out, b->given);
    rt_pack_u64(out, b->descriptor.initial_ns);
    rt_pack_u64(out, b->descriptor.maximum_ns);
    uint64_t bits;
    memcpy(&bits, &b->descriptor.exponent, sizeof bits);
    rt_pack_u64(out, bits);
    rt_pack_u8(out, (uint8_t)b->jitter);
}
_Static_assert(sizeof(double) == sizeof(uint64_t), "an exponent is packed as its bits");

void rt_backoff_unpack(rt_unpack *u, rt_backoff *out) {
    out->given = rt_unpack_bool(u);
    out->descriptor.initial_ns = rt_unpack_u64(u);
    out->descriptor.maximum_ns = rt_unpack_u64(u);
    const uint64_t bits = rt_unpack_u64(u);
    memcpy(&out->descriptor.exponent, &bits, sizeof bits);
    const uint8_t jitter = rt_unpack_u8(u);
    out->jitter = jitter <= RT_JITTER_EQUAL ? (rt_jitter)jitter : RT_JITTER_NONE;
    if (jitter > RT_JITTER_EQUAL) u->failed = true;
    if (out->given && rt_work_backoff_check(&out->descriptor) != NULL) u->failed = true;
}
_Static_assert(RT_JITTER_NONE < RT_JITTER_EQUAL && RT_JITTER_FULL < RT_JITTER_EQUAL, "all below are known");

uint64_t rt_backoff_next(const rt_backoff *b, uint64_t previous_s, rt_rng *rng, int64_t *rest_ms) {
    const uint64_t interval_s = rt_work_backoff_next_s(b->given ? &b->descriptor : NULL, previous_s);
    const int64_t most_ms = (int64_t)(interval_s < REST_MAX_S ? interval_s : REST_MAX_S) * 1000;
    const int64_t half_ms = most_ms / 2 > 1000 ? most_ms / 2 : 1000;
    const int64_t least_ms = b->jitter == RT_JITTER_NONE   ? most_ms
                             : b->jitter == RT_JITTER_FULL ? 1000
                                                           : half_ms;
    *rest_ms = least_ms + (int64_t)rt_rng_below(rng, (uint64_t)(most_ms - least_ms) + 1);
    return interval_s;
}
