#include "store/kafka/gate.h"

void rt_gate_init(rt_gate *g) {
    (void)pthread_mutex_init(&g->lock, NULL); // neither can fail on Linux
    (void)pthread_cond_init(&g->emptied, NULL);
}

void rt_gate_deinit(rt_gate *g) {
    (void)pthread_cond_destroy(&g->emptied);
    (void)pthread_mutex_destroy(&g->lock);
}

void rt_gate_shut(rt_gate *g) {
    (void)pthread_mutex_lock(&g->lock);
    g->shut = true;
    while (g->inside > 0) (void)pthread_cond_wait(&g->emptied, &g->lock);
    (void)pthread_mutex_unlock(&g->lock);
}

void rt_gate_open(rt_gate *g) {
    (void)pthread_mutex_lock(&g->lock);
    g->shut = false;
    (void)pthread_mutex_unlock(&g->lock);
}

bool rt_gate_go_in(rt_gate *g) {
    (void)pthread_mutex_lock(&g->lock);
    const bool may = !g->shut;
    if (may) g->inside++;
    (void)pthread_mutex_unlock(&g->lock);
    return may;
}

void rt_gate_go_out(rt_gate *g) {
    (void)pthread_mutex_lock(&g->lock);
    if (--g->inside == 0) (void)pthread_cond_signal(&g->emptied);
    (void)pthread_mutex_unlock(&g->lock);
}
