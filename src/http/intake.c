/* intake.c: from what libmicrohttpd calls to a handler, and from a reply to libmicrohttpd. API thread. */
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "http/framing.h"
#include "http/server_parts.h"
#include "http/uri.h"
#include "os/clock.h"

enum {
    TARGET_BYTES_MAX = 8192,
    DISCARD_BYTES_MAX = 8 * 1024 * 1024, /* of a refused body are read, so that the client gets to read why */
    BODIES_BYTES_MAX = 256 * 1024 * 1024 /* of all bodies in memory */
};

/* ---- connections and requests come and go -------------------------------------------------------------- */

static void end_request(rt_server *s, rt_peer *peer) {
    if (peer->x == NULL) return;
    // A suspended connection never ends: it is resumed first.
    RT_ASSERT(peer->x->stage != RT_STAGE_OUT);
    rt_server_recycle(s, peer->x);
    peer->x = NULL;
    s->active--;
}

void rt_intake_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what) {
    rt_server *s = cls;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (s->open_count == s->cfg.connections_max) s->has_room_again = true;
        s->open_count--;
        rt_peer *gone = *context;
        *context = NULL;
        if (gone == NULL) return;
        rt_deadline_clear(&gone->wait);
        end_request(s, gone); // libmicrohttpd does not complete each that it began
        free(gone);
        return;
    }
    s->open_count++;
    atomic_fetch_add_explicit(&s->connections, 1, memory_order_relaxed);
    rt_peer *peer = calloc(1, sizeof *peer);
    *context = peer;
    if (peer == NULL) return; // its first request ends it
    peer->connection = connection;
    peer->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    rt_deadline_set(&s->idle, &peer->wait, s->now_mono_ms);
}

/* libmicrohttpd takes the query apart next, each argument into an entry of the connection's memory, and when that does
 * not suffice it neither answers nor ends the connection. Nobody asks for its arguments, uri.c has a copy of its own: so
 * in its buffer, which it is about to cut up itself, the query becomes a single argument. */
static void join_query(const char *target) {
    char *at = strchr((char *)(uintptr_t)target, '?');
    for (; at != NULL && *at != '\0'; at++) {
        if (*at == '&') *at = '.';
    }
}

void *rt_intake_target(void *cls, const char *target, struct MHD_Connection *connection) {
    rt_server *s = cls;
    rt_peer *peer = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    if (peer == NULL) return NULL;
    end_request(s, peer);
    rt_exchange *x = rt_server_take_exchange(s, connection);
    if (x == NULL) return peer;
    x->target = rt_arena_dup(&x->arena, rt_str_of(target));
    join_query(target);
    if (s->cfg.on_reply != NULL) x->started_mono_us = rt_mono_us();
    peer->x = x;
    s->active++;
    rt_deadline_set(&s->receiving, &peer->wait, s->now_mono_ms);
    return peer;
}

void rt_intake_completed(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode how) {
    (void)connection, (void)how;
    rt_server *s = cls;
    rt_peer *peer = *context;
    *context = NULL;
    if (peer == NULL || peer->x == NULL) return;
    end_request(s, peer);
    rt_deadline_set(&s->idle, &peer->wait, s->now_mono_ms);
}

/* Targets are taken apart by uri.c, from what rt_intake_target was given. */
size_t rt_intake_unescape(void *cls, struct MHD_Connection *connection, char *s) {
    (void)cls, (void)connection;
    return strlen(s);
}

/* ---- the head of a request ----------------------------------------------------------------------------- */

static void refuse_later(rt_exchange *x, unsigned status, rt_str why) {
    if (x->refusal != 0) return;
    x->refusal = status;
    x->refusal_why = why;
}

/* Behind a request that is not understood the next one cannot be found. */
static void refuse_for_good(rt_exchange *x, unsigned status, rt_str why) {
    refuse_later(x, status, why);
    x->closes = true;
}

typedef struct header_list {
    rt_pair pairs[RT_HEADERS_MAX];
    size_t count, bytes;
} header_list;

