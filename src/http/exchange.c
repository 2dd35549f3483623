#include <stdlib.h>
#include <unistd.h>

#include "http/exchange_parts.h"

enum { KEPT_BUFFER_BYTES = 16 * 1024 };

/* ---- the request --------------------------------------------------------------------------------------- */

rt_str rt_exchange_method(const rt_exchange *x) { return x->method; }
rt_str rt_exchange_path(const rt_exchange *x) { return x->path; }
rt_str rt_exchange_body(const rt_exchange *x) { return rt_buf_str(&x->body); }
bool rt_exchange_has_body(const rt_exchange *x) { return x->has_body; }
rt_arena *rt_exchange_arena(rt_exchange *x) { return &x->arena; }
void *rt_exchange_app(const rt_exchange *x) { return x->match.face->app; }
const char *rt_exchange_id(const rt_exchange *x) { return x->id; }

rt_str rt_exchange_param(const rt_exchange *x, size_t i) {
    RT_ASSERT(i < x->match.params_count);
    return x->match.params[i];
}

bool rt_exchange_header(const rt_exchange *x, const char *name, rt_str *out) {
    const rt_str wanted = rt_str_of(name);
    for (size_t i = 0; i < x->headers_count; i++) {
        if (!rt_str_eq_nocase(x->headers[i].name, wanted)) continue;
        *out = x->headers[i].value;
        return true;
    }
    return false;
}

bool rt_exchange_arg_at(const rt_exchange *x, size_t i, rt_str *name, rt_str *value) {
    if (i >= x->args_count) return false;
    *name = x->args[i].name;
    *value = x->args[i].value;
    return true;
}

bool rt_exchange_arg(const rt_exchange *x, const char *name, rt_str *value) {
    const rt_str wanted = rt_str_of(name);
    for (size_t i = x->args_count; i > 0; i--) {
        if (!rt_str_eq(x->args[i - 1].name, wanted)) continue;
        *value = x->args[i - 1].value;
        return true;
    }
    return false;
}

/* ---- the reply ----------------------------------------------------------------------------------------- */

void rt_exchange_set_header(rt_exchange *x, const char *name, rt_str value) {
    RT_ASSERT(!x->replied);
    rt_reply_header *h = x->reply_headers;
    while (h != NULL && !rt_str_eq_nocase(h->name, rt_str_of(name))) h = h->next;
    const bool is_new = h == NULL;
    if (is_new) h = rt_arena_alloc(&x->arena, sizeof *h);
    if (h != NULL) {
        h->name = rt_arena_dup(&x->arena, rt_str_of(name));
        h->value = rt_arena_dup(&x->arena, value);
    }
    if (h == NULL || h->name.ptr == NULL || h->value.ptr == NULL) {
        x->reply_failed = true;
        return;
    }
    if (!is_new) return;
    h->next = x->reply_headers;
    x->reply_headers = h;
}

/* False: there is none. What was done is never refused, only what was read: the client may read it again. */
static bool take_room(rt_exchange *x, size_t bytes) {
    if (bytes <= RT_SMALL_REPLY_BYTES) return true;
    const size_t others = atomic_fetch_add_explicit(&x->room->bytes, bytes, memory_order_relaxed);
    x->room_bytes = bytes;
    const bool reads = rt_str_eq(x->method, RT_STR("GET")) || rt_str_eq(x->method, RT_STR("HEAD"));
    return !reads || others + bytes <= x->room->bytes_max;
}

static void leave_room(rt_exchange *x) {
    if (x->room_bytes > 0) atomic_fetch_sub_explicit(&x->room->bytes, x->room_bytes, memory_order_relaxed);
    x->room_bytes = 0;
}

static void refuse_for_room(rt_exchange *x) {
    leave_room(x);
    x->crowded = true;
    x->reply_headers = NULL;
    rt_exchange_set_header(x, "Retry-After", RT_STR("1"));
    x->match.face->refuse(x, 503, RT_STR("Too many replies are in memory, unread."));
}

static void set_reply(rt_exchange *x, unsigned status, const char *content_type) {
    RT_ASSERT(!x->replied);
    x->replied = true;
    x->status = status;
    if (content_type == NULL) return;
    x->content_type = rt_arena_dup(&x->arena, rt_str_of(content_type));
    if (x->content_type.ptr == NULL) x->reply_failed = true;
}

