/* read.c: a view, which is the open batch or a snapshot with a connection of its own. */
#include <stdlib.h>
#include <string.h>

#include "inside.h"

struct sq_lent {
    sq_lent *next;
    char bytes[];
};

static sq_view *view_of(rt_view *v) { return (sq_view *)v; }

void sq_take_back(sq_view *v) {
    while (v->lent != NULL) {
        sq_lent *next = v->lent->next;
        free(v->lent);
        v->lent = next;
    }
}

/* SQLite's own memory is gone with the next step, so what is lent is a copy. False: out of memory. */
static bool lend(sq_view *v, sqlite3_stmt *stmt, int column, rt_str *out) {
    const size_t len = (size_t)sqlite3_column_bytes(stmt, column);
    *out = RT_STR_EMPTY;
    if (len == 0) return true;
    const void *bytes = sqlite3_column_blob(stmt, column);
    sq_lent *lent = bytes != NULL ? malloc(sizeof *lent + len) : NULL;
    if (lent == NULL) return false;
    memcpy(lent->bytes, bytes, len);
    lent->next = v->lent;
    v->lent = lent;
    *out = (rt_str){.ptr = lent->bytes, .len = len};
    return true;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static uint64_t number_at(sqlite3_stmt *stmt, int column) { return (uint64_t)sqlite3_column_int64(stmt, column); }

/* A record that is stored as it is in memory. */
static rt_code copy_record(sqlite3_stmt *stmt, int column, void *out, size_t len) {
    const void *bytes = sqlite3_column_blob(stmt, column);
    if (bytes == NULL || (size_t)sqlite3_column_bytes(stmt, column) != len) return RT_E_CORRUPT;
    memcpy(out, bytes, len);
    return RT_OK;
}

static rt_code job_row(sq_view *v, sqlite3_stmt *stmt, void *out) {
    (void)v;
    return copy_record(stmt, 0, out, sizeof(rt_job));
}

static rt_code lease_row(sq_view *v, sqlite3_stmt *stmt, void *out) {
    (void)v;
    return copy_record(stmt, 0, out, sizeof(rt_lease));
}

static rt_code body_row(sq_view *v, sqlite3_stmt *stmt, void *out) {
    return lend(v, stmt, 0, out) ? RT_OK : RT_E_UNAVAILABLE;
}

#define QUEUE "SELECT id, owner, version, paused_until_ms, in_flight_max, kind, gone, brakes, name FROM queue"
static rt_code queue_row(sq_view *v, sqlite3_stmt *stmt, void *out) {
    rt_queue queue = {
        .id = number_at(stmt, 0),
        .owner = number_at(stmt, 1),
        .version = number_at(stmt, 2),
        .paused_until_ms = sqlite3_column_int64(stmt, 3),
        .in_flight_max = (uint32_t)number_at(stmt, 4),
        .kind = (uint8_t)number_at(stmt, 5),
        .gone = (uint8_t)number_at(stmt, 6),
    };
    const rt_code code = copy_record(stmt, 7, &queue.brakes, sizeof queue.brakes);
    if (code != RT_OK) return code;
    if (!lend(v, stmt, 8, &queue.name)) return RT_E_UNAVAILABLE;
    *(rt_queue *)out = queue;
    return RT_OK;
}

#define DOC "SELECT kind, version, expires_ms, name, value FROM doc"
static rt_code doc_row(sq_view *v, sqlite3_stmt *stmt, void *out) {
    rt_doc doc = {
        .kind = (rt_doc_kind)number_at(stmt, 0),
        .version = number_at(stmt, 1),
        .expires_ms = sqlite3_column_int64(stmt, 2),
    };
    if (!lend(v, stmt, 3, &doc.name) || !lend(v, stmt, 4, &doc.value)) return RT_E_UNAVAILABLE;
    *(rt_doc *)out = doc;
    return RT_OK;
}

#define EVENT "SELECT seq, prev, job, queue, at_ms, attempt, took_ms, delay_ms, status, type, reason, text FROM event"
static rt_code event_row(sq_view *v, sqlite3_stmt *stmt, void *out) {
    rt_event event = {
        .seq = number_at(stmt, 0),
        .prev = number_at(stmt, 1),
        .job = number_at(stmt, 2),
        .queue = number_at(stmt, 3),
        .at_ms = sqlite3_column_int64(stmt, 4),
        .attempt = (uint32_t)number_at(stmt, 5),
        .took_ms = (uint32_t)number_at(stmt, 6),
        .delay_ms = (uint32_t)number_at(stmt, 7),
        .status = (uint16_t)number_at(stmt, 8),
        .type = (uint8_t)number_at(stmt, 9),
        .reason = (uint8_t)number_at(stmt, 10),
    };
    if (!lend(v, stmt, 11, &event.text)) return RT_E_UNAVAILABLE;
    *(rt_event *)out = event;
    return RT_OK;
}

/* ---- one record -------------------------------------------------------------------------------------------------- */

typedef rt_code row_reader(sq_view *v, sqlite3_stmt *stmt, void *out);

/* The end of a statement: all rows were read, or the reader had enough. */
static rt_code finish(sq_view *v, sqlite3_stmt *stmt, int rc) {
    (void)sqlite3_finalize(stmt);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? RT_OK : sq_fail(NULL, v->db, rc, "");
}

static rt_code get(rt_view *base, const char *sql, const sq_value *values, size_t count, row_reader *read, void *out) {
    sq_view *v = view_of(base);
    sqlite3_stmt *stmt = sq_begin(v->db, sql, values, count);
    if (stmt == NULL) return sq_fail(NULL, v->db, sqlite3_errcode(v->db), "");
    const int rc = sqlite3_step(stmt);
    const rt_code code = rc == SQLITE_ROW ? read(v, stmt, out) : RT_E_ABSENT;
    const rt_code end = finish(v, stmt, rc);
    return end == RT_OK ? code : end;
}

static rt_code get_job(rt_view *v, rt_id id, rt_job *out) {
    return get(v, "SELECT image FROM job WHERE id = ?1", SQ_VALUES(sq_number(id)), job_row, out);
}

static rt_code get_body(rt_view *v, rt_id id, rt_str *out) {
    return get(v, "SELECT bytes FROM body WHERE id = ?1", SQ_VALUES(sq_number(id)), body_row, out);
}

static rt_code get_queue(rt_view *v, rt_id id, rt_queue *out) {
    return get(v, QUEUE " WHERE id = ?1", SQ_VALUES(sq_number(id)), queue_row, out);
}

static rt_code get_lease(rt_view *v, rt_id id, rt_lease *out) {
    return get(v, "SELECT image FROM lease WHERE id = ?1", SQ_VALUES(sq_number(id)), lease_row, out);
}

static rt_code get_doc(rt_view *v, rt_doc_kind kind, rt_str name, rt_doc *out) {
    return get(v, DOC " WHERE kind = ?1 AND name = ?2", SQ_VALUES(sq_number((uint64_t)kind), sq_bytes(name)), doc_row, out);
}

static rt_code get_event(rt_view *v, uint64_t seq, rt_event *out) {
    return get(v, EVENT " WHERE seq = ?1", SQ_VALUES(sq_number(seq)), event_row, out);
}

/* ---- listings ---------------------------------------------------------------------------------------------------- */

/* The record is read into *record, and told: false ends the listing. */
typedef struct listing {
    row_reader *read;
    void *record;
    bool (*tell)(const struct listing *list);
    void (*each)(void); /* the caller's function, of the type that `tell` knows */
    void *ctx;
    rt_str prefix; /* documents */
} listing;

static rt_code list(rt_view *base, const char *sql, const sq_value *values, size_t count, const listing *l) {
    sq_view *v = view_of(base);
    sqlite3_stmt *stmt = sq_begin(v->db, sql, values, count);
    if (stmt == NULL) return sq_fail(NULL, v->db, sqlite3_errcode(v->db), "");
    rt_code code = RT_OK;
    int rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        code = l->read(v, stmt, l->record);
        if (code != RT_OK || !l->tell(l)) break;
    }
    const rt_code end = finish(v, stmt, rc);
    return end == RT_OK ? code : end;
}

