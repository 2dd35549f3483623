#include "policy/pace.h"

#include <stddef.h>

#include "base/code.h"

rt_pace_settings rt_pace_settings_default(void) {
    return (rt_pace_settings){.initial_ms = 100, .maximum_ms = 30000};
}

const char *rt_pace_settings_check(const rt_pace_settings *s) {
    if (s->initial_ms < 1 || s->initial_ms > 3600000) return "initial_ms must be from 1 to 3600000";
    if (s->maximum_ms < s->initial_ms || s->maximum_ms > 86400000)
        return "maximum_ms must be from initial_ms to 86400000";
    return NULL;
}

uint32_t rt_pace_next_ms(const rt_pace_settings *s, uint32_t now_ms, bool failed) {
    RT_ASSERT(s->initial_ms >= 1);
    RT_ASSERT(s->initial_ms <= s->maximum_ms);
    if (!failed) return now_ms / 2 < s->initial_ms ? 0 : now_ms / 2;
    if (now_ms < s->initial_ms) return s->initial_ms;
    return now_ms > s->maximum_ms / 2 ? s->maximum_ms : 2 * now_ms;
}

/* ---- rate ---------------------------------------------------------------------------------------------- */

/* What of the starts has not been earned back by now. A clock that was set back earns nothing. */
static double used_at(const rt_rate *r, uint32_t per_s, int64_t now_ms) {
    const int64_t passed_ms = now_ms - r->at_ms;
    if (passed_ms <= 0) return r->used;
    const double left = r->used - (double)passed_ms * per_s / 1000;
    return left > 0 ? left : 0;
}

/* So little is left of a start by rounding that it counts as none. */
static const double GRAIN = 1e-6;

uint32_t rt_rate_room(const rt_rate *r, uint32_t per_s, int64_t now_ms) {
    if (per_s == 0) return UINT32_MAX;
    const double room = (double)per_s - used_at(r, per_s, now_ms) + GRAIN;
    return room >= 1 ? (uint32_t)room : 0;
}

void rt_rate_take(rt_rate *r, uint32_t per_s, int64_t now_ms) {
    if (per_s == 0) return;
    r->used = used_at(r, per_s, now_ms) + 1;
    // What was earned until then is not earned once more by a node whose clock is behind.
    if (now_ms > r->at_ms) r->at_ms = now_ms;
}

int64_t rt_rate_next_ms(const rt_rate *r, uint32_t per_s, int64_t now_ms) {
    if (rt_rate_room(r, per_s, now_ms) > 0) return now_ms;
    const double missing = used_at(r, per_s, now_ms) + 1 - (double)per_s;
    const int64_t from_ms = now_ms > r->at_ms ? now_ms : r->at_ms;
    const double wait_ms = missing * 1000 / per_s;
    return from_ms + (int64_t)(wait_ms - GRAIN) + 1;
}
