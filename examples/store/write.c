/* write.c: a change, all or nothing, and upkeep.
 *
 * A change is a savepoint within the batch's transaction. Each statement compares and writes at once: a replacement or
 * deletion that meets no row with the image that was read is a conflict, an insertion that meets its key exists already,
 * and either way the savepoint is rolled back. */
#include <string.h>
#include <sys/statvfs.h>

#include "inside.h"

/* ---- how statements end ------------------------------------------------------------------------------------------ */

void sq_break(sq_store *s, int rc, const char *what) {
    if (s->broken) return;
    s->broken = true;
    (void)sq_fail(&s->why, s->batch.db, rc, what);
}

static rt_code trouble(sq_store *s, int rc, const char *what, rt_err *err) {
    sq_break(s, rc, what);
    return rt_fail(err, RT_E_UNAVAILABLE, s->why.sys_errno, "%s", s->why.msg);
}

/* How records of one kind are written. The statements share their values: those of the new image, or of the old one where
 * there is no new one, and last what is left of the old one to compare with. */
typedef struct record_sql {
    const char *name, *insert, *replace, *delete;
} record_sql;

static rt_code write_record(sq_store *s, const record_sql *sql, bool was, bool now, const sq_value *values, size_t count,
                            rt_err *err) {
    sqlite3 *db = s->batch.db;
    const int rc = sq_run(db, !was ? sql->insert : now ? sql->replace : sql->delete, values, count);
    if (!was && (rc & 0xff) == SQLITE_CONSTRAINT) return rt_fail(err, RT_E_EXISTS, 0, "there is such a %s", sql->name);
    if (rc != SQLITE_DONE) return trouble(s, rc, sql->name, err);
    if (was && sqlite3_changes(db) == 0) return rt_fail(err, RT_E_CONFLICT, 0, "the %s is not as it was read", sql->name);
    return RT_OK;
}

/* ---- counters ---------------------------------------------------------------------------------------------------- */

static int add_to(sqlite3 *db, uint64_t queue, int state, int64_t jobs, int64_t bytes) {
    const int rc = sq_run(db, "INSERT INTO count (queue, state, jobs, bytes) VALUES (?1, ?2, ?3, ?4) "
                              "ON CONFLICT DO UPDATE SET jobs = jobs + excluded.jobs, bytes = bytes + excluded.bytes",
                          SQ_VALUES(sq_number(queue), sq_time(state), sq_time(jobs), sq_time(bytes)));
    if (rc != SQLITE_DONE || jobs > 0) return rc;
    return sq_run(db, "DELETE FROM count WHERE queue = ?1 AND state = ?2 AND jobs = 0",
                  SQ_VALUES(sq_number(queue), sq_time(state)));
}

/* The queue's own counter, and that of all queues together. */
static int count_job(sqlite3 *db, const rt_job *job, int64_t by) {
    const int64_t bytes = job->state == RT_JOB_DONE ? 0 : by * job->body_bytes;
    const int rc = add_to(db, job->queue, job->state, by, bytes);
    return rc == SQLITE_DONE ? add_to(db, 0, job->state, by, bytes) : rc;
}

/* Events stand where jobs of no state would. */
static int count_event(sqlite3 *db, int64_t by) { return add_to(db, 0, RT_JOB_NONE, by, 0); }

/* ---- jobs -------------------------------------------------------------------------------------------------------- */

static rt_id body_used(const rt_job *job) { return job != NULL && job->state != RT_JOB_DONE ? job->body : 0; }

static rt_code use_body(sq_store *s, rt_id body, int by, rt_err *err) {
    if (body == 0 || s->importing) return RT_OK; // an imported body knows its users
    const int rc = sq_run(s->batch.db, "UPDATE body SET users = users + ?2 WHERE id = ?1",
                          SQ_VALUES(sq_number(body), sq_time(by)));
    if (rc != SQLITE_DONE) return trouble(s, rc, "body", err);
    if (sqlite3_changes(s->batch.db) == 1) return RT_OK;
    return rt_fail(err, RT_E_INVALID, 0, "a job names a body that is not there");
}

static const record_sql JOB = {
    .name = "job",
    .insert = "INSERT INTO job (id, queue, state, pull, due_ms, expires_ms, key_hash, image) "
              "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    .replace = "UPDATE job SET queue = ?2, state = ?3, pull = ?4, due_ms = ?5, expires_ms = ?6, key_hash = ?7, image = ?8 "
               "WHERE id = ?1 AND image = ?9",
    .delete = "DELETE FROM job WHERE id = ?1 AND image = ?9",
};

