#include "executor/webhook/webhook.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/ring.h"
#include "executor/webhook/transfer.h"
#include "os/clock.h"

enum {
    INBOX_BATCH = 64,   /* attempts begun between two looks at the sockets */
    EVENTS_BATCH = 256, /* of epoll_wait */
    SPARE_MAX = 512,    /* transfers kept for later; some 10 KB each */
    SLEEP_MS_MAX = 60000,
    SHARDS = 16
};
_Static_assert(SHARDS <= UINT8_MAX, "a socket remembers its shard");

#define NEVER INT64_MAX

/* Removing a transfer makes libcurl walk over all connections of its multi handle (seen in 7.88), so that thousands of
 * endpoints that hang would slow down those that answer. Hosts are therefore spread over several. */
typedef struct shard {
    CURLM *multi;
    rt_socket_group sockets;
    int64_t curl_at_ms; /* when libcurl wants to be called; monotonic */
} shard;

struct rt_webhook {
    rt_transfer_env env;
    rt_ring *inbox; /* attempts; the rt_webhook itself among them means "stop" */
    shard shards[SHARDS];
    int epoll_fd;
    rt_sockets sockets;
    rt_hosts hosts;
    rt_heap deadlines; /* every attempt that is not in the inbox */
    rt_transfer *turn_first, *turn_last; /* may begin now */
    rt_transfer *spare;
    size_t spare_count;
    int64_t stop_at_ms; /* NEVER: not stopping */
    bool curl_ready;
    bool running;
    pthread_t thread;
};

static int64_t wall_s(void) { return rt_wall_ms() / 1000; }

static int on_timer(CURLM *multi, long delay_ms, void *ctx) {
    (void)multi;
    shard *s = ctx;
    s->curl_at_ms = delay_ms < 0 ? NEVER : rt_mono_ms() + delay_ms;
    return 0;
}

/* ---- from the inbox to an outcome ---------------------------------------------------------------------- */

static void deliver(rt_webhook *w, const rt_outcome *outcome) {
    w->env.cfg.outcome(w->env.cfg.ctx, outcome);
}

static void queue_turn(rt_webhook *w, rt_transfer *t) {
    t->next = NULL;
    if (w->turn_last != NULL) w->turn_last->next = t;
    else w->turn_first = t;
    w->turn_last = t;
}

static rt_transfer *transfer_of_waiter(rt_host_waiter *waiter) {
    return (rt_transfer *)(void *)((char *)waiter - offsetof(rt_transfer, waiter));
}

static rt_transfer *transfer_of_deadline(rt_heap_node *node) {
    return (rt_transfer *)(void *)((char *)node - offsetof(rt_transfer, deadline));
}

/* Gives back what `t` holds. */
static void release(rt_webhook *w, rt_transfer *t) {
    if (t->under_way) (void)curl_multi_remove_handle(t->multi, t->easy);
    t->under_way = false;
    rt_heap_remove(&w->deadlines, &t->deadline);
    if (t->waiter.waits) {
        rt_hosts_give_up(&w->hosts, t->host, &t->waiter);
    } else {
        rt_host_waiter *next = rt_hosts_leave(&w->hosts, t->host);
        if (next != NULL) queue_turn(w, transfer_of_waiter(next));
    }
    rt_transfer_reset(t);
    if (w->spare_count == SPARE_MAX) {
        rt_transfer_free(t);
        return;
    }
    t->next = w->spare;
    w->spare = t;
    w->spare_count++;
}

static void finish(rt_webhook *w, rt_transfer *t, CURLcode code) {
    rt_outcome outcome;
    rt_transfer_outcome(t, code, wall_s(), &outcome);
    outcome.took_ms = (uint32_t)(rt_mono_ms() - t->began_ms);
    release(w, t);
    deliver(w, &outcome);
}

static void fail(rt_webhook *w, rt_transfer *t, rt_reason reason) {
    rt_outcome outcome;
    rt_transfer_failed(t, reason, &outcome);
    release(w, t);
    deliver(w, &outcome);
}

