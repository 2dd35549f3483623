#include "store/postgres/wire/schema.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "store/postgres/wire/pipe.h"

enum {
    SCHEMA = 1,        /* version of the tables that this retryd makes … */
    SCHEMA_OLDEST = 1, /* … and the oldest retryd that may work on them */
    TRIES_MAX = 5,
    ALONE_TRIES = 30   /* a tenth of a second each */
};

static const char FIRST[] =
    "CREATE TABLE IF NOT EXISTS retryd_schema (one smallint PRIMARY KEY, version integer NOT NULL, "
    "oldest integer NOT NULL, tag bigint NOT NULL)";

/* What a version adds to the one before. */
static const char *const STEPS_1[] = {
    "CREATE SEQUENCE IF NOT EXISTS retryd_numbers INCREMENT BY 1024 START WITH 1",
    "CREATE TABLE IF NOT EXISTS retryd_jobs (id bigint PRIMARY KEY, version bigint NOT NULL, "
    "queue bigint NOT NULL, state smallint NOT NULL, due_ms bigint NOT NULL, owner bigint NOT NULL, "
    "body bigint NOT NULL, lease bigint NOT NULL, last_event bigint NOT NULL, key_hash bigint NOT NULL, "
    "placed_ms bigint NOT NULL, expires_ms bigint NOT NULL, attempt bigint NOT NULL, claims bigint NOT NULL, "
    "interval_ms bigint NOT NULL, ttl_s bigint NOT NULL, generation bigint NOT NULL, "
    "body_bytes bigint NOT NULL, reason smallint NOT NULL, flags smallint NOT NULL, "
    "delay_s integer NOT NULL, bucket integer NOT NULL) WITH (fillfactor = 80)",
    "CREATE INDEX IF NOT EXISTS retryd_jobs_ready ON retryd_jobs (id) WHERE state = 1",
    "CREATE INDEX IF NOT EXISTS retryd_jobs_due ON retryd_jobs (queue, due_ms, id) "
    "WHERE (state = 2 OR (state = 4 AND (flags & 1) = 0))",
    "CREATE INDEX IF NOT EXISTS retryd_jobs_free ON retryd_jobs (queue, id) WHERE state = 3",
    "CREATE INDEX IF NOT EXISTS retryd_jobs_all ON retryd_jobs (queue, id) "
    "WHERE (state IN (2, 3, 4) AND (flags & 1) = 1)",
    "CREATE INDEX IF NOT EXISTS retryd_jobs_dead ON retryd_jobs (queue, id) WHERE state = 5",
    "CREATE INDEX IF NOT EXISTS retryd_jobs_expiry ON retryd_jobs (expires_ms, id) "
    "WHERE expires_ms > 0 AND state < 5",
    "CREATE TABLE IF NOT EXISTS retryd_bodies (id bigint PRIMARY KEY, users bigint NOT NULL, "
    "bytes bytea NOT NULL)",
    "CREATE TABLE IF NOT EXISTS retryd_queues (id bigint PRIMARY KEY, version bigint NOT NULL, "
    "owner bigint NOT NULL, kind smallint NOT NULL, gone smallint NOT NULL, paused_until_ms bigint NOT NULL, "
    "in_flight_max bigint NOT NULL, circuit smallint NOT NULL, forced smallint NOT NULL, "
    "circuit_since_ms bigint NOT NULL, circuit_until_ms bigint NOT NULL, opened_ms bigint NOT NULL, "
    "pace_until_ms bigint NOT NULL, sleep_ms bigint NOT NULL, pace_ms bigint NOT NULL, "
    "probes integer NOT NULL, name bytea NOT NULL) WITH (fillfactor = 50)",
    "CREATE TABLE IF NOT EXISTS retryd_leases (id bigint PRIMARY KEY, version bigint NOT NULL, "
    "queue bigint NOT NULL, from_ms bigint NOT NULL, until_ms bigint NOT NULL, ttl_s bigint NOT NULL, "
    "grace_s bigint NOT NULL, jobs bigint[] NOT NULL) WITH (fillfactor = 80)",
    "CREATE INDEX IF NOT EXISTS retryd_leases_expiry ON retryd_leases (until_ms, id) WHERE until_ms > 0",
    "CREATE TABLE IF NOT EXISTS retryd_documents (kind smallint NOT NULL, name bytea NOT NULL, "
    "version bigint NOT NULL, expires_ms bigint NOT NULL, value bytea NOT NULL, "
    "PRIMARY KEY (kind, name)) WITH (fillfactor = 80)",
    "CREATE INDEX IF NOT EXISTS retryd_documents_expiry ON retryd_documents (expires_ms, kind, name) "
    "WHERE expires_ms > 0",
    "CREATE TABLE IF NOT EXISTS retryd_events (seq bigint PRIMARY KEY, prev bigint NOT NULL, "
    "job bigint NOT NULL, queue bigint NOT NULL, at_ms bigint NOT NULL, attempt bigint NOT NULL, "
    "took_ms bigint NOT NULL, delay_ms bigint NOT NULL, status integer NOT NULL, type smallint NOT NULL, "
    "reason smallint NOT NULL, text bytea NOT NULL)",
    "CREATE TABLE IF NOT EXISTS retryd_counters (queue bigint NOT NULL, slot smallint NOT NULL, "
    "ready bigint NOT NULL, scheduled bigint NOT NULL, free bigint NOT NULL, leased bigint NOT NULL, "
    "dead bigint NOT NULL, done bigint NOT NULL, bytes bigint NOT NULL, events bigint NOT NULL, "
    "PRIMARY KEY (queue, slot)) WITH (fillfactor = 30)",
    "CREATE TABLE IF NOT EXISTS retryd_nodes (node bigint PRIMARY KEY, batch bigint NOT NULL, "
    "fence bigint NOT NULL, seen_ms bigint NOT NULL) WITH (fillfactor = 30)",
};