static rt_code write_job_row(sq_store *s, const rt_job *was, const rt_job *now, rt_err *err) {
    const rt_job *job = now != NULL ? now : was;
    const rt_job *old = was != NULL ? was : now;
    return write_record(s, &JOB, was != NULL, now != NULL,
                        SQ_VALUES(sq_number(job->id), sq_number(job->queue), sq_number(job->state),
                                  sq_number(job->flags & RT_JOB_PULL), sq_time(job->due_ms), sq_time(job->expires_ms),
                                  sq_time((int64_t)job->key_hash), sq_record(job, sizeof *job),
                                  sq_record(old, sizeof *old)), err);
}

static rt_code write_job(sq_store *s, const rt_job *was, const rt_job *now, rt_err *err) {
    if (now != NULL && now->state == RT_JOB_DONE && now->last_event == 0)
        return rt_fail(err, RT_E_INVALID, 0, "a job that is done has no event that could take it away");
    rt_code code = write_job_row(s, was, now, err);
    if (code != RT_OK) return code;
    int rc = was != NULL ? count_job(s->batch.db, was, -1) : SQLITE_DONE;
    if (rc == SQLITE_DONE && now != NULL) rc = count_job(s->batch.db, now, 1);
    if (rc != SQLITE_DONE) return trouble(s, rc, "counters", err);
    const rt_id before = body_used(was);
    const rt_id after = body_used(now);
    if (before == after) return RT_OK;
    code = use_body(s, before, -1, err);
    return code == RT_OK ? use_body(s, after, 1, err) : code;
}

/* ---- the other records ------------------------------------------------------------------------------------------- */

static rt_code too_large(const char *what, size_t max, rt_err *err) {
    return rt_fail(err, RT_E_TOO_LARGE, 0, "%s has at most %zu bytes", what, max);
}

static const record_sql QUEUE = {
    .name = "queue",
    .insert = "INSERT INTO queue (id, owner, version, paused_until_ms, in_flight_max, kind, gone, brakes, name) "
              "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    .replace = "UPDATE queue SET owner = ?2, version = ?3, paused_until_ms = ?4, in_flight_max = ?5, kind = ?6, gone = ?7, "
               "brakes = ?8, name = ?9 WHERE id = ?1 AND version = ?10",
    .delete = "DELETE FROM queue WHERE id = ?1 AND version = ?10",
};

static rt_code write_queue(sq_store *s, const rt_queue *was, const rt_queue *now, rt_err *err) {
    const rt_queue *queue = now != NULL ? now : was;
    if (queue->name.len > RT_QUEUE_NAME_MAX) return too_large("a queue's name", RT_QUEUE_NAME_MAX, err);
    return write_record(s, &QUEUE, was != NULL, now != NULL,
                        SQ_VALUES(sq_number(queue->id), sq_number(queue->owner), sq_number(queue->version),
                                  sq_time(queue->paused_until_ms), sq_number(queue->in_flight_max),
                                  sq_number(queue->kind), sq_number(queue->gone),
                                  sq_record(&queue->brakes, sizeof queue->brakes), sq_bytes(queue->name),
                                  sq_number(was != NULL ? was->version : 0)), err);
}

static const record_sql LEASE = {
    .name = "lease",
    .insert = "INSERT INTO lease (id, version, until_ms, image) VALUES (?1, ?2, ?3, ?4)",
    .replace = "UPDATE lease SET version = ?2, until_ms = ?3, image = ?4 WHERE id = ?1 AND version = ?5",
    .delete = "DELETE FROM lease WHERE id = ?1 AND version = ?5",
};

static rt_code write_lease(sq_store *s, const rt_lease *was, const rt_lease *now, rt_err *err) {
    const rt_lease *lease = now != NULL ? now : was;
    return write_record(s, &LEASE, was != NULL, now != NULL,
                        SQ_VALUES(sq_number(lease->id), sq_number(lease->version), sq_time(lease->until_ms),
                                  sq_record(lease, sizeof *lease), sq_number(was != NULL ? was->version : 0)), err);
}

static const record_sql DOC = {
    .name = "document",
    .insert = "INSERT INTO doc (kind, name, version, expires_ms, value) VALUES (?1, ?2, ?3, ?4, ?5)",
    .replace = "UPDATE doc SET version = ?3, expires_ms = ?4, value = ?5 WHERE kind = ?1 AND name = ?2 AND version = ?6",
    .delete = "DELETE FROM doc WHERE kind = ?1 AND name = ?2 AND version = ?6",
};