/* Takes `attempt`. */
static void accept_attempt(rt_webhook *w, rt_attempt *attempt, int64_t now_ms) {
    rt_transfer *t = w->spare;
    if (t != NULL) {
        w->spare = t->next;
        w->spare_count--;
    } else {
        t = rt_transfer_new(&w->env);
    }
    if (t != NULL) {
        t->attempt = attempt;
        t->began_ms = now_ms;
    }
    if (t == NULL || !rt_heap_set(&w->deadlines, &t->deadline, now_ms + attempt->timeout_ms)) {
        const rt_str why = RT_STR("out of memory");
        rt_outcome outcome = {.job = attempt->job, .token = attempt->token, .reason = RT_REASON_CONNECT,
                              .retry_after_ms = -1, .text_len = (uint16_t)why.len};
        memcpy(outcome.text, why.ptr, why.len);
        if (t == NULL) rt_attempt_free(attempt);
        else rt_transfer_free(t);
        deliver(w, &outcome);
        return;
    }
    const rt_str url = rt_transfer_url(t);
    if (rt_hosts_enter(&w->hosts, url, &t->waiter, &t->host)) queue_turn(w, t);
}

static void begin(rt_webhook *w, rt_transfer *t) {
    const rt_reason refused = rt_transfer_prepare(t, wall_s());
    if (refused != RT_REASON_NONE) {
        fail(w, t, refused);
        return;
    }
    t->began_ms = rt_mono_ms();
    t->multi = w->shards[rt_host_key(rt_transfer_url(t)) % SHARDS].multi;
    const CURLMcode code = curl_multi_add_handle(t->multi, t->easy);
    t->under_way = code == CURLM_OK;
    if (!t->under_way) {
        rt_transfer_say(t, "out of memory");
        fail(w, t, RT_REASON_CONNECT);
    }
}

static void begin_turns(rt_webhook *w) {
    while (w->turn_first != NULL) {
        rt_transfer *t = w->turn_first;
        w->turn_first = t->next;
        if (w->turn_first == NULL) w->turn_last = NULL;
        begin(w, t);
    }
}

static void take_inbox(rt_webhook *w) {
    void *items[INBOX_BATCH];
    const size_t count = rt_ring_take(w->inbox, items, INBOX_BATCH);
    const int64_t now_ms = rt_mono_ms();
    for (size_t i = 0; i < count; i++) {
        if (items[i] == w) w->stop_at_ms = now_ms + w->env.cfg.drain_ms;
        else accept_attempt(w, items[i], now_ms);
    }
}

static void finish_done_of(rt_webhook *w, CURLM *multi) {
    int left;
    CURLMsg *msg;
    while ((msg = curl_multi_info_read(multi, &left)) != NULL) {
        if (msg->msg != CURLMSG_DONE) continue;
        const CURLcode code = msg->data.result;
        char *t = NULL;
        (void)curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &t);
        finish(w, (rt_transfer *)(void *)t, code);
    }
}

static void finish_done(rt_webhook *w) {
    for (int i = 0; i < SHARDS; i++) finish_done_of(w, w->shards[i].multi);
}

static void expire_one(rt_webhook *w, rt_transfer *t) {
    const char *why = "no turn in time: too many attempts are under way to its host";
    curl_off_t connected_us = 0;
    if (t->under_way) {
        (void)curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &connected_us);
        why = connected_us > 0 ? "connected, but no whole answer in time" : "no connection in time";
    }
    rt_transfer_say(t, why);
    if (t->under_way) finish(w, t, CURLE_OPERATION_TIMEDOUT);
    else fail(w, t, RT_REASON_TIMEOUT);
}

/* The attempt's own timeout is kept here and not by libcurl, since it also runs while an attempt waits for
 * a turn. */
static void expire(rt_webhook *w) {
    const int64_t now_ms = rt_mono_ms();
    rt_heap_node *first;
    while ((first = rt_heap_first(&w->deadlines)) != NULL && first->at_ms <= now_ms) {
        // So that what is neither under way nor waiting cannot be among those that end here.
        RT_ASSERT(w->turn_first == NULL);
        expire_one(w, transfer_of_deadline(first));
        begin_turns(w);
    }
}

/* ---- the loop ------------------------------------------------------------------------------------------ */

