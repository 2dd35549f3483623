#include "engine/calls/circuit.h"

#include <stdlib.h>

#include "engine/calls/starts.h"
#include "engine/common/queue.h"

enum { DITHER_MS = 50 };

static rt_brakes closed(const rt_brakes *was, int64_t since_ms) {
    return (rt_brakes){
        .circuit_since_ms = since_ms, .pace_until_ms = was->pace_until_ms, .pace_ms = was->pace_ms};
}

/* ---- writing ------------------------------------------------------------------------------------------- */

/* The brakes as this change leaves them so far. */
static rt_brakes brakes_of(rt_tx *tx, const rt_queue *queue) {
    const rt_op *written = rt_tx_queue_op(tx, queue->id);
    return written != NULL && written->queue.now != NULL ? written->queue.now->brakes : queue->brakes;
}

static void put_brakes(rt_tx *tx, const rt_queue *queue, const rt_brakes *brakes) {
    rt_op *written = rt_tx_queue_op(tx, queue->id);
    rt_queue now = written != NULL && written->queue.now != NULL ? *written->queue.now : *queue;
    now.brakes = *brakes;
    if (written != NULL) rt_tx_change_queue(tx, written, &now);
    else rt_tx_put_queue(tx, queue, &now);
}

/* A change of state is a line of the queue's history. */
static void put_circuit(rt_tx *tx, const rt_queue *queue, const rt_brakes *brakes) {
    rt_job line = {.id = queue->id, .queue = queue->id};
    const char *name = rt_circuit_state_name((rt_circuit_state)brakes->circuit);
    rt_tx_event(tx, &line,
                (rt_event){.type = RT_EVENT_CIRCUIT, .delay_ms = brakes->sleep_ms, .text = rt_str_of(name)});
    put_brakes(tx, queue, brakes);
    tx->frees = true;
}

/* The circuit has left CLOSED at `opened_ms`: what waits behind it for too long will die (circuit_limit.c). */
static rt_code watch(rt_tx *tx, rt_id queue, int64_t opened_ms) {
    // Of this one time that it is open: should it close and open again, there is another cursor.
    rt_cursor cursor = {
        .kind = RT_CURSOR_CIRCUIT, .queue = queue, .last = (uint64_t)opened_ms, .next_ms = tx->now_ms};
    return rt_cursor_start(tx, &cursor);
}

static rt_code open_circuit(rt_tx *tx, const rt_queue *queue, const rt_circuit_settings *s, rt_brakes *b) {
    rt_code code = RT_OK;
    if (b->opened_ms == 0) {
        b->opened_ms = tx->now_ms;
        code = watch(tx, queue->id, b->opened_ms);
    }
    b->circuit = RT_CIRCUIT_OPEN;
    b->probes = 0;
    b->circuit_since_ms = tx->now_ms;
    b->sleep_ms = rt_circuit_sleep_ms(s, b->sleep_ms);
    b->circuit_until_ms = tx->now_ms + (int64_t)b->sleep_ms;
    put_circuit(tx, queue, b);
    return code;
}

/* ---- starting ------------------------------------------------------------------------------------------ */

static void half_open(rt_tx *tx, const rt_queue *queue, rt_brakes *b) {
    b->circuit = RT_CIRCUIT_HALF_OPEN;
    b->circuit_since_ms = tx->now_ms;
    b->circuit_until_ms = 0;
    b->probes = 0;
    put_circuit(tx, queue, b);
}

/* What the lane knew is out of date. */
static rt_code refuse(rt_tx *tx, rt_id queue) {
    rt_lane *lane = tx->schedule == NULL ? NULL : rt_map_get(&tx->schedule->lanes, queue);
    if (lane != NULL) lane->known = false;
    return rt_fail(tx->err, RT_E_CONFLICT, 0, "the queue's brakes are on");
}

static void set_type(const rt_tx *tx, rt_lane_brakes *b, const rt_call_type *type) {
    b->circuit = type == NULL ? (rt_circuit_settings){0} : type->circuit;
    b->rate_per_s = type == NULL ? 0 : type->rate_per_s;
    b->pull = type != NULL && type->target.len == 0;
    b->shared = !tx->store->sole_owner;
    // Alone, a lane knows what of its own is under way.
    b->concurrency = type != NULL && (b->shared || b->pull) ? type->concurrency : 0;
}