void rt_exchange_reply(rt_exchange *x, unsigned status, const char *content_type, rt_str body) {
    if (!take_room(x, body.len)) {
        refuse_for_room(x);
        return;
    }
    set_reply(x, status, content_type);
    rt_buf_clear(&x->reply);
    rt_buf_add(&x->reply, body);
    if (x->reply.failed) x->reply_failed = true;
}

void rt_exchange_reply_buf(rt_exchange *x, unsigned status, const char *content_type, rt_buf *body) {
    if (!take_room(x, body->cap)) {
        rt_buf_deinit(body);
        refuse_for_room(x);
        return;
    }
    set_reply(x, status, content_type);
    rt_buf_deinit(&x->reply);
    x->reply = *body;
    *body = (rt_buf){0};
    if (x->reply.failed) x->reply_failed = true;
}

/* ---- suspending ---------------------------------------------------------------------------------------- */

void rt_exchange_suspend(rt_exchange *x, rt_finish_fn *finish, void *ctx) {
    RT_ASSERT(!x->replied);
    RT_ASSERT(finish != NULL);
    x->finish = finish;
    x->finish_ctx = ctx;
    if (x->left != NULL) *x->left = true;
    x->left = NULL;
}

void *rt_exchange_ctx(const rt_exchange *x) { return x->finish_ctx; }

bool rt_exchange_is_late(const rt_exchange *x) {
    return atomic_load_explicit(&x->late, memory_order_relaxed);
}

bool rt_exchange_moves(rt_exchange *x) {
    RT_ASSERT(!x->replied);
    x->moves = !x->may_wait;
    return x->moves;
}

void rt_exchange_finish(rt_exchange *x) {
    rt_finish_fn *fn = x->finish;
    RT_ASSERT(fn != NULL);
    x->finish = NULL;
    fn(x);
}

void rt_exchange_resume(rt_exchange *x) {
    rt_returns *r = x->returns;
    rt_exchange *newest = atomic_load_explicit(&r->newest, memory_order_relaxed);
    do {
        x->next = newest;
    } while (!atomic_compare_exchange_weak_explicit(&r->newest, &newest, x, memory_order_release,
                                                    memory_order_relaxed));
    // From here on the API thread may have taken and freed it.
    if (newest != NULL) return;
    rt_returns_wake(r);
}

void rt_returns_wake(rt_returns *r) {
    const uint64_t one = 1;
    (void)!write(r->fd, &one, sizeof one); // can fail only when it is readable already
}

bool rt_returns_empty(rt_returns *r) {
    return atomic_load_explicit(&r->newest, memory_order_relaxed) == NULL;
}

rt_exchange *rt_returns_take(rt_returns *r) {
    rt_exchange *x = atomic_exchange_explicit(&r->newest, NULL, memory_order_acquire);
    rt_exchange *oldest = NULL;
    while (x != NULL) {
        rt_exchange *next = x->next;
        x->next = oldest;
        oldest = x;
        x = next;
    }
    return oldest;
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static void reset_buffer(rt_buf *b) {
    rt_buf_clear(b);
    if (b->cap > KEPT_BUFFER_BYTES) rt_buf_deinit(b);
}

void rt_exchange_let_go(rt_exchange *x) {
    rt_arena_clear(&x->arena);
    reset_buffer(&x->body);
    const rt_arena arena = x->arena;
    const rt_buf body = x->body, reply = x->reply;
    *x = (rt_exchange){.returns = x->returns, .room = x->room, .connection = x->connection, .stage = x->stage,
                       .arena = arena, .body = body, .reply = reply, .room_bytes = x->room_bytes};
}

void rt_exchange_reset(rt_exchange *x) {
    leave_room(x);
    rt_exchange_let_go(x);
    reset_buffer(&x->reply);
    x->connection = NULL;
    x->stage = RT_STAGE_STARTED;
}

void rt_exchange_free(rt_exchange *x) {
    if (x == NULL) return;
    leave_room(x);
    rt_arena_deinit(&x->arena);
    rt_buf_deinit(&x->body);
    rt_buf_deinit(&x->reply);
    free(x);
}