static rt_code write_doc(sq_store *s, const rt_doc *was, const rt_doc *now, rt_err *err) {
    const rt_doc *doc = now != NULL ? now : was;
    if (doc->name.len == 0 || doc->name.len > RT_DOC_NAME_MAX)
        return rt_fail(err, RT_E_TOO_LARGE, 0, "a document's name has 1 to %d bytes", RT_DOC_NAME_MAX);
    if (doc->value.len > RT_DOC_VALUE_MAX) return too_large("a document", RT_DOC_VALUE_MAX, err);
    return write_record(s, &DOC, was != NULL, now != NULL,
                        SQ_VALUES(sq_number((uint64_t)doc->kind), sq_bytes(doc->name), sq_number(doc->version),
                                  sq_time(doc->expires_ms), sq_bytes(doc->value),
                                  sq_number(was != NULL ? was->version : 0)), err);
}

/* Events and bodies are only ever inserted. */
static const record_sql EVENT = {
    .name = "event",
    .insert = "INSERT INTO event (seq, prev, job, queue, at_ms, attempt, took_ms, delay_ms, status, type, reason, text) "
              "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
};
static const record_sql BODY = {
    .name = "body",
    .insert = "INSERT INTO body (id, users, bytes) VALUES (?1, ?2, ?3)",
};

static rt_code write_event(sq_store *s, const rt_event *e, rt_err *err) {
    rt_str text = e->text;
    if (text.len > RT_EVENT_TEXT_MAX) text.len = RT_EVENT_TEXT_MAX;
    const rt_code code = write_record(
        s, &EVENT, false, true,
        SQ_VALUES(sq_number(e->seq), sq_number(e->prev), sq_number(e->job), sq_number(e->queue), sq_time(e->at_ms),
                  sq_number(e->attempt), sq_number(e->took_ms), sq_number(e->delay_ms), sq_number(e->status),
                  sq_number(e->type), sq_number(e->reason), sq_bytes(text)), err);
    if (code != RT_OK) return code;
    const int counted = count_event(s->batch.db, 1);
    return counted == SQLITE_DONE ? RT_OK : trouble(s, counted, "counters", err);
}

/* ---- bodies ------------------------------------------------------------------------------------------------------ */

static rt_code write_body(sq_store *s, rt_id id, rt_str bytes, uint64_t users, rt_err *err) {
    if (bytes.len > RT_BODY_BYTES_MAX) return too_large("a body", RT_BODY_BYTES_MAX, err);
    return write_record(s, &BODY, false, true,
                        SQ_VALUES(sq_number(id), sq_number(s->importing ? users : 0), sq_bytes(bytes)), err);
}

/* Once the change's jobs have taken and left their bodies: one that is new has to be named by now, and one that nobody
 * names any more goes. */
static rt_code settle_bodies(sq_store *s, const rt_change *change, rt_err *err) {
    for (uint32_t i = 0; i < change->ops_count; i++) {
        const rt_op *op = &change->ops[i];
        if (op->kind != RT_OP_BODY) continue;
        const int rc = sq_run(s->batch.db, "SELECT 1 FROM body WHERE id = ?1 AND users > 0",
                              SQ_VALUES(sq_number(op->body.id)));
        if (rc == SQLITE_DONE) return rt_fail(err, RT_E_INVALID, 0, "no job of the change names its body");
        if (rc != SQLITE_ROW) return trouble(s, rc, "body", err);
    }
    const int rc = sq_run(s->batch.db, "DELETE FROM body WHERE users = 0", NULL, 0);
    return rc == SQLITE_DONE ? RT_OK : trouble(s, rc, "body", err);
}

/* ---- a change ---------------------------------------------------------------------------------------------------- */

static rt_code write_op(sq_store *s, const rt_op *op, rt_err *err) {
    switch (op->kind) {
    case RT_OP_JOB: return write_job(s, op->job.was, op->job.now, err);
    case RT_OP_QUEUE: return write_queue(s, op->queue.was, op->queue.now, err);
    case RT_OP_LEASE: return write_lease(s, op->lease.was, op->lease.now, err);
    case RT_OP_DOC: return write_doc(s, op->doc.was, op->doc.now, err);
    case RT_OP_BODY: return write_body(s, op->body.id, op->body.bytes, op->body.users, err);
    case RT_OP_EVENT: return write_event(s, op->event, err);
    }
    return rt_fail(err, RT_E_INVALID, 0, "unknown kind of op: %d", (int)op->kind);
}

static rt_code check_guard(sq_store *s, const rt_guard *guard, rt_err *err) {
    rt_doc doc = {.version = 0};
    const rt_code code = s->batch.base.ops->doc(&s->batch.base, guard->kind, guard->name, &doc);
    if (code != RT_OK && code != RT_E_ABSENT) return rt_fail(err, code, 0, "a document cannot be read");
    return doc.version == guard->version ? RT_OK : rt_fail(err, RT_E_CONFLICT, 0, "a document is not as it was read");
}

