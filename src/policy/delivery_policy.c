#include <math.h>
#include <stddef.h>

#include "base/code.h"
#include "retryd/policy.h"

enum {
    MS_PER_S = 1000,
    LINEAR_INTERVAL_S = 5,     // Zaqar's step, from which NUM is derived
    DERIVED_SPREAD_S_MIN = 10, // Zaqar's least MAX - MIN, without which a derived NUM would be 1 or 2
    STATUS_MAX = 999
};

// The arithmetic series needs (MAX - MIN) * n * (n - 1), doubled for rounding.
_Static_assert(2 * (int64_t)RT_DELAY_S_MAX * MS_PER_S <
                   INT64_MAX / (RT_BACKOFF_RETRIES_MAX * RT_BACKOFF_RETRIES_MAX),
               "the products of the series fit");
_Static_assert(3LL * RT_PHASE_RETRIES_MAX + RT_BACKOFF_RETRIES_MAX < UINT32_MAX,
               "all retries are counted in 32 bits");

rt_delivery_policy rt_delivery_policy_default(void) {
    return (rt_delivery_policy){
        .retries_with_no_delay = 3,
        .minimum_delay_retries = 3,
        .minimum_delay_s = 5,
        .maximum_delay_s = 60,
        .maximum_delay_retries = 3,
        .attempt_timeout_s = 30,
        .backoff_function = RT_BACKOFF_LINEAR,
        .jitter = RT_JITTER_NONE,
    };
}

// ---- checks -------------------------------------------------------------------------------------

static const char *check_limits(const rt_delivery_policy *p) {
    const struct {
        uint32_t value, lowest, highest;
        const char *rule;
    } limits[] = {
        {p->retries_with_no_delay, 0, RT_PHASE_RETRIES_MAX,
         "Retry policy: retries_with_no_delay must be between 0 and 100000."},
        {p->minimum_delay_retries, 0, RT_PHASE_RETRIES_MAX,
         "Retry policy: minimum_delay_retries must be between 0 and 100000."},
        {p->minimum_delay_s, 0, RT_DELAY_S_MAX,
         "Retry policy: minimum_delay must be between 0 and 31536000 seconds."},
        {p->maximum_delay_s, 0, RT_DELAY_S_MAX,
         "Retry policy: maximum_delay must be between 0 and 31536000 seconds."},
        {p->maximum_delay_retries, 0, RT_PHASE_RETRIES_MAX,
         "Retry policy: maximum_delay_retries must be between 0 and 100000."},
        {p->backoff_retries, 0, RT_BACKOFF_RETRIES_MAX,
         "Retry policy: backoff_retries must be between 1 and 100."},
        {p->maximum_age_s, 0, RT_DELAY_S_MAX,
         "Retry policy: maximum_age must be between 0 (no limit) and 31536000 seconds."},
        {p->attempt_timeout_s, 1, RT_ATTEMPT_TIMEOUT_S_MAX,
         "Retry policy: attempt_timeout must be between 1 and 3600 seconds."},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        if (limits[i].value < limits[i].lowest || limits[i].value > limits[i].highest) return limits[i].rule;
    }
    return NULL;
}
_Static_assert(RT_PHASE_RETRIES_MAX == 100000 && RT_DELAY_S_MAX == 31536000 &&
                   RT_BACKOFF_RETRIES_MAX == 100 && RT_ATTEMPT_TIMEOUT_S_MAX == 3600 &&
                   RT_RETRY_ON_MAX == 16,
               "the sentences of the checks name these limits");

static const char *check_retry_on(const rt_delivery_policy *p) {
    if (p->retry_on_count > RT_RETRY_ON_MAX) {
        return "Retry policy: retry_on may name at most 16 statuses or ranges.";
    }
    for (size_t i = 0; i < p->retry_on_count; i++) {
        const rt_status_range *range = &p->retry_on[i];
        if (range->low > range->high || range->high > STATUS_MAX) {
            return "Retry policy: retry_on must name statuses between 0 and 999.";
        }
        if (range->low <= 299 && range->high >= 200) {
            return "Retry policy: retry_on must not name statuses 200 to 299, which are success.";
        }
    }
    return NULL;
}

// The first two sentences are Zaqar's own, to the letter.
static const char *check_delays(const rt_delivery_policy *p) {
    if (p->maximum_delay_s < p->minimum_delay_s) return "minimum_delay must less than maximum_delay.";
    if (p->backoff_retries == 0 && p->maximum_delay_s - p->minimum_delay_s < DERIVED_SPREAD_S_MIN) {
        return "invalid minimum_delay and maximum_delay.";
    }
    if (p->minimum_delay_s > 0) return NULL;
    if (p->backoff_function == RT_BACKOFF_GEOMETRIC || p->backoff_function == RT_BACKOFF_EXPONENTIAL) {
        return "Retry policy: minimum_delay must be at least 1 second with geometric or exponential backoff.";
    }
    // Each wait grows out of the last, and nothing grows out of 0: all retries would follow at once.
    if (p->jitter == RT_JITTER_DECORRELATED) {
        return "Retry policy: minimum_delay must be at least 1 second with decorrelated jitter.";
    }
    return NULL;
}

