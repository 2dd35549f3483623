#include "store/memory/apply.h"

#include <string.h>

/* A change on its way into an image. */
typedef struct writing {
    const rt_image *before; /* what the change was decided on */
    rt_image *image;
    rt_arena *records;
    bool import;
} writing;

static rt_code no_memory(rt_err *err) { return rt_fail(err, RT_E_NOMEM, 0, "memory store"); }

/* ---- copies: records live as long as the disk ---------------------------------------------------------- */

static const void *keep(rt_arena *records, const void *record, size_t bytes) {
    void *copy = rt_arena_alloc(records, bytes);
    if (copy != NULL) memcpy(copy, record, bytes);
    return copy;
}

static bool keep_str(rt_arena *records, rt_str *s) {
    *s = rt_arena_dup(records, *s);
    return s->ptr != NULL;
}

static const rt_queue *keep_queue(rt_arena *records, const rt_queue *queue) {
    rt_queue copy = *queue;
    return keep_str(records, &copy.name) ? keep(records, &copy, sizeof copy) : NULL;
}

static const rt_doc *keep_doc(rt_arena *records, const rt_doc *doc) {
    rt_doc copy = *doc;
    if (!keep_str(records, &copy.name) || !keep_str(records, &copy.value)) return NULL;
    return keep(records, &copy, sizeof copy);
}

static const rt_event *keep_event(rt_arena *records, const rt_event *event) {
    rt_event copy = *event;
    if (copy.text.len > RT_EVENT_TEXT_MAX) copy.text.len = RT_EVENT_TEXT_MAX;
    return keep_str(records, &copy.text) ? keep(records, &copy, sizeof copy) : NULL;
}

/* ---- compare ------------------------------------------------------------------------------------------- */

typedef struct versions {
    bool import;
    bool was, now; /* named by the op */
    uint64_t was_version, now_version;
    bool there; /* in the image */
    uint64_t there_version;
} versions;

/* The same three questions for every kind of record that has a version. */
#define VERSIONS(x, w, n, t) \
    { \
        .import = (x)->import, .was = (w) != NULL, .was_version = (w) != NULL ? (w)->version : 0, \
        .now = (n) != NULL, .now_version = (n) != NULL ? (n)->version : 0, \
        .there = (t) != NULL, .there_version = (t) != NULL ? (t)->version : 0 \
    }

static rt_code compare(const versions *v, const char *what, rt_err *err) {
    RT_ASSERT(v->was || v->now);
    const bool own = v->import && !v->was; // it brings its version with it
    if (v->now) RT_ASSERT(own ? v->now_version >= 1 : v->now_version == v->was_version + 1);
    if (!v->was) return v->there ? rt_fail(err, RT_E_EXISTS, 0, "%s exists", what) : RT_OK;
    if (v->there && v->there_version == v->was_version) return RT_OK;
    return rt_fail(err, RT_E_CONFLICT, 0, "%s changed", what);
}

static rt_code check_guards(const rt_image *image, const rt_change *change, rt_err *err) {
    for (uint32_t i = 0; i < change->guards_count; i++) {
        const rt_guard *guard = &change->guards[i];
        const rt_doc *doc = rt_image_find_doc(image, guard->kind, guard->name);
        if ((doc == NULL ? 0 : doc->version) != guard->version) {
            return rt_fail(err, RT_E_CONFLICT, 0, "document changed");
        }
    }
    return RT_OK;
}

/* ---- write --------------------------------------------------------------------------------------------- */

static rt_code too_large(rt_err *err, const char *what) {
    return rt_fail(err, RT_E_TOO_LARGE, 0, "the length of %s is out of bounds", what);
}

/* What a job may be at all: an engine that breaks this has a bug, and stores would file the job wrongly. */
static void check_job(const rt_job *job) {
    const bool pull = (job->flags & RT_JOB_PULL) != 0;
    RT_ASSERT(job->id != 0);
    RT_ASSERT(job->queue != 0);
    RT_ASSERT(job->state > RT_JOB_NONE && job->state < RT_JOB_STATE_COUNT);
    RT_ASSERT(job->reason < RT_REASON_COUNT);
    RT_ASSERT(!pull || job->state != RT_JOB_READY);
    RT_ASSERT(pull || job->state != RT_JOB_FREE);
    RT_ASSERT(job->due_ms >= 0);
}

static rt_code check_insert(const rt_image *image, const rt_job *job, rt_err *err) {
    const bool needs_body = job->body != 0 && job->state != RT_JOB_DONE;
    if (!needs_body || rt_image_find(image, RT_PART_BODIES, job->body) != NULL) return RT_OK;
    return rt_fail(err, RT_E_INVALID, 0, "a job names a body that is not there");
}

