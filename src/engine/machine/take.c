#include <stdlib.h>

#include "engine/calls/circuit.h"
#include "engine/machine/machine.h"

enum { PAGE_JOBS = 64, LOST_LOOKS_MAX = 1024, ASK_LOOK_MS = 50 };

/* Jobs are copied out of the listing first: starting them writes to the batch that is being listed. */
typedef struct page {
    rt_engine *e;
    rt_job jobs[PAGE_JOBS];
    uint32_t count, max;
    int64_t next_due_ms; /* of the first job that is not due yet; INT64_MAX: none seen */
    bool lost;           /* a lease has run out */
} page;

/* Without clearing all of it: this is done for every turn. */
static void init_page(page *p, rt_engine *e, uint32_t max) {
    p->e = e;
    p->max = max;
    p->count = 0;
    p->next_due_ms = INT64_MAX;
    p->lost = false;
}

static bool add_ready(void *ctx, const rt_job *job) {
    page *p = ctx;
    if (rt_flights_find(&p->e->flights, job->id, 0) == NULL) p->jobs[p->count++] = *job;
    return p->count < p->max;
}

static bool add_due(void *ctx, const rt_job *job) {
    page *p = ctx;
    if (job->due_ms > p->e->now_ms) {
        p->next_due_ms = job->due_ms;
        return false;
    }
    return add_ready(ctx, job);
}

/* Lists again after a load, where the store asks for one. */
static rt_code list_page(rt_engine *e, const rt_job_range *range, rt_each_job *each, page *p) {
    rt_code code = RT_E_AGAIN;
    for (int round = 0; code == RT_E_AGAIN && round < RT_LOAD_ROUNDS_MAX; round++) {
        p->count = 0;
        p->next_due_ms = INT64_MAX;
        rt_view *view = rt_store_batch(e->store, &e->err);
        if (view == NULL) return RT_E_UNAVAILABLE;
        code = rt_view_jobs(view, range, each, p);
        if (code == RT_E_AGAIN && rt_store_load(e->store, &e->err) != RT_OK) return RT_E_UNAVAILABLE;
    }
    return code;
}

/* Most queues have none, and cost no further look. */
static rt_code know_brakes(rt_engine *e, rt_lane *lane, const rt_queue *queue) {
    if (lane->brakes == NULL && !rt_circuit_has_brakes(queue)) return RT_OK;
    rt_tx *tx = rt_batch_tx(e);
    return tx == NULL ? RT_E_UNAVAILABLE : rt_circuit_know(tx, lane, queue);
}

/* Reads pause, concurrency and brakes of a queue whose record is new or has changed. */
static rt_code know_lane(rt_engine *e, rt_lane *lane) {
    if (lane->known) return RT_OK;
    rt_queue queue = {0};
    rt_code code = RT_E_AGAIN;
    for (int round = 0; code == RT_E_AGAIN && round < RT_LOAD_ROUNDS_MAX; round++) {
        rt_view *view = rt_store_batch(e->store, &e->err);
        if (view == NULL) return RT_E_UNAVAILABLE;
        code = rt_view_queue(view, lane->queue, &queue);
        if (code == RT_OK) code = know_brakes(e, lane, &queue);
        if (code == RT_E_AGAIN && rt_store_load(e->store, &e->err) != RT_OK) return RT_E_UNAVAILABLE;
    }
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    // In a queue that is being emptied a job's turn is its end, and nobody can resume it any more.
    lane->paused_until_ms = queue.gone ? 0 : queue.paused_until_ms;
    lane->room_max = queue.in_flight_max > 0 ? queue.in_flight_max : e->settings.queue_in_flight_max;
    if (lane->room > lane->room_max) lane->room = lane->room_max;
    lane->known = true;
    return RT_OK;
}

static void note_started(rt_engine *e, rt_lane *lane, const rt_job *job, rt_flight *flight) {
    flight->next = e->open->flights;
    e->open->flights = flight;
    e->open->tally.started++;
    if (job->flags & RT_JOB_TASK) e->open->tally.runs++;
    rt_schedule_started(&e->schedule, lane, flight->bytes, e->now_ms);
    const int64_t due_ms = job->state == RT_JOB_READY ? job->placed_ms : job->due_ms;
    const int64_t late_ms = e->now_ms > due_ms ? e->now_ms - due_ms : 0;
    rt_histogram_add(&e->metrics.lateness_s, (double)late_ms / 1000.0);
}