const char *rt_delivery_policy_check(const rt_delivery_policy *p) {
    // As unsigned numbers, since a stored or foreign value may be no enumerator.
    if ((unsigned)p->backoff_function >= RT_BACKOFF_FUNCTION_COUNT) return "invalid retry_backoff_function.";
    if ((unsigned)p->jitter >= RT_JITTER_COUNT) {
        return "Retry policy: jitter must be none, full, equal or decorrelated.";
    }
    const char *broken = check_limits(p);
    if (broken == NULL) broken = check_delays(p);
    if (broken == NULL) broken = check_retry_on(p);
    return broken;
}

// ---- the schedule -------------------------------------------------------------------------------

uint32_t rt_delivery_policy_backoff_retries(const rt_delivery_policy *p) {
    RT_ASSERT(p->maximum_delay_s >= p->minimum_delay_s);
    if (p->backoff_retries > 0) return p->backoff_retries;
    const uint32_t derived = (p->maximum_delay_s - p->minimum_delay_s) / LINEAR_INTERVAL_S + 1;
    return derived < RT_BACKOFF_RETRIES_MAX ? derived : RT_BACKOFF_RETRIES_MAX;
}

uint32_t rt_delivery_policy_retries(const rt_delivery_policy *p) {
    return p->retries_with_no_delay + p->minimum_delay_retries + rt_delivery_policy_backoff_retries(p) +
           p->maximum_delay_retries;
}

/* part / whole of `spread`, rounded to nearest (a half goes up). */
static uint64_t share_of(uint64_t spread, uint64_t part, uint64_t whole) {
    return (2 * spread * part + whole) / (2 * whole);
}

/* MIN * K^(n-1) with K = (MAX/MIN)^(1/(NUM-1)). The exponential function is p * k^n with k = K and p =
 * MIN/k, which is the same number: one way of computing it keeps the two equal to the last bit. One pow of
 * the whole exponent, since powers of a rounded K drift away from MAX. */
static uint64_t power_ms(uint64_t min_ms, uint64_t max_ms, uint32_t n, uint32_t num) {
    RT_ASSERT(min_ms > 0);
    const double ratio = (double)max_ms / (double)min_ms;
    const double exact = (double)min_ms * pow(ratio, (double)(n - 1) / (double)(num - 1));
    const uint64_t ms = (uint64_t)llround(exact);
    // The law, whatever the last bit of this machine's pow is.
    if (ms < min_ms) return min_ms;
    return ms > max_ms ? max_ms : ms;
}

/* time(n) of the backoff phase for n in 1..num. Source: Zaqar specs, "Support More Backoff Functions"; the
 * intervals of linear are NUM - 1, as in the worked example of "Notification Delivery Policy", so that all
 * four end at MAX. */
static uint64_t backoff_ms(const rt_delivery_policy *p, uint32_t n, uint32_t num) {
    RT_ASSERT(n >= 1 && n <= num);
    const uint64_t min_ms = (uint64_t)p->minimum_delay_s * MS_PER_S;
    const uint64_t max_ms = (uint64_t)p->maximum_delay_s * MS_PER_S;
    if (n == 1) return min_ms;
    if (n == num) return max_ms;
    const uint64_t spread_ms = max_ms - min_ms;
    switch (p->backoff_function) {
        case RT_BACKOFF_LINEAR: return min_ms + share_of(spread_ms, n - 1, num - 1);
        case RT_BACKOFF_ARITHMETIC:
            return min_ms + share_of(spread_ms, (uint64_t)n * (n - 1), (uint64_t)num * (num - 1));
        case RT_BACKOFF_GEOMETRIC:
        case RT_BACKOFF_EXPONENTIAL: return power_ms(min_ms, max_ms, n, num);
        case RT_BACKOFF_FUNCTION_COUNT: break;
    }
    RT_ASSERT(p->backoff_function < RT_BACKOFF_FUNCTION_COUNT);
    return max_ms;
}

static void set_delay(uint64_t *delay_ms, uint64_t ms, rt_phase *phase, rt_phase is) {
    *delay_ms = ms;
    *phase = is;
}

