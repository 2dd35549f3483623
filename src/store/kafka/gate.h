/* gate.h: whether the copy may be looked at from outside. Who looks goes in, and then out. Any thread. */
#ifndef RT_STORE_KAFKA_GATE_H
#define RT_STORE_KAFKA_GATE_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct rt_gate {
    pthread_mutex_t lock;
    pthread_cond_t emptied;
    uint32_t inside;
    bool shut;
} rt_gate;

void rt_gate_init(rt_gate *g); /* open */
void rt_gate_deinit(rt_gate *g);
void rt_gate_shut(rt_gate *g); /* waits until nobody is inside */
void rt_gate_open(rt_gate *g);
bool rt_gate_go_in(rt_gate *g); /* false: it is shut */
void rt_gate_go_out(rt_gate *g);

#endif
