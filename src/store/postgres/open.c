#include "store/postgres/open.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "os/clock.h"
#include "store/postgres/look.h"
#include "store/postgres/wire/schema.h"

enum { NODES_KEPT_MS = 24 * 3600 * 1000 };

/* The text itself is never repeated: it may hold a password. */
static rt_code keep_url(char out[RT_PG_TEXT_MAX], const char *url, rt_err *err) {
    char *why = NULL;
    PQconninfoOption *options = PQconninfoParse(url, &why);
    const bool good = options != NULL && strlen(url) < RT_PG_TEXT_MAX;
    PQconninfoFree(options);
    PQfreemem(why);
    if (good) memcpy(out, url, strlen(url) + 1);
    if (good) return RT_OK;
    return rt_fail(err, RT_E_INVALID, 0, "the store's address is no PostgreSQL URL that libpq understands");
}

static bool has_setting(PGconn *conn, const char *name) {
    const char *const values[] = {name};
    const char *const sql = "SELECT 1 FROM pg_settings WHERE name = $1";
    PGresult *r = PQexecParams(conn, sql, 1, NULL, values, NULL, NULL, 0);
    const bool yes = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1;
    PQclear(r);
    return yes;
}

/* In a database that has no LISTEN, shouting would end the transaction; so would asking for a turn. */
static bool can(PGconn *conn, const char *sql) {
    PGresult *r = PQexec(conn, sql);
    const bool yes = PQresultStatus(r) == PGRES_TUPLES_OK;
    PQclear(r);
    return yes;
}

/* What is left of nodes that have been gone for long, and sums of queues that are empty. */
static void sweep(PGconn *conn) {
    char sql[160];
    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM retryd_nodes "
                   "WHERE seen_ms < extract(epoch FROM clock_timestamp()) * 1000 - %d",
                   NODES_KEPT_MS);
    PQclear(PQexec(conn, sql));
    PQclear(PQexec(conn, "DELETE FROM retryd_counters WHERE ready = 0 AND scheduled = 0 AND free = 0 "
                         "AND leased = 0 AND dead = 0 AND done = 0 AND bytes = 0 AND events = 0"));
}

static rt_code read_server(rt_pg *s, PGconn *conn, rt_err *err) {
    rt_sql_flavour flavour = {.statement_ms = s->server.statement_ms};
    for (int i = 0; i < RT_SQL_PLANNER_COUNT; i++)
        flavour.planner[i] = has_setting(conn, RT_SQL_PLANNER[i][0]);
    if (!rt_sql_make(s->server.texts, &flavour, &s->life))
        return rt_fail(err, RT_E_NOMEM, ENOMEM, "statements");
    s->can_shout = can(conn, "SELECT pg_notify('retryd_probe', '')");
    s->turn.can = can(conn, s->server.texts[RT_SQL_TURN]);
    const int64_t sent_ms = rt_boot_ms();
    PGresult *r = PQexecParams(conn, s->server.texts[RT_SQL_CLOCK], 0, NULL, NULL, NULL, NULL, 1);
    if (PQresultStatus(r) == PGRES_TUPLES_OK)
        rt_pg_clock_note(&s->clock, sent_ms, rt_boot_ms(), rt_pg_read_i64(r, 0, 0));
    PQclear(r);
    sweep(conn);
    return RT_OK;
}

static rt_code open_first(rt_pg *s, bool alone, rt_err *err) {
    PGconn *conn = rt_pg_connect(&s->server, s->server.url, err);
    if (conn == NULL) return RT_E_UNAVAILABLE;
    rt_code code = alone ? rt_pg_wait_alone(conn, err) : RT_OK;
    if (code == RT_OK) code = rt_pg_schema_open(conn, &s->base.tag, err);
    if (code == RT_OK) code = read_server(s, conn, err);
    if (code == RT_OK) return rt_pg_link_start(&s->link, conn, err);
    PQfinish(conn);
    return code;
}

static rt_code init(rt_pg *s, const rt_store_postgres_config *cfg, rt_err *err) {
    s->base = (rt_store){.loads = true, .fd = -1};
    s->listener.stop_fd = s->listener.shout_fd = -1;
    s->server.connect_ms = cfg->connect_ms;
    s->server.statement_ms = cfg->statement_ms;
    s->retention = cfg->retention;
    s->eager = cfg->eager;
    s->numbers.wants = 1;
    s->batch_view = (rt_pg_batch_view){.base.ops = &rt_pg_look_ops, .store = s};
    s->reader = (rt_pg_reader){.pipe = &s->pipe, .arena = &s->batch.arena, .within_ms = cfg->statement_ms};
    uint64_t node = 0;
    if (getrandom(&node, sizeof node, 0) != (ssize_t)sizeof node)
        return rt_fail(err, RT_E_IO, errno, "getrandom");
    s->server.node = (int64_t)(node >> 1) | 1;
    s->numbers.slot = (int16_t)(node % RT_PG_SLOTS);
    rt_code code = keep_url(s->server.url, cfg->url, err);
    if (code == RT_OK)
        code = keep_url(s->server.listen_url, cfg->listen_url != NULL ? cfg->listen_url : cfg->url, err);
    return code == RT_OK ? rt_pg_views_init(&s->views, cfg->views_max, &s->server, &s->link, err) : code;
}

rt_code rt_pg_open(const rt_store_postgres_config *cfg, rt_pg **out, rt_err *err) {
    rt_pg *s = calloc(1, sizeof *s);
    if (s == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "store");
    rt_code code = init(s, cfg, err);
    if (code != RT_OK) {
        free(s);
        return code;
    }
    code = rt_pg_link_init(&s->link, &s->server, &s->pipe, err);
    s->base.fd = s->link.poll_fd;
    if (code == RT_OK) code = open_first(s, cfg->alone, err);
    if (code == RT_OK) code = rt_pg_listener_start(&s->listener, &s->link, err);
    if (code != RT_OK) {
        rt_pg_close(s);
        return code;
    }
    *out = s;
    return RT_OK;
}

void rt_pg_close(rt_pg *s) {
    rt_pg_link_stop(&s->link); // both threads end side by side
    rt_pg_listener_close(&s->listener);
    rt_pg_link_close(&s->link);
    rt_pg_views_deinit(&s->views);
    rt_pg_known_deinit(&s->batch);
    rt_pg_memory_deinit(&s->memory);
    rt_pg_args_deinit(&s->args);
    rt_pg_args_deinit(&s->reader.args);
    rt_arena_deinit(&s->life);
    explicit_bzero(&s->server, sizeof s->server);
    free(s);
}
