#include "runtime/engine_thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/ring.h"
#include "os/clock.h"
#include "runtime/outcomes.h"

enum {
    TAKE_MAX = 256,           /* handed to the engine at once */
    TAKES_A_STEP_MAX = 16,    /* so that a step comes even while producers are faster than the taking */
    POLL_MS_MAX = 60 * 60 * 1000
};

struct rt_engine_thread {
    rt_engine_thread_config cfg;
    rt_ring *commands;
    rt_outcomes *outcomes;
    rt_engine *engine;
    const rt_store *store;
    pthread_t thread;
    bool started;
    atomic_bool stop, stopped;
    uint32_t drain_ms; /* set before `stop` */
    pthread_mutex_t lock; /* guards `trouble` and `why` */
    rt_code trouble;
    rt_err why;
    bool in_trouble; /* as told by on_trouble */
    rt_outcome taken[TAKE_MAX]; /* the thread's */
};

/* ---- the thread ---------------------------------------------------------------------------------------- */

static void hand_over(rt_engine_thread *t) {
    for (size_t round = 0; round < TAKES_A_STEP_MAX; round++) {
        const size_t outcomes = rt_outcomes_take(t->outcomes, t->taken, TAKE_MAX);
        for (size_t i = 0; i < outcomes; i++) rt_engine_outcome(t->engine, &t->taken[i]);
        void *commands[TAKE_MAX];
        const size_t count = rt_ring_take(t->commands, commands, TAKE_MAX);
        for (size_t i = 0; i < count; i++) rt_engine_submit(t->engine, commands[i]);
        if (outcomes < TAKE_MAX && count < TAKE_MAX) return;
    }
}

static void copy_trouble(rt_engine_thread *t) {
    rt_err why = {0};
    const rt_code code = rt_engine_trouble(t->engine, &why);
    pthread_mutex_lock(&t->lock);
    t->trouble = code;
    if (code != RT_OK) t->why = why;
    pthread_mutex_unlock(&t->lock);
    // Beginnings and ends are told; not each turn from one failure to another.
    if ((code != RT_OK) == t->in_trouble) return;
    t->in_trouble = code != RT_OK;
    if (t->cfg.on_trouble != NULL) t->cfg.on_trouble(t->cfg.ctx, code, &why);
}

/* The clock of all who share the store. */
static int64_t now_ms(const rt_engine_thread *t) {
    return t->store->ops->now_ms == NULL ? rt_wall_ms() : t->store->ops->now_ms(t->store);
}

/* Until something comes in, or `wait_ms` are over. */
static void sleep_until_input(rt_engine_thread *t, int64_t wait_ms) {
    struct pollfd fds[] = {{.fd = rt_ring_fd(t->commands), .events = POLLIN},
                           {.fd = rt_outcomes_fd(t->outcomes), .events = POLLIN},
                           {.fd = t->store->fd, .events = POLLIN}}; // poll passes over a descriptor of -1
    if (!rt_ring_sleep(t->commands) || !rt_outcomes_sleep(t->outcomes)) return;
    const int timeout_ms = wait_ms > POLL_MS_MAX ? POLL_MS_MAX : (int)wait_ms;
    if (poll(fds, 3, timeout_ms) <= 0) return;
    if (fds[0].revents != 0) rt_ring_woken(t->commands);
    if (fds[1].revents != 0) rt_outcomes_woken(t->outcomes);
}

/* How long to sleep at most, or 0: not at all. */
static int64_t wait_ms(const rt_engine_thread *t, int64_t next_wall_ms, int64_t drain_left_ms) {
    const int64_t now = now_ms(t);
    int64_t ms = next_wall_ms <= now ? 0 : next_wall_ms == INT64_MAX ? INT64_MAX : next_wall_ms - now;
    if (drain_left_ms < ms) ms = drain_left_ms;
    return ms < 0 ? 0 : ms;
}

static void *engine_loop(void *arg) {
    rt_engine_thread *t = arg;
    int64_t drain_end_mono_ms = INT64_MAX;
    for (;;) {
        hand_over(t);
        const int64_t next = rt_engine_step(t->engine, now_ms(t));
        copy_trouble(t);
        int64_t left_ms = INT64_MAX;
        if (atomic_load(&t->stop)) {
            const int64_t mono_ms = rt_mono_ms();
            if (drain_end_mono_ms == INT64_MAX) {
                rt_engine_drain(t->engine);
                drain_end_mono_ms = mono_ms + t->drain_ms;
                continue; // a step that knows of it
            }
            left_ms = drain_end_mono_ms - mono_ms;
            if (rt_engine_busy(t->engine) == 0 || left_ms <= 0) return NULL;
        }
        const int64_t ms = wait_ms(t, next, left_ms);
        if (ms > 0) sleep_until_input(t, ms);
    }
}

/* ---- open and close ------------------------------------------------------------------------------------ */

rt_code rt_engine_thread_open(const rt_engine_thread_config *cfg, rt_engine_thread **out, rt_err *err) {
    rt_engine_thread *t = calloc(1, sizeof *t);
    if (t == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "engine thread");
    t->cfg = *cfg;
    pthread_mutex_init(&t->lock, NULL);
    t->trouble = rt_fail(&t->why, RT_E_UNAVAILABLE, 0, "starting");
    rt_code code = rt_ring_open(cfg->commands_max, cfg->commands_bytes_max, &t->commands, err);
    if (code == RT_OK) code = rt_outcomes_open(cfg->outcomes_max, &t->outcomes, err);
    if (code != RT_OK) {
        rt_engine_thread_close(t);
        return code;
    }
    *out = t;
    return RT_OK;
}

rt_code rt_engine_thread_start(rt_engine_thread *t, rt_engine *e, const rt_store *store, rt_err *err) {
    t->engine = e;
    t->store = store;
    const int bad = pthread_create(&t->thread, NULL, engine_loop, t);
    if (bad != 0) return rt_fail(err, RT_E_IO, bad, "engine thread: %s", strerror(bad));
    t->started = true;
    return RT_OK;
}

bool rt_engine_thread_submit(void *ctx, rt_command *cmd, size_t bytes) {
    rt_engine_thread *t = ctx;
    return !atomic_load(&t->stopped) && rt_ring_push(t->commands, cmd, bytes);
}

void rt_engine_thread_outcome(void *ctx, const rt_outcome *outcome) {
    rt_engine_thread *t = ctx;
    rt_outcomes_put(t->outcomes, outcome);
}

rt_code rt_engine_thread_trouble(void *ctx, rt_err *why) {
    rt_engine_thread *t = ctx;
    pthread_mutex_lock(&t->lock);
    const rt_code code = t->trouble;
    if (code != RT_OK && why != NULL) *why = t->why;
    pthread_mutex_unlock(&t->lock);
    return code;
}

void rt_engine_thread_stop(rt_engine_thread *t, uint32_t drain_ms) {
    if (!t->started) return;
    t->drain_ms = drain_ms;
    atomic_store(&t->stop, true);
    rt_outcomes_wake(t->outcomes);
    pthread_join(t->thread, NULL);
    t->started = false;
    atomic_store(&t->stopped, true);
    rt_outcomes_shut(t->outcomes);
    hand_over(t);
}

void rt_engine_thread_close(rt_engine_thread *t) {
    if (t == NULL) return;
    rt_ring_close(t->commands);
    rt_outcomes_close(t->outcomes);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
