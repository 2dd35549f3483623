#include "runtime/outcomes.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct rt_outcomes {
    pthread_mutex_t lock; /* guards all below but fd */
    pthread_cond_t room;
    rt_outcome *slots;
    size_t cap, first, count;
    bool asleep, shut;
    int fd;
};

rt_code rt_outcomes_open(uint32_t max, rt_outcomes **out, rt_err *err) {
    RT_ASSERT(max >= 1);
    rt_outcomes *o = malloc(sizeof *o);
    if (o == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "outcomes");
    *o = (rt_outcomes){.cap = max, .fd = -1};
    pthread_mutex_init(&o->lock, NULL);
    pthread_cond_init(&o->room, NULL);
    o->slots = calloc(max, sizeof *o->slots);
    rt_code code =
        o->slots == NULL ? rt_fail(err, RT_E_NOMEM, ENOMEM, "room for %u outcomes", (unsigned)max) : RT_OK;
    if (code == RT_OK) {
        o->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (o->fd < 0) code = rt_fail(err, RT_E_IO, errno, "eventfd");
    }
    if (code != RT_OK) {
        rt_outcomes_close(o);
        return code;
    }
    *out = o;
    return RT_OK;
}

void rt_outcomes_wake(rt_outcomes *o) {
    const uint64_t one = 1;
    (void)!write(o->fd, &one, sizeof one); // can fail only when it is readable already
}

void rt_outcomes_put(rt_outcomes *o, const rt_outcome *outcome) {
    pthread_mutex_lock(&o->lock);
    while (o->count == o->cap && !o->shut) pthread_cond_wait(&o->room, &o->lock);
    const bool wake = o->asleep && !o->shut;
    if (!o->shut) {
        o->slots[(o->first + o->count) % o->cap] = *outcome;
        o->count++;
        o->asleep = false;
    }
    pthread_mutex_unlock(&o->lock);
    if (wake) rt_outcomes_wake(o);
}

size_t rt_outcomes_take(rt_outcomes *o, rt_outcome *out, size_t max) {
    pthread_mutex_lock(&o->lock);
    const size_t n = o->count < max ? o->count : max;
    const bool was_full = o->count == o->cap;
    for (size_t i = 0; i < n; i++) out[i] = o->slots[(o->first + i) % o->cap];
    o->first = (o->first + n) % o->cap;
    o->count -= n;
    pthread_mutex_unlock(&o->lock);
    if (was_full) pthread_cond_broadcast(&o->room);
    return n;
}

bool rt_outcomes_sleep(rt_outcomes *o) {
    pthread_mutex_lock(&o->lock);
    o->asleep = o->count == 0;
    const bool empty = o->asleep;
    pthread_mutex_unlock(&o->lock);
    return empty;
}

int rt_outcomes_fd(const rt_outcomes *o) { return o->fd; }

void rt_outcomes_woken(rt_outcomes *o) {
    uint64_t count;
    (void)!read(o->fd, &count, sizeof count); // nothing to read: another wake-up took it
}

void rt_outcomes_shut(rt_outcomes *o) {
    pthread_mutex_lock(&o->lock);
    o->shut = true;
    pthread_mutex_unlock(&o->lock);
    pthread_cond_broadcast(&o->room);
}

void rt_outcomes_close(rt_outcomes *o) {
    if (o == NULL) return;
    if (o->fd >= 0) (void)close(o->fd);
    pthread_cond_destroy(&o->room);
    pthread_mutex_destroy(&o->lock);
    free(o->slots);
    free(o);
}
