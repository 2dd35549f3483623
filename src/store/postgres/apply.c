#include "store/postgres/apply.h"

#include <errno.h>
#include <inttypes.h>

#include "store/postgres/load.h"
#include "store/postgres/node/sums.h"
#include "store/postgres/txn.h"

static const char *const WHAT[RT_PG_PART_COUNT] = {
    [RT_PG_JOBS] = "job",      [RT_PG_QUEUES] = "queue", [RT_PG_LEASES] = "lease",
    [RT_PG_DOCS] = "document", [RT_PG_EVENTS] = "event", [RT_PG_BODIES] = "body",
    [RT_PG_COUNTERS] = "counter",
};

/* One op in the same words for every kind of record. */
typedef struct writing {
    rt_pg_part part;
    uint64_t key;
    rt_doc_kind kind;
    rt_str name;
    bool was, now;
    uint64_t was_version, now_version;
} writing;

#define VERSIONS(w, n) \
    .was = (w) != NULL, .now = (n) != NULL, .was_version = (w) != NULL ? (w)->version : 0, \
    .now_version = (n) != NULL ? (n)->version : 0

static writing writing_of(const rt_op *op) {
    switch (op->kind) {
    case RT_OP_JOB:
        return (writing){.part = RT_PG_JOBS,
                         .key = (op->job.was != NULL ? op->job.was : op->job.now)->id,
                         VERSIONS(op->job.was, op->job.now)};
    case RT_OP_QUEUE:
        return (writing){.part = RT_PG_QUEUES,
                         .key = (op->queue.was != NULL ? op->queue.was : op->queue.now)->id,
                         VERSIONS(op->queue.was, op->queue.now)};
    case RT_OP_LEASE:
        return (writing){.part = RT_PG_LEASES,
                         .key = (op->lease.was != NULL ? op->lease.was : op->lease.now)->id,
                         VERSIONS(op->lease.was, op->lease.now)};
    case RT_OP_DOC: {
        const rt_doc *doc = op->doc.was != NULL ? op->doc.was : op->doc.now;
        return (writing){
            .part = RT_PG_DOCS, .kind = doc->kind, .name = doc->name, VERSIONS(op->doc.was, op->doc.now)};
    }
    case RT_OP_BODY:
        return (writing){.part = RT_PG_BODIES, .key = op->body.id, .now = true, .now_version = 1};
    case RT_OP_EVENT:
        return (writing){.part = RT_PG_EVENTS, .key = op->event->seq, .now = true, .now_version = 1};
    }
    return (writing){.part = RT_PG_PART_COUNT};
}

static rt_pg_record *record_of(rt_pg *s, const writing *w) {
    return w->part == RT_PG_DOCS ? rt_pg_know_doc(&s->batch, w->kind, w->name)
                                 : rt_pg_know(&s->batch, w->part, w->key);
}

static rt_code no_memory(rt_err *err) { return rt_fail(err, RT_E_NOMEM, ENOMEM, "change"); }

/* ---- what has to be known ------------------------------------------------------------------------------ */

/* Decisions read what they write, so all is known already; but for what comes into being, and what only a
 * body's number is known of. */
static bool want_if_unknown(rt_pg *s, rt_pg_record *r) {
    return r != NULL && (r->known || rt_pg_want(&s->batch, r));
}

static bool want_body(rt_pg *s, const rt_op *op) {
    const rt_job *now = op->kind == RT_OP_JOB && op->job.was == NULL ? op->job.now : NULL;
    if (now == NULL || now->body == 0 || now->state == RT_JOB_DONE) return true;
    return want_if_unknown(s, rt_pg_know(&s->batch, RT_PG_BODIES, now->body));
}

