#include "executor/plugin/plugins.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/ring.h"
#include "executor/plugin/pool.h"
#include "os/clock.h"

enum {
    INBOX_BATCH = 64,  /* attempts taken between two looks at the processes */
    EVENTS_BATCH = 64, /* of epoll_wait */
    SLEEP_MS_MAX = 60000,
    END_KIND_MS_MAX = 1000, /* for all processes to end by themselves */
    END_MS_MAX = 5000,      /* and after they were killed */
    PATH_BYTES_MAX = 4096
};

#define NEVER INT64_MAX

struct rt_plugins {
    rt_pools all;
    rt_ring *inbox; /* attempts; the rt_plugins itself among them means "stop" */
    rt_pool *pools[RT_PLUGIN_NAMES_MAX];
    size_t pools_count;
    int64_t stop_at_ms; /* NEVER: not stopping */
    bool running;
    pthread_t thread;
};

/* ---- from the inbox to a pool -------------------------------------------------------------------------- */

/* NULL: out of memory, or there are too many. */
static rt_pool *pool_of(rt_plugins *x, rt_str name, const char *path) {
    for (size_t i = 0; i < x->pools_count; i++) {
        if (rt_str_eq(rt_str_of(x->pools[i]->name), name)) return x->pools[i];
    }
    if (x->pools_count == RT_PLUGIN_NAMES_MAX) return NULL;
    rt_pool *pool = rt_pool_new(&x->all, name, path);
    if (pool != NULL) x->pools[x->pools_count++] = pool;
    return pool;
}

/* Takes `attempt`. */
static void accept_attempt(rt_plugins *x, rt_attempt *attempt, int64_t now_ms) {
    char path[PATH_BYTES_MAX], why[PATH_BYTES_MAX + 64];
    rt_str scheme, name;
    (void)rt_str_cut(attempt->url, ':', &scheme, &name);
    if (!rt_plugin_name_is_valid(name)) {
        rt_pools_refuse(&x->all, attempt, RT_REASON_NO_PLUGIN,
                        "a plugin's name is 1 to 64 of a-z, 0-9, '_' and '-'");
        return;
    }
    struct stat file = {.st_mode = 0};
    const int len = snprintf(path, sizeof path, "%s/%.*s.so", x->all.cfg.directory, RT_STR_ARG(name));
    const bool fits = len > 0 && (size_t)len < sizeof path;
    if (!fits || stat(path, &file) != 0 || !S_ISREG(file.st_mode)) {
        (void)snprintf(why, sizeof why, "there is no file %s", path);
        rt_pools_refuse(&x->all, attempt, RT_REASON_NO_PLUGIN, why);
        return;
    }
    rt_pool *pool = pool_of(x, name, path);
    if (pool == NULL) rt_pools_refuse(&x->all, attempt, RT_REASON_UNAVAILABLE, "out of room for plugins");
    else rt_pool_take(pool, attempt, &file, now_ms);
}

static void take_inbox(rt_plugins *x) {
    void *items[INBOX_BATCH];
    const size_t count = rt_ring_take(x->inbox, items, INBOX_BATCH);
    const int64_t now_ms = rt_mono_ms();
    for (size_t i = 0; i < count; i++) {
        if (items[i] == x) x->stop_at_ms = now_ms + x->all.cfg.drain_ms;
        else accept_attempt(x, items[i], now_ms);
    }
}

/* ---- the loop ------------------------------------------------------------------------------------------ */

static rt_run *run_of(rt_heap_node *node) {
    return (rt_run *)(void *)((char *)node - offsetof(rt_run, deadline));
}

static rt_process *process_of(rt_heap_node *node) {
    return (rt_process *)(void *)((char *)node - offsetof(rt_process, timer));
}

static rt_heap_node *due(const rt_heap *heap, int64_t now_ms) {
    rt_heap_node *first = rt_heap_first(heap);
    return first != NULL && first->at_ms <= now_ms ? first : NULL;
}

static void expire(rt_plugins *x) {
    const int64_t now_ms = rt_mono_ms();
    rt_heap_node *node;
    while ((node = due(&x->all.deadlines, now_ms)) != NULL) rt_run_expire(run_of(node), now_ms);
    while ((node = due(&x->all.timers, now_ms)) != NULL) rt_pool_timer(process_of(node), now_ms);
}

static int sleep_ms(const rt_plugins *x) {
    const rt_heap_node *deadline = rt_heap_first(&x->all.deadlines), *timer = rt_heap_first(&x->all.timers);
    int64_t until = x->stop_at_ms;
    if (deadline != NULL && deadline->at_ms < until) until = deadline->at_ms;
    if (timer != NULL && timer->at_ms < until) until = timer->at_ms;
    if (until == NEVER) return SLEEP_MS_MAX;
    const int64_t wait = until - rt_mono_ms();
    if (wait <= 0) return 0;
    return wait < SLEEP_MS_MAX ? (int)wait : SLEEP_MS_MAX;
}