static enum MHD_Result add_header(void *cls, enum MHD_ValueKind kind, const char *name, size_t name_len,
                                  const char *value, size_t value_len) {
    (void)kind;
    header_list *list = cls;
    if (list->count == RT_HEADERS_MAX) return MHD_NO;
    rt_pair *pair = &list->pairs[list->count++];
    pair->name = (rt_str){.ptr = name, .len = name_len};
    pair->value = value == NULL ? RT_STR_EMPTY : (rt_str){.ptr = value, .len = value_len};
    list->bytes += name_len + value_len + 1;
    return MHD_YES;
}

/* Copies, so that nothing of an exchange hangs on its connection: the client may go while it is OUT. */
static void take_headers(rt_exchange *x) {
    header_list list;
    list.count = list.bytes = 0;
    rt_framing framing = {0};
    const int all = MHD_get_connection_values_n(x->connection, MHD_HEADER_KIND, add_header, &list);
    if ((size_t)all > list.count) refuse_for_good(x, 431, RT_STR("The request has too many headers."));
    x->headers = rt_arena_alloc(&x->arena, list.count * sizeof *x->headers);
    char *to = rt_arena_alloc(&x->arena, list.bytes + 1);
    if (x->headers == NULL || to == NULL) {
        refuse_later(x, 503, RT_STR("Out of memory."));
        return;
    }
    for (size_t i = 0; i < list.count; i++) {
        const rt_pair *from = &list.pairs[i];
        memcpy(to, from->name.ptr, from->name.len);
        memcpy(to + from->name.len, from->value.ptr, from->value.len);
        x->headers[i].name = (rt_str){.ptr = to, .len = from->name.len};
        x->headers[i].value = (rt_str){.ptr = to + from->name.len, .len = from->value.len};
        to += from->name.len + from->value.len + 1; // a NUL stays behind each value
        rt_framing_add(&framing, x->headers[i].name, x->headers[i].value);
        x->headers[i].value = rt_str_trim(x->headers[i].value);
    }
    x->headers_count = list.count;
    if (framing.trouble.len > 0) refuse_for_good(x, 400, framing.trouble);
}

static bool decode(rt_exchange *x, rt_str s, rt_str *out) {
    *out = s;
    if (s.len == 0 || (memchr(s.ptr, '%', s.len) == NULL && memchr(s.ptr, '+', s.len) == NULL)) return true;
    char *to = rt_arena_alloc(&x->arena, s.len + 1);
    if (to == NULL) return false;
    *out = (rt_str){.ptr = to, .len = rt_hex_unescape(s, true, to, s.len)};
    return true;
}

static void take_args(rt_exchange *x, rt_str query) {
    if (query.len == 0) return;
    rt_pair pairs[RT_ARGS_MAX];
    size_t count = 0;
    rt_str name, value;
    while (rt_uri_next_arg(&query, &name, &value)) {
        if (count == RT_ARGS_MAX) {
            refuse_later(x, 400, RT_STR("The request has too many query parameters."));
            return;
        }
        if (!decode(x, name, &pairs[count].name) || !decode(x, value, &pairs[count].value)) {
            refuse_later(x, 503, RT_STR("Out of memory."));
            return;
        }
        count++;
    }
    x->args = rt_arena_alloc(&x->arena, count * sizeof *x->args);
    if (x->args == NULL) {
        refuse_later(x, 503, RT_STR("Out of memory."));
        return;
    }
    memcpy(x->args, pairs, count * sizeof *pairs);
    x->args_count = count;
}

/* A target that cannot be taken apart still has a face to refuse it: that of what precedes the trouble. */
static rt_str readable_part(rt_str target) {
    size_t len = 0;
    while (len < target.len && target.ptr[len] != '%' && target.ptr[len] != '?') len++;
    return (rt_str){.ptr = target.ptr, .len = len};
}