rt_code rt_brakes_start(rt_tx *tx, const rt_queue *queue, const rt_call_type *type, uint32_t count) {
    rt_brakes b = brakes_of(tx, queue);
    rt_lane_brakes look = {.stored = b};
    set_type(tx, &look, type);
    if (b.circuit != RT_CIRCUIT_OPEN && !(look.shared && rt_lane_brakes_limit(&look, tx->now_ms))) return RT_OK;
    rt_doc doc;
    const rt_code code = rt_starts_read(tx, queue->id, &look, &doc);
    if (code != RT_OK) return code;
    int64_t again_ms;
    if (rt_lane_brakes_room(&look, 0, tx->now_ms, &again_ms) < count) return refuse(tx, queue->id);
    if (b.circuit == RT_CIRCUIT_OPEN) half_open(tx, queue, &b);
    return rt_starts_write(tx, &doc, &look, count);
}

static bool learns(const rt_lane_brakes *b) {
    return b != NULL && b->circuit.enabled && b->stored.circuit == RT_CIRCUIT_CLOSED && !b->stored.forced;
}

static bool trips(const rt_lane_brakes *b, int64_t now_ms) {
    return learns(b) && rt_circuit_trips(&b->window, &b->circuit, now_ms);
}

/* The lane's brakes with what was just read; without an engine around, none that live in memory. */
static rt_code know(rt_tx *tx, const rt_queue *queue, const rt_call_type *type, rt_lane_brakes **out) {
    rt_lane *lane = tx->schedule == NULL ? NULL : rt_schedule_lane(tx->schedule, queue->id);
    rt_lane_brakes *b = lane == NULL ? rt_arena_alloc(tx->arena, sizeof *b) : rt_schedule_brakes(lane);
    if (b == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a queue's brakes");
    *out = b;
    // What the window knows is of another time: the circuit has been somewhere else meanwhile.
    if (b->stored.circuit_since_ms != queue->brakes.circuit_since_ms) b->window = b->untold = (rt_circuit_window){0};
    b->stored = queue->brakes;
    set_type(tx, b, type);
    rt_doc unused;
    const rt_code heard = b->shared ? rt_window_know(tx, queue->id, b) : RT_OK;
    if (b->shared && !b->telling) b->tripped = trips(b, tx->now_ms);
    const rt_code code = rt_starts_read(tx, queue->id, b, &unused);
    if (lane != NULL && !b->pull) b->others -= b->others < lane->in_flight ? b->others : lane->in_flight;
    b->dither_ms = unused.kind == RT_DOC_NONE ? 0 : (uint32_t)rt_rng_below(tx->rng, DITHER_MS);
    return code != RT_OK ? code : heard;
}

rt_code rt_brakes_room(rt_tx *tx, const rt_queue *queue, const rt_call_type *type, uint32_t *room,
                       int64_t *again_ms) {
    rt_lane_brakes *b;
    const rt_code code = know(tx, queue, type, &b);
    if (code == RT_OK) *room = rt_lane_brakes_room(b, 0, tx->now_ms, again_ms);
    return code;
}

/* ---- learning ------------------------------------------------------------------------------------------ */

/* Was it a probe, or is it of the time before? A clock that was set back does not tell. */
static bool is_probe(const rt_tx *tx, const rt_brakes *b, uint32_t took_ms) {
    return tx->now_ms < b->circuit_since_ms || tx->now_ms - (int64_t)took_ms >= b->circuit_since_ms;
}

static rt_code judge_probe(rt_tx *tx, const rt_queue *queue, const rt_circuit_settings *s, rt_brakes *b,
                           bool failed) {
    if (failed) return open_circuit(tx, queue, s, b);
    if (++b->probes >= s->probes) {
        *b = closed(b, tx->now_ms);
        put_circuit(tx, queue, b);
    } else {
        put_brakes(tx, queue, b);
    }
    return RT_OK;
}

/* A worker may say here how a call went that it was given by another node, or by one that is no more. */
static bool make_pupil(rt_tx *tx, const rt_queue *queue, const rt_call_type *type) {
    rt_lane *lane = tx->schedule == NULL ? NULL : rt_schedule_lane(tx->schedule, queue->id);
    if (lane == NULL || lane->brakes != NULL) return lane != NULL || tx->schedule == NULL;
    rt_lane_brakes *b = rt_schedule_brakes(lane);
    if (b == NULL) return false;
    b->stored = queue->brakes;
    set_type(tx, b, type);
    lane->known = false;
    return true;
}

static rt_code keep_lesson(rt_tx *tx, const rt_queue *queue, const rt_call_type *type, bool failed,
                           uint32_t took_ms) {
    rt_lesson *lesson = rt_arena_alloc(tx->arena, sizeof *lesson);
    if (lesson == NULL || !make_pupil(tx, queue, type))
        return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a lesson");
    *lesson = (rt_lesson){.queue = queue->id, .failed = failed, .took_ms = took_ms, .next = tx->lessons};
    tx->lessons = lesson;
    return RT_OK;
}

rt_code rt_brakes_learn(rt_tx *tx, const rt_queue *queue, const rt_call_type *type, bool failed,
                        uint32_t took_ms) {
    rt_brakes b = brakes_of(tx, queue);
    if (type->pace.enabled) {
        const uint32_t pace_ms = rt_pace_next_ms(&type->pace, b.pace_ms, failed);
        const bool changed = pace_ms != b.pace_ms || pace_ms > 0;
        b.pace_ms = pace_ms;
        b.pace_until_ms = pace_ms > 0 ? tx->now_ms + (int64_t)pace_ms : 0;
        if (changed) put_brakes(tx, queue, &b);
    }
    if (!type->circuit.enabled || b.forced) return RT_OK;
    if (b.circuit == RT_CIRCUIT_CLOSED) return keep_lesson(tx, queue, type, failed, took_ms);
    if (b.circuit == RT_CIRCUIT_HALF_OPEN && is_probe(tx, &b, took_ms))
        return judge_probe(tx, queue, &type->circuit, &b,
                           failed || rt_circuit_is_slow(&type->circuit, took_ms));
    return RT_OK;
}

/* ---- the machine's ------------------------------------------------------------------------------------- */

bool rt_circuit_has_brakes(const rt_queue *queue) {
    if (queue->gone) return false; // a job's turn is its end there
    return queue->kind == RT_QUEUE_CALLS || queue->brakes.forced ||
           queue->brakes.circuit != RT_CIRCUIT_CLOSED;
}

rt_code rt_circuit_know(rt_tx *tx, rt_lane *lane, const rt_queue *queue) {
    if (!rt_circuit_has_brakes(queue)) {
        free(lane->brakes);
        lane->brakes = NULL;
        return RT_OK;
    }
    rt_queue record = *queue;
    rt_call_type type;
    rt_code code = RT_E_ABSENT;
    if (queue->kind == RT_QUEUE_CALLS) code = rt_call_type_of_queue(tx, queue->id, &record, &type);
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    rt_lane_brakes *unused;
    return know(tx, &record, code == RT_OK ? &type : NULL, &unused);
}

bool rt_circuit_note(rt_lane *lane, const rt_lesson *lesson, int64_t now_ms) {
    rt_lane_brakes *b = lane->brakes;
    if (!learns(b)) return false;
    rt_circuit_window_add(&b->window, &b->circuit, now_ms, lesson->failed, lesson->took_ms);
    if (b->shared) rt_circuit_window_add(&b->untold, &b->circuit, now_ms, lesson->failed, lesson->took_ms);
    b->tripped = b->tripped || trips(b, now_ms);
    return rt_circuit_has_news(b, now_ms);
}

bool rt_circuit_has_news(const rt_lane_brakes *b, int64_t now_ms) {
    if (b->telling || !learns(b)) return false;
    return b->shared ? rt_window_has_news(b, trips(b, now_ms), now_ms) : trips(b, now_ms);
}

bool rt_circuit_listens(const rt_lane_brakes *b, int64_t now_ms) {
    return b->shared && learns(b) && rt_circuit_window_counts(&b->untold, &b->circuit, now_ms).attempts > 0;
}

static rt_code decide_trip(rt_tx *tx, rt_command *cmd) {
    rt_circuit_trip *c = (rt_circuit_trip *)cmd;
    rt_queue queue;
    rt_call_type type;
    rt_code code = rt_call_type_of_queue(tx, c->queue, &queue, &type);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    rt_brakes b = queue.brakes;
    if (b.circuit != RT_CIRCUIT_CLOSED || b.forced || !type.circuit.enabled) return RT_OK;
    bool opens = true;
    if (!tx->store->sole_owner) code = rt_window_tell(tx, &queue, &type.circuit, &c->news, &opens);
    return code == RT_OK && opens ? open_circuit(tx, &queue, &type.circuit, &b) : code;
}

void rt_circuit_trip_begin(rt_circuit_trip *c, rt_lane *lane) {
    rt_lane_brakes *b = lane->brakes;
    *c = (rt_circuit_trip){.cmd = {.decide = decide_trip}, .queue = lane->queue, .news = {.told = b->untold}};
    b->untold = (rt_circuit_window){0};
    b->telling = true;
}

void rt_circuit_trip_end(const rt_circuit_trip *c, rt_lane *lane, int64_t now_ms) {
    rt_lane_brakes *b = lane->brakes;
    if (b == NULL) return;
    b->telling = false;
    if (b->shared) rt_window_end(b, c->cmd.code == RT_OK ? &c->news : NULL, now_ms);
    b->tripped = b->shared && trips(b, now_ms); // if it was opened, that is read next
}

/* ---- an operator's ------------------------------------------------------------------------------------- */

static rt_brakes ordered(const rt_tx *tx, const rt_brakes *was, rt_circuit_order order, bool governed) {
    rt_brakes b = closed(was, 0);
    b.forced = order != RT_CIRCUIT_AUTO;
    if (order == RT_CIRCUIT_FORCE_OPEN) {
        b.circuit = RT_CIRCUIT_OPEN;
        b.circuit_since_ms = tx->now_ms;
        b.opened_ms = was->opened_ms > 0 ? was->opened_ms : tx->now_ms;
    } else if (order == RT_CIRCUIT_AUTO && governed && was->circuit == RT_CIRCUIT_OPEN) {
        // Nobody knows how the target is by now: probes find out.
        b.circuit = RT_CIRCUIT_HALF_OPEN;
        b.circuit_since_ms = b.opened_ms = tx->now_ms;
    }
    return b;
}

static rt_code decide_order(rt_tx *tx, rt_command *cmd) {
    const rt_queue_circuit *c = (rt_queue_circuit *)cmd;
    rt_queue queue;
    rt_code code = rt_queue_load(tx, c->id, &queue);
    if (code != RT_OK) return code;
    if (queue.gone) return rt_fail(tx->err, RT_E_ABSENT, 0, "the queue is being removed");
    bool governed = false;
    if (queue.kind == RT_QUEUE_CALLS) {
        rt_queue record;
        rt_call_type type;
        code = rt_call_type_of_queue(tx, c->id, &record, &type);
        if (code != RT_OK && code != RT_E_ABSENT) return code;
        governed = code == RT_OK && type.circuit.enabled;
    }
    const bool forced = c->order != RT_CIRCUIT_AUTO;
    const uint8_t wanted = c->order == RT_CIRCUIT_FORCE_OPEN ? RT_CIRCUIT_OPEN : RT_CIRCUIT_CLOSED;
    if (queue.brakes.forced == forced && (!forced || queue.brakes.circuit == wanted)) return RT_OK;
    const rt_brakes b = ordered(tx, &queue.brakes, c->order, governed);
    put_circuit(tx, &queue, &b);
    const bool opened = b.opened_ms != 0 && b.opened_ms != queue.brakes.opened_ms;
    return governed && opened ? watch(tx, c->id, b.opened_ms) : RT_OK;
}

void rt_queue_circuit_init(rt_queue_circuit *c) { *c = (rt_queue_circuit){.cmd = {.decide = decide_order}}; }
