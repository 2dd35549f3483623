/* circuit.h: the brakes of a queue (rt_brakes) put on and taken off: by what attempts learn, by time, by an operator. */
#ifndef RT_ENGINE_CALLS_CIRCUIT_H
#define RT_ENGINE_CALLS_CIRCUIT_H
#include "engine/common/cursor.h"
#include "engine/calls/call_type.h"
#include "engine/calls/window.h"
#include "engine/common/schedule.h"

/* An operator forces a queue's circuit, of any kind: open (nothing is started), closed (whatever fails), or auto (by itself
 * again; closed if nothing governs it). RT_E_ABSENT: no such queue. */
typedef enum rt_circuit_order { RT_CIRCUIT_FORCE_OPEN, RT_CIRCUIT_FORCE_CLOSED, RT_CIRCUIT_AUTO } rt_circuit_order;
typedef struct rt_queue_circuit {
    rt_command cmd;
    rt_id id;
    rt_circuit_order order;
} rt_queue_circuit;
void rt_queue_circuit_init(rt_queue_circuit *c);

/* ---- for decisions ------------------------------------------------------------------------------------- */

/* `count` attempts are about to start, or calls are about to be handed out: at all nodes together no more than the brakes
 * allow (starts.h). Half-opens a circuit that has slept enough, within this change. RT_E_CONFLICT: they may not; what the
 * lane knew is out of date. */
rt_code rt_brakes_start(rt_tx *tx, const rt_queue *queue, const rt_call_type *type, uint32_t count);
/* An attempt has ended: writes the pace, and what a probe means for the circuit; a closed circuit is told of it once the
 * change is durable (rt_circuit_note). */
rt_code rt_brakes_learn(rt_tx *tx, const rt_queue *queue, const rt_call_type *type, bool failed, uint32_t took_ms);
/* How many of the queue's calls may be handed out now; *again_ms: when to ask again (INT64_MAX: when something has
 * changed). */
rt_code rt_brakes_room(rt_tx *tx, const rt_queue *queue, const rt_call_type *type, uint32_t *room, int64_t *again_ms);

/* ---- for the machine ----------------------------------------------------------------------------------- */

struct rt_engine;
bool rt_circuit_has_brakes(const rt_queue *queue); /* false: nothing but a pause slows it down */
/* Reads what slows the lane's queue down. */
rt_code rt_circuit_know(rt_tx *tx, rt_lane *lane, const rt_queue *queue);
/* What an attempt taught is durable: into the window of its queue. True: an rt_circuit_trip is to be submitted. */
bool rt_circuit_note(rt_lane *lane, const rt_lesson *lesson, int64_t now_ms);
/* The same, without a lesson: time has passed, or others were heard. */
bool rt_circuit_has_news(const rt_lane_brakes *b, int64_t now_ms);
/* What is known here would matter to other nodes, should one of them have bad news. */
bool rt_circuit_listens(const rt_lane_brakes *b, int64_t now_ms);
/* Tells other nodes what was learned, and opens the circuit of `queue` if that is enough, unless that was done meanwhile, or
 * forbidden. */
typedef struct rt_circuit_trip {
    rt_command cmd;
    rt_id queue;
    rt_window_news news; /* where several nodes take from the store */
} rt_circuit_trip;
void rt_circuit_trip_begin(rt_circuit_trip *c, rt_lane *lane);
/* It is done. `lane`: that of its queue, whose brakes may be gone. */
void rt_circuit_trip_end(const rt_circuit_trip *c, rt_lane *lane, int64_t now_ms);

/* One slice of RT_CURSOR_CIRCUIT. */
rt_cursor_slice rt_circuit_slice;

#endif