bool rt_delivery_policy_delay(const rt_delivery_policy *p, uint32_t retry, uint64_t *delay_ms,
                              rt_phase *phase) {
    RT_ASSERT(retry >= 1);
    const uint32_t num = rt_delivery_policy_backoff_retries(p);
    uint32_t n = retry; // counted from 1 within the phase that is looked at
    if (n <= p->retries_with_no_delay) {
        set_delay(delay_ms, 0, phase, RT_PHASE_IMMEDIATE);
        return true;
    }
    n -= p->retries_with_no_delay;
    if (n <= p->minimum_delay_retries) {
        set_delay(delay_ms, (uint64_t)p->minimum_delay_s * MS_PER_S, phase, RT_PHASE_PRE_BACKOFF);
        return true;
    }
    n -= p->minimum_delay_retries;
    if (n <= num) {
        set_delay(delay_ms, backoff_ms(p, n, num), phase, RT_PHASE_BACKOFF);
        return true;
    }
    n -= num;
    if (n <= p->maximum_delay_retries) {
        set_delay(delay_ms, (uint64_t)p->maximum_delay_s * MS_PER_S, phase, RT_PHASE_POST_BACKOFF);
        return true;
    }
    return false;
}

// ---- jitter -------------------------------------------------------------------------------------

/* Uniform in [low, high]. The bias of the modulo is below 2^-27, since no delay reaches 2^37 ms. */
static uint64_t between(uint64_t low, uint64_t high, uint64_t random) {
    RT_ASSERT(low <= high);
    return low + random % (high - low + 1);
}
_Static_assert(3LL * RT_DELAY_S_MAX * MS_PER_S < 1LL << 37, "the bias named above");

static uint64_t decorrelated_ms(uint64_t min_ms, uint64_t max_ms, uint64_t last_ms, uint64_t random) {
    uint64_t last = last_ms < min_ms ? min_ms : last_ms;
    if (last > max_ms) last = max_ms;
    const uint64_t drawn = between(min_ms, 3 * last, random);
    return drawn < max_ms ? drawn : max_ms;
}

uint64_t rt_delivery_policy_jittered(const rt_delivery_policy *p, uint64_t delay_ms, uint64_t last_ms,
                                     uint64_t random) {
    const uint64_t min_ms = (uint64_t)p->minimum_delay_s * MS_PER_S;
    const uint64_t max_ms = (uint64_t)p->maximum_delay_s * MS_PER_S;
    RT_ASSERT(delay_ms <= max_ms);
    if (delay_ms == 0) return 0;
    switch (p->jitter) {
        case RT_JITTER_NONE: return delay_ms;
        case RT_JITTER_FULL: return between(0, delay_ms, random);
        case RT_JITTER_EQUAL: return between(delay_ms / 2, delay_ms, random);
        case RT_JITTER_DECORRELATED: return decorrelated_ms(min_ms, max_ms, last_ms, random);
        case RT_JITTER_COUNT: break;
    }
    RT_ASSERT(p->jitter < RT_JITTER_COUNT);
    return delay_ms;
}

// ---- answers and names --------------------------------------------------------------------------

rt_verdict rt_delivery_policy_judge(const rt_delivery_policy *p, uint32_t status) {
    RT_ASSERT(p->retry_on_count <= RT_RETRY_ON_MAX);
    if (status >= 200 && status <= 299) return RT_VERDICT_SUCCESS;
    // A server's failure, or no answer that is known.
    if (status < 200 || status >= 500) return RT_VERDICT_RETRY;
    for (size_t i = 0; i < p->retry_on_count; i++) {
        if (status >= p->retry_on[i].low && status <= p->retry_on[i].high) return RT_VERDICT_RETRY;
    }
    return RT_VERDICT_REJECTED;
}

const char *rt_backoff_function_name(rt_backoff_function f) {
    static const char *const NAMES[RT_BACKOFF_FUNCTION_COUNT] = {
        [RT_BACKOFF_LINEAR] = "linear",
        [RT_BACKOFF_ARITHMETIC] = "arithmetic",
        [RT_BACKOFF_GEOMETRIC] = "geometric",
        [RT_BACKOFF_EXPONENTIAL] = "exponential",
    };
    RT_ASSERT(f < RT_BACKOFF_FUNCTION_COUNT);
    return NAMES[f];
}

const char *rt_jitter_name(rt_jitter j) {
    static const char *const NAMES[RT_JITTER_COUNT] = {
        [RT_JITTER_NONE] = "none",
        [RT_JITTER_FULL] = "full",
        [RT_JITTER_EQUAL] = "equal",
        [RT_JITTER_DECORRELATED] = "decorrelated",
    };
    RT_ASSERT(j < RT_JITTER_COUNT);
    return NAMES[j];
}

const char *rt_phase_name(rt_phase p) {
    static const char *const NAMES[RT_PHASE_COUNT] = {
        [RT_PHASE_IMMEDIATE] = "immediate",
        [RT_PHASE_PRE_BACKOFF] = "pre_backoff",
        [RT_PHASE_BACKOFF] = "backoff",
        [RT_PHASE_POST_BACKOFF] = "post_backoff",
    };
    RT_ASSERT(p < RT_PHASE_COUNT);
    return NAMES[p];
}
