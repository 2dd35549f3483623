/* under_way.c: requests under way: taken from those to spare, handed to others and taken back, answered or cut off when
 * their time is over. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "http/server_parts.h"

enum {
    SPARE_EXCHANGES_MAX = 1024,
    HURRIED_MS = 5000 /* to read a reply while others wait for its room */
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

void rt_server_take_all_back(rt_server *s) {
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

/* ---- deadlines ----------------------------------------------------------------------------------------- */

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

void rt_server_enforce_deadlines(rt_server *s) {
    cut_off_list(s, &s->idle, s->now_mono_ms);
    cut_off_list(s, &s->receiving, s->now_mono_ms);
    cut_off_list(s, &s->sending, s->now_mono_ms + hurry_ms(s));
    answer_list(s, &s->out);
    answer_list(s, &s->impatient);
}

int64_t rt_server_next_deadline_ms(const rt_server *s) {
    const rt_deadlines *lists[] = {&s->idle, &s->receiving, &s->out, &s->impatient, &s->sending};
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const int64_t at = rt_deadlines_next_ms(lists[i]) - (lists[i] == &s->sending ? hurry_ms(s) : 0);
        if (at < next) next = at;
    }
    return next;
}

void rt_server_answer_all(rt_server *s) {
    while (s->out.first != NULL) answer_late(s, (rt_peer *)s->out.first);
    while (s->impatient.first != NULL) answer_late(s, (rt_peer *)s->impatient.first);
}

/* libmicrohttpd overlooks that a connection has ended where that came along with the last bytes: it reads no further
 * until something new comes. A request that will never be whole must not hold up the drain. */
void rt_server_cut_off_gone(rt_server *s) {
    for (rt_deadline *d = s->receiving.first; d != NULL;) {
        rt_peer *peer = (rt_peer *)d;
        d = d->after;
        if (rt_exchange_is_gone(peer->x)) cut_off(s, peer);
    }
}
