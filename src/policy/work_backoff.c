#include <math.h>
#include <stddef.h>

#include "base/code.h"
#include "retryd/policy.h"

static const uint64_t SECOND_NS = 1000000000u;

const char *rt_work_backoff_check(const rt_work_backoff *b) {
    if (!isfinite(b->exponent)) return "backoff: exponent must be a finite number.";
    if (b->initial_ns > INT64_MAX) return "backoff: initial_ms must be at most 9223372036854 (292 years).";
    if (b->maximum_ns > INT64_MAX) return "backoff: maximum_ms must be at most 9223372036854 (292 years).";
    return NULL;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* The last interval times the exponent, at most the maximum; both in ns.
 * In nanoseconds and truncated, not in seconds with ceil(): 90 s times 1.1 is 99 s so, and 100 s in
 * doubles of seconds. */
static uint64_t grown_ns(uint64_t last_ns, double exponent, uint64_t maximum_ns) {
    const double product = (double)last_ns * (exponent < 1 ? 1 : exponent);
    // Beyond int64 the conversion would be undefined; such a product is beyond every maximum anyway.
    if (product >= 0x1p63) return maximum_ns;
    const uint64_t next_ns = (uint64_t)product;
    // Above 2^53 ns a double may round below the interval that it was made from.
    if (next_ns < last_ns || next_ns > maximum_ns) return maximum_ns;
    return next_ns;
}

uint64_t rt_work_backoff_next_after_ns(const rt_work_backoff *b, uint64_t previous_ns) {
    const uint64_t last_ns = larger(previous_ns, SECOND_NS);
    if (b == NULL) return last_ns / SECOND_NS;
    RT_ASSERT(isfinite(b->exponent));
    RT_ASSERT(b->initial_ns <= INT64_MAX && b->maximum_ns <= INT64_MAX);
    const uint64_t initial_ns = larger(b->initial_ns, SECOND_NS);
    const uint64_t maximum_ns = larger(b->maximum_ns, initial_ns);
    // The exponent as given: 0.5 counts as 1 below, but does not make the backoff constant.
    const bool constant = b->exponent == 0 || b->exponent == 1;
    if (constant || previous_ns == 0) return initial_ns / SECOND_NS;
    const uint64_t next_ns = grown_ns(last_ns, b->exponent, maximum_ns);
    return next_ns / SECOND_NS + (next_ns % SECOND_NS != 0);
}

uint64_t rt_work_backoff_next_s(const rt_work_backoff *b, uint64_t previous_s) {
    if (b == NULL) return larger(previous_s, 1);
    // An interval over 292 years is over every maximum, so that more of it changes nothing.
    const bool fits = previous_s <= INT64_MAX / SECOND_NS;
    return rt_work_backoff_next_after_ns(b, fits ? previous_s * SECOND_NS : INT64_MAX);
}
