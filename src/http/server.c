#include "http/server.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/listen.h"
#include "http/server_parts.h"
#include "os/clock.h"

enum {
    SPARE_EXCHANGES_MAX = 1024,
    CONNECTION_MEMORY_BYTES = 12 * 1024, /* headers and buffers of one; it is cleared for each request, so be brief */
    GOODBYE_TURNS_MAX = 16, /* turns of the loop after the drain, for replies that fit the socket */
    HURRIED_MS = 5000,      /* to read a reply while others wait for its room */
    DRAIN_LOOK_MS = 100     /* between two looks, during the drain, for clients that are gone */
};

/* ---- exchanges ----------------------------------------------------------------------------------------- */

/* "req-" and a random UUID (version 4). Unique, not secret. */
static void write_id(rt_rng *rng, char id[RT_EXCHANGE_ID_LEN + 1]) {
    static const char DIGITS[] = "0123456789abcdef";
    const uint64_t halves[2] = {(rt_rng_next(rng) & ~UINT64_C(0xf000)) | UINT64_C(0x4000),
                                (rt_rng_next(rng) & ~(UINT64_C(3) << 62)) | (UINT64_C(2) << 62)};
    static const char SHAPE[] = "req-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    _Static_assert(sizeof SHAPE == RT_EXCHANGE_ID_LEN + 1, "the shape is the id's");
    unsigned digit = 0;
    for (size_t i = 0; i < sizeof SHAPE; i++) {
        id[i] = SHAPE[i];
        if (SHAPE[i] != 'x') continue;
        id[i] = DIGITS[(halves[digit / 16] >> (60 - 4 * (digit % 16))) & 15];
        digit++;
    }
}

rt_exchange *rt_server_take_exchange(rt_server *s, struct MHD_Connection *connection) {
    rt_exchange *x = s->spare;
    if (x != NULL) {
        s->spare = x->next;
        s->spare_count--;
        x->next = NULL;
    } else {
        x = calloc(1, sizeof *x);
        if (x == NULL) return NULL;
        x->returns = &s->returns;
        x->room = &s->room;
    }
    x->connection = connection;
    x->may_wait = !s->cfg.reads_wait;
    write_id(&s->rng, x->id);
    return x;
}

void rt_server_recycle(rt_server *s, rt_exchange *x) {
    s->body_bytes -= x->body.len;
    if (s->spare_count == SPARE_EXCHANGES_MAX) {
        rt_exchange_free(x);
        return;
    }
    rt_exchange_reset(x);
    x->next = s->spare;
    s->spare = x;
    s->spare_count++;
}

void rt_server_refuse(rt_server *s, rt_exchange *x, unsigned status, rt_str why) {
    atomic_fetch_add_explicit(&s->refused, 1, memory_order_relaxed);
    if (status == 503) rt_exchange_set_header(x, "Retry-After", RT_STR("1"));
    x->match.face->refuse(x, status, why);
    RT_ASSERT(x->replied);
}

