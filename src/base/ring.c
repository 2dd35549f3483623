#include "base/ring.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

typedef struct slot {
    void *item;
    size_t bytes;
} slot;

struct rt_ring {
    pthread_mutex_t lock; /* guards all below but fd */
    slot *slots;
    size_t cap, first, count;
    size_t bytes, bytes_max;
    bool asleep;
    int fd;
};

rt_code rt_ring_open(size_t count_max, size_t bytes_max, rt_ring **out, rt_err *err) {
    RT_ASSERT(count_max >= 1);
    rt_ring *r = malloc(sizeof *r);
    if (r == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "ring");
    *r = (rt_ring){.cap = count_max, .bytes_max = bytes_max, .fd = -1};
    pthread_mutex_init(&r->lock, NULL);
    r->slots = calloc(count_max, sizeof *r->slots);
    if (r->slots == NULL) {
        rt_ring_close(r);
        return rt_fail(err, RT_E_NOMEM, ENOMEM, "ring of %zu", count_max);
    }
    r->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (r->fd < 0) {
        const int why = errno;
        rt_ring_close(r);
        return rt_fail(err, RT_E_IO, why, "eventfd");
    }
    *out = r;
    return RT_OK;
}

bool rt_ring_push(rt_ring *r, void *item, size_t bytes) {
    pthread_mutex_lock(&r->lock);
    // One item larger than all the room still passes through an empty ring, or it could never pass.
    const bool fits =
        r->count < r->cap && (r->count == 0 || (bytes <= r->bytes_max && r->bytes <= r->bytes_max - bytes));
    bool wake = false;
    if (fits) {
        r->slots[(r->first + r->count) % r->cap] = (slot){.item = item, .bytes = bytes};
        r->count++;
        r->bytes += bytes;
        wake = r->asleep;
        r->asleep = false;
    }
    pthread_mutex_unlock(&r->lock);
    if (wake) rt_ring_wake(r);
    return fits;
}

void rt_ring_wake(rt_ring *r) {
    const uint64_t one = 1;
    (void)!write(r->fd, &one, sizeof one); // can fail only when it is readable already
}

size_t rt_ring_take(rt_ring *r, void *items[], size_t max) {
    pthread_mutex_lock(&r->lock);
    const size_t n = r->count < max ? r->count : max;
    for (size_t i = 0; i < n; i++) {
        const slot *s = &r->slots[(r->first + i) % r->cap];
        items[i] = s->item;
        r->bytes -= s->bytes;
    }
    r->first = (r->first + n) % r->cap;
    r->count -= n;
    pthread_mutex_unlock(&r->lock);
    return n;
}

bool rt_ring_sleep(rt_ring *r) {
    pthread_mutex_lock(&r->lock);
    r->asleep = r->count == 0;
    const bool empty = r->asleep;
    pthread_mutex_unlock(&r->lock);
    return empty;
}

int rt_ring_fd(const rt_ring *r) { return r->fd; }

void rt_ring_woken(rt_ring *r) {
    uint64_t count;
    (void)!read(r->fd, &count, sizeof count); // nothing to read: another wake-up took it
}

void rt_ring_close(rt_ring *r) {
    if (r == NULL) return;
    if (r->fd >= 0) (void)close(r->fd);
    pthread_mutex_destroy(&r->lock);
    free(r->slots);
    free(r);
}
