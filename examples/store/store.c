/* store.c: opening, and the life of a batch. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "inside.h"

enum { BUSY_MS = 10000, SCHEMA_VERSION = 1 };

/* Numbers are promised in blocks, so that even those that no record holds are never given out twice. */
enum { NUMBERS_AHEAD = 4096 };

static const char SCHEMA[] =
    "CREATE TABLE meta (tag INTEGER, id_limit INTEGER, seq_limit INTEGER, proofs INTEGER);"
    "INSERT INTO meta VALUES (random() & 4294967295, (1 << 48) + 1, 1, 0);" // ids of the first home

    "CREATE TABLE job (id INTEGER PRIMARY KEY, queue INTEGER, state INTEGER, pull INTEGER, due_ms INTEGER,"
    "                  expires_ms INTEGER, key_hash INTEGER, image BLOB);"
    "CREATE INDEX job_ready ON job (id) WHERE " SQ_READY ";"
    "CREATE INDEX job_due ON job (queue, due_ms, id) WHERE " SQ_DUE ";"
    "CREATE INDEX job_free ON job (queue, id) WHERE " SQ_FREE ";"
    "CREATE INDEX job_all ON job (queue, id) WHERE " SQ_ALL ";"
    "CREATE INDEX job_dead ON job (queue, id) WHERE " SQ_DEAD ";"
    "CREATE INDEX job_expiry ON job (expires_ms) WHERE " SQ_EXPIRES ";"

    "CREATE TABLE body (id INTEGER PRIMARY KEY, users INTEGER, bytes BLOB);"
    "CREATE INDEX body_unused ON body (id) WHERE users = 0;"

    "CREATE TABLE queue (id INTEGER PRIMARY KEY, owner INTEGER, version INTEGER, paused_until_ms INTEGER,"
    "                    in_flight_max INTEGER, kind INTEGER, gone INTEGER, brakes BLOB, name BLOB);"

    "CREATE TABLE lease (id INTEGER PRIMARY KEY, version INTEGER, until_ms INTEGER, image BLOB);"
    "CREATE INDEX lease_expiry ON lease (until_ms) WHERE until_ms > 0;"

    "CREATE TABLE doc (kind INTEGER, name BLOB, version INTEGER, expires_ms INTEGER, value BLOB,"
    "                  PRIMARY KEY (kind, name));"
    "CREATE INDEX doc_expiry ON doc (expires_ms) WHERE expires_ms > 0;"

    "CREATE TABLE event (seq INTEGER PRIMARY KEY, prev INTEGER, job INTEGER, queue INTEGER, at_ms INTEGER,"
    "                    attempt INTEGER, took_ms INTEGER, delay_ms INTEGER, status INTEGER, type INTEGER,"
    "                    reason INTEGER, text BLOB);"

    /* Of queue 0: all queues together, and with state 0 how many events there are. */
    "CREATE TABLE count (queue INTEGER, state INTEGER, jobs INTEGER, bytes INTEGER, PRIMARY KEY (queue, state))"
    "  WITHOUT ROWID;";

static sq_store *store_of(rt_store *s) { return (sq_store *)s; }

static bool run(sqlite3 *db, const char *sql) { return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK; }

/* ---- the batch --------------------------------------------------------------------------------------------------- */

static rt_view *batch(rt_store *base, rt_err *err) {
    sq_store *s = store_of(base);
    if (s->unsure) {
        (void)rt_fail(err, RT_E_UNAVAILABLE, 0, "the end of the last batch is not known yet");
        return NULL;
    }
    if (!s->begun && !run(s->batch.db, "BEGIN IMMEDIATE")) {
        (void)sq_fail(err, s->batch.db, sqlite3_errcode(s->batch.db), "the store cannot begin a batch");
        return NULL;
    }
    s->begun = true;
    return &s->batch.base;
}

/* After the transaction ended, whichever way; SQLite itself has rolled it back after the worst of errors. */
static void settle(sq_store *s) {
    if (sqlite3_get_autocommit(s->batch.db) == 0) (void)run(s->batch.db, "ROLLBACK");
    sq_take_back(&s->batch);
    s->begun = s->dirty = s->broken = false;
}

static void abandon(rt_store *base) { settle(store_of(base)); }