/* Decides about one due job and notes its attempt in the open batch. CONFLICT: somebody else wrote to it: look again. */
static rt_code start_job(rt_engine *e, rt_lane *lane, const rt_job *job) {
    rt_start start;
    rt_code code = RT_E_AGAIN;
    for (int round = 0; code == RT_E_AGAIN && round < RT_LOAD_ROUNDS_MAX; round++) {
        rt_tx *tx = rt_batch_tx(e);
        if (tx == NULL) return RT_E_UNAVAILABLE;
        start = (rt_start){.token = rt_flights_new_token(&e->flights), .write_lease = !e->store->sole_owner};
        code = rt_life_start(tx, job, &start);
        if (code == RT_OK) code = rt_batch_apply(e, tx);
        if (code != RT_OK) rt_attempt_free(start.attempt);
        if (code == RT_E_AGAIN && rt_store_load(e->store, &e->err) != RT_OK) return RT_E_UNAVAILABLE;
    }
    if (code != RT_OK || start.due == RT_DUE_WRITTEN) return code;
    rt_flight *flight = rt_flights_add(&e->flights, start.attempt, start.bytes, start.deadline_ms, start.lease_until_ms);
    if (flight == NULL) { // a lease that was written runs out by itself
        rt_attempt_free(start.attempt);
        return RT_E_NOMEM;
    }
    note_started(e, lane, job, flight);
    return RT_OK;
}

/* ---- fresh deliveries ---------------------------------------------------------------------------------- */

/* Its queue has no room: it lines up there, so that the FIFO goes on for the others. */
static rt_code line_up(rt_engine *e, const rt_job *job) {
    rt_lane *lane = rt_schedule_lane(&e->schedule, job->queue);
    rt_tx *tx = rt_batch_tx(e);
    if (lane == NULL) return RT_E_NOMEM;
    if (tx == NULL) return RT_E_UNAVAILABLE;
    rt_job now = *job;
    now.state = RT_JOB_SCHEDULED;
    now.due_ms = job->placed_ms;
    rt_tx_update_job(tx, job, &now);
    tx->frees = true;
    const rt_code code = rt_batch_apply(e, tx);
    if (code == RT_OK) lane->backlog = true;
    return code;
}

static rt_code take_ready_job(rt_engine *e, const rt_job *job) {
    rt_lane *lane = rt_schedule_lane(&e->schedule, job->queue);
    if (lane == NULL) return RT_E_NOMEM;
    const rt_code code = know_lane(e, lane);
    if (code != RT_OK) return code;
    if (lane->backlog || rt_schedule_room(&e->schedule, lane, e->now_ms) == 0) return line_up(e, job);
    return start_job(e, lane, job);
}

static uint32_t take_ready(rt_engine *e, uint32_t budget) {
    while (e->ready_pending && budget > 0 && !rt_schedule_is_full(&e->schedule)) {
        page p;
        init_page(&p, e, budget < PAGE_JOBS ? budget : PAGE_JOBS);
        const rt_job_range range = rt_due_ready(e);
        if (list_page(e, &range, add_ready, &p) != RT_OK) return 0;
        for (uint32_t i = 0; i < p.count; i++) {
            if (rt_schedule_is_full(&e->schedule)) return 0;
            rt_code code = take_ready_job(e, &p.jobs[i]);
            // What cannot be read must not hold up the FIFO: it waits in its own queue.
            if (code == RT_E_CORRUPT) code = line_up(e, &p.jobs[i]);
            if (code != RT_OK) return 0;
            e->ready_after = p.jobs[i].id;
            budget--;
        }
        if (p.count < p.max) e->ready_pending = false;
    }
    return budget;
}

/* ---- retries, backlogs, delayed messages --------------------------------------------------------------- */

/* A lease that is only in the store has run out: of a node that is gone, or of a worker that said it would answer later.
 * That was an attempt, and it says nothing of the endpoint. */
static void settle_lost(rt_engine *e, const rt_job *job) {
    const rt_outcome lost = {
        .job = job->id, .token = job->lease, .reason = RT_REASON_LOST, .retry_after_ms = -1};
    rt_attempts_outcome(e, &lost);
}