bool rt_exchange_is_gone(const rt_exchange *x) {
    char byte;
    if (x->connection == NULL) return true; // LATE
    const int fd = MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    const ssize_t bytes = recv(fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
    return bytes == 0 || (bytes < 0 && errno != EAGAIN && errno != EINTR);
}

static void came_back(rt_server *s) {
    s->out_count--;
    atomic_store_explicit(&s->suspended, s->out_count, memory_order_relaxed);
}

static bool is_impatient(const rt_exchange *x) { return (x->match.route->flags & RT_IMPATIENT) != 0; }

void rt_server_await(rt_server *s, rt_peer *peer, const rt_exchange *x) {
    rt_deadline_set(is_impatient(x) ? &s->impatient : &s->out, &peer->wait, s->now_mono_ms);
}

void rt_server_hand(rt_server *s, rt_exchange *x) {
    x->moves = false;
    if (rt_readers_hand(s->readers, x)) return;
    rt_server_refuse(s, x, 503, RT_STR("Too many requests are waiting to be read."));
    rt_exchange_resume(x);
}

static void finish(rt_exchange *x) {
    if (x->replied) return; // by a reader
    rt_finish_fn *fn = x->finish;
    rt_exchange_finish(x);
    if (x->moves) x->finish = fn;
}

static void take_back(rt_server *s, rt_exchange *x) {
    x->may_wait = !s->cfg.reads_wait;
    finish(x);
    if (x->moves && x->stage == RT_STAGE_OUT) { // LATE: nobody wants to know any more
        rt_server_hand(s, x);
        return;
    }
    if (!x->replied && !x->moves && x->finish != NULL) { // it was suspended once more, for as long again
        if (x->stage != RT_STAGE_OUT) return;
        rt_peer *peer =
            MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
        rt_server_await(s, peer, x);
        return;
    }
    came_back(s);
    if (x->stage == RT_STAGE_LATE) {
        rt_server_recycle(s, x);
        return;
    }
    RT_ASSERT(x->stage == RT_STAGE_OUT);
    RT_ASSERT(x->replied);
    x->stage = RT_STAGE_REPLIED;
    MHD_resume_connection(x->connection); // which has rt_intake_access called, and that sends the reply
}

static void take_all_back(rt_server *s) {
    for (rt_exchange *x = rt_returns_take(&s->returns); x != NULL;) {
        rt_exchange *next = x->next;
        take_back(s, x);
        x = next;
    }
}

/* Answers the client of an exchange that is OUT through another one: the first is still in somebody's hands,
 * who may be writing to it. */
static void answer_late(rt_server *s, rt_peer *peer) {
    rt_exchange *x = peer->x;
    RT_ASSERT(x->stage == RT_STAGE_OUT);
    rt_exchange *stand_in = rt_server_take_exchange(s, x->connection);
    rt_deadline_clear(&peer->wait);
    x->stage = RT_STAGE_LATE;
    x->connection = NULL;
    atomic_store_explicit(&x->late, true, memory_order_relaxed);
    peer->x = stand_in;
    if (stand_in == NULL) {
        s->active--;
        MHD_resume_connection(peer->connection); // rt_intake_access then closes it
        return;
    }
    memcpy(stand_in->id, x->id, sizeof x->id);
    stand_in->match.face = x->match.face;
    stand_in->match.route = x->match.route;
    stand_in->method = rt_arena_dup(&stand_in->arena, x->method);
    stand_in->path = rt_arena_dup(&stand_in->arena, x->path);
    stand_in->started_mono_us = x->started_mono_us;
    atomic_store_explicit(&stand_in->late, true, memory_order_relaxed);
    if (is_impatient(x)) x->match.route->handler(stand_in);
    else rt_server_refuse(s, stand_in, 503, RT_STR("The request took too long and may still be carried out."));
    RT_ASSERT(stand_in->replied);
    stand_in->stage = RT_STAGE_REPLIED;
    MHD_resume_connection(peer->connection);
}

/* ---- the loop ------------------------------------------------------------------------------------------ */

/* libmicrohttpd sees the end of the connection and tidies up. */
static void cut_off(rt_server *s, rt_peer *peer) {
    if (peer->wait.list != &s->idle) atomic_fetch_add_explicit(&s->refused, 1, memory_order_relaxed);
    rt_deadline_clear(&peer->wait);
    (void)shutdown(peer->fd, SHUT_RDWR);
}

static void cut_off_list(rt_server *s, rt_deadlines *list, int64_t now_mono_ms) {
    rt_deadline *d;
    while ((d = rt_deadlines_over(list, now_mono_ms)) != NULL) cut_off(s, (rt_peer *)d);
}

static void answer_list(rt_server *s, rt_deadlines *list) {
    rt_deadline *d;
    while ((d = rt_deadlines_over(list, s->now_mono_ms)) != NULL) answer_late(s, (rt_peer *)d);
}

/* How much earlier than else those are cut off who have not read their reply. */
static int64_t hurry_ms(const rt_server *s) {
    const size_t bytes = atomic_load_explicit(&s->room.bytes, memory_order_relaxed);
    const bool crowded = bytes > s->room.bytes_max / 4 * 3;
    return crowded && s->sending.limit_ms > HURRIED_MS ? s->sending.limit_ms - HURRIED_MS : 0;
}

void rt_server_make_room(rt_server *s) {
    size_t bytes = atomic_load_explicit(&s->room.bytes, memory_order_relaxed);
    for (rt_deadline *d = s->sending.first; d != NULL && bytes > s->room.bytes_max;) {
        rt_peer *peer = (rt_peer *)d;
        d = d->after;
        if (peer->x->room_bytes == 0) continue;
        bytes -= peer->x->room_bytes;
        cut_off(s, peer);
    }
}

static void enforce_deadlines(rt_server *s) {
    cut_off_list(s, &s->idle, s->now_mono_ms);
    cut_off_list(s, &s->receiving, s->now_mono_ms);
    cut_off_list(s, &s->sending, s->now_mono_ms + hurry_ms(s));
    answer_list(s, &s->out);
    answer_list(s, &s->impatient);
}

static int wait_ms(const rt_server *s, int64_t until_mono_ms) {
    MHD_UNSIGNED_LONG_LONG daemon_ms;
    int64_t ms = INT32_MAX;
    if (MHD_get_timeout(s->daemon, &daemon_ms) == MHD_YES && daemon_ms < INT32_MAX) ms = (int64_t)daemon_ms;
    const rt_deadlines *lists[] = {&s->idle, &s->receiving, &s->out, &s->impatient, &s->sending};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const int64_t at = rt_deadlines_next_ms(lists[i]) - (lists[i] == &s->sending ? hurry_ms(s) : 0);
        if (at < until_mono_ms) until_mono_ms = at;
    }
    if (until_mono_ms - s->now_mono_ms < ms) ms = until_mono_ms - s->now_mono_ms;
    if (s->draining && ms > DRAIN_LOOK_MS) ms = DRAIN_LOOK_MS;
    return ms < 0 ? 0 : (int)ms;
}

/* libmicrohttpd overlooks that a connection has ended where that came along with the last bytes: it reads no further until
 * something new comes. A request that will never be whole must not hold up the drain. */
static void cut_off_gone(rt_server *s) {
    for (rt_deadline *d = s->receiving.first; d != NULL;) {
        rt_peer *peer = (rt_peer *)d;
        char byte;
        d = d->after;
        if (recv(peer->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) cut_off(s, peer);
    }
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
    take_all_back(s);
    enforce_deadlines(s);
    if (s->draining) cut_off_gone(s);
    // Last: what was resumed, cut off or given room to above, libmicrohttpd sees only when it is run.
    s->has_room_again = false;
    return MHD_run(s->daemon) == MHD_YES ? RT_OK : rt_fail(err, RT_E_IO, 0, "libmicrohttpd stopped");
}

static void stop_daemon(rt_server *s) {
    if (s->daemon == NULL) return;
    // libmicrohttpd wants no suspended connections when it stops.
    while (s->out.first != NULL) answer_late(s, (rt_peer *)s->out.first);
    while (s->impatient.first != NULL) answer_late(s, (rt_peer *)s->impatient.first);
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
        take_all_back(s);
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
