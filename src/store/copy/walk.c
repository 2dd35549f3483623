#include "store/copy/walk.h"

#include <string.h>

typedef struct step {
    rt_walk *at;
    rt_walk_each *each;
    void *ctx;
    uint32_t records;
    size_t bytes;
    bool more; /* room for another record */
} step;

static bool tell(step *s, const rt_op *record, size_t bytes) {
    s->records++;
    s->bytes += bytes;
    const bool go_on = s->each(s->ctx, record);
    s->more = go_on && s->records < RT_WALK_RECORDS_MAX && s->bytes < RT_WALK_BYTES;
    return s->more;
}

static bool tell_body(void *ctx, rt_id id, rt_str bytes, uint64_t users) {
    step *s = ctx;
    s->at->after = id;
    return tell(s, &(rt_op){.kind = RT_OP_BODY, .body = {.id = id, .bytes = bytes, .users = users}}, bytes.len);
}

static bool tell_queue(void *ctx, const rt_queue *queue) {
    step *s = ctx;
    s->at->after = queue->id;
    return tell(s, &(rt_op){.kind = RT_OP_QUEUE, .queue = {.now = queue}}, queue->name.len);
}

static bool tell_lease(void *ctx, const rt_lease *lease) {
    step *s = ctx;
    s->at->after = lease->id;
    return tell(s, &(rt_op){.kind = RT_OP_LEASE, .lease = {.now = lease}}, sizeof *lease);
}

static bool tell_job(void *ctx, const rt_job *job) {
    step *s = ctx;
    s->at->after = job->id;
    return tell(s, &(rt_op){.kind = RT_OP_JOB, .job = {.now = job}}, sizeof *job);
}

static bool tell_event(void *ctx, const rt_event *event) {
    step *s = ctx;
    s->at->after = event->seq;
    return tell(s, &(rt_op){.kind = RT_OP_EVENT, .event = event}, sizeof *event + event->text.len);
}

static bool tell_doc(void *ctx, const rt_doc *doc) {
    step *s = ctx;
    RT_ASSERT(doc->name.len >= 1 && doc->name.len <= RT_DOC_NAME_MAX);
    memcpy(s->at->name, doc->name.ptr, doc->name.len);
    s->at->name_len = doc->name.len;
    if (doc->kind == RT_WALK_NOTE_KIND && rt_str_eq(doc->name, RT_WALK_NOTE_NAME)) return true;
    return tell(s, &(rt_op){.kind = RT_OP_DOC, .doc = {.now = doc}}, doc->name.len + doc->value.len);
}

/* The name where the listing begins is kept apart: the walk's own moves on meanwhile. */
static rt_code list_docs(step *s, rt_view *v) {
    char name[RT_DOC_NAME_MAX];
    const rt_str after = {.ptr = name, .len = s->at->name_len};
    memcpy(name, s->at->name, after.len);
    if (s->at->kind == RT_DOC_NONE) return RT_OK;
    return rt_view_docs(v, s->at->kind, RT_STR_EMPTY, after, tell_doc, s);
}

static rt_code list(step *s, rt_view *v) {
    const rt_walk *at = s->at;
    const rt_job_range every = {.index = RT_INDEX_EVERY, .after = at->after};
    switch (at->part) {
    case RT_WALK_BODIES: return rt_view_bodies(v, at->after, tell_body, s);
    case RT_WALK_QUEUES: return rt_view_queues(v, at->after, tell_queue, s);
    case RT_WALK_LEASES: return rt_view_leases(v, at->after, tell_lease, s);
    case RT_WALK_JOBS: return rt_view_jobs(v, &every, tell_job, s);
    case RT_WALK_EVENTS: return rt_view_events(v, at->after, tell_event, s);
    case RT_WALK_DOCS: return list_docs(s, v);
    case RT_WALK_END: break;
    }
    return RT_OK;
}

/* To the next list: part by part, of documents kind by kind. */
static void turn(rt_walk *at) {
    at->after = 0;
    at->name_len = 0;
    if (at->part == RT_WALK_DOCS && at->kind + 1 < RT_DOC_KIND_COUNT) at->kind++;
    else at->part++;
}

rt_code rt_walk_step(rt_walk *at, rt_store *store, rt_walk_each *each, void *ctx, rt_err *err) {
    rt_view *v = NULL;
    rt_code code = rt_store_view(store, &v, err);
    if (code != RT_OK) return code;
    if (v->ops->leases == NULL || v->ops->bodies == NULL)
        code = rt_fail(err, RT_E_INVALID, 0, "a store of this kind cannot be copied");
    step s = {.at = at, .each = each, .ctx = ctx, .more = true};
    while (code == RT_OK && s.more && at->part != RT_WALK_END) {
        code = list(&s, v);
        if (code != RT_OK) code = rt_fail(err, code, 0, "the store cannot be read: %s", rt_code_name(code));
        else if (s.more) turn(at);
    }
    rt_view_close(v);
    return code;
}