static rt_code apply_job(const writing *w, const rt_op *op, rt_err *err) {
    const rt_job *was = op->job.was;
    const rt_job *now = op->job.now;
    const rt_id id = was != NULL ? was->id : now->id;
    const rt_job *there = rt_image_find(w->image, RT_PART_JOBS, id);
    RT_ASSERT(rt_image_find(w->before, RT_PART_JOBS, id) == there); // written once in a change
    const versions v = VERSIONS(w, was, now, there);
    rt_code code = compare(&v, "job", err);
    if (code == RT_OK && was == NULL && !w->import) code = check_insert(w->image, now, err);
    if (code != RT_OK) return code;
    if (now != NULL && now->state == RT_JOB_DONE && now->last_event == 0) {
        return rt_fail(err, RT_E_INVALID, 0, "a job that is done has no event that could take it away");
    }
    // Stores derive their index entries from `was`: the version alone being right would leave some behind.
    if (was != NULL) RT_ASSERT(memcmp(was, there, sizeof *was) == 0);
    if (now != NULL) {
        RT_ASSERT(now->id == id);
        RT_ASSERT(was == NULL || now->state == RT_JOB_DONE || was->body == now->body);
        check_job(now);
    }
    const void *copy = now == NULL ? NULL : keep(w->records, now, sizeof *now);
    if (now != NULL && copy == NULL) return no_memory(err);
    if (!rt_image_put(w->image, RT_PART_JOBS, id, copy)) return no_memory(err);
    const bool used = was != NULL && was->body != 0 && was->state != RT_JOB_DONE;
    const bool uses = now != NULL && now->state != RT_JOB_DONE;
    if (!used || uses || rt_image_users(w->image, was->body) > 0) return RT_OK;
    return rt_image_put(w->image, RT_PART_BODIES, was->body, NULL) ? RT_OK : no_memory(err);
}

static rt_code apply_queue(const writing *w, const rt_op *op, rt_err *err) {
    const rt_queue *was = op->queue.was;
    const rt_queue *now = op->queue.now;
    const rt_id id = was != NULL ? was->id : now->id;
    const rt_queue *there = rt_image_find(w->image, RT_PART_QUEUES, id);
    RT_ASSERT(rt_image_find(w->before, RT_PART_QUEUES, id) == there); // written once in a change
    const versions v = VERSIONS(w, was, now, there);
    const rt_code code = compare(&v, "queue", err);
    if (code != RT_OK) return code;
    RT_ASSERT(now == NULL || now->id == id);
    if (now != NULL && now->name.len > RT_QUEUE_NAME_MAX) return too_large(err, "a queue's name");
    const rt_queue *copy = now == NULL ? NULL : keep_queue(w->records, now);
    if (now != NULL && copy == NULL) return no_memory(err);
    return rt_image_put(w->image, RT_PART_QUEUES, id, copy) ? RT_OK : no_memory(err);
}

static rt_code apply_lease(const writing *w, const rt_op *op, rt_err *err) {
    const rt_lease *was = op->lease.was;
    const rt_lease *now = op->lease.now;
    const rt_id id = was != NULL ? was->id : now->id;
    const rt_lease *there = rt_image_find(w->image, RT_PART_LEASES, id);
    RT_ASSERT(rt_image_find(w->before, RT_PART_LEASES, id) == there); // written once in a change
    const versions v = VERSIONS(w, was, now, there);
    const rt_code code = compare(&v, "lease", err);
    if (code != RT_OK) return code;
    RT_ASSERT(was == NULL || was->until_ms == there->until_ms);
    RT_ASSERT(now == NULL || (now->id == id && now->jobs_count <= RT_LEASE_JOBS_MAX));
    const void *copy = now == NULL ? NULL : keep(w->records, now, sizeof *now);
    if (now != NULL && copy == NULL) return no_memory(err);
    return rt_image_put(w->image, RT_PART_LEASES, id, copy) ? RT_OK : no_memory(err);
}

static rt_code apply_doc(const writing *w, const rt_op *op, rt_err *err) {
    const rt_doc *was = op->doc.was;
    const rt_doc *now = op->doc.now;
    const rt_doc *named = was != NULL ? was : now;
    if (named->name.len < 1 || named->name.len > RT_DOC_NAME_MAX) return too_large(err, "a document's name");
    if (now != NULL && now->value.len > RT_DOC_VALUE_MAX) return too_large(err, "a document");
    const rt_doc *there = rt_image_find_doc(w->image, named->kind, named->name);
    RT_ASSERT(rt_image_find_doc(w->before, named->kind, named->name) == there); // written once in a change
    const versions v = VERSIONS(w, was, now, there);
    const rt_code code = compare(&v, "document", err);
    if (code != RT_OK) return code;
    RT_ASSERT(was == NULL || was->expires_ms == there->expires_ms);
    RT_ASSERT(now == NULL || (now->kind == named->kind && rt_str_eq(now->name, named->name)));
    const rt_doc *copy = now == NULL ? NULL : keep_doc(w->records, now);
    if (now != NULL && copy == NULL) return no_memory(err);
    // The row to replace is looked for by name: `named` may lie in the record that goes, which stays alive.
    return rt_image_put_doc(w->image, named->kind, named->name, copy) ? RT_OK : no_memory(err);
}

