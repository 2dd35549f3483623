#include "policy/circuit.h"

#include <math.h>
#include <stddef.h>

#include "base/code.h"

const char *rt_circuit_state_name(rt_circuit_state s) {
    switch (s) {
    case RT_CIRCUIT_CLOSED: return "closed";
    case RT_CIRCUIT_OPEN: return "open";
    case RT_CIRCUIT_HALF_OPEN: return "half_open";
    }
    return "unknown";
}

rt_circuit_settings rt_circuit_settings_default(void) {
    return (rt_circuit_settings){
        .enabled = true,
        .window_s = 10,
        .minimum_attempts = 20,
        .failure_rate = 0.5,
        .slow_call_rate = 1.0,
        .sleep_s = 5,
        .maximum_sleep_s = 300,
        .probes = 3,
        .release_per_s = 100,
        .max_open_s = 86400,
    };
}

static bool within(uint32_t value, uint32_t low, uint32_t high) { return value >= low && value <= high; }
/* Also false for what is no number. */
static bool is_share(double value) { return value > 0 && value <= 1; }

const char *rt_circuit_settings_check(const rt_circuit_settings *s) {
    if (!within(s->window_s, 1, 3600)) return "window_s must be from 1 to 3600";
    if (!within(s->minimum_attempts, 1, 100000)) return "minimum_attempts must be from 1 to 100000";
    if (!is_share(s->failure_rate)) return "failure_rate must be above 0 and at most 1";
    if (!isfinite(s->slow_call_s) || s->slow_call_s < 0 || s->slow_call_s > 86400)
        return "slow_call_s must be from 0 (off) to 86400";
    if (!is_share(s->slow_call_rate)) return "slow_call_rate must be above 0 and at most 1";
    if (!within(s->sleep_s, 1, 86400)) return "sleep_s must be from 1 to 86400";
    if (!within(s->maximum_sleep_s, s->sleep_s, 86400))
        return "maximum_sleep_s must be from sleep_s to 86400";
    if (!within(s->probes, 1, 1000)) return "probes must be from 1 to 1000";
    if (s->release_per_s > 1000000) return "release_per_s must be at most 1000000";
    if (s->max_open_s > 31536000) return "max_open_s must be at most 31536000, a year";
    return NULL;
}

bool rt_circuit_is_slow(const rt_circuit_settings *s, uint32_t took_ms) {
    return s->slow_call_s > 0 && (double)took_ms >= s->slow_call_s * 1000;
}

/* ---- the window ---------------------------------------------------------------------------------------- */

static int64_t slice_at(const rt_circuit_settings *s, int64_t now_ms) {
    return now_ms * RT_CIRCUIT_SLICES / ((int64_t)s->window_s * 1000);
}

static size_t place_of(int64_t slice) {
    return (size_t)(((slice % RT_CIRCUIT_SLICES) + RT_CIRCUIT_SLICES) % RT_CIRCUIT_SLICES);
}

/* Is `slice` one of those whose newest is `newest`? */
static bool is_within(int64_t newest, int64_t slice) {
    return slice <= newest && slice > newest - RT_CIRCUIT_SLICES;
}

/* Forgets what has left the window. A clock that is behind, but within the window, is another node's. One that was set back
 * further, or another length of the window: forgets all. */
static void advance(rt_circuit_window *w, int64_t slice) {
    if (is_within(w->slice, slice)) return;
    const int64_t passed = slice - w->slice;
    if (passed < 0 || passed >= RT_CIRCUIT_SLICES) {
        *w = (rt_circuit_window){.slice = slice};
        return;
    }
    while (w->slice < slice) {
        w->slice++;
        const size_t at = place_of(w->slice);
        w->slices[at].attempts = w->slices[at].failures = w->slices[at].slow = 0;
    }
}

void rt_circuit_window_add(rt_circuit_window *w, const rt_circuit_settings *s, int64_t now_ms, bool failed,
                           uint32_t took_ms) {
    advance(w, slice_at(s, now_ms));
    const size_t at = place_of(w->slice);
    if (w->slices[at].attempts == UINT32_MAX) return;
    w->slices[at].attempts++;
    w->slices[at].failures += failed;
    w->slices[at].slow += rt_circuit_is_slow(s, took_ms);
}

static uint32_t sum(uint32_t a, uint32_t b) { return a < UINT32_MAX - b ? a + b : UINT32_MAX; }

void rt_circuit_window_merge(rt_circuit_window *w, const rt_circuit_window *more, const rt_circuit_settings *s,
                             int64_t now_ms) {
    advance(w, slice_at(s, now_ms));
    if (is_within(more->slice, w->slice)) advance(w, more->slice);
    for (int64_t slice = w->slice - RT_CIRCUIT_SLICES + 1; slice <= w->slice; slice++) {
        if (!is_within(more->slice, slice)) continue;
        const size_t at = place_of(slice);
        w->slices[at].attempts = sum(w->slices[at].attempts, more->slices[at].attempts);
        w->slices[at].failures = sum(w->slices[at].failures, more->slices[at].failures);
        w->slices[at].slow = sum(w->slices[at].slow, more->slices[at].slow);
    }
}

rt_circuit_counts rt_circuit_window_counts(const rt_circuit_window *w, const rt_circuit_settings *s, int64_t now_ms) {
    rt_circuit_window now = *w;
    advance(&now, slice_at(s, now_ms));
    rt_circuit_counts c = {0};
    for (size_t i = 0; i < RT_CIRCUIT_SLICES; i++) {
        c.attempts += now.slices[i].attempts;
        c.failures += now.slices[i].failures;
        c.slow += now.slices[i].slow;
    }
    return c;
}

bool rt_circuit_trips(const rt_circuit_window *w, const rt_circuit_settings *s, int64_t now_ms) {
    const rt_circuit_counts c = rt_circuit_window_counts(w, s, now_ms);
    if (c.attempts < s->minimum_attempts) return false;
    if ((double)c.failures >= s->failure_rate * (double)c.attempts) return true;
    return s->slow_call_s > 0 && (double)c.slow >= s->slow_call_rate * (double)c.attempts;
}

uint32_t rt_circuit_sleep_ms(const rt_circuit_settings *s, uint32_t last_ms) {
    RT_ASSERT(s->maximum_sleep_s <= 86400);
    const uint64_t first_ms = (uint64_t)s->sleep_s * 1000, most_ms = (uint64_t)s->maximum_sleep_s * 1000;
    const uint64_t twice_ms = 2 * (uint64_t)last_ms;
    const uint64_t next_ms = twice_ms > first_ms ? twice_ms : first_ms;
    return (uint32_t)(next_ms < most_ms ? next_ms : most_ms);
}
