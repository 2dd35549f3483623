/* Whatever parses as a policy is valid, and the first 1000 retries of its schedule can be walked: delays
 * within maximum_delay, phases in order, the backoff phase never decreasing, jitter within its bounds.
 * Whatever parses as a work backoff gives intervals of at least a second that can be followed from one to
 * the next. */
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "json/policy_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WALK_MAX = 1000, INTERVALS_MAX = 200 };

static void walk(const rt_delivery_policy *p, rt_rng *rng) {
    const uint64_t max_ms = (uint64_t)p->maximum_delay_s * 1000;
    const uint32_t retries = rt_delivery_policy_retries(p);
    rt_phase last_phase = RT_PHASE_IMMEDIATE;
    uint64_t last_ms = 0, waited_ms = 0;
    for (uint32_t retry = 1; retry <= WALK_MAX; retry++) {
        uint64_t ms;
        rt_phase phase;
        const bool there = rt_delivery_policy_delay(p, retry, &ms, &phase);
        RT_ASSERT(there == (retry <= retries));
        if (!there) return;
        RT_ASSERT(ms <= max_ms);
        RT_ASSERT(phase >= last_phase);
        if (phase == RT_PHASE_BACKOFF) RT_ASSERT(ms >= (uint64_t)p->minimum_delay_s * 1000);
        if (phase == RT_PHASE_BACKOFF && last_phase == RT_PHASE_BACKOFF) RT_ASSERT(ms >= last_ms);
        waited_ms = rt_delivery_policy_jittered(p, ms, waited_ms, rt_rng_next(rng));
        RT_ASSERT(waited_ms <= max_ms);
        last_phase = phase;
        last_ms = ms;
    }
}

static void follow(const rt_work_backoff *b) {
    RT_ASSERT(b == NULL || rt_work_backoff_check(b) == NULL);
    uint64_t interval_s = 0;
    for (int i = 0; i < INTERVALS_MAX; i++) {
        interval_s = rt_work_backoff_next_s(b, interval_s);
        RT_ASSERT(interval_s >= 1);
        RT_ASSERT(interval_s <= (uint64_t)INT64_MAX / 1000000000 + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const rt_str text = {.ptr = (const char *)data, .len = size};
    rt_err err;
    rt_delivery_policy policy;
    if (rt_policy_from_text(text, &policy, &err) == RT_OK) {
        RT_ASSERT(rt_delivery_policy_check(&policy) == NULL);
        char key[RT_POLICY_KEY_BYTES];
        rt_policy_unknown_key(text, key);
        rt_rng rng = rt_rng_seeded(size);
        walk(&policy, &rng);
        for (uint32_t status = 0; status < 1000; status++) {
            const rt_verdict verdict = rt_delivery_policy_judge(&policy, status);
            RT_ASSERT((verdict == RT_VERDICT_SUCCESS) == (status / 100 == 2));
        }
    }
    rt_work_backoff backoff;
    rt_jitter jitter;
    bool given;
    if (rt_work_backoff_from_text(text, &given, &backoff, &jitter, &err) == RT_OK) follow(given ? &backoff : NULL);
    return 0;
}