static void run_curl_timers(rt_webhook *w) {
    const int64_t now_ms = rt_mono_ms();
    for (int i = 0; i < SHARDS; i++) {
        shard *s = &w->shards[i];
        int running;
        if (s->curl_at_ms > now_ms) continue;
        s->curl_at_ms = NEVER;
        (void)curl_multi_socket_action(s->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
}

static int sleep_ms(const rt_webhook *w) {
    const rt_heap_node *first = rt_heap_first(&w->deadlines);
    int64_t until = w->stop_at_ms;
    for (int i = 0; i < SHARDS; i++) {
        if (w->shards[i].curl_at_ms < until) until = w->shards[i].curl_at_ms;
    }
    if (first != NULL && first->at_ms < until) until = first->at_ms;
    if (until == NEVER) return SLEEP_MS_MAX;
    const int64_t wait = until - rt_mono_ms();
    if (wait <= 0) return 0;
    return wait < SLEEP_MS_MAX ? (int)wait : SLEEP_MS_MAX;
}

static void wait_and_serve(rt_webhook *w) {
    struct epoll_event events[EVENTS_BATCH];
    const int inbox_fd = rt_ring_fd(w->inbox);
    int wait = sleep_ms(w);
    if (wait > 0 && !rt_ring_sleep(w->inbox)) wait = 0;
    const int count = epoll_wait(w->epoll_fd, events, EVENTS_BATCH, wait);
    for (int i = 0; i < count; i++) {
        const int fd = events[i].data.fd;
        if (fd == inbox_fd) {
            rt_ring_woken(w->inbox);
            continue;
        }
        uint8_t at = 0;
        const int bits = rt_sockets_bits(&w->sockets, fd, events[i].events, &at);
        int running;
        if (bits != 0) (void)curl_multi_socket_action(w->shards[at].multi, fd, bits, &running);
    }
}

static bool at_end(const rt_webhook *w) {
    if (w->stop_at_ms == NEVER) return false;
    return w->deadlines.count == 0 || w->stop_at_ms <= rt_mono_ms();
}

static void *run(void *ctx) {
    rt_webhook *w = ctx;
    while (!at_end(w)) {
        wait_and_serve(w);
        take_inbox(w);
        finish_done(w);
        begin_turns(w);
        expire(w);
        run_curl_timers(w);
        finish_done(w);
        begin_turns(w);
    }
    return NULL;
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

static void start_attempt(void *ctx, rt_attempt *attempt) {
    rt_webhook *w = ctx;
    const bool taken = rt_ring_push(w->inbox, attempt, 0);
    RT_ASSERT(taken); // the engine's bound is the ring's
}

rt_executor rt_webhook_executor(rt_webhook *webhook) {
    return (rt_executor){.ctx = webhook, .start = start_attempt};
}

static rt_webhook_config completed(const rt_webhook_config *cfg) {
    rt_webhook_config c = *cfg;
    if (c.connect_ms == 0 || c.connect_ms > RT_WEBHOOK_CONNECT_MS_MAX) c.connect_ms = RT_WEBHOOK_CONNECT_MS_MAX;
    if (c.excerpt_bytes > RT_EVENT_TEXT_MAX) c.excerpt_bytes = RT_EVENT_TEXT_MAX;
    if (c.user_agent == NULL) c.user_agent = "retryd/" RETRYD_VERSION;
    if (c.mail_from == NULL) c.mail_from = "retryd@localhost";
    return c;
}

static rt_code open_shard(rt_webhook *w, uint8_t at, rt_err *err) {
    shard *s = &w->shards[at];
    s->sockets = (rt_socket_group){.all = &w->sockets, .shard = at};
    s->multi = curl_multi_init();
    if (s->multi == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "curl_multi_init");
    const uint32_t share = w->env.cfg.connections_max / 4;
    const bool ok =
        curl_multi_setopt(s->multi, CURLMOPT_SOCKETFUNCTION, rt_sockets_on_wish) == CURLM_OK &&
        curl_multi_setopt(s->multi, CURLMOPT_SOCKETDATA, &s->sockets) == CURLM_OK &&
        curl_multi_setopt(s->multi, CURLMOPT_TIMERFUNCTION, on_timer) == CURLM_OK &&
        curl_multi_setopt(s->multi, CURLMOPT_TIMERDATA, s) == CURLM_OK &&
        // Above it the oldest idle connection goes. No hard limit on top: a transfer that waits for a
        // connection is outside of libcurl's own fairness and of its timeouts.
        curl_multi_setopt(s->multi, CURLMOPT_MAXCONNECTS, share < 64 ? 64L : (long)share) == CURLM_OK;
    return ok ? RT_OK : rt_fail(err, RT_E_UNAVAILABLE, 0, "libcurl lacks an option of the multi interface");
}

static rt_code open_shards(rt_webhook *w, rt_err *err) {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return rt_fail(err, RT_E_UNAVAILABLE, 0, "libcurl");
    w->curl_ready = true;
    rt_code code = RT_OK;
    for (uint8_t i = 0; i < SHARDS && code == RT_OK; i++) code = open_shard(w, i, err);
    return code;
}

static rt_code open_epoll(rt_webhook *w, rt_err *err) {
    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (w->epoll_fd < 0) return rt_fail(err, RT_E_IO, errno, "epoll_create1");
    w->sockets.epoll_fd = w->epoll_fd;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = rt_ring_fd(w->inbox)};
    if (epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, event.data.fd, &event) == 0) return RT_OK;
    return rt_fail(err, RT_E_IO, errno, "epoll_ctl");
}

/* Signals are for the main thread, SIGPIPE for nobody. */
static rt_code start_thread(rt_webhook *w, rt_err *err) {
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&w->thread, NULL, run, w);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) return rt_fail(err, RT_E_IO, failed, "pthread_create");
    (void)pthread_setname_np(w->thread, "webhook");
    w->running = true;
    return RT_OK;
}

