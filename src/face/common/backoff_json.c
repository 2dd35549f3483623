#include "face/common/backoff_json.h"

#include "json/policy_json.h"

static rt_code read_jitter(const json_t *jitter, rt_jitter *out, rt_err *err) {
    *out = RT_JITTER_NONE;
    if (jitter == NULL || json_is_null(jitter)) return RT_OK;
    const rt_str word = {.ptr = json_string_value(jitter), .len = json_string_length(jitter)};
    for (int j = RT_JITTER_NONE; j <= RT_JITTER_EQUAL; j++) {
        if (!rt_str_eq(word, rt_str_of(rt_jitter_name((rt_jitter)j)))) continue;
        *out = (rt_jitter)j;
        return RT_OK;
    }
    return rt_fail(err, RT_E_INVALID, 0, "backoff: jitter must be \"none\", \"full\" or \"equal\".");
}

rt_code rt_backoff_from_json(const json_t *backoff, rt_backoff *out, rt_err *err) {
    rt_backoff read = {0};
    *out = read;
    if (backoff == NULL || json_is_null(backoff)) return RT_OK;
    rt_code code = read_jitter(json_object_get(backoff, "jitter"), &read.jitter, err);
    if (code != RT_OK) return code;
    union { const json_t *in; json_t *out; } given = {.in = backoff}; // jansson copies only what may be changed
    json_t *rest = json_copy(given.out);
    if (rest == NULL) return rt_fail(err, RT_E_NOMEM, 0, "no memory for a backoff");
    (void)json_object_del(rest, "jitter"); // ours; the rest is as the document has it
    code = rt_work_backoff_from_json(rest, &read.given, &read.descriptor, err);
    json_decref(rest);
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
