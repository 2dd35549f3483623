/* pace.h: a queue's own delay between two starts, which grows with failures and shrinks with successes, so that the next job
 * adheres to what the last one learned; and a steady rate. Pure.
 * Source of the first: "Persistent retry with Kafka", Motivations. */
#ifndef RT_POLICY_PACE_H
#define RT_POLICY_PACE_H
#include <stdbool.h>
#include <stdint.h>

typedef struct rt_pace_settings {
    bool enabled;
    uint32_t initial_ms; /* 100; 1..3600000: the first delay after a failure; doubles with each */
    uint32_t maximum_ms; /* 30000; >= initial_ms */
} rt_pace_settings;
rt_pace_settings rt_pace_settings_default(void); /* not enabled; otherwise as above */
const char *rt_pace_settings_check(const rt_pace_settings *s); /* NULL: valid */

/* The delay after an attempt: failure: doubled, from initial_ms to maximum_ms; success: halved, below initial_ms 0. */
uint32_t rt_pace_next_ms(const rt_pace_settings *s, uint32_t now_ms, bool failed);

/* A token bucket: `per_s` starts a second, at most as many at once. Zero-initialized: full. per_s 0: no limit. */
typedef struct rt_rate {
    int64_t at_ms;
    double used; /* starts that have not yet been earned back */
} rt_rate;
uint32_t rt_rate_room(const rt_rate *r, uint32_t per_s, int64_t now_ms); /* starts that are free now */
void rt_rate_take(rt_rate *r, uint32_t per_s, int64_t now_ms);           /* one start */
int64_t rt_rate_next_ms(const rt_rate *r, uint32_t per_s, int64_t now_ms); /* when the next is free; <= now_ms: at once */

#endif