static rt_code make_known(rt_pg *s, const rt_change *change, rt_err *err) {
    bool good = true;
    for (uint32_t i = 0; i < change->guards_count; i++) {
        const rt_guard *g = &change->guards[i];
        good = want_if_unknown(s, rt_pg_know_doc(&s->batch, g->kind, g->name)) && good;
    }
    for (uint32_t i = 0; i < change->ops_count; i++) {
        const writing w = writing_of(&change->ops[i]);
        rt_pg_record *r = record_of(s, &w);
        if (r == NULL) return no_memory(err);
        // Our own numbers are nobody else's: a record that is new here is new.
        const bool fresh = w.part == RT_PG_DOCS ? rt_pg_starts_fresh(&s->numbers, w.name)
                                                : rt_pg_is_fresh(&s->numbers, w.key);
        if (!w.was && (fresh || change->import != NULL)) r->known = true; // an import goes where nothing was
        good = want_if_unknown(s, r) && good;
    }
    for (uint32_t i = 0; i < change->ops_count && change->import == NULL; i++)
        good = want_body(s, &change->ops[i]) && good;
    return good ? rt_pg_load(s, err) : no_memory(err);
}

/* ---- comparing ----------------------------------------------------------------------------------------- */

static rt_code too_large(rt_err *err, const char *what, int max) {
    return rt_fail(err, RT_E_TOO_LARGE, 0, "%s has at most %d bytes", what, max);
}

static rt_code check_size(const rt_op *op, rt_err *err) {
    if (op->kind == RT_OP_BODY && op->body.bytes.len > RT_BODY_BYTES_MAX)
        return too_large(err, "a body", RT_BODY_BYTES_MAX);
    if (op->kind == RT_OP_QUEUE && op->queue.now != NULL && op->queue.now->name.len > RT_QUEUE_NAME_MAX)
        return too_large(err, "a queue's name", RT_QUEUE_NAME_MAX);
    if (op->kind != RT_OP_DOC) return RT_OK;
    const rt_doc *doc = op->doc.was != NULL ? op->doc.was : op->doc.now;
    if (doc->name.len < 1 || doc->name.len > RT_DOC_NAME_MAX)
        return rt_fail(err, RT_E_TOO_LARGE, 0, "a document's name has 1 to %d bytes", RT_DOC_NAME_MAX);
    const bool large = op->doc.now != NULL && op->doc.now->value.len > RT_DOC_VALUE_MAX;
    return large ? too_large(err, "a document", RT_DOC_VALUE_MAX) : RT_OK;
}

/* What a job may become; an engine that breaks this has a bug. */
static rt_code check_job(rt_pg *s, const rt_job *was, const rt_job *now, bool import, rt_err *err) {
    if (now == NULL) return RT_OK;
    rt_pg_record *body = now->body == 0 ? NULL : rt_pg_find(&s->batch, RT_PG_BODIES, now->body);
    if (body != NULL) body->named = true;
    const bool pull = (now->flags & RT_JOB_PULL) != 0;
    RT_ASSERT(now->id != 0 && now->queue != 0);
    RT_ASSERT(now->state > RT_JOB_NONE && now->state < RT_JOB_STATE_COUNT);
    RT_ASSERT(now->state != (pull ? RT_JOB_READY : RT_JOB_FREE));
    RT_ASSERT(now->reason < RT_REASON_COUNT);
    RT_ASSERT(now->due_ms >= 0);
    RT_ASSERT(was == NULL || was->state != RT_JOB_DONE || now->state == RT_JOB_DONE);
    RT_ASSERT(was == NULL || was->body == now->body || now->state == RT_JOB_DONE);
    if (now->state == RT_JOB_DONE && now->last_event == 0)
        return rt_fail(err, RT_E_INVALID, 0, "job %" PRIu64 " is done without an event", now->id);
    if (was != NULL || import || now->body == 0 || now->state == RT_JOB_DONE) return RT_OK;
    if (body != NULL && (body->there || body->coming)) return RT_OK;
    return rt_fail(err, RT_E_INVALID, 0, "a job names a body that is not there");
}

