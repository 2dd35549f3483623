#include "http/server.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "http/listen.h"
#include "http/server_parts.h"
#include "os/clock.h"

enum {
    CONNECTION_MEMORY_BYTES = 12 * 1024, /* headers and buffers of one; it is cleared for each request, so be brief */
    GOODBYE_TURNS_MAX = 16, /* turns of the loop after the drain, for replies that fit the socket */
    DRAIN_LOOK_MS = 100     /* between two looks, during the drain, for clients that are gone */
};

/* ---- the loop ------------------------------------------------------------------------------------------ */

static int wait_ms(const rt_server *s, int64_t until_mono_ms) {
    MHD_UNSIGNED_LONG_LONG daemon_ms;
    int64_t ms = INT32_MAX;
    if (MHD_get_timeout(s->daemon, &daemon_ms) == MHD_YES && daemon_ms < INT32_MAX) ms = (int64_t)daemon_ms;
    const int64_t deadline_ms = rt_server_next_deadline_ms(s);
    if (deadline_ms < until_mono_ms) until_mono_ms = deadline_ms;
    if (until_mono_ms - s->now_mono_ms < ms) ms = until_mono_ms - s->now_mono_ms;
    if (s->draining && ms > DRAIN_LOOK_MS) ms = DRAIN_LOOK_MS;
    return ms < 0 ? 0 : (int)ms;
}

static void start_draining(rt_server *s) {
    s->draining = true;
    const MHD_socket fd = MHD_quiesce_daemon(s->daemon);
    if (fd != MHD_INVALID_SOCKET) (void)close(fd);
}

static rt_code turn(rt_server *s, int64_t until_mono_ms, rt_err *err) {
    struct pollfd fds[] = {{.fd = s->daemon_fd, .events = POLLIN}, {.fd = s->returns.fd, .events = POLLIN}};
    // What came back while the last turn ran goes out at once, and libmicrohttpd listens again only when it
    // is run.
    const bool at_once = s->has_room_again || !rt_returns_empty(&s->returns);
    const int timeout_ms = at_once ? 0 : wait_ms(s, until_mono_ms);
    if (poll(fds, 2, timeout_ms) < 0 && errno != EINTR) return rt_fail(err, RT_E_IO, errno, "poll");
    s->now_mono_ms = rt_mono_ms();
    if (fds[1].revents != 0) {
        uint64_t count;
        (void)!read(s->returns.fd, &count, sizeof count);
    }
    if (!s->draining && atomic_load_explicit(&s->stop, memory_order_relaxed)) start_draining(s);
    rt_server_take_all_back(s);
    rt_server_enforce_deadlines(s);
    if (s->draining) rt_server_cut_off_gone(s);
    // Last: what was resumed, cut off or given room to above, libmicrohttpd sees only when it is run.
    s->has_room_again = false;
    return MHD_run(s->daemon) == MHD_YES ? RT_OK : rt_fail(err, RT_E_IO, 0, "libmicrohttpd stopped");
}

static void stop_daemon(rt_server *s) {
    if (s->daemon == NULL) return;
    // libmicrohttpd wants no suspended connections when it stops.
    rt_server_answer_all(s);
    for (size_t i = 0; i < GOODBYE_TURNS_MAX && s->active > 0; i++) (void)MHD_run(s->daemon);
    MHD_stop_daemon(s->daemon);
    s->daemon = NULL;
}

rt_code rt_server_run(rt_server *s, rt_err *err) {
    rt_code code = RT_OK;
    int64_t until = INT64_MAX;
    while (code == RT_OK) {
        code = turn(s, until, err);
        if (!s->draining) continue;
        if (until == INT64_MAX) until = s->now_mono_ms + s->cfg.deadline_ms;
        if (s->active == 0 || s->now_mono_ms >= until) break;
    }
    stop_daemon(s);
    return code;
}

/* ---- open and close ------------------------------------------------------------------------------------ */

