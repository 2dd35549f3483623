#include "store/copy/copy.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/pack.h"

enum { NOTE_FORMAT = 1, POLL_MS = 1000, LOAD_ROUNDS_MAX = 8 };

typedef struct copying {
    rt_store *from, *to;
    rt_import import;
    rt_census census; /* of the source */
    rt_walk at;
    uint64_t done;    /* records */
    uint64_t batch_no;
    uint64_t version; /* of the note; 0: there is none */
    rt_buf note;      /* its value */
    rt_arena arena;   /* what the next change writes */
    rt_op *ops;       /* [RT_WALK_RECORDS_MAX + 1] */
    uint32_t ops_count;
    bool ended;       /* an earlier call had copied everything */
    bool failed;      /* memory ran out while gathering */
    rt_copy_tell *tell;
    void *ctx;
} copying;

/* ---- the check ----------------------------------------------------------------------------------------- */

static void tell_counting(void *ctx, uint64_t done) {
    const copying *c = ctx;
    c->tell(c->ctx, RT_COPY_COUNTING, done, 0);
}

static void tell_checking(void *ctx, uint64_t done) {
    const copying *c = ctx;
    c->tell(c->ctx, RT_COPY_CHECKING, done, c->census.records);
}

/* The target's own sums too: listings and limits go by them. */
static rt_code check_counts(copying *c, rt_err *err) {
    rt_view *v = NULL;
    rt_code code = rt_store_view(c->to, &v, err);
    if (code != RT_OK) return code;
    rt_counts sums = {0};
    code = rt_view_counts(v, 0, &sums);
    rt_view_close(v);
    if (code != RT_OK) return rt_fail(err, code, 0, "the target's counters cannot be read");
    const uint64_t *jobs = c->census.jobs;
    const bool same = (uint64_t)sums.ready == jobs[RT_JOB_READY] && (uint64_t)sums.scheduled == jobs[RT_JOB_SCHEDULED] &&
                      (uint64_t)sums.free == jobs[RT_JOB_FREE] && (uint64_t)sums.leased == jobs[RT_JOB_LEASED] &&
                      (uint64_t)sums.dead == jobs[RT_JOB_DEAD] && (uint64_t)sums.done == jobs[RT_JOB_DONE];
    return same ? RT_OK : rt_fail(err, RT_E_CORRUPT, 0, "the target's counters do not say what it holds");
}

static rt_code check(copying *c, rt_err *err) {
    rt_census target;
    rt_code code = check_counts(c, err); // the cheaper one
    if (code == RT_OK) code = rt_census_take(c->to, &target, tell_checking, c, err);
    return code == RT_OK ? rt_census_compare(&c->census, &target, err) : code;
}

/* ---- the note: how far it is --------------------------------------------------------------------------- */

static void write_note(copying *c) {
    rt_buf_clear(&c->note);
    rt_pack_u32(&c->note, NOTE_FORMAT);
    rt_pack_str(&c->note, (rt_str){.ptr = (const char *)c->census.digest, .len = sizeof c->census.digest});
    rt_pack_u64(&c->note, c->done);
    rt_pack_u8(&c->note, (uint8_t)c->at.part);
    rt_pack_u8(&c->note, (uint8_t)c->at.kind);
    rt_pack_u64(&c->note, c->at.after);
    rt_pack_str(&c->note, (rt_str){.ptr = c->at.name, .len = c->at.name_len});
}

static rt_code read_note(copying *c, rt_str value, rt_err *err) {
    rt_unpack u = {.rest = value};
    const uint32_t format = rt_unpack_u32(&u);
    const rt_str digest = rt_unpack_str(&u);
    c->done = rt_unpack_u64(&u);
    c->at.part = rt_unpack_u8(&u);
    c->at.kind = rt_unpack_u8(&u);
    c->at.after = rt_unpack_u64(&u);
    const rt_str name = rt_unpack_str(&u);
    const bool good = !u.failed && format == NOTE_FORMAT && c->at.part <= RT_WALK_END &&
                      c->at.kind < RT_DOC_KIND_COUNT && name.len <= RT_DOC_NAME_MAX;
    if (!good) return rt_fail(err, RT_E_INVALID, 0, "the target holds a migration of another version of retryd");
    c->at.name_len = name.len;
    if (name.len > 0) memcpy(c->at.name, name.ptr, name.len);
    const rt_str own = {.ptr = (const char *)c->census.digest, .len = sizeof c->census.digest};
    if (rt_str_eq(digest, own)) return RT_OK;
    return rt_fail(err, RT_E_INVALID, 0,
                   "the target holds a part of another store, or the source has changed since: begin with an empty target");
}

