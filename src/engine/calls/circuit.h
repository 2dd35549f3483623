/* circuit.h: the brakes of a queue (rt_brakes) put on and taken off: by what attempts learn, by time, by an operator. */
#ifndef RT_ENGINE_CALLS_CIRCUIT_H
#define RT_ENGINE_CALLS_CIRCUIT_H
#include "engine/common/cursor.h"
#include "engine/calls/call_type.h"
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

/* ---- for decisions ----------------------------------------------------------------------------------------- */

/* Takes off what the type does not ask for (any more). */
void rt_brakes_fit(rt_brakes *b, const rt_call_type *type);
/* An attempt is about to start. Half-opens a circuit that has slept enough, within this change. RT_E_CONFLICT: it may
 * not; what the lane knew is out of date. */
rt_code rt_brakes_start(rt_tx *tx, const rt_queue *queue, const rt_call_type *type);
/* An attempt has ended: writes the pace, and what a probe means for the circuit; a closed circuit is told of it once the
 * change is durable (rt_circuit_note). */
rt_code rt_brakes_learn(rt_tx *tx, const rt_queue *queue, const rt_call_type *type, bool failed, uint32_t took_ms);
/* The circuit has left CLOSED at `opened_ms`: what waits behind it for too long will die. */
rt_code rt_circuit_watch(rt_tx *tx, rt_id queue, int64_t opened_ms);
/* How many of the queue's calls may be handed out now, if `under_way` are; *again_ms: when to ask again (INT64_MAX: when
 * something has changed). */
rt_code rt_brakes_room(rt_tx *tx, const rt_queue *queue, const rt_call_type *type, uint32_t under_way, uint32_t *room,
                       int64_t *again_ms);

/* ---- for the machine --------------------------------------------------------------------------------------- */

struct rt_engine;
bool rt_circuit_has_brakes(const rt_queue *queue); /* false: nothing but a pause slows it down */
/* Reads what slows the lane's queue down. */
rt_code rt_circuit_know(rt_tx *tx, rt_lane *lane, const rt_queue *queue);
/* What an attempt taught is durable: into the window of its queue. True: that opens the circuit: rt_circuit_trip. */
bool rt_circuit_note(rt_lane *lane, const rt_lesson *lesson, int64_t now_ms);
/* Opens the circuit of `queue`, unless that was done meanwhile, or forbidden. */
typedef struct rt_circuit_trip {
    rt_command cmd;
    rt_id queue;
} rt_circuit_trip;
void rt_circuit_trip_init(rt_circuit_trip *c);

/* One slice of RT_CURSOR_CIRCUIT. */
rt_cursor_slice rt_circuit_slice;

#endif