static void wait_and_serve(rt_plugins *x) {
    struct epoll_event events[EVENTS_BATCH];
    int wait = sleep_ms(x);
    if (wait > 0 && !rt_ring_sleep(x->inbox)) wait = 0;
    const int count = epoll_wait(x->all.epoll_fd, events, EVENTS_BATCH, wait);
    const int64_t now_ms = rt_mono_ms();
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr == x) rt_ring_woken(x->inbox);
        else rt_pool_event(events[i].data.ptr, events[i].events, now_ms);
    }
    rt_pools_bury(&x->all);
}

static void end_all(rt_plugins *x) {
    rt_heap_node *first;
    while ((first = rt_heap_first(&x->all.deadlines)) != NULL) rt_run_drop(run_of(first));
    const int64_t began_ms = rt_mono_ms();
    bool killed = false;
    for (size_t i = 0; i < x->pools_count; i++) rt_pool_end(x->pools[i], false, began_ms);
    for (int64_t now_ms = began_ms; x->all.processes > 0 && now_ms < began_ms + END_MS_MAX;
         now_ms = rt_mono_ms()) {
        if (!killed && now_ms >= began_ms + END_KIND_MS_MAX) {
            killed = true;
            for (size_t i = 0; i < x->pools_count; i++) rt_pool_end(x->pools[i], true, now_ms);
        }
        x->stop_at_ms = began_ms + (killed ? END_MS_MAX : END_KIND_MS_MAX); // when to look again
        wait_and_serve(x);
    }
}

static bool at_end(const rt_plugins *x) {
    if (x->stop_at_ms == NEVER) return false;
    return x->all.deadlines.count == 0 || x->stop_at_ms <= rt_mono_ms();
}

static void *run(void *ctx) {
    rt_plugins *x = ctx;
    while (!at_end(x)) {
        wait_and_serve(x);
        take_inbox(x);
        expire(x);
    }
    end_all(x);
    return NULL;
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

static void start_attempt(void *ctx, rt_attempt *attempt) {
    rt_plugins *x = ctx;
    const bool taken = rt_ring_push(x->inbox, attempt, 0);
    RT_ASSERT(taken); // the engine's bound is the ring's
}

rt_executor rt_plugins_executor(rt_plugins *plugins) {
    return (rt_executor){.ctx = plugins, .start = start_attempt};
}

static rt_code open_epoll(rt_plugins *x, rt_err *err) {
    x->all.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (x->all.epoll_fd < 0) return rt_fail(err, RT_E_IO, errno, "epoll_create1");
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = x};
    if (epoll_ctl(x->all.epoll_fd, EPOLL_CTL_ADD, rt_ring_fd(x->inbox), &event) == 0) return RT_OK;
    return rt_fail(err, RT_E_IO, errno, "epoll_ctl");
}

/* Signals are for the main thread. */
static rt_code start_thread(rt_plugins *x, rt_err *err) {
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&x->thread, NULL, run, x);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) return rt_fail(err, RT_E_IO, failed, "pthread_create");
    (void)pthread_setname_np(x->thread, "plugins");
    x->running = true;
    return RT_OK;
}

rt_code rt_plugins_open(const rt_plugins_config *cfg, rt_plugins **out, rt_err *err) {
    RT_ASSERT(cfg->outcome != NULL);
    RT_ASSERT(cfg->say != NULL);
    RT_ASSERT(cfg->attempts_max >= 1);
    RT_ASSERT(cfg->processes >= 1 && cfg->processes <= RT_PLUGIN_PROCESSES_MAX);
    rt_plugins *x = calloc(1, sizeof *x);
    if (x == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "plugin executor");
    x->all.epoll_fd = -1;
    x->all.cfg = *cfg;
    x->stop_at_ms = NEVER;
    // One more than the attempts: the word to stop.
    rt_code code = rt_ring_open((size_t)cfg->attempts_max + 1, SIZE_MAX, &x->inbox, err);
    if (code == RT_OK) code = open_epoll(x, err);
    if (code == RT_OK) code = start_thread(x, err);
    if (code != RT_OK) {
        rt_plugins_close(x);
        return code;
    }
    *out = x;
    return RT_OK;
}

void rt_plugins_close(rt_plugins *plugins) {
    rt_plugins *x = plugins;
    if (x == NULL) return;
    if (x->running) {
        const bool taken = rt_ring_push(x->inbox, x, 0);
        RT_ASSERT(taken); // nothing else has this place
        (void)pthread_join(x->thread, NULL);
    }
    RT_ASSERT(x->all.deadlines.count == 0);
    for (size_t i = 0; i < x->pools_count; i++) rt_pool_free(x->pools[i]);
    rt_heap_deinit(&x->all.deadlines);
    rt_heap_deinit(&x->all.timers);
    if (x->all.epoll_fd >= 0) (void)close(x->all.epoll_fd);
    rt_ring_close(x->inbox);
    free(x);
}