/* Starts what the page holds; true: all of it, false: the lane or the engine has no more room. */
static bool start_page(rt_engine *e, rt_lane *lane, page *p, rt_code *code) {
    for (uint32_t i = 0; i < p->count && *code == RT_OK; i++) {
        const rt_job *job = &p->jobs[i];
        lane->wake.at_ms = job->due_ms; // what waits longest, for the metric
        if (job->state == RT_JOB_LEASED) {
            settle_lost(e, job);
            p->lost = true;
            continue;
        }
        if (!(job->flags & RT_JOB_PULL) && rt_schedule_room(&e->schedule, lane, e->now_ms) == 0) return false;
        *code = start_job(e, lane, job);
    }
    return true;
}

typedef struct search {
    rt_engine *e;
    rt_job found[PAGE_JOBS];
    uint32_t count, looked_at;
    int64_t due_ms; /* nothing is left up to here … */
    rt_id job;      /* … and this one */
} search;

static bool add_lost(void *ctx, const rt_job *job) {
    search *s = ctx;
    if (job->due_ms > s->e->now_ms) return false;
    const bool lost = job->state == RT_JOB_LEASED && rt_flights_find(&s->e->flights, job->id, 0) == NULL;
    if (lost) s->found[s->count++] = *job;
    if (s->count == 0) { // the first that is lost is looked at until it is settled
        s->due_ms = job->due_ms;
        s->job = job->id;
    }
    return s->count < PAGE_JOBS && ++s->looked_at < LOST_LOOKS_MAX;
}

/* Leases of others that have run out keep room from the queue until they are settled, and may stand behind all that waits
 * for that room. They are found by when they came due, with each job looked at once. */
static rt_code settle_others(rt_engine *e, rt_lane *lane) {
    rt_lane_brakes *b = lane->brakes;
    if (b == NULL || b->pull || b->others == 0) return RT_OK;
    const rt_job_range range = {.index = RT_INDEX_DUE,
                                .queue = lane->queue,
                                .after_due_ms = b->lost_due_ms,
                                .after = b->lost_job,
                                .until_ms = e->now_ms,
                                .want = LOST_LOOKS_MAX};
    search s;
    rt_code code = RT_E_AGAIN;
    for (int round = 0; code == RT_E_AGAIN && round < RT_LOAD_ROUNDS_MAX; round++) {
        s.e = e;
        s.count = s.looked_at = 0;
        s.due_ms = b->lost_due_ms;
        s.job = b->lost_job;
        rt_view *view = rt_store_batch(e->store, &e->err);
        if (view == NULL) return RT_E_UNAVAILABLE;
        code = rt_view_jobs(view, &range, add_lost, &s);
        if (code == RT_E_AGAIN && rt_store_load(e->store, &e->err) != RT_OK) return RT_E_UNAVAILABLE;
    }
    if (code != RT_OK) return code;
    b->lost_due_ms = s.due_ms;
    b->lost_job = s.job;
    for (uint32_t i = 0; i < s.count; i++) settle_lost(e, &s.found[i]);
    if (s.looked_at < LOST_LOOKS_MAX) return RT_OK;
    lane->known = false; // there are more to look at
    return rt_schedule_wake(&e->schedule, lane->queue, e->now_ms) ? RT_OK : RT_E_NOMEM;
}

static bool has_due(rt_engine *e, const rt_lane *lane) {
    page p;
    init_page(&p, e, 1);
    rt_job_range range = rt_due_lane(lane);
    range.want = 1;
    return list_page(e, &range, add_due, &p) == RT_OK && p.count > 0 && p.jobs[0].state != RT_JOB_LEASED;
}

/* Others have had all places of the lane for a while, and something of it is due: one is kept for it, and looked for. */
static void ask_for_place(rt_engine *e, rt_lane *lane) {
    rt_lane_brakes *b = lane->brakes;
    const bool starves = rt_lane_brakes_starve(b, lane->in_flight);
    if (!starves || b->starved_ms == 0 || e->now_ms < b->starved_ms) b->starved_ms = starves ? e->now_ms : 0;
    if (!starves) return;
    const bool asks = e->now_ms - b->starved_ms >= RT_ASK_MS;
    if (asks) b->starved_ms = e->now_ms;
    if (asks && has_due(e, lane)) rt_circuits_ask(e, lane->queue);
    else if (b->asker != e->schedule.self || e->now_ms - b->asked_ms >= RT_ASK_MS) return;
    lane->known = false;
    (void)rt_schedule_wake(&e->schedule, lane->queue, e->now_ms + ASK_LOOK_MS);
}