/* For people. */
static const char *const VIEWS[] = {
    "CREATE OR REPLACE VIEW retryd_jobs_shown AS SELECT j.id, encode(q.name, 'escape') AS queue_name, "
    "j.queue, %s AS state_name, %s AS reason_name, to_timestamp(j.placed_ms / 1000.0) AS placed, "
    "CASE WHEN j.due_ms > 0 THEN to_timestamp(j.due_ms / 1000.0) END AS due, "
    "CASE WHEN j.expires_ms > 0 THEN to_timestamp(j.expires_ms / 1000.0) END AS expires, "
    "j.attempt, j.claims, j.generation, j.body, j.body_bytes "
    "FROM retryd_jobs j LEFT JOIN retryd_queues q ON q.id = j.queue",
    "CREATE OR REPLACE VIEW retryd_queues_shown AS SELECT q.id, encode(q.name, 'escape') AS name, q.kind, "
    "q.gone, q.paused_until_ms, q.circuit, c.ready, c.scheduled, c.free, c.leased, c.dead, c.done, c.bytes "
    "FROM retryd_queues q LEFT JOIN (SELECT queue, sum(ready) AS ready, sum(scheduled) AS scheduled, "
    "sum(free) AS free, sum(leased) AS leased, sum(dead) AS dead, sum(done) AS done, sum(bytes) AS bytes "
    "FROM retryd_counters GROUP BY queue) c ON c.queue = q.id",
};

/* Tables that change all the time are cleaned all the time. PostgreSQL only; elsewhere it is refused and not
 * needed. */