static rt_code apply_body(const writing *w, const rt_op *op, rt_err *err) {
    rt_image_body body = {.id = op->body.id, .bytes = op->body.bytes};
    RT_ASSERT(body.id != 0);
    if (body.bytes.len > RT_BODY_BYTES_MAX) return too_large(err, "a body");
    const bool there = rt_image_find(w->image, RT_PART_BODIES, body.id) != NULL;
    if (there) return rt_fail(err, RT_E_EXISTS, 0, "body exists");
    if (!keep_str(w->records, &body.bytes)) return no_memory(err);
    const void *copy = keep(w->records, &body, sizeof body);
    if (copy == NULL || !rt_image_put(w->image, RT_PART_BODIES, body.id, copy)) return no_memory(err);
    return RT_OK;
}

static rt_code apply_event(const writing *w, const rt_op *op, rt_err *err) {
    const uint64_t seq = op->event->seq;
    const bool there = rt_image_find(w->image, RT_PART_EVENTS, seq) != NULL;
    if (there) return rt_fail(err, RT_E_EXISTS, 0, "event exists");
    RT_ASSERT(seq > op->event->prev);
    const rt_event *copy = keep_event(w->records, op->event);
    if (copy == NULL || !rt_image_put(w->image, RT_PART_EVENTS, seq, copy)) return no_memory(err);
    return RT_OK;
}

static bool body_is_named(const rt_change *change, rt_id body) {
    for (uint32_t i = 0; i < change->ops_count; i++) {
        const rt_op *op = &change->ops[i];
        if (op->kind == RT_OP_JOB && op->job.now != NULL && op->job.now->body == body) return true;
    }
    return false;
}

rt_code rt_image_apply(const rt_image *before, rt_image *image, rt_arena *records, const rt_change *change,
                       rt_err *err) {
    const writing w = {.before = before, .image = image, .records = records, .import = change->import != NULL};
    RT_ASSERT(change->guards_count <= RT_CHANGE_GUARDS_MAX);
    RT_ASSERT(change->ops_count <= RT_CHANGE_OPS_MAX);
    rt_code code = check_guards(before, change, err);
    for (uint32_t i = 0; i < change->ops_count && code == RT_OK; i++) {
        const rt_op *op = &change->ops[i];
        switch (op->kind) {
        case RT_OP_JOB: code = apply_job(&w, op, err); break;
        case RT_OP_QUEUE: code = apply_queue(&w, op, err); break;
        case RT_OP_LEASE: code = apply_lease(&w, op, err); break;
        case RT_OP_DOC: code = apply_doc(&w, op, err); break;
        case RT_OP_BODY: code = apply_body(&w, op, err); break;
        case RT_OP_EVENT: code = apply_event(&w, op, err); break;
        }
    }
    for (uint32_t i = 0; i < change->ops_count && code == RT_OK; i++) {
        const rt_op *op = &change->ops[i];
        if (op->kind == RT_OP_BODY && !w.import && !body_is_named(change, op->body.id)) {
            code = rt_fail(err, RT_E_INVALID, 0, "a body that no job of its change names");
        }
    }
    return code;
}

/* ---- upkeep -------------------------------------------------------------------------------------------- */

static bool is_over(const rt_event *event, uint32_t newer, const rt_retention *bounds, int64_t now_ms) {
    return newer >= bounds->events || event->at_ms <= now_ms - bounds->age_ms;
}

rt_code rt_image_tidy(rt_image *image, const rt_retention *bounds, int64_t now_ms, uint32_t ops_max) {
    const uint32_t len = rt_image_len(image, RT_PART_EVENTS);
    uint32_t ops = 0;
    uint32_t gone = 0;
    bool more = false;
    while (gone < len) {
        const rt_event *event = rt_image_row(image, RT_PART_EVENTS, gone);
        if (!is_over(event, len - gone - 1, bounds, now_ms)) break;
        if (ops + 2 > ops_max) {
            more = true;
            break;
        }
        const rt_job *job = rt_image_find(image, RT_PART_JOBS, event->job);
        if (job != NULL && job->state == RT_JOB_DONE && job->last_event == event->seq) {
            if (!rt_image_put(image, RT_PART_JOBS, job->id, NULL)) return RT_E_NOMEM;
            ops++;
        }
        ops++;
        gone++;
    }
    if (!rt_image_cut_head(image, RT_PART_EVENTS, gone)) return RT_E_NOMEM;
    return more ? RT_E_AGAIN : RT_OK;
}
