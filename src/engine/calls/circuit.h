/* circuit.h: the brakes of a queue (port/record.h) put on and taken off: by what attempts learn, by time, by an operator. */
#ifndef RT_ENGINE_CALLS_CIRCUIT_H
#define RT_ENGINE_CALLS_CIRCUIT_H
#include "engine/calls/call_type.h"

/* An operator forces a queue's circuit, of any kind: open (nothing is started), closed (whatever fails), or auto (by itself
 * again; closed if nothing governs it). RT_E_ABSENT: no such queue. */
typedef enum rt_circuit_order { RT_CIRCUIT_FORCE_OPEN, RT_CIRCUIT_FORCE_CLOSED, RT_CIRCUIT_AUTO } rt_circuit_order;
typedef struct rt_queue_circuit {
    rt_command cmd;
    rt_id id;
    rt_circuit_order order;
} rt_queue_circuit;
void rt_queue_circuit_init(rt_queue_circuit *c);

#endif