static rt_code check_op(rt_pg *s, const rt_op *op, bool import, rt_err *err) {
    const rt_code size = check_size(op, err);
    if (size != RT_OK) return size;
    const writing w = writing_of(op);
    rt_pg_record *r = record_of(s, &w);
    if (r == NULL) return no_memory(err);
    RT_ASSERT(w.was || w.now);
    const bool own = import && !w.was; // it brings its version with it
    RT_ASSERT(!w.now || (own ? w.now_version >= 1 : w.now_version == w.was_version + 1));
    if (!w.was && r->there) return rt_fail(err, RT_E_EXISTS, 0, "there is such a %s", WHAT[w.part]);
    if (w.was && (!r->there || rt_pg_version(r) != w.was_version))
        return rt_fail(err, RT_E_CONFLICT, 0, "a %s is not as it was read", WHAT[w.part]);
    if (op->kind == RT_OP_BODY) r->coming = true;
    return op->kind == RT_OP_JOB ? check_job(s, op->job.was, op->job.now, import, err) : RT_OK;
}

/* Bodies that the change brings must be named by its jobs; marks are taken off again. */
static rt_code check_bodies(rt_pg *s, const rt_change *change, rt_err *err) {
    rt_code code = RT_OK;
    for (uint32_t i = 0; i < change->ops_count; i++) {
        const rt_op *op = &change->ops[i];
        const rt_job *now = op->kind == RT_OP_JOB ? op->job.now : NULL;
        const rt_id body = op->kind == RT_OP_BODY ? op->body.id : now != NULL ? now->body : 0;
        rt_pg_record *r = body == 0 ? NULL : rt_pg_find(&s->batch, RT_PG_BODIES, body);
        if (r == NULL) continue;
        if (r->coming && !r->named && change->import == NULL)
            code = rt_fail(err, RT_E_INVALID, 0, "a body that no job of its change names");
        r->coming = r->named = false;
    }
    return code;
}

static rt_code check(rt_pg *s, const rt_change *change, rt_err *err) {
    rt_code code = RT_OK;
    for (uint32_t i = 0; i < change->guards_count && code == RT_OK; i++) {
        const rt_guard *g = &change->guards[i];
        const rt_pg_record *r = rt_pg_find_doc(&s->batch, g->kind, g->name);
        RT_ASSERT(r != NULL);
        if ((r->there ? r->doc.version : 0) != g->version)
            code = rt_fail(err, RT_E_CONFLICT, 0, "a document is not as it was read");
    }
    for (uint32_t i = 0; i < change->ops_count && code == RT_OK; i++)
        code = check_op(s, &change->ops[i], change->import != NULL, err);
    rt_err unused;
    const rt_code bodies = check_bodies(s, change, code == RT_OK ? err : &unused);
    return code != RT_OK ? code : bodies;
}

/* ---- taking note --------------------------------------------------------------------------------------- */

static bool use_body(rt_pg *s, const rt_job *job, int64_t more) {
    if (job == NULL || job->body == 0 || job->state == RT_JOB_DONE) return true;
    rt_pg_record *r = rt_pg_know(&s->batch, RT_PG_BODIES, job->body);
    if (r == NULL || !rt_pg_touch(&s->batch, r)) return false;
    r->more += more;
    if (!r->known) return true;
    r->body.users += more;
    r->there = r->body.users > 0;
    return true;
}

static bool note_job(rt_pg *s, rt_pg_record *r, const rt_job *was, const rt_job *now, bool import) {
    const rt_job before = was != NULL ? *was : (rt_job){0}; // `was` may lie in what is written here
    const bool goes = now == NULL;
    const rt_job after = goes ? (rt_job){0} : *now;
    if (!goes) r->job = after;
    if (!goes && after.state == RT_JOB_FREE) rt_pg_front_freed(&s->fronts, after.queue, after.id);
    if (!goes && (after.state == RT_JOB_READY || after.state == RT_JOB_FREE)) s->batch.shout = true;
    if (!rt_pg_count(&s->batch, was != NULL ? &before : NULL, goes ? NULL : &after)) return false;
    return import || (use_body(s, goes ? NULL : &after, 1) && use_body(s, was != NULL ? &before : NULL, -1));
}

static bool keep_text(rt_pg *s, rt_str *text) {
    *text = rt_arena_dup(&s->batch.arena, *text);
    return text->ptr != NULL;
}

