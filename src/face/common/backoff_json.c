#include "face/common/backoff_json.h"

#include "json/policy_json.h"

rt_code rt_backoff_from_json(const json_t *backoff, rt_backoff *out, rt_err *err) {
    rt_backoff read = {0};
    *out = read;
    if (backoff == NULL || json_is_null(backoff)) return RT_OK;
    rt_code code = rt_work_jitter_from_json(backoff, &read.jitter, err);
    if (code == RT_OK) code = rt_work_backoff_from_json(backoff, &read.given, &read.descriptor, err);
    if (code == RT_OK) *out = read;
    return code;
}

/* Whole milliseconds as an integer. */
static json_t *json_ms(uint64_t ns) {
    if (ns % 1000000 == 0) return json_integer((json_int_t)(ns / 1000000));
    return json_real((double)ns / 1e6);
}

json_t *rt_json_backoff(const rt_backoff *b) {
    if (!b->given) return json_null();
    return json_pack("{s:o, s:o, s:f, s:s}", "initial_ms", json_ms(b->descriptor.initial_ns), "maximum_ms",
                     json_ms(b->descriptor.maximum_ns), "exponent", b->descriptor.exponent, "jitter",
                     rt_jitter_name(b->jitter));
}