static bool tell_job(const listing *l) { return ((rt_each_job *)l->each)(l->ctx, l->record); }
static bool tell_queue(const listing *l) { return ((rt_each_queue *)l->each)(l->ctx, l->record); }
static bool tell_event(const listing *l) { return ((rt_each_event *)l->each)(l->ctx, l->record); }
static bool tell_expiry(const listing *l) { return ((rt_each_expiry *)l->each)(l->ctx, l->record); }
static bool tell_wake(const listing *l) { return ((rt_each_wake *)l->each)(l->ctx, l->record); }

static bool tell_lease(const listing *l) { return ((rt_each_lease *)l->each)(l->ctx, l->record); }

static bool tell_doc(const listing *l) {
    const rt_doc *doc = l->record;
    // By name, so the first one without the prefix ends those that have it.
    if (doc->name.len < l->prefix.len || memcmp(doc->name.ptr, l->prefix.ptr, l->prefix.len) != 0) return false;
    return ((rt_each_doc *)l->each)(l->ctx, doc);
}

/* ?1 queue, ?2 after, ?3 after_due_ms, ?4 until_ms, ?5 skip_hash, ?6 after_queue */
static const char *sql_of(const rt_job_range *range) {
    switch (range->index) {
    case RT_INDEX_READY: return "SELECT image FROM job WHERE " SQ_READY " AND id > ?2 ORDER BY id";
    case RT_INDEX_DUE:
        return "SELECT image FROM job WHERE " SQ_DUE " AND queue = ?1 AND (due_ms, id) > (?3, ?2) AND due_ms <= ?4 "
               "ORDER BY due_ms, id";
    case RT_INDEX_FREE:
        return "SELECT image FROM job WHERE " SQ_FREE " AND queue = ?1 AND id > ?2 AND (?5 = 0 OR key_hash <> ?5) "
               "ORDER BY id";
    case RT_INDEX_ALL:
        if (!range->backwards) return "SELECT image FROM job WHERE " SQ_ALL " AND queue = ?1 AND id > ?2 ORDER BY id";
        return "SELECT image FROM job WHERE " SQ_ALL " AND queue = ?1 AND (?2 = 0 OR id < ?2) ORDER BY id DESC";
    case RT_INDEX_DEAD:
        if (range->queue != 0) return "SELECT image FROM job WHERE " SQ_DEAD " AND queue = ?1 AND id > ?2 ORDER BY id";
        return "SELECT image FROM job WHERE " SQ_DEAD " AND (queue, id) > (?6, ?2) ORDER BY queue, id";
    case RT_INDEX_EVERY: return "SELECT image FROM job WHERE id > ?2 ORDER BY id";
    }
    return NULL;
}