/* RT_E_ABSENT: there is none. The value is lent by the view. */
static rt_code find_note(rt_view *v, rt_doc *out) {
    return rt_view_doc(v, RT_WALK_NOTE_KIND, RT_WALK_NOTE_NAME, out);
}

static bool stop_at_first(void *ctx, const rt_op *record) {
    (void)record;
    *(bool *)ctx = true;
    return false;
}

static rt_code find_any(copying *c, bool *found, rt_err *err) {
    rt_walk at = {0};
    return rt_walk_step(&at, c->to, stop_at_first, found, err);
}

/* Where the copy goes on. RT_E_ABSENT: no note. */
static rt_code go_on(copying *c, rt_err *err) {
    rt_view *v = NULL;
    rt_code code = rt_store_view(c->to, &v, err);
    if (code != RT_OK) return code;
    rt_doc note;
    code = find_note(v, &note);
    if (code == RT_OK) {
        c->version = note.version;
        code = read_note(c, note.value, err);
        rt_buf_clear(&c->note);
        rt_buf_add(&c->note, note.value);
    } else if (code != RT_E_ABSENT) {
        code = rt_fail(err, code, 0, "the target cannot be read: %s", rt_code_name(code));
    }
    rt_view_close(v);
    return code;
}

/* Looks for records before it looks for the note: what a process that was killed committed last may arrive between the
 * two, and brings its note along. Records without a note are somebody's own, or a copy that came to its end. */
static rt_code find_place(copying *c, rt_err *err) {
    bool found = false;
    rt_code code = find_any(c, &found, err);
    if (code == RT_OK) code = go_on(c, err);
    if (code != RT_E_ABSENT) return code;
    if (!found) return RT_OK;
    code = check(c, err);
    if (code == RT_E_CORRUPT) return rt_fail(err, RT_E_INVALID, 0, "the target is not empty");
    c->ended = code == RT_OK;
    return code;
}