static bool write_limits(sq_store *s, uint64_t *id_limit, uint64_t *seq_limit) {
    *id_limit = s->id_limit;
    *seq_limit = s->seq_limit;
    if (s->next_id <= s->id_limit && s->next_seq <= s->seq_limit) return true;
    *id_limit = s->next_id + NUMBERS_AHEAD;
    *seq_limit = s->next_seq + NUMBERS_AHEAD;
    return sq_run(s->batch.db, "UPDATE meta SET id_limit = ?1, seq_limit = ?2",
                  SQ_VALUES(sq_number(*id_limit), sq_number(*seq_limit))) == SQLITE_DONE;
}

static void end_batch(sq_store *s, bool durable) {
    settle(s);
    s->ended = true;
    s->end = durable ? RT_BATCH_DURABLE : RT_BATCH_FAILED;
}

static void commit(rt_store *base, uint64_t batch_no) {
    sq_store *s = store_of(base);
    s->ended_no = batch_no;
    if (s->broken || !s->dirty) { // an empty batch is durable
        end_batch(s, !s->broken);
        return;
    }
    uint64_t id_limit;
    uint64_t seq_limit;
    if (!write_limits(s, &id_limit, &seq_limit)) {
        sq_break(s, sqlite3_errcode(s->batch.db), "the store cannot write");
        end_batch(s, false);
        return;
    }
    if (!run(s->batch.db, "COMMIT")) {
        (void)sq_fail(&s->why, s->batch.db, sqlite3_errcode(s->batch.db), "the store cannot commit");
        settle(s);
        s->unsure = true;
        return;
    }
    s->id_limit = id_limit;
    s->seq_limit = seq_limit;
    end_batch(s, true);
}

/* What a commit that failed has left in the log would count after a crash. It is gone for good once another transaction
 * is written in its place; until that works, nobody can say how the batch ended. */
static void make_sure(sq_store *s) {
    if (!run(s->batch.db, "BEGIN IMMEDIATE; UPDATE meta SET proofs = proofs + 1; COMMIT")) {
        settle(s);
        return;
    }
    s->unsure = false;
    end_batch(s, false);
}

static bool poll_end(rt_store *base, uint64_t *batch_no, rt_batch_end *end, rt_err *err) {
    sq_store *s = store_of(base);
    if (s->unsure) make_sure(s);
    if (!s->ended) return false;
    s->ended = false;
    *batch_no = s->ended_no;
    *end = s->end;
    if (s->end == RT_BATCH_FAILED && err != NULL) *err = s->why;
    return true;
}

static rt_code apply(rt_store *base, const rt_change *change, rt_err *err) {
    return batch(base, err) != NULL ? sq_apply(store_of(base), change, err) : RT_E_UNAVAILABLE;
}

static bool tidy(rt_store *base, int64_t now_ms, uint32_t ops_max) {
    return batch(base, NULL) != NULL && sq_tidy(store_of(base), now_ms, ops_max);
}

static rt_code load(rt_store *base, rt_err *err) {
    (void)base;
    (void)err;
    return RT_OK; // a read never answers RT_E_AGAIN
}

static rt_id new_id(rt_store *base) { return store_of(base)->next_id++; }
static uint64_t new_seq(rt_store *base) { return store_of(base)->next_seq++; }

/* ---- connections ------------------------------------------------------------------------------------------------- */

static rt_code connect_to(const char *path, int flags, sqlite3 **out, rt_err *err) {
    sqlite3 *db = NULL;
    const int rc = sqlite3_open_v2(path, &db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc != SQLITE_OK) {
        const rt_code code = sq_fail(err, db, rc, path);
        (void)sqlite3_close(db);
        return code;
    }
    (void)sqlite3_busy_timeout(db, BUSY_MS);
    *out = db;
    return RT_OK;
}

