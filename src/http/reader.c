#include "http/reader.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/ring.h"
#include "http/exchange_parts.h"

typedef struct reader {
    rt_ring *ring;
    pthread_t thread;
    bool running;
    atomic_bool stop;
} reader;

struct rt_readers {
    reader *list;
    uint32_t count, turn;
};

static void run_handler(rt_exchange *x) {
    bool left = false;
    x->left = &left;
    x->may_wait = true;
    if (x->finish != NULL) rt_exchange_finish(x); // it moved here
    else if (rt_exchange_is_late(x)) x->replied = true; // its client has given up: there is nothing to be read
    else x->match.route->handler(x);
    // A suspended exchange belongs to somebody else by now.
    if (left) return;
    x->left = NULL;
    RT_ASSERT(x->replied);
    rt_exchange_resume(x);
}

static void *read_loop(void *arg) {
    reader *r = arg;
    for (;;) {
        void *x;
        if (rt_ring_take(r->ring, &x, 1) == 1) {
            run_handler(x);
            continue;
        }
        if (atomic_load(&r->stop)) return NULL;
        if (!rt_ring_sleep(r->ring)) continue;
        struct pollfd wait = {.fd = rt_ring_fd(r->ring), .events = POLLIN};
        if (poll(&wait, 1, -1) > 0) rt_ring_woken(r->ring);
    }
}

rt_code rt_readers_open(uint32_t count, rt_readers **out, rt_err *err) {
    RT_ASSERT(count >= 1);
    RT_ASSERT(count <= RT_READERS_MAX);
    rt_readers *r = calloc(1, sizeof *r);
    if (r == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "readers");
    r->list = calloc(count, sizeof *r->list);
    rt_code code = r->list == NULL ? rt_fail(err, RT_E_NOMEM, ENOMEM, "readers") : RT_OK;
    for (uint32_t i = 0; code == RT_OK && i < count; i++) {
        reader *one = &r->list[r->count++];
        code = rt_ring_open(RT_READER_WAITING_MAX, SIZE_MAX, &one->ring, err);
        if (code != RT_OK) break;
        const int bad = pthread_create(&one->thread, NULL, read_loop, one);
        if (bad != 0) code = rt_fail(err, RT_E_IO, bad, "reader thread: %s", strerror(bad));
        one->running = bad == 0;
    }
    if (code != RT_OK) {
        rt_readers_close(r);
        return code;
    }
    *out = r;
    return RT_OK;
}

bool rt_readers_hand(rt_readers *r, rt_exchange *x) {
    for (uint32_t i = 0; i < r->count; i++) {
        r->turn = (r->turn + 1) % r->count;
        if (rt_ring_push(r->list[r->turn].ring, x, 0)) return true;
    }
    return false;
}

void rt_readers_close(rt_readers *r) {
    if (r == NULL) return;
    for (uint32_t i = 0; i < r->count; i++) {
        reader *one = &r->list[i];
        if (one->running) {
            atomic_store(&one->stop, true);
            rt_ring_wake(one->ring);
            pthread_join(one->thread, NULL);
        }
        rt_ring_close(one->ring);
    }
    free(r->list);
    free(r);
}