static rt_code start_daemon(rt_server *s, rt_err *err) {
    s->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_TURBO | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, rt_intake_access, s,
        MHD_OPTION_LISTEN_SOCKET, s->listen_fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)s->cfg.connections_max,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY_BYTES,
        MHD_OPTION_CONNECTION_TIMEOUT, 0u, // deadline.h does it
        MHD_OPTION_URI_LOG_CALLBACK, rt_intake_target, s,
        MHD_OPTION_UNESCAPE_CALLBACK, rt_intake_unescape, s,
        MHD_OPTION_NOTIFY_COMPLETED, rt_intake_completed, s,
        MHD_OPTION_NOTIFY_CONNECTION, rt_intake_connection, s,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
        MHD_OPTION_END);
    if (s->daemon == NULL) return rt_fail(err, RT_E_IO, errno, "libmicrohttpd does not start");
    s->listen_fd = -1; // closed with the daemon
    s->daemon_fd = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    return RT_OK;
}

rt_code rt_server_open(const rt_server_config *cfg, rt_server **out, rt_err *err) {
    RT_ASSERT(cfg->suspended_max >= 1);
    RT_ASSERT(cfg->connections_max >= 1);
    rt_server *s = calloc(1, sizeof *s);
    if (s == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "server");
    s->cfg = *cfg;
    s->listen_fd = s->daemon_fd = -1;
    s->idle.limit_ms = (int64_t)cfg->idle_timeout_s * 1000;
    s->receiving.limit_ms = s->sending.limit_ms = (int64_t)cfg->request_timeout_s * 1000;
    s->out.limit_ms = cfg->deadline_ms;
    s->impatient.limit_ms = RT_IMPATIENT_MS;
    s->room.bytes_max = cfg->replies_bytes_max;
    s->now_mono_ms = rt_mono_ms();
    uint64_t seed = rt_mono_us();
    (void)!getrandom(&seed, sizeof seed, 0); // the clock will do
    s->rng = rt_rng_seeded(seed);
    rt_code code = RT_OK;
    s->returns.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->returns.fd < 0) code = rt_fail(err, RT_E_IO, errno, "eventfd");
    if (code == RT_OK) code = rt_router_new(cfg->faces, cfg->faces_count, &s->router, err);
    if (code == RT_OK) code = rt_readers_open(cfg->readers, &s->readers, err);
    if (code == RT_OK) {
        code = rt_listen_open(cfg->listen_host, cfg->listen_port, &s->listen_fd, &s->port, err);
    }
    if (code == RT_OK) code = start_daemon(s, err);
    if (code != RT_OK) {
        rt_server_close(s);
        return code;
    }
    s->cfg.listen_host = NULL; // was borrowed
    *out = s;
    return RT_OK;
}

uint16_t rt_server_port(const rt_server *s) { return s->port; }

void rt_server_stop(rt_server *s) {
    atomic_store_explicit(&s->stop, true, memory_order_relaxed);
    rt_returns_wake(&s->returns);
}

void rt_server_close(rt_server *s) {
    if (s == NULL) return;
    stop_daemon(s);
    rt_readers_close(s->readers);
    if (s->returns.fd >= 0) {
        rt_server_take_all_back(s);
        (void)close(s->returns.fd);
    }
    RT_ASSERT(s->out_count == 0);
    if (s->listen_fd >= 0) (void)close(s->listen_fd);
    while (s->spare != NULL) {
        rt_exchange *x = s->spare;
        s->spare = x->next;
        rt_exchange_free(x);
    }
    rt_router_free(s->router);
    free(s);
}

rt_server_stats rt_server_stats_now(const rt_server *s) {
    return (rt_server_stats){
        .requests = atomic_load_explicit(&s->requests, memory_order_relaxed),
        .connections = atomic_load_explicit(&s->connections, memory_order_relaxed),
        .suspended = atomic_load_explicit(&s->suspended, memory_order_relaxed),
        .refused = atomic_load_explicit(&s->refused, memory_order_relaxed),
    };
}
