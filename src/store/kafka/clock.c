#include "store/kafka/clock.h"

#include <poll.h>
#include <unistd.h>

#include "os/clock.h"

enum {
    AHEAD_MS = 5000, /* a node's clock that is further ahead than that is not followed */
    SLICE_MS = 100
};

int64_t rt_ks_now_ms(const rt_store *store) {
    const int64_t own = rt_wall_ms();
    const int64_t others = atomic_load(&((const rt_ks *)store)->at_ms);
    return others <= own ? own : others < own + AHEAD_MS ? others : own + AHEAD_MS;
}

void rt_ks_note_time(rt_ks *s, int64_t at_ms) {
    if (at_ms > atomic_load(&s->at_ms)) atomic_store(&s->at_ms, at_ms);
}

void rt_ks_wait(rt_ks *s, int64_t wait_ms) {
    struct pollfd fd = {.fd = s->base.fd, .events = POLLIN};
    uint64_t count;
    // In slices: should a wake-up be missed, it costs no more than that.
    if (poll(&fd, 1, wait_ms < SLICE_MS ? (int)wait_ms : SLICE_MS) > 0)
        (void)!read(s->base.fd, &count, sizeof count);
}

void rt_ks_wake(const rt_ks *s) {
    const uint64_t one = 1;
    (void)!write(s->base.fd, &one, sizeof one); // can fail only when it is readable already
}