static void take_target(rt_server *s, rt_exchange *x) {
    rt_uri uri = {.path = readable_part(x->target), .query = RT_STR_EMPTY};
    rt_err err;
    if (x->target.ptr == NULL) {
        refuse_later(x, 503, RT_STR("Out of memory."));
    } else if (x->target.len > TARGET_BYTES_MAX) {
        refuse_later(x, 414, RT_STR("The request's target is too long."));
    } else if (rt_uri_split(x->target, &uri, &err) != RT_OK) {
        const rt_str why = rt_arena_dup(&x->arena, rt_str_of(err.msg));
        refuse_later(x, 400, why.ptr == NULL ? RT_STR("The request's target is malformed.") : why);
    }
    x->path = uri.path;
    if (rt_router_match(s->router, x->method, uri.path, &x->arena, &x->match) != RT_OK) {
        refuse_later(x, 503, RT_STR("Out of memory."));
    }
    if (x->refusal != 0) return;
    if (memchr(uri.path.ptr, '%', uri.path.len) != NULL) {
        char *to = rt_arena_alloc(&x->arena, uri.path.len + 1);
        if (to == NULL) refuse_later(x, 503, RT_STR("Out of memory."));
        else x->path = (rt_str){.ptr = to, .len = rt_hex_unescape(uri.path, false, to, uri.path.len)};
    }
    take_args(x, uri.query);
}

static void announce_body(rt_server *s, rt_exchange *x) {
    rt_str text;
    int64_t bytes = 0;
    x->content_length = 0;
    if (rt_exchange_header(x, "Transfer-Encoding", &text)) {
        x->has_body = true;
        x->content_length = UINT64_MAX;
    } else if (rt_exchange_header(x, "Content-Length", &text)) {
        x->has_body = true;
        if (rt_str_to_i64(text, &bytes) && bytes >= 0) x->content_length = (uint64_t)bytes;
        else refuse_for_good(x, 400, RT_STR("The Content-Length is not a number."));
    }
    if (x->content_length != UINT64_MAX && x->content_length > s->cfg.body_bytes_max) {
        refuse_later(x, 413, RT_STR("The request's body is too large."));
    }
}

/* ---- the reply ----------------------------------------------------------------------------------------- */

static bool add_headers(const rt_server *s, struct MHD_Response *response, const rt_exchange *x) {
    bool ok = MHD_add_response_header(response, "x-openstack-request-id", x->id) == MHD_YES;
    if (x->content_type.ptr != NULL) {
        // In lower case, as HTTP/2 has all names: some clients compare them as they stand.
        ok = MHD_add_response_header(response, "content-type", x->content_type.ptr) == MHD_YES && ok;
    }
    if (s->draining || x->closes) {
        ok = MHD_add_response_header(response, "Connection", "close") == MHD_YES && ok;
    }
    for (const rt_reply_header *h = x->reply_headers; h != NULL; h = h->next) {
        ok = MHD_add_response_header(response, h->name.ptr, h->value.ptr) == MHD_YES && ok;
    }
    return ok;
}

/* MHD_NO: the connection is closed, since there is no memory to say anything. */
static enum MHD_Result send_reply(rt_server *s, rt_peer *peer, rt_exchange *x) {
    x->stage = RT_STAGE_REPLIED;
    // The body lives in the exchange until rt_intake_completed.
    struct MHD_Response *response =
        MHD_create_response_from_buffer(x->reply.len, x->reply.ptr, MHD_RESPMEM_PERSISTENT);
    if (response == NULL) return MHD_NO;
    enum MHD_Result sent = MHD_NO;
    if (!x->reply_failed && add_headers(s, response, x)) {
        rt_deadline_set(&s->sending, &peer->wait, s->now_mono_ms);
        sent = MHD_queue_response(x->connection, x->status, response);
    }
    MHD_destroy_response(response);
    if (x->crowded) atomic_fetch_add_explicit(&s->refused, 1, memory_order_relaxed);
    if (s->cfg.on_reply != NULL) {
        s->cfg.on_reply(s->cfg.ctx, x, x->status, rt_mono_us() - x->started_mono_us);
    }
    // Whoever reads slowly holds the reply, not what it was made of.
    s->body_bytes -= x->body.len;
    rt_exchange_let_go(x);
    if (x->room_bytes > 0) rt_server_make_room(s);
    return sent;
}

/* ---- the request is whole ------------------------------------------------------------------------------ */