static const char *const CARE[] = {
    "ALTER TABLE retryd_jobs SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1)",
    "ALTER TABLE retryd_bodies SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1)",
    "ALTER TABLE retryd_events SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1)",
    "ALTER TABLE retryd_documents SET (autovacuum_vacuum_scale_factor = 0.05, "
    "autovacuum_vacuum_cost_delay = 1)",
    "ALTER TABLE retryd_counters SET (autovacuum_vacuum_threshold = 500, "
    "autovacuum_vacuum_scale_factor = 0.05)",
    "ALTER TABLE retryd_nodes SET (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0)",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static rt_code run(PGconn *conn, const char *sql, rt_err *err) {
    PGresult *r = PQexec(conn, sql);
    const ExecStatusType status = PQresultStatus(r);
    rt_code code = RT_OK;
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        const char *words = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
        code = rt_pg_code_of(PQresultErrorField(r, PG_DIAG_SQLSTATE));
        (void)rt_pg_fail(err, code, words != NULL ? words : PQerrorMessage(conn));
    }
    PQclear(r);
    return code;
}

static rt_code run_all(PGconn *conn, const char *const *list, size_t count, rt_err *err) {
    rt_code code = RT_OK;
    for (size_t i = 0; i < count && code == RT_OK; i++) code = run(conn, list[i], err);
    return code;
}

/* "CASE j.state WHEN 1 THEN 'ready' … END" from the names that the program itself uses. */
static void add_names(rt_buf *b, const char *column, int count, const char *(*name)(int)) {
    rt_buf_addf(b, "CASE %s", column);
    for (int i = 1; i < count; i++) rt_buf_addf(b, " WHEN %d THEN '%s'", i, name(i));
    rt_buf_addf(b, " END");
}

static const char *state_name(int state) { return rt_job_state_name((rt_job_state)state); }
static const char *reason_name(int reason) { return rt_reason_name((rt_reason)reason); }

static rt_code make_views(PGconn *conn, rt_err *err) {
    rt_buf states = {0};
    rt_buf reasons = {0};
    rt_buf sql = {0};
    add_names(&states, "j.state", RT_JOB_STATE_COUNT, state_name);
    add_names(&reasons, "j.reason", RT_REASON_COUNT, reason_name);
    rt_code code = RT_OK;
    const char *at = strstr(VIEWS[0], "%s");
    const char *then = strstr(at + 2, "%s");
    rt_buf_add(&sql, (rt_str){.ptr = VIEWS[0], .len = (size_t)(at - VIEWS[0])});
    rt_buf_add(&sql, rt_buf_str(&states));
    rt_buf_add(&sql, (rt_str){.ptr = at + 2, .len = (size_t)(then - at - 2)});
    rt_buf_add(&sql, rt_buf_str(&reasons));
    rt_buf_add(&sql, rt_str_of(then + 2));
    rt_buf_add_char(&sql, '\0');
    if (sql.failed || states.failed || reasons.failed) code = rt_fail(err, RT_E_NOMEM, 0, "views");
    if (code == RT_OK) code = run(conn, sql.ptr, err);
    if (code == RT_OK) code = run(conn, VIEWS[1], err);
    rt_buf_deinit(&states);
    rt_buf_deinit(&reasons);
    rt_buf_deinit(&sql);
    return code;
}

/* ---- the version --------------------------------------------------------------------------------------- */

typedef struct version {
    int64_t version, oldest, tag;
} version;

static rt_code read_version(PGconn *conn, version *out, rt_err *err) {
    // The row is the lock: others who want to migrate wait here.
    const char *const sql = "SELECT version, oldest, tag FROM retryd_schema WHERE one = 1 FOR UPDATE";
    PGresult *r = PQexecParams(conn, sql, 0, NULL, NULL, NULL, NULL, 1);
    rt_code code = RT_OK;
    if (PQresultStatus(r) != PGRES_TUPLES_OK || PQntuples(r) != 1)
        code = rt_pg_fail(err, RT_E_UNAVAILABLE, PQerrorMessage(conn));
    else
        *out = (version){rt_pg_read_i64(r, 0, 0), rt_pg_read_i64(r, 0, 1), rt_pg_read_i64(r, 0, 2)};
    PQclear(r);
    return code;
}

