#include "store/postgres/wire/connect.h"

#include <stdio.h>

#include "store/postgres/wire/pipe.h"

static void be_quiet(void *ctx, const char *words) {
    (void)ctx;
    (void)words;
}

/* Defaults that a URL, a service file or nothing else has a say in: a dead peer is noticed within seconds,
 * and of several hosts the one that takes writes is chosen. */
PGconn *rt_pg_connect(const rt_pg_server *server, const char *url, rt_err *err) {
    char seconds[16];
    (void)snprintf(seconds, sizeof seconds, "%u", (server->connect_ms + 999) / 1000);
    const char *const names[] = {"connect_timeout",      "keepalives_idle",  "keepalives_interval",
                                 "keepalives_count",     "tcp_user_timeout", "application_name",
                                 "target_session_attrs", "dbname",           NULL};
    const char *const values[] = {seconds, "10", "5", "3", "15000", "retryd", "read-write", url, NULL};
    PGconn *conn = PQconnectdbParams(names, values, 1);
    if (conn != NULL && PQstatus(conn) == CONNECTION_OK) {
        (void)PQsetNoticeProcessor(conn, be_quiet, NULL);
        return conn;
    }
    (void)rt_pg_fail(err, RT_E_UNAVAILABLE, conn == NULL ? "out of memory" : PQerrorMessage(conn));
    PQfinish(conn);
    return NULL;
}

bool rt_pg_has_session(PGconn *conn) {
    PGresult *r = PQexecParams(conn, "SELECT pg_backend_pid()", 0, NULL, NULL, NULL, NULL, 1);
    const bool good = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1;
    // A pooler makes up a number of its own.
    const bool same = good && rt_pg_read_i64(r, 0, 0) == PQbackendPID(conn);
    PQclear(r);
    return same;
}

void rt_pg_be_watched(PGconn *conn) {
    PQclear(PQexec(conn, "SELECT set_config(s.name, v.setting, false) FROM (VALUES ('tcp_keepalives_idle', '2'), "
                         "('tcp_keepalives_interval', '1'), ('tcp_keepalives_count', '3'), "
                         "('tcp_user_timeout', '5000')) AS v(name, setting) "
                         "JOIN pg_settings s ON s.name = v.name"));
}
