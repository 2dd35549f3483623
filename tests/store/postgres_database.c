#include "store/postgres_database.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

static const char *url(void) {
    const char *from_runner = getenv("RETRYD_TEST_POSTGRES");
    if (from_runner != NULL) return from_runner;
    (void)fprintf(stderr, "RETRYD_TEST_POSTGRES is not set: run this through tests/e2e/postgres.py\n");
    exit(EXIT_FAILURE);
}

rt_store_postgres_config postgres_config(void) {
    return (rt_store_postgres_config){
        .url = url(),
        .views_max = 64,
        .connect_ms = 5000,
        .statement_ms = 10000,
        .retention = {.age_ms = INT64_MAX, .events = UINT64_MAX},
        .eager = true,
    };
}

long long postgres_run(const char *sql) {
    PGconn *conn = PQconnectdb(url());
    PGresult *r = PQexec(conn, sql);
    const ExecStatusType status = PQresultStatus(r);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        (void)fprintf(stderr, "%s: %s", sql, PQerrorMessage(conn));
        exit(EXIT_FAILURE);
    }
    const long long value = PQntuples(r) > 0 ? strtoll(PQgetvalue(r, 0, 0), NULL, 10) : 0;
    PQclear(r);
    PQfinish(conn);
    return value;
}

void postgres_empty(void) {
    (void)postgres_run("SET client_min_messages = warning; DROP SCHEMA public CASCADE; CREATE SCHEMA public");
}

void postgres_end_sessions(void) {
    (void)postgres_run("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                       "WHERE pid <> pg_backend_pid() AND datname = current_database()");
}

static rt_code create(void *ctx, rt_retention retention, rt_store **out, rt_err *err) {
    rt_retention *kept = ctx;
    *kept = retention;
    rt_store_postgres_config config = postgres_config();
    config.retention = retention;
    postgres_empty();
    return rt_store_postgres_open(&config, out, err);
}

static rt_code reopen(void *ctx, rt_store **s, rt_err *err) {
    const rt_retention *kept = ctx;
    rt_store_postgres_config config = postgres_config();
    config.retention = *kept;
    rt_store_close(*s);
    *s = NULL;
    return rt_store_postgres_open(&config, s, err);
}

static void destroy(void *ctx, rt_store *s) {
    (void)ctx;
    rt_store_close(s);
}

static void fail_next_commit(void *ctx, rt_store *s) {
    (void)ctx;
    (void)s;
    postgres_end_sessions();
}

static rt_retention retention;

const store_factory POSTGRES_FACTORY = {
    .name = "postgres",
    .ctx = &retention,
    .create = create,
    .reopen = reopen,
    .destroy = destroy,
    .fail_next_commit = fail_next_commit,
};