static rt_code insert_row(PGconn *conn, rt_err *err) {
    uint32_t tag = 0;
    if (getrandom(&tag, sizeof tag, 0) != (ssize_t)sizeof tag) return rt_fail(err, RT_E_IO, 0, "getrandom");
    char sql[160];
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO retryd_schema (one, version, oldest, tag) VALUES (1, 0, 0, %u) "
                   "ON CONFLICT (one) DO NOTHING",
                   tag);
    return run(conn, sql, err);
}

static rt_code migrate(PGconn *conn, const version *from, rt_err *err) {
    if (from->version > SCHEMA && from->oldest > SCHEMA) {
        return rt_fail(err, RT_E_INVALID, 0,
                       "the database's tables are of version %d, which this retryd (version %d) cannot "
                       "work beside",
                       (int)from->version, SCHEMA);
    }
    if (from->version >= SCHEMA) return RT_OK;
    rt_code code = run_all(conn, STEPS_1, COUNT(STEPS_1), err);
    if (code == RT_OK) code = make_views(conn, err);
    if (code != RT_OK) return code;
    char sql[128];
    (void)snprintf(sql, sizeof sql, "UPDATE retryd_schema SET version = %d, oldest = %d WHERE one = 1",
                   SCHEMA, SCHEMA_OLDEST);
    return run(conn, sql, err);
}

static bool has_row(PGconn *conn) {
    PGresult *r = PQexec(conn, "SELECT one FROM retryd_schema WHERE one = 1");
    const bool has = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1;
    PQclear(r);
    return has;
}

static rt_code open_once(PGconn *conn, uint32_t *tag, rt_err *err) {
    rt_err unused;
    version v = {0};
    // Where the tables are, the right to make tables is not needed. A table without its row was left by a
    // node that was killed in between.
    const bool there = has_row(conn);
    rt_code code = there ? RT_OK : run(conn, FIRST, err);
    if (code == RT_OK && !there) code = insert_row(conn, err);
    if (code == RT_OK) code = run(conn, "BEGIN", err);
    if (code != RT_OK) return code;
    code = read_version(conn, &v, err);
    if (code == RT_OK) code = migrate(conn, &v, err);
    if (code == RT_OK) code = run(conn, "COMMIT", err);
    else (void)run(conn, "ROLLBACK", &unused);
    if (code != RT_OK) return code;
    if (v.version < SCHEMA) {
        for (size_t i = 0; i < COUNT(CARE); i++) (void)run(conn, CARE[i], &unused);
    }
    *tag = (uint32_t)v.tag;
    return RT_OK;
}

rt_code rt_pg_schema_open(PGconn *conn, uint32_t *tag, rt_err *err) {
    rt_code code = RT_E_CONFLICT; // CREATE … IF NOT EXISTS fails where two do it at the same time
    for (int i = 0; i < TRIES_MAX && code == RT_E_CONFLICT; i++) code = open_once(conn, tag, err);
    return code;
}

/* ---- others ------------------------------------------------------------------------------------------- */

rt_code rt_pg_wait_alone(PGconn *conn, rt_err *err) {
    static const char OTHERS[] =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND application_name = current_setting('application_name') AND pid <> pg_backend_pid()";
    const struct timespec pause = {.tv_nsec = 100 * 1000000L};
    int64_t others = 1;
    for (int i = 0; i < ALONE_TRIES && others > 0; i++) {
        PGresult *r = PQexecParams(conn, OTHERS, 0, NULL, NULL, NULL, NULL, 1);
        const bool good = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1;
        if (good) others = rt_pg_read_i64(r, 0, 0);
        PQclear(r);
        if (!good) return rt_pg_fail(err, RT_E_UNAVAILABLE, PQerrorMessage(conn));
        if (others > 0) (void)nanosleep(&pause, NULL);
    }
    if (others == 0) return RT_OK;
    return rt_fail(err, RT_E_UNAVAILABLE, 0, "the database is in use: %d other sessions of retryd",
                   (int)others);
}