static void go_out(rt_server *s, rt_peer *peer, rt_exchange *x) {
    x->stage = RT_STAGE_OUT;
    s->out_count++;
    atomic_store_explicit(&s->suspended, s->out_count, memory_order_relaxed);
    rt_server_await(s, peer, x);
    MHD_suspend_connection(x->connection);
}

/* The handler has replied or suspended when this returns true; false: a reader has it. */
static bool handle(rt_server *s, rt_exchange *x) {
    const rt_face *face = x->match.face;
    if (x->match.kind == RT_MATCH_NONE) {
        face->not_found(x);
        return true;
    }
    if (x->match.kind == RT_MATCH_OPTIONS) {
        rt_exchange_set_header(x, "Allow", x->match.allow);
        rt_exchange_reply(x, 200, NULL, RT_STR_EMPTY);
        return true;
    }
    if (face->before != NULL) face->before(x);
    if (x->replied) return true;
    if (x->match.kind == RT_MATCH_METHOD) {
        face->not_allowed(x, x->match.allow);
        return true;
    }
    if (s->out_count >= s->cfg.suspended_max) {
        rt_server_refuse(s, x, 503, RT_STR("Too many requests are under way."));
        return true;
    }
    if ((x->match.route->flags & RT_ON_READER) != 0) return false;
    x->match.route->handler(x);
    return !x->moves;
}

static enum MHD_Result dispatch(rt_server *s, rt_peer *peer, rt_exchange *x) {
    atomic_fetch_add_explicit(&s->requests, 1, memory_order_relaxed);
    if (x->refusal != 0) {
        rt_server_refuse(s, x, x->refusal, x->refusal_why);
    } else if (!handle(s, x)) {
        go_out(s, peer, x);
        rt_server_hand(s, x);
        return MHD_YES;
    }
    if (x->replied) return send_reply(s, peer, x);
    RT_ASSERT(x->finish != NULL);
    go_out(s, peer, x);
    return MHD_YES;
}

static enum MHD_Result take_body(rt_server *s, rt_exchange *x, const char *data, size_t bytes) {
    if (x->refusal == 0 && x->body.len + bytes > s->cfg.body_bytes_max) {
        refuse_later(x, 413, RT_STR("The request's body is too large."));
    }
    if (x->refusal == 0 && s->body_bytes + bytes > BODIES_BYTES_MAX) {
        refuse_later(x, 503, RT_STR("Too many request bodies are in memory."));
    }
    if (x->refusal != 0) {
        x->discarded += bytes;
        return x->discarded > DISCARD_BYTES_MAX ? MHD_NO : MHD_YES;
    }
    rt_buf_add(&x->body, (rt_str){.ptr = data, .len = bytes});
    if (x->body.failed) refuse_later(x, 503, RT_STR("Out of memory."));
    else s->body_bytes += bytes;
    return MHD_YES;
}

enum MHD_Result rt_intake_access(void *cls, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *data_bytes, void **context) {
    (void)connection, (void)url, (void)version;
    rt_server *s = cls;
    rt_peer *peer = *context;
    if (peer == NULL || peer->x == NULL) return MHD_NO;
    rt_exchange *x = peer->x;
    if (x->stage == RT_STAGE_REPLIED) return send_reply(s, peer, x);
    if (x->stage == RT_STAGE_RECEIVING) {
        if (*data_bytes == 0) return dispatch(s, peer, x);
        const size_t bytes = *data_bytes;
        *data_bytes = 0;
        return take_body(s, x, data, bytes);
    }
    RT_ASSERT(x->stage == RT_STAGE_STARTED);
    x->stage = RT_STAGE_RECEIVING;
    x->method = rt_arena_dup(&x->arena, rt_str_of(method));
    if (x->method.ptr == NULL) return MHD_NO;
    take_target(s, x);
    take_headers(x);
    announce_body(s, x);
    // A body this long is not even read to the end; the connection ends with the reply.
    const bool is_huge = x->content_length != UINT64_MAX && x->content_length > DISCARD_BYTES_MAX;
    return x->closes || (x->refusal != 0 && is_huge) ? dispatch(s, peer, x) : MHD_YES;
}
