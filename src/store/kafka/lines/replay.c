#include "store/kafka/lines/replay.h"

#include <errno.h>

#include "store/lmdb/store_lmdb.h"

typedef struct replay {
    rt_store *local;
    rt_view *view; /* its open batch */
    rt_arena *arena;
    rt_err *err;
} replay;

static rt_code refuse(const replay *r, const char *why) {
    return rt_fail(r->err, RT_E_CONFLICT, 0, "%s", why);
}
static rt_code no_memory(const replay *r) {
    return rt_fail(r->err, RT_E_NOMEM, ENOMEM, "a line of the journal");
}

/* What the local store takes for granted of a job, since only an engine with a bug would break it. */
static bool is_sane(const rt_job *was, const rt_job *now) {
    const bool pull = (now->flags & RT_JOB_PULL) != 0;
    if (now->state == (pull ? RT_JOB_READY : RT_JOB_FREE) || now->due_ms < 0 || now->queue == 0) return false;
    if (was == NULL) return true;
    return (was->state != RT_JOB_DONE || now->state == RT_JOB_DONE) &&
           (was->body == now->body || now->state == RT_JOB_DONE);
}

/* The record that was read for the decision, if it still is the one. */
#define OLD(read, type) \
    do { \
        type *was = rt_arena_alloc(r->arena, sizeof *was); \
        if (was == NULL) return no_memory(r); \
        const rt_code found = (read); \
        if (found == RT_E_ABSENT || (found == RT_OK && was->version != from->was_version)) \
            return refuse(r, "a " #type " is not as it was read"); \
        if (found != RT_OK) return rt_fail(r->err, found, 0, "a " #type " cannot be read"); \
        old = was; \
    } while (0)

static rt_code read_old(const replay *r, const rt_entry_op *from, const void **out) {
    const void *old = NULL;
    switch (from->kind) {
    case RT_OP_JOB: OLD(rt_view_job(r->view, from->key, was), rt_job); break;
    case RT_OP_QUEUE: OLD(rt_view_queue(r->view, from->key, was), rt_queue); break;
    case RT_OP_LEASE: OLD(rt_view_lease(r->view, from->key, was), rt_lease); break;
    case RT_OP_DOC: OLD(rt_view_doc(r->view, from->doc_kind, from->name, was), rt_doc); break;
    case RT_OP_BODY:
    case RT_OP_EVENT: break;
    }
    *out = old;
    return RT_OK;
}

/* `from` lives as long as the change. */
static rt_code make_op(const replay *r, const rt_entry_op *from, rt_op *out) {
    const void *was = NULL;
    if (from->was) {
        const rt_code code = read_old(r, from, &was);
        if (code != RT_OK) return code;
    }
    *out = (rt_op){.kind = from->kind};
    switch (from->kind) {
    case RT_OP_JOB:
        out->job.was = was;
        out->job.now = from->now ? &from->job : NULL;
        if (from->now && !is_sane(was, &from->job)) return refuse(r, "no job is like that");
        break;
    case RT_OP_QUEUE:
        out->queue.was = was;
        out->queue.now = from->now ? &from->queue : NULL;
        break;
    case RT_OP_LEASE:
        out->lease.was = was;
        out->lease.now = from->now ? &from->lease : NULL;
        break;
    case RT_OP_DOC:
        out->doc.was = was;
        out->doc.now = from->now ? &from->doc : NULL;
        break;
    case RT_OP_BODY:
        out->body.id = from->key;
        out->body.bytes = from->body.bytes;
        out->body.users = from->body.users;
        break;
    case RT_OP_EVENT: out->event = &from->event; break;
    }
    return RT_OK;
}

/* Is this refusal the same at each node? */
static bool is_refusal(rt_code code) {
    return code == RT_E_CONFLICT || code == RT_E_EXISTS || code == RT_E_INVALID || code == RT_E_TOO_LARGE;
}

static rt_code replay_change(const replay *r, const rt_entry_item *item, rt_unpack *u) {
    rt_guard guards[RT_CHANGE_GUARDS_MAX];
    rt_entry_op *from = rt_arena_alloc(r->arena, (item->ops + 1) * sizeof *from);
    rt_op *ops = rt_arena_alloc(r->arena, (item->ops + 1) * sizeof *ops);
    if (from == NULL || ops == NULL) return no_memory(r);
    for (uint32_t i = 0; i < item->guards; i++) {
        if (!rt_entry_read_guard(u, &guards[i])) return refuse(r, "no guard is like that");
    }
    for (uint32_t i = 0; i < item->ops; i++) {
        if (!rt_entry_read_op(u, item, &from[i])) return refuse(r, "no op is like that");
        const rt_code code = make_op(r, &from[i], &ops[i]);
        if (code != RT_OK) return code;
    }
    // Whether there is room was asked where it was decided: it must not be refused here and taken there.
    const rt_change change = {.guards = guards,
                              .guards_count = item->guards,
                              .ops = ops,
                              .ops_count = item->ops,
                              .import = item->imports ? &item->import : NULL,
                              .frees = true};
    const rt_code code = rt_store_apply(r->local, &change, r->err);
    return is_refusal(code) ? RT_E_CONFLICT : code;
}

rt_code rt_replay(rt_store *local, rt_str items, rt_arena *arena, uint32_t *tag, rt_err *err) {
    const replay r = {.local = local, .view = rt_store_batch(local, err), .arena = arena, .err = err};
    if (r.view == NULL) return RT_E_UNAVAILABLE;
    rt_unpack u = {.rest = items};
    rt_entry_item item;
    rt_code code = RT_OK;
    while (code == RT_OK && rt_entry_next(&u, &item)) {
        if (item.is_tidy)
            (void)rt_store_lmdb_tidy(local, &item.bounds, item.now_ms, item.ops_max, NULL, NULL);
        else code = replay_change(&r, &item, &u);
        if (code == RT_OK && item.imports) *tag = item.import.tag;
        rt_arena_clear(arena);
    }
    if (code == RT_OK && u.failed) code = rt_fail(err, RT_E_CONFLICT, 0, "this is no batch");
    return code;
}