rt_code rt_webhook_open(const rt_webhook_config *cfg, rt_webhook **out, rt_err *err) {
    RT_ASSERT(cfg->outcome != NULL);
    RT_ASSERT(cfg->connections_max >= 1);
    rt_webhook *w = calloc(1, sizeof *w);
    if (w == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "webhook executor");
    w->epoll_fd = -1;
    for (int i = 0; i < SHARDS; i++) w->shards[i].curl_at_ms = NEVER;
    w->stop_at_ms = NEVER;
    w->env = (rt_transfer_env){.cfg = completed(cfg), .sockets = &w->sockets};
    w->hosts.limit = cfg->host_attempts_max;

    // One more than the attempts: the word to stop.
    rt_code code = rt_ring_open((size_t)cfg->connections_max + 1, SIZE_MAX, &w->inbox, err);
    if (code == RT_OK) code = rt_signer_open(&w->env.signer, err);
    if (code == RT_OK) code = open_epoll(w, err);
    if (code == RT_OK) code = open_shards(w, err);
    if (code == RT_OK) code = start_thread(w, err);
    if (code != RT_OK) {
        rt_webhook_close(w);
        return code;
    }
    *out = w;
    return RT_OK;
}

/* What is still under way is dropped: whether it arrived nobody knows, so it is tried again after its
 * lease. */
static void abandon_all(rt_webhook *w) {
    rt_heap_node *first;
    while ((first = rt_heap_first(&w->deadlines)) != NULL) release(w, transfer_of_deadline(first));
    while (w->spare != NULL) {
        rt_transfer *t = w->spare;
        w->spare = t->next;
        rt_transfer_free(t);
    }
}

void rt_webhook_close(rt_webhook *webhook) {
    rt_webhook *w = webhook;
    if (w == NULL) return;
    if (w->running) {
        const bool taken = rt_ring_push(w->inbox, w, 0);
        RT_ASSERT(taken); // nothing else has this place
        (void)pthread_join(w->thread, NULL);
    }
    abandon_all(w);
    for (int i = 0; i < SHARDS; i++) {
        if (w->shards[i].multi != NULL) (void)curl_multi_cleanup(w->shards[i].multi);
    }
    if (w->curl_ready) curl_global_cleanup();
    rt_signer_close(w->env.signer);
    rt_sockets_deinit(&w->sockets);
    rt_hosts_deinit(&w->hosts);
    rt_heap_deinit(&w->deadlines);
    if (w->epoll_fd >= 0) (void)close(w->epoll_fd);
    rt_ring_close(w->inbox);
    free(w);
}