static rt_code view(rt_store *base, rt_view **out, rt_err *err) {
    const sq_store *s = store_of(base);
    sq_view *v = calloc(1, sizeof *v);
    if (v == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "view");
    v->base.ops = &sq_view_ops;
    const rt_code code = connect_to(s->path, SQLITE_OPEN_READWRITE, &v->db, err);
    if (code != RT_OK) {
        free(v);
        return code;
    }
    // A snapshot is taken by the first read.
    if (!run(v->db, "BEGIN; SELECT tag FROM meta")) {
        const rt_code why = sq_fail(err, v->db, sqlite3_errcode(v->db), "the store cannot open a view");
        sq_view_ops.close(&v->base);
        return why;
    }
    *out = &v->base;
    return RT_OK;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static void close_store(rt_store *base) {
    sq_store *s = store_of(base);
    if (s->batch.db != NULL) settle(s);
    (void)sqlite3_close(s->batch.db);
    if (s->owner_fd >= 0) (void)close(s->owner_fd);
    free(s->path);
    free(s);
}

/* The file, readable for its owner alone, and beside it one that is locked: SQLite's own locks would let a second server
 * in between two transactions. */
static rt_code own(sq_store *s, rt_err *err) {
    char *owner = sqlite3_mprintf("%s-owner", s->path);
    if (owner == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "path");
    s->owner_fd = open(owner, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    sqlite3_free(owner);
    if (s->owner_fd < 0) return rt_fail(err, RT_E_IO, errno, "%s-owner: %s", s->path, strerror(errno));
    if (flock(s->owner_fd, LOCK_EX | LOCK_NB) != 0)
        return rt_fail(err, RT_E_UNAVAILABLE, errno, "%s: another process serves from it", s->path);
    const int fd = open(s->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return rt_fail(err, RT_E_IO, errno, "%s: %s", s->path, strerror(errno));
    (void)close(fd);
    return RT_OK;
}

/* One number that a statement gives. False: it gives none. */
static bool ask(sqlite3 *db, const char *sql, uint64_t *out) {
    sqlite3_stmt *stmt = sq_begin(db, sql, NULL, 0);
    const bool there = stmt != NULL && sqlite3_step(stmt) == SQLITE_ROW;
    if (there) *out = (uint64_t)sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return there;
}

static rt_code read_meta(sq_store *s, rt_err *err) {
    sqlite3 *db = s->batch.db;
    uint64_t version = 0;
    uint64_t tag = 0;
    bool fine = run(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    fine = fine && ask(db, "PRAGMA user_version", &version);
    if (fine && version == 0) {
        fine = run(db, "BEGIN IMMEDIATE") && run(db, SCHEMA) && run(db, "PRAGMA user_version = 1; COMMIT");
        version = SCHEMA_VERSION;
    }
    if (fine && version != SCHEMA_VERSION)
        return rt_fail(err, RT_E_INVALID, 0, "%s has version %d, not %d", s->path, (int)version, SCHEMA_VERSION);
    fine = fine && ask(db, "SELECT tag FROM meta", &tag) && ask(db, "SELECT id_limit FROM meta", &s->id_limit) &&
           ask(db, "SELECT seq_limit FROM meta", &s->seq_limit);
    s->base.tag = (uint32_t)tag;
    s->next_id = s->id_limit;
    s->next_seq = s->seq_limit;
    return fine ? RT_OK : sq_fail(err, db, sqlite3_errcode(db), s->path);
}

static const rt_store_ops OPS = {
    .view = view,
    .batch = batch,
    .load = load,
    .apply = apply,
    .commit = commit,
    .poll = poll_end,
    .abandon = abandon,
    .new_id = new_id,
    .new_seq = new_seq,
    .tidy = tidy,
    .close = close_store,
};

static rt_code open_store(const struct retryd_store_config *config, rt_store **out, rt_err *err) {
    if (config->rest[0] == '\0') return rt_fail(err, RT_E_INVALID, 0, "no file is named: plugin:FILE?/path/to/retryd.db");
    sq_store *s = calloc(1, sizeof *s);
    if (s == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "store");
    *s = (sq_store){
        .base = {.ops = &OPS, .sole_owner = true, .fd = -1}, // commit itself waits for the end
        .batch.base.ops = &sq_view_ops,
        .owner_fd = -1,
        .retention = config->retention,
        .disk_reserve_bytes = config->disk_reserve_bytes,
    };
    const size_t len = strlen(config->rest);
    s->path = malloc(len + 1);
    rt_code code = s->path != NULL ? RT_OK : rt_fail(err, RT_E_NOMEM, ENOMEM, "path");
    if (code == RT_OK) {
        memcpy(s->path, config->rest, len + 1);
        code = own(s, err);
    }
    if (code == RT_OK) code = connect_to(s->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &s->batch.db, err);
    if (code == RT_OK) code = read_meta(s, err);
    if (code != RT_OK) {
        close_store(&s->base);
        return code;
    }
    *out = &s->base;
    return RT_OK;
}

static const struct retryd_store_plugin PLUGIN = RETRYD_STORE_PLUGIN("sqlite", open_store);
RETRYD_STORE(PLUGIN)
