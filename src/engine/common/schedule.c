#include "engine/common/schedule.h"

#include <stdlib.h>

#include "base/code.h"

void rt_schedule_init(rt_schedule *s, uint32_t in_flight_max, uint64_t bytes_max) {
    RT_ASSERT(in_flight_max >= 2);
    *s = (rt_schedule){.in_flight_max = in_flight_max, .bytes_max = bytes_max, .sound_start_ms = INT64_MIN};
}

static void free_lane(rt_lane *lane) {
    free(lane->brakes);
    free(lane);
}

void rt_schedule_deinit(rt_schedule *s) {
    size_t at = 0;
    for (rt_lane *lane = rt_map_next(&s->lanes, &at); lane != NULL; lane = rt_map_next(&s->lanes, &at))
        free_lane(lane);
    rt_map_deinit(&s->lanes);
    rt_heap_deinit(&s->waiting);
}

rt_lane *rt_schedule_lane(rt_schedule *s, rt_id queue) {
    rt_lane *lane = rt_map_get(&s->lanes, queue);
    if (lane != NULL) return lane;
    lane = calloc(1, sizeof *lane);
    if (lane == NULL) return NULL;
    *lane =
        (rt_lane){.wake = {.tie = queue}, .queue = queue, .room = RT_ROOM_FIRST, .room_max = RT_ROOM_FIRST};
    if (!rt_map_put(&s->lanes, queue, lane)) {
        free(lane);
        return NULL;
    }
    return lane;
}

bool rt_schedule_wake(rt_schedule *s, rt_id queue, int64_t due_ms) {
    rt_lane *lane = rt_schedule_lane(s, queue);
    if (lane == NULL) return false;
    if (lane->in_turn || (lane->wake.place != 0 && lane->wake.at_ms <= due_ms)) return true;
    return rt_heap_set(&s->waiting, &lane->wake, due_ms);
}

void rt_schedule_turn(rt_schedule *s, rt_lane *lane) {
    if (lane->in_turn) return;
    rt_heap_remove(&s->waiting, &lane->wake);
    rt_turns *turns = lane->suspect ? &s->suspect : &s->sound;
    lane->turn_next = NULL;
    if (turns->last != NULL) turns->last->turn_next = lane;
    else turns->first = lane;
    turns->last = lane;
    turns->count++;
    lane->in_turn = true;
}

void rt_schedule_doubt(rt_schedule *s) {
    size_t at = 0;
    rt_lane *lane;
    while ((lane = rt_map_next(&s->lanes, &at)) != NULL) {
        lane->known = false;
        if (lane->backlog) rt_schedule_turn(s, lane); // it may have been held up by a pause that is none
    }
}

static rt_lane *pop_turn(rt_turns *turns) {
    rt_lane *lane = turns->first;
    if (lane == NULL) return NULL;
    turns->first = lane->turn_next;
    if (turns->first == NULL) turns->last = NULL;
    turns->count--;
    lane->turn_next = NULL;
    lane->in_turn = false;
    return lane;
}

void rt_schedule_advance(rt_schedule *s, int64_t now_ms) {
    for (;;) {
        rt_heap_node *first = rt_heap_first(&s->waiting);
        if (first == NULL || first->at_ms > now_ms) return;
        rt_schedule_turn(s, (rt_lane *)first); // leaves the heap
    }
}

static bool sound_is_busy(const rt_schedule *s, int64_t now_ms) {
    return s->sound_start_ms > now_ms - RT_SOUND_BUSY_MS && s->sound_start_ms <= now_ms;
}

/* The credit with what has trickled in since it was last counted. */
static uint32_t credit_at(const rt_schedule *s, int64_t now_ms) {
    const uint32_t most = RT_SUSPECT_CREDIT_MAX * RT_SUSPECT_SHARE;
    const int64_t passed = now_ms - s->credit_at_ms;
    if (passed <= 0) return s->credit; // the clock stood still or was set back
    const int64_t more = passed < 1000 ? passed * RT_SUSPECT_TRICKLE_PER_S * RT_SUSPECT_SHARE / 1000 : most;
    return s->credit + (uint32_t)more < most ? s->credit + (uint32_t)more : most;
}

static void add_trickle(rt_schedule *s, int64_t now_ms) {
    s->credit = credit_at(s, now_ms);
    s->credit_at_ms = now_ms;
}

/* Starts that all suspects together may make now. */
static uint32_t suspect_allowance(const rt_schedule *s, int64_t now_ms) {
    const uint32_t half = s->in_flight_max / 2;
    if (s->suspects_in_flight >= half) return 0;
    if (!sound_is_busy(s, now_ms)) return half - s->suspects_in_flight;
    const uint32_t starts = credit_at(s, now_ms) / RT_SUSPECT_SHARE;
    return starts < half - s->suspects_in_flight ? starts : half - s->suspects_in_flight;
}

