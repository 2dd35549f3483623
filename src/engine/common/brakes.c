#include <stdlib.h>

#include "engine/common/schedule.h"

rt_lane_brakes *rt_schedule_brakes(rt_lane *lane) {
    if (lane->brakes == NULL) lane->brakes = calloc(1, sizeof *lane->brakes);
    return lane->brakes;
}

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Has what ends at `until_ms`, and lasts `length_ms`, ended? If more than all of it seems left, the clock was
 * set back. */
static bool is_over(int64_t until_ms, uint32_t length_ms, int64_t now_ms) {
    return until_ms <= now_ms || until_ms - now_ms > (int64_t)length_ms;
}

static uint32_t probes_left(const rt_lane_brakes *b, uint32_t succeeded, uint32_t under_way) {
    const uint32_t spent = succeeded + under_way;
    return b->circuit.probes > spent ? b->circuit.probes - spent : 0;
}

static bool closed_lately(const rt_brakes *s, int64_t now_ms) {
    return s->circuit == RT_CIRCUIT_CLOSED && !s->forced && s->circuit_since_ms > 0 &&
           !is_over(s->circuit_since_ms + RT_RELEASE_MS, RT_RELEASE_MS, now_ms);
}

bool rt_lane_brakes_limit(const rt_lane_brakes *b, int64_t now_ms) {
    if (b->rate_per_s > 0 || b->concurrency > 0 || b->stored.pace_ms > 0) return true;
    if (b->stored.circuit != RT_CIRCUIT_CLOSED) return !b->stored.forced;
    return b->circuit.release_per_s > 0 && closed_lately(&b->stored, now_ms);
}

static uint32_t circuit_room(const rt_lane_brakes *b, uint32_t under_way, int64_t now_ms, int64_t *again_ms) {
    const rt_brakes *s = &b->stored;
    switch ((rt_circuit_state)s->circuit) {
    case RT_CIRCUIT_OPEN:
        if (s->forced) return 0;
        if (is_over(s->circuit_until_ms, s->sleep_ms, now_ms)) return probes_left(b, 0, under_way);
        *again_ms = s->circuit_until_ms;
        return 0;
    case RT_CIRCUIT_HALF_OPEN: return probes_left(b, s->probes, under_way);
    case RT_CIRCUIT_CLOSED: break;
    }
    if (!closed_lately(s, now_ms)) return UINT32_MAX;
    *again_ms = rt_rate_next_ms(&b->release, b->circuit.release_per_s, now_ms);
    return rt_rate_room(&b->release, b->circuit.release_per_s, now_ms);
}

static uint32_t pace_room(const rt_lane_brakes *b, int64_t now_ms, int64_t *again_ms) {
    const rt_brakes *s = &b->stored;
    if (s->pace_ms == 0) return UINT32_MAX;
    const int64_t after_start_ms = b->started_ms + (int64_t)s->pace_ms;
    const int64_t until_ms = s->pace_until_ms > after_start_ms ? s->pace_until_ms : after_start_ms;
    if (is_over(until_ms, s->pace_ms, now_ms)) return 1; // the next one waits for this one's start
    *again_ms = until_ms;
    return 0;
}

static uint32_t rate_room(const rt_lane_brakes *b, int64_t now_ms, int64_t *again_ms) {
    const uint32_t rate = rt_rate_room(&b->rate, b->rate_per_s, now_ms);
    if (rate == 0) *again_ms = rt_rate_next_ms(&b->rate, b->rate_per_s, now_ms);
    return rate;
}

static uint32_t all_room(const rt_lane_brakes *b, uint32_t under_way, int64_t now_ms, int64_t *again_ms) {
    uint32_t room = b->concurrency > 0 ? b->concurrency - smaller(b->concurrency, under_way) : UINT32_MAX;
    if (room > 0) room = smaller(room, circuit_room(b, under_way, now_ms, again_ms));
    if (room > 0) room = smaller(room, pace_room(b, now_ms, again_ms));
    if (room == 0) return 0;
    *again_ms = INT64_MAX; // it need not wait for a time
    return smaller(room, rate_room(b, now_ms, again_ms));
}

uint32_t rt_lane_brakes_room(const rt_lane_brakes *b, uint32_t under_way, int64_t now_ms, int64_t *again_ms) {
    *again_ms = INT64_MAX;
    if (b->tripped) return 0;
    const uint32_t room = all_room(b, under_way + b->others + b->kept, now_ms, again_ms);
    if (room == 0 && *again_ms != INT64_MAX) *again_ms += b->dither_ms;
    return room;
}

void rt_lane_brakes_started(rt_lane_brakes *b, int64_t now_ms) {
    rt_rate_take(&b->rate, b->rate_per_s, now_ms);
    rt_rate_take(&b->release, b->circuit.release_per_s, now_ms);
    b->started_ms = now_ms;
    b->starved_ms = 0;
}

bool rt_lane_brakes_starve(const rt_lane_brakes *b, uint32_t under_way) {
    const bool full = b->concurrency > 0 && b->others + b->kept >= b->concurrency;
    const bool probed = b->stored.circuit == RT_CIRCUIT_HALF_OPEN && b->others > 0;
    return b->shared && !b->pull && under_way == 0 && b->stored.circuit != RT_CIRCUIT_OPEN && (full || probed);
}

void rt_lane_brakes_set_back(rt_lane_brakes *b, int64_t now_ms) {
    b->rate.at_ms = b->release.at_ms = now_ms;
    if (b->started_ms > now_ms) b->started_ms = now_ms;
    if (!b->shared) b->window = (rt_circuit_window){0};
    b->lost_due_ms = 0;
    b->lost_job = 0;
}