static rt_code list_jobs(rt_view *v, const rt_job_range *range, rt_each_job *each, void *ctx) {
    rt_job job;
    const listing l = {job_row, &job, tell_job, (void (*)(void))each, ctx, RT_STR_EMPTY};
    return list(v, sql_of(range),
                SQ_VALUES(sq_number(range->queue), sq_number(range->after), sq_time(range->after_due_ms),
                          sq_time(range->until_ms), sq_time((int64_t)range->skip_hash), sq_number(range->after_queue)), &l);
}

static rt_code list_docs(rt_view *v, rt_doc_kind kind, rt_str prefix, rt_str after, rt_each_doc *each, void *ctx) {
    rt_doc doc;
    const listing l = {doc_row, &doc, tell_doc, (void (*)(void))each, ctx, prefix};
    return list(v, DOC " WHERE kind = ?1 AND name >= ?2 AND name > ?3 ORDER BY name",
                SQ_VALUES(sq_number((uint64_t)kind), sq_bytes(prefix), sq_bytes(after)), &l);
}

static rt_code list_queues(rt_view *v, rt_id after, rt_each_queue *each, void *ctx) {
    rt_queue queue;
    const listing l = {queue_row, &queue, tell_queue, (void (*)(void))each, ctx, RT_STR_EMPTY};
    return list(v, QUEUE " WHERE id > ?1 ORDER BY id", SQ_VALUES(sq_number(after)), &l);
}

static rt_code list_events(rt_view *v, uint64_t after_seq, rt_each_event *each, void *ctx) {
    rt_event event;
    const listing l = {event_row, &event, tell_event, (void (*)(void))each, ctx, RT_STR_EMPTY};
    return list(v, EVENT " WHERE seq > ?1 ORDER BY seq", SQ_VALUES(sq_number(after_seq)), &l);
}

static rt_code expiry_row(sq_view *v, sqlite3_stmt *stmt, void *out) {
    rt_expiry expiry = {
        .at_ms = sqlite3_column_int64(stmt, 0),
        .kind = (rt_expiry_kind)number_at(stmt, 1),
        .id = number_at(stmt, 2),
        .doc_kind = (rt_doc_kind)number_at(stmt, 3),
    };
    if (!lend(v, stmt, 4, &expiry.doc_name)) return RT_E_UNAVAILABLE;
    *(rt_expiry *)out = expiry;
    return RT_OK;
}

static rt_code list_expiries(rt_view *v, int64_t until_ms, rt_each_expiry *each, void *ctx) {
    _Static_assert(RT_EXPIRY_JOB == 0 && RT_EXPIRY_LEASE == 1 && RT_EXPIRY_DOC == 2, "the second column below");
    rt_expiry expiry;
    const listing l = {expiry_row, &expiry, tell_expiry, (void (*)(void))each, ctx, RT_STR_EMPTY};
    return list(v, "SELECT expires_ms AS at, 0 AS what, id, 0, x'' FROM job WHERE " SQ_EXPIRES " AND expires_ms <= ?1 "
                   "UNION ALL SELECT until_ms, 1, id, 0, x'' FROM lease WHERE until_ms > 0 AND until_ms <= ?1 "
                   "UNION ALL SELECT expires_ms, 2, 0, kind, name FROM doc WHERE expires_ms > 0 AND expires_ms <= ?1 "
                   "ORDER BY at, what", SQ_VALUES(sq_time(until_ms)), &l);
}