/* Nothing of the lane may start: it waits for the time when something may, or else for an outcome or a change. */
static bool is_braked(rt_engine *e, rt_lane *lane) {
    int64_t again_ms;
    if (lane->brakes == NULL || lane->brakes->pull) return false;
    if (rt_lane_brakes_room(lane->brakes, lane->in_flight, e->now_ms, &again_ms) > 0) return false;
    lane->backlog = true;
    if (again_ms != INT64_MAX) (void)rt_schedule_wake(&e->schedule, lane->queue, again_ms);
    ask_for_place(e, lane);
    return true;
}

/* One turn of a lane; returns how many jobs it looked at. */
static uint32_t serve(rt_engine *e, rt_lane *lane, uint32_t budget, rt_code *code) {
    const bool anew = !lane->known;
    *code = know_lane(e, lane);
    if (*code == RT_OK && anew) rt_circuits_tell(e, lane);
    if (*code == RT_OK && anew) *code = settle_others(e, lane);
    if (*code != RT_OK) return 0;
    if (lane->paused_until_ms > e->now_ms) {
        lane->backlog = true;
        if (lane->paused_until_ms != INT64_MAX)
            (void)rt_schedule_wake(&e->schedule, lane->queue, lane->paused_until_ms);
        return 0;
    }
    if (is_braked(e, lane)) return 0;
    page p;
    init_page(&p, e, budget < RT_LANE_QUANTUM ? budget : RT_LANE_QUANTUM);
    const rt_job_range range = rt_due_lane(lane);
    *code = list_page(e, &range, add_due, &p);
    if (*code != RT_OK) return 0;
    const bool had_room = start_page(e, lane, &p, code);
    lane->backlog = !had_room || p.count == p.max || *code != RT_OK;
    if (!lane->backlog) {
        if (p.next_due_ms != INT64_MAX) (void)rt_schedule_wake(&e->schedule, lane->queue, p.next_due_ms);
        // Should there have been no memory to settle one: looks again.
        if (p.lost) (void)rt_schedule_wake(&e->schedule, lane->queue, e->now_ms + RT_STORE_PAUSE_MS);
    } else if (*code == RT_OK && lane->in_flight < lane->room) {
        rt_schedule_turn(&e->schedule, lane); // otherwise its next outcome brings it back
    }
    return p.count;
}

static void take_turns(rt_engine *e, uint32_t budget) {
    // Each lane at most once a step, so that a step ends.
    uint32_t lanes = e->schedule.sound.count + e->schedule.suspect.count;
    for (; lanes > 0 && budget > 0; lanes--) {
        rt_lane *lane = rt_schedule_next(&e->schedule, e->now_ms);
        if (lane == NULL) return;
        rt_code code;
        const uint32_t looked_at = serve(e, lane, budget, &code);
        budget -= looked_at < budget ? looked_at : budget;
        if (code == RT_E_CONFLICT) {
            rt_schedule_turn(&e->schedule, lane);
        } else if (code != RT_OK) {
            // Not at once again, or a record that cannot be read would keep the engine busy for ever.
            const int64_t pause_ms = code == RT_E_CORRUPT ? RT_CORRUPT_PAUSE_MS : RT_STORE_PAUSE_MS;
            (void)rt_schedule_wake(&e->schedule, lane->queue, e->now_ms + pause_ms);
            if (code != RT_E_CORRUPT) return;
        }
    }
}

void rt_take_due(rt_engine *e) {
    if (e->draining || e->now_ms < e->store_pause_until_ms) return;
    const bool lanes = rt_schedule_next_ms(&e->schedule, e->now_ms) <= e->now_ms;
    if (!lanes && !(e->ready_pending && !rt_schedule_is_full(&e->schedule))) return;
    if (rt_batch_open(e) == NULL) return;
    rt_schedule_advance(&e->schedule, e->now_ms);
    rt_warm_takes(e);
    const uint32_t left = take_ready(e, RT_TAKES_MAX / 2);
    take_turns(e, left + RT_TAKES_MAX / 2);
}