static bool note_doc(rt_pg *s, rt_pg_record *r, const rt_doc *now) {
    if (now == NULL) return true;
    const rt_str name = r->doc.name; // is ours already
    r->doc = *now;
    r->doc.name = name;
    return keep_text(s, &r->doc.value);
}

static bool note_event(rt_pg *s, rt_pg_record *r, const rt_event *event) {
    r->event = *event;
    s->history.count++;
    if (event->at_ms < s->history.oldest_ms) s->history.oldest_ms = event->at_ms;
    if (r->event.text.len > RT_EVENT_TEXT_MAX) r->event.text.len = RT_EVENT_TEXT_MAX;
    return keep_text(s, &r->event.text) && rt_pg_count_events(&s->batch, 1);
}

static bool note_value(rt_pg *s, rt_pg_record *r, const rt_op *op, bool import) {
    switch (op->kind) {
    case RT_OP_JOB: return note_job(s, r, op->job.was, op->job.now, import);
    case RT_OP_QUEUE:
        s->batch.shout = true;
        if (op->queue.now != NULL) r->queue = *op->queue.now;
        return op->queue.now == NULL || keep_text(s, &r->queue.name);
    case RT_OP_LEASE:
        if (op->lease.now != NULL) r->lease = *op->lease.now;
        return true;
    case RT_OP_DOC: return note_doc(s, r, op->doc.now);
    case RT_OP_BODY:
        r->body = (rt_pg_body){.id = op->body.id, .bytes = op->body.bytes};
        r->made = true;
        if (import) r->body.users = (int64_t)op->body.users;
        return keep_text(s, &r->body.bytes);
    case RT_OP_EVENT: return note_event(s, r, op->event);
    }
    return false;
}

static bool note_op(rt_pg *s, const rt_op *op, bool import) {
    const writing w = writing_of(op);
    rt_pg_record *r = record_of(s, &w);
    if (r == NULL || !rt_pg_touch(&s->batch, r)) return false;
    const bool good = note_value(s, r, op, import);
    if (import || op->kind != RT_OP_BODY) r->there = w.now; // a body is there as long as it has users
    return good;
}

/* The flush tells the database. */
static void adopt(rt_pg *s, const rt_import *import) {
    const uint64_t ids_from = import->ids_from & RT_PG_SEQUENCE_MASK;
    s->batch.adopts = true;
    s->batch.tag = import->tag;
    s->batch.numbers_from = ids_from > import->seqs_from ? ids_from : import->seqs_from;
    if (s->numbers.least < s->batch.numbers_from) s->numbers.least = s->batch.numbers_from;
}

rt_code rt_pg_apply(rt_pg *s, const rt_change *change, rt_err *err) {
    RT_ASSERT(change->ops_count <= RT_CHANGE_OPS_MAX);
    RT_ASSERT(change->guards_count <= RT_CHANGE_GUARDS_MAX);
    rt_pg_batch *b = &s->batch;
    if (s->numbers.failed) {
        const rt_err why = {.code = RT_E_UNAVAILABLE, .msg = "PostgreSQL: no numbers for new records"};
        rt_pg_batch_break(s, &why);
    }
    if (b->broken) return rt_fail(err, RT_E_UNAVAILABLE, 0, "%s", b->why.msg);
    rt_code code = make_known(s, change, err);
    if (code == RT_OK) code = check(s, change, err);
    if (code != RT_OK) return code;
    bool good = true;
    if (change->import != NULL) adopt(s, change->import);
    for (uint32_t i = 0; i < change->guards_count && good; i++) {
        rt_pg_record *r = rt_pg_find_doc(b, change->guards[i].kind, change->guards[i].name);
        if (!r->guarded) good = rt_pg_push(&b->guarded, r);
        r->guarded = true;
    }
    for (uint32_t i = 0; i < change->ops_count && good; i++)
        good = note_op(s, &change->ops[i], change->import != NULL);
    if (good) return RT_OK;
    const rt_err why = {.code = RT_E_NOMEM, .sys_errno = ENOMEM, .msg = "out of memory"};
    rt_pg_batch_break(s, &why);
    return rt_fail(err, RT_E_UNAVAILABLE, ENOMEM, "out of memory");
}