/* Goes on where the other store was, under its tag. */
static rt_code adopt(sq_store *s, const rt_import *import, rt_err *err) {
    if (import->ids_from > s->next_id) s->next_id = import->ids_from;
    if (import->seqs_from > s->next_seq) s->next_seq = import->seqs_from;
    const int rc = sq_run(s->batch.db, "UPDATE meta SET tag = ?1", SQ_VALUES(sq_number(import->tag)));
    return rc == SQLITE_DONE ? RT_OK : trouble(s, rc, "import", err);
}

static rt_code write_change(sq_store *s, const rt_change *change, rt_err *err) {
    rt_code code = change->import != NULL ? adopt(s, change->import, err) : RT_OK;
    for (uint32_t i = 0; i < change->guards_count && code == RT_OK; i++) code = check_guard(s, &change->guards[i], err);
    for (uint32_t i = 0; i < change->ops_count && code == RT_OK; i++) code = write_op(s, &change->ops[i], err);
    return code == RT_OK ? settle_bodies(s, change, err) : code;
}

static bool disk_is_nearly_full(const sq_store *s) {
    struct statvfs disk;
    if (s->disk_reserve_bytes == 0 || statvfs(s->path, &disk) != 0) return false;
    return (uint64_t)disk.f_bavail * disk.f_frsize < s->disk_reserve_bytes;
}

rt_code sq_apply(sq_store *s, const rt_change *change, rt_err *err) {
    sqlite3 *db = s->batch.db;
    if (s->broken) return rt_fail(err, RT_E_UNAVAILABLE, s->why.sys_errno, "%s", s->why.msg);
    if (!change->frees && disk_is_nearly_full(s)) {
        return rt_fail(err, RT_E_FULL, 0, "less than %llu bytes are free on the disk of %s",
                       (unsigned long long)s->disk_reserve_bytes, s->path);
    }
    if (sq_run(db, "SAVEPOINT change", NULL, 0) != SQLITE_DONE)
        return trouble(s, sqlite3_errcode(db), "the store cannot write", err);
    s->importing = change->import != NULL;
    const rt_code code = write_change(s, change, err);
    s->importing = false;
    bool ended = true;
    if (code != RT_OK) ended = sq_run(db, "ROLLBACK TO change", NULL, 0) == SQLITE_DONE;
    ended = ended && sq_run(db, "RELEASE change", NULL, 0) == SQLITE_DONE;
    if (!ended) sq_break(s, sqlite3_errcode(db), "the store cannot write");
    if (code == RT_OK) s->dirty = true;
    sq_take_back(&s->batch);
    return s->broken ? rt_fail(err, RT_E_UNAVAILABLE, s->why.sys_errno, "%s", s->why.msg) : code;
}

/* ---- upkeep ------------------------------------------------------------------------------------------------------ */

static bool keep_first(void *ctx, const rt_event *event) {
    *(rt_event *)ctx = *event;
    return false;
}

/* Drops the event, and its job if that is done and has no later one. Returns how many records went, 0: none could. */
static uint32_t drop_event(sq_store *s, const rt_event *event) {
    rt_view *batch = &s->batch.base;
    rt_job job;
    rt_err err;
    s->dirty = true;
    int rc = sq_run(s->batch.db, "DELETE FROM event WHERE seq = ?1", SQ_VALUES(sq_number(event->seq)));
    if (rc == SQLITE_DONE) rc = count_event(s->batch.db, -1);
    if (rc != SQLITE_DONE) {
        sq_break(s, rc, "history cannot be trimmed");
        return 0;
    }
    if (batch->ops->job(batch, event->job, &job) != RT_OK) return 1;
    if (job.state != RT_JOB_DONE || job.last_event != event->seq) return 1;
    return write_job(s, &job, NULL, &err) == RT_OK ? 2 : 0;
}

static uint64_t events_stored(sq_store *s) {
    sqlite3_stmt *stmt = sq_begin(s->batch.db, "SELECT jobs FROM count WHERE queue = 0 AND state = 0", NULL, 0);
    const uint64_t count = sqlite3_step(stmt) == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(stmt, 0) : 0;
    (void)sqlite3_finalize(stmt);
    return count;
}

bool sq_tidy(sq_store *s, int64_t now_ms, uint32_t ops_max) {
    rt_view *batch = &s->batch.base;
    uint64_t count = events_stored(s);
    for (uint32_t ops = 0; count > 0 && !s->broken; count--) {
        rt_event first = {.seq = 0};
        const rt_code code = batch->ops->events(batch, 0, keep_first, &first);
        if (code != RT_OK || first.seq == 0) return false;
        const bool too_many = count > s->retention.events;
        const bool too_old = first.at_ms <= now_ms - s->retention.age_ms;
        if (!too_many && !too_old) return false;
        if (ops + 2 > ops_max) return true;
        ops += drop_event(s, &first);
    }
    return false;
}