static rt_code wake_row(sq_view *v, sqlite3_stmt *stmt, void *out) {
    (void)v;
    *(rt_wake *)out = (rt_wake){.queue = number_at(stmt, 0), .due_ms = sqlite3_column_int64(stmt, 1)};
    return RT_OK;
}

static rt_code list_wakes(rt_view *v, rt_id after_queue, rt_each_wake *each, void *ctx) {
    rt_wake wake;
    const listing l = {wake_row, &wake, tell_wake, (void (*)(void))each, ctx, RT_STR_EMPTY};
    return list(v, "SELECT queue, min(due_ms) FROM job WHERE " SQ_DUE " AND queue > ?1 GROUP BY queue ORDER BY queue",
                SQ_VALUES(sq_number(after_queue)), &l);
}

static rt_code list_leases(rt_view *v, rt_id after, rt_each_lease *each, void *ctx) {
    rt_lease lease;
    const listing l = {lease_row, &lease, tell_lease, (void (*)(void))each, ctx, RT_STR_EMPTY};
    return list(v, "SELECT image FROM lease WHERE id > ?1 ORDER BY id", SQ_VALUES(sq_number(after)), &l);
}

typedef struct body {
    rt_id id;
    rt_str bytes;
    uint64_t users;
} body;

static rt_code whole_body_row(sq_view *v, sqlite3_stmt *stmt, void *out) {
    body *b = out;
    sq_take_back(v); // or all bodies of the store would be in memory at the end
    *b = (body){.id = number_at(stmt, 0), .users = number_at(stmt, 1)};
    return lend(v, stmt, 2, &b->bytes) ? RT_OK : RT_E_UNAVAILABLE;
}

static bool tell_body(const listing *l) {
    const body *b = l->record;
    return ((rt_each_body *)l->each)(l->ctx, b->id, b->bytes, b->users);
}

static rt_code list_bodies(rt_view *v, rt_id after, rt_each_body *each, void *ctx) {
    body b;
    const listing l = {whole_body_row, &b, tell_body, (void (*)(void))each, ctx, RT_STR_EMPTY};
    return list(v, "SELECT id, users, bytes FROM body WHERE id > ?1 ORDER BY id", SQ_VALUES(sq_number(after)), &l);
}

/* ---- counters ---------------------------------------------------------------------------------------------------- */

typedef struct tally {
    int64_t jobs[RT_JOB_STATE_COUNT], bytes;
    uint64_t state;
    int64_t row_jobs, row_bytes;
} tally;

static rt_code tally_row(sq_view *v, sqlite3_stmt *stmt, void *out) {
    (void)v;
    tally *t = out;
    t->state = number_at(stmt, 0);
    t->row_jobs = sqlite3_column_int64(stmt, 1);
    t->row_bytes = sqlite3_column_int64(stmt, 2);
    return t->state < RT_JOB_STATE_COUNT ? RT_OK : RT_E_CORRUPT;
}

static bool add_row(const listing *l) {
    tally *t = l->record;
    t->jobs[t->state] = t->row_jobs;
    t->bytes += t->row_bytes;
    return true;
}

static rt_code get_counts(rt_view *v, rt_id queue, rt_counts *out) {
    tally t = {.bytes = 0};
    const listing l = {tally_row, &t, add_row, NULL, NULL, RT_STR_EMPTY};
    const rt_code code =
        list(v, "SELECT state, jobs, bytes FROM count WHERE queue = ?1", SQ_VALUES(sq_number(queue)), &l);
    if (code != RT_OK) return code;
    *out = (rt_counts){
        .ready = t.jobs[RT_JOB_READY],
        .scheduled = t.jobs[RT_JOB_SCHEDULED],
        .free = t.jobs[RT_JOB_FREE],
        .leased = t.jobs[RT_JOB_LEASED],
        .dead = t.jobs[RT_JOB_DEAD],
        .done = t.jobs[RT_JOB_DONE],
        .bytes = t.bytes,
    };
    return RT_OK;
}

static void close_view(rt_view *base) {
    sq_view *v = view_of(base);
    sq_take_back(v);
    (void)sqlite3_close(v->db); // its transaction, which has only read, ends with it
    free(v);
}

const rt_view_ops sq_view_ops = {
    .job = get_job,
    .body = get_body,
    .queue = get_queue,
    .lease = get_lease,
    .doc = get_doc,
    .event = get_event,
    .jobs = list_jobs,
    .docs = list_docs,
    .queues = list_queues,
    .events = list_events,
    .expiries = list_expiries,
    .wakes = list_wakes,
    .counts = get_counts,
    .leases = list_leases,
    .bodies = list_bodies,
    .close = close_view,
};