rt_code rt_copy_check_whole(rt_store *store, rt_err *err) {
    rt_view *v = NULL;
    const rt_code code = rt_store_view(store, &v, err);
    if (code != RT_OK) return code;
    rt_doc note;
    const rt_code found = find_note(v, &note);
    rt_view_close(v);
    if (found == RT_E_ABSENT) return RT_OK;
    if (found != RT_OK) return rt_fail(err, found, 0, "the store cannot be read: %s", rt_code_name(found));
    return rt_fail(err, RT_E_INVALID, 0,
                   "the store is the target of a migration that did not come to its end: run retryctl migrate-store again");
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static rt_code finish_batch(copying *c, rt_err *err) {
    uint64_t no = 0;
    rt_batch_end end = RT_BATCH_FAILED;
    *err = (rt_err){.code = RT_OK};
    rt_store_commit(c->to, ++c->batch_no);
    while (!rt_store_poll(c->to, &no, &end, err)) {
        struct pollfd ready = {.fd = c->to->fd, .events = POLLIN}; // fd -1 is passed over
        (void)poll(&ready, 1, POLL_MS);
    }
    if (end == RT_BATCH_DURABLE) return RT_OK;
    if (end == RT_BATCH_CONFLICT) return rt_fail(err, RT_E_CONFLICT, 0, "somebody else writes to the target");
    return err->code != RT_OK ? err->code : RT_E_IO;
}

/* The batch must know the note that it writes over. */
static rt_code load_note(copying *c, rt_err *err) {
    rt_doc unused;
    for (int i = 0; i < LOAD_ROUNDS_MAX; i++) {
        rt_view *batch = rt_store_batch(c->to, err);
        if (batch == NULL) return RT_E_UNAVAILABLE;
        if (find_note(batch, &unused) != RT_E_AGAIN) return RT_OK;
        const rt_code code = rt_store_load(c->to, err);
        if (code != RT_OK) return code;
    }
    return rt_fail(err, RT_E_UNAVAILABLE, 0, "the target does not answer");
}

/* Writes what was gathered together with the note; `last`: the note goes. */
static rt_code write_change(copying *c, bool last, rt_err *err) {
    const rt_str old = rt_arena_dup(&c->arena, rt_buf_str(&c->note));
    if (!last) write_note(c);
    if (c->note.failed || old.ptr == NULL) return rt_fail(err, RT_E_NOMEM, 0, "migration");
    rt_doc was = {.kind = RT_WALK_NOTE_KIND, .name = RT_WALK_NOTE_NAME, .version = c->version, .value = old};
    rt_doc now = was;
    now.version++;
    now.value = rt_buf_str(&c->note);
    c->ops[c->ops_count++] =
        (rt_op){.kind = RT_OP_DOC, .doc = {.was = c->version > 0 ? &was : NULL, .now = last ? NULL : &now}};
    const rt_change change = {.ops = c->ops, .ops_count = c->ops_count, .import = &c->import};
    rt_code code = load_note(c, err);
    if (code == RT_OK) code = rt_store_apply(c->to, &change, err);
    if (code != RT_OK) {
        rt_store_abandon(c->to);
        return code;
    }
    c->version++;
    return finish_batch(c, err);
}

/* ---- gathering ----------------------------------------------------------------------------------------- */

static const void *keep(copying *c, const void *record, size_t bytes) {
    void *copy = rt_arena_alloc(&c->arena, bytes);
    if (copy != NULL) memcpy(copy, record, bytes);
    return copy;
}

static bool keep_str(copying *c, rt_str *s) {
    *s = rt_arena_dup(&c->arena, *s);
    return s->ptr != NULL;
}

/* The record as it will be written: its view is closed by then. */
static bool keep_record(copying *c, rt_op *op, const rt_op *record) {
    switch (record->kind) {
    case RT_OP_BODY: return keep_str(c, &op->body.bytes);
    case RT_OP_LEASE: return (op->lease.now = keep(c, record->lease.now, sizeof(rt_lease))) != NULL;
    case RT_OP_JOB: return (op->job.now = keep(c, record->job.now, sizeof(rt_job))) != NULL;
    case RT_OP_QUEUE: {
        rt_queue queue = *record->queue.now;
        return keep_str(c, &queue.name) && (op->queue.now = keep(c, &queue, sizeof queue)) != NULL;
    }
    case RT_OP_DOC: {
        rt_doc doc = *record->doc.now;
        return keep_str(c, &doc.name) && keep_str(c, &doc.value) && (op->doc.now = keep(c, &doc, sizeof doc)) != NULL;
    }
    case RT_OP_EVENT: {
        rt_event event = *record->event;
        return keep_str(c, &event.text) && (op->event = keep(c, &event, sizeof event)) != NULL;
    }
    }
    return false;
}

static bool gather(void *ctx, const rt_op *record) {
    copying *c = ctx;
    rt_op *op = &c->ops[c->ops_count++];
    *op = *record;
    c->done++;
    c->failed = !keep_record(c, op, record);
    return !c->failed;
}

static rt_code move_all(copying *c, rt_err *err) {
    rt_code code = RT_OK;
    c->tell(c->ctx, RT_COPY_COPYING, c->done, c->census.records);
    while (code == RT_OK && c->at.part != RT_WALK_END) {
        rt_arena_clear(&c->arena);
        c->ops_count = 0;
        code = rt_walk_step(&c->at, c->from, gather, c, err);
        if (code == RT_OK && c->failed) code = rt_fail(err, RT_E_NOMEM, 0, "migration");
        if (code == RT_OK) code = write_change(c, false, err);
        c->tell(c->ctx, RT_COPY_COPYING, c->done, c->census.records);
    }
    return code;
}

static rt_code end(copying *c, rt_err *err) {
    const rt_code code = check(c, err);
    c->ops_count = 0;
    return code == RT_OK ? write_change(c, true, err) : code;
}

rt_code rt_copy_store(rt_store *from, rt_store *to, rt_copy_tell *tell, void *ctx, rt_census *out, rt_err *err) {
    copying c = {.from = from, .to = to, .tell = tell, .ctx = ctx};
    rt_code code = rt_copy_check_whole(from, err);
    if (code != RT_OK) return rt_fail(err, code, 0, "the source is not whole: it is the target of another migration");
    c.ops = calloc(RT_WALK_RECORDS_MAX + 1, sizeof *c.ops);
    if (c.ops == NULL) return rt_fail(err, RT_E_NOMEM, 0, "migration");
    code = rt_census_take(from, &c.census, tell_counting, &c, err);
    c.import = (rt_import){.tag = from->tag, .ids_from = rt_store_new_id(from), .seqs_from = rt_store_new_seq(from)};
    rt_store_abandon(from); // a store that fetches numbers may have begun a batch for it
    if (code == RT_OK) code = find_place(&c, err);
    if (code == RT_OK && !c.ended) code = move_all(&c, err);
    if (code == RT_OK && !c.ended) code = end(&c, err);
    if (code == RT_OK) *out = c.census;
    rt_buf_deinit(&c.note);
    rt_arena_deinit(&c.arena);
    free(c.ops);
    return code;
}