void rt_schedule_set_back(rt_schedule *s, int64_t now_ms) {
    s->credit_at_ms = now_ms;
    size_t at = 0;
    for (rt_lane *lane; (lane = rt_map_next(&s->lanes, &at)) != NULL;) {
        if (lane->brakes == NULL) continue;
        rt_lane_brakes_set_back(lane->brakes, now_ms);
        if (lane->backlog) rt_schedule_turn(s, lane); // it may be waiting for a time that is now far away
    }
}

bool rt_schedule_is_full(const rt_schedule *s) {
    return s->in_flight >= s->in_flight_max || s->bytes >= s->bytes_max;
}

rt_lane *rt_schedule_next(rt_schedule *s, int64_t now_ms) {
    if (rt_schedule_is_full(s)) return NULL;
    rt_lane *lane = pop_turn(&s->sound);
    if (lane != NULL) return lane;
    return suspect_allowance(s, now_ms) > 0 ? pop_turn(&s->suspect) : NULL;
}

uint32_t rt_schedule_room(rt_schedule *s, const rt_lane *lane, int64_t now_ms) {
    if (lane->paused_until_ms > now_ms || lane->in_flight >= lane->room) return 0;
    if (rt_schedule_is_full(s)) return 0;
    uint32_t room = lane->room - lane->in_flight;
    if (room > s->in_flight_max - s->in_flight) room = s->in_flight_max - s->in_flight;
    if (lane->suspect) {
        const uint32_t allowed = suspect_allowance(s, now_ms);
        if (room > allowed) room = allowed;
    }
    if (lane->brakes == NULL) return room;
    int64_t again_ms;
    const uint32_t slow = rt_lane_brakes_room(lane->brakes, lane->in_flight, now_ms, &again_ms);
    return room < slow ? room : slow;
}

void rt_schedule_started(rt_schedule *s, rt_lane *lane, size_t bytes, int64_t now_ms) {
    lane->in_flight++;
    s->in_flight++;
    s->bytes += bytes;
    if (lane->brakes != NULL) rt_lane_brakes_started(lane->brakes, now_ms);
    if (lane->suspect) {
        add_trickle(s, now_ms);
        s->suspects_in_flight++;
        s->credit -= s->credit < RT_SUSPECT_SHARE ? s->credit : RT_SUSPECT_SHARE;
        return;
    }
    s->sound_start_ms = now_ms;
    if (s->credit < RT_SUSPECT_CREDIT_MAX * RT_SUSPECT_SHARE) s->credit++;
}

/* The class changes with all that the lane has under way and with the ring it waits in. */
static void set_suspect(rt_schedule *s, rt_lane *lane, bool suspect) {
    if (lane->suspect == suspect) return;
    if (suspect) s->suspects_in_flight += lane->in_flight;
    else s->suspects_in_flight -= lane->in_flight;
    lane->suspect = suspect;
}

/* A lane that has nothing to do is forgotten when too many are remembered; its trust starts anew. */
static void forget_if_idle(rt_schedule *s, rt_lane *lane) {
    if (s->lanes.count <= RT_LANES_IDLE_MAX) return;
    if (lane->in_flight > 0 || lane->in_turn || lane->wake.place != 0 || lane->backlog) return;
    (void)rt_map_remove(&s->lanes, lane->queue);
    free_lane(lane);
}

void rt_schedule_ended(rt_schedule *s, rt_lane *lane, size_t bytes, rt_lane_news news) {
    RT_ASSERT(lane->in_flight > 0);
    RT_ASSERT(s->in_flight > 0);
    lane->in_flight--;
    s->in_flight--;
    s->bytes -= bytes;
    if (lane->suspect) s->suspects_in_flight--;
    if (news == RT_LANE_WORKED) {
        lane->room = lane->room > lane->room_max / 2 ? lane->room_max : lane->room * 2;
        set_suspect(s, lane, false);
    } else if (news == RT_LANE_FAILED) {
        lane->room = lane->room > 1 ? lane->room / 2 : 1;
        set_suspect(s, lane, true);
    }
    if (lane->backlog) rt_schedule_turn(s, lane);
    else forget_if_idle(s, lane);
}

int64_t rt_schedule_next_ms(const rt_schedule *s, int64_t now_ms) {
    const bool room = !rt_schedule_is_full(s);
    if (room && s->sound.first != NULL) return now_ms;
    const rt_heap_node *first = rt_heap_first(&s->waiting);
    int64_t next = first == NULL ? INT64_MAX : first->at_ms;
    if (!room || s->suspect.first == NULL || s->suspects_in_flight >= s->in_flight_max / 2) return next;
    if (suspect_allowance(s, now_ms) > 0) return now_ms;
    // Out of credit: it comes back within milliseconds.
    const int64_t back_ms = now_ms + 1000 / RT_SUSPECT_TRICKLE_PER_S;
    return next < back_ms ? next : back_ms;
}

rt_job_state rt_schedule_place(const rt_schedule *s, rt_id queue, int64_t now_ms) {
    const rt_lane *lane = rt_map_get(&s->lanes, queue);
    const bool waits =
        lane != NULL && (lane->backlog || lane->paused_until_ms > now_ms || lane->in_flight >= lane->room);
    return waits ? RT_JOB_SCHEDULED : RT_JOB_READY;
}
