#include "store/postgres/wire/pipe.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"

enum { NOT_PREPARED, PREPARE_SENT, PREPARED };

/* ---- errors -------------------------------------------------------------------------------------------- */

rt_code rt_pg_fail(rt_err *err, rt_code code, const char *words) {
    rt_str line;
    rt_str rest;
    (void)rt_str_cut(rt_str_of(words), '\n', &line, &rest);
    if (line.len == 0) line = RT_STR("the connection was lost");
    return rt_fail(err, code, 0, "PostgreSQL: %.*s", RT_STR_ARG(line));
}

static bool is_one_of(const char *sqlstate, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strncmp(sqlstate, list[i], strlen(list[i])) == 0) return true;
    }
    return false;
}
#define IS_ONE_OF(sqlstate, list) is_one_of(sqlstate, list, sizeof(list) / sizeof((list)[0]))

/* Another writer was there: our own check (division by zero), unique key, serialization, deadlock, lock
 * timeout. */
static const char *const CONFLICTS[] = {"22012", "23505", "40001", "40P01", "55P03"};
static const char *const FULL[] = {"53100"};
/* The server goes away, has become a standby, or has ended a session that was idle for too long. */
static const char *const GOING[] = {"57P0", "25006", "25P03", "08", "XX"};

rt_code rt_pg_code_of(const char *sqlstate) {
    if (sqlstate == NULL) return RT_E_UNAVAILABLE;
    if (IS_ONE_OF(sqlstate, CONFLICTS)) return RT_E_CONFLICT;
    return IS_ONE_OF(sqlstate, FULL) ? RT_E_FULL : RT_E_UNAVAILABLE;
}

static void stop(rt_pg_pipe *p, rt_code code, const char *words) {
    if (p->code == RT_OK) p->code = rt_pg_fail(&p->err, code, words);
}

static void break_off(rt_pg_pipe *p, const char *words) {
    stop(p, RT_E_UNAVAILABLE, words);
    p->broken = true;
    p->running = false;
}

/* ---- sending ------------------------------------------------------------------------------------------- */

bool rt_pg_pipe_open(rt_pg_pipe *p, PGconn *conn, const char *const *texts, bool may_prepare) {
    rt_pg_pipe_close(p);
    p->conn = conn;
    p->texts = texts;
    p->may_prepare = may_prepare;
    memset(p->prepared, NOT_PREPARED, sizeof p->prepared);
    p->count = p->at = 0;
    p->code = RT_OK;
    p->answered = p->running = p->broken = false;
    if (PQsetnonblocking(conn, 1) == 0 && PQenterPipelineMode(conn) == 1) return true;
    rt_pg_pipe_close(p);
    return false;
}

void rt_pg_pipe_close(rt_pg_pipe *p) {
    PQfinish(p->conn); // NULL is a no-op
    free(p->expected);
    p->conn = NULL;
    p->expected = NULL;
    p->count = p->cap = p->at = 0;
    p->running = false;
}

static bool expect(rt_pg_pipe *p, rt_pg_expected one) {
    if (p->count == p->cap) {
        const size_t cap = p->cap * 2 + 32;
        rt_pg_expected *grown = realloc(p->expected, cap * sizeof *grown);
        if (grown == NULL) {
            if (p->code == RT_OK) p->code = rt_fail(&p->err, RT_E_NOMEM, ENOMEM, "statements");
            return false;
        }
        p->expected = grown;
        p->cap = cap;
    }
    p->expected[p->count++] = one;
    return true;
}

/* A run begins with its first statement. */
static void begin_run(rt_pg_pipe *p) {
    RT_ASSERT(!p->running);
    if (p->count > 0) return;
    p->code = RT_OK;
    p->at = 0;
    p->answered = false;
}

typedef struct bound {
    const char *values[RT_PG_COLUMNS_MAX + 2];
    int lengths[RT_PG_COLUMNS_MAX + 2], formats[RT_PG_COLUMNS_MAX + 2];
} bound;

static int bind_args(const rt_pg_args *args, bound *out) {
    const int count = args == NULL ? 0 : args->count;
    for (int i = 0; i < count; i++) {
        const size_t end = i + 1 < count ? args->at[i + 1] : args->bytes.len;
        out->values[i] = args->bytes.ptr + args->at[i];
        out->lengths[i] = (int)(end - args->at[i]);
        out->formats[i] = 1;
    }
    return count;
}

static bool prepare(rt_pg_pipe *p, int number, const char *name, const rt_pg_args *args) {
    if (p->prepared[number] != NOT_PREPARED) return true;
    const int count = args == NULL ? 0 : args->count;
    if (PQsendPrepare(p->conn, name, p->texts[number], count, args == NULL ? NULL : args->types) != 1)
        return false;
    p->prepared[number] = PREPARE_SENT;
    return expect(p, (rt_pg_expected){.number = number, .prepares = number});
}

void rt_pg_send(rt_pg_pipe *p, int number, const rt_pg_args *args, rt_pg_take *take, void *ctx) {
    begin_run(p);
    if (p->broken || p->code != RT_OK) return;
    if (args != NULL && (args->bytes.failed || args->bytes.len > INT32_MAX)) {
        p->code = rt_fail(&p->err, RT_E_NOMEM, ENOMEM, "a statement's parameters");
        return;
    }
    bound b;
    const int count = bind_args(args, &b);
    char name[16];
    (void)snprintf(name, sizeof name, "retryd%d", number);
    bool sent;
    if (p->may_prepare) {
        sent = prepare(p, number, name, args) &&
               PQsendQueryPrepared(p->conn, name, count, b.values, b.lengths, b.formats, 1) == 1;
    } else {
        sent = PQsendQueryParams(p->conn, p->texts[number], count, args == NULL ? NULL : args->types,
                                 b.values, b.lengths, b.formats, 1) == 1;
    }
    if (!sent) break_off(p, PQerrorMessage(p->conn));
    else if (!expect(p, (rt_pg_expected){.take = take, .ctx = ctx, .number = number, .prepares = -1}))
        break_off(p, "out of memory"); // its result would be taken for another's
}

void rt_pg_end(rt_pg_pipe *p, int64_t within_ms) {
    begin_run(p);
    p->deadline_ms = rt_mono_ms() + within_ms;
    if (p->broken) return;
    if (PQpipelineSync(p->conn) != 1) break_off(p, PQerrorMessage(p->conn));
    else p->running = true;
}

/* ---- receiving ----------------------------------------------------------------------------------------- */

static void note_error(rt_pg_pipe *p, const PGresult *r) {
    const char *sqlstate = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char *words = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    stop(p, rt_pg_code_of(sqlstate), words != NULL ? words : PQresultErrorMessage(r));
    if (sqlstate == NULL || IS_ONE_OF(sqlstate, GOING)) p->broken = true;
}

static void take_result(rt_pg_pipe *p, const PGresult *r) {
    const ExecStatusType status = PQresultStatus(r);
    if (p->at >= p->count) {
        p->broken = true;
        return;
    }
    const rt_pg_expected *e = &p->expected[p->at];
    p->answered = true;
    if (status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE) note_error(p, r);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) return;
    if (e->prepares >= 0) p->prepared[e->prepares] = PREPARED;
    if (e->take == NULL || status != PGRES_TUPLES_OK || p->code != RT_OK) return;
    const rt_code code = e->take(e->ctx, r);
    if (code != RT_OK)
        p->code = rt_fail(&p->err, code, 0, "PostgreSQL: rows of %s cannot be used", p->texts[e->number]);
}

/* What was to be prepared behind a failure was not. */
static void finish_run(rt_pg_pipe *p) {
    for (int i = 0; i < RT_SQL_COUNT; i++) {
        if (p->prepared[i] == PREPARE_SENT) p->prepared[i] = NOT_PREPARED;
    }
    p->running = false;
    p->count = p->at = 0;
}

/* False: nothing more has come. */
static bool take_next(rt_pg_pipe *p) {
    if (PQisBusy(p->conn) == 1) {
        if (PQconsumeInput(p->conn) != 1) {
            break_off(p, PQerrorMessage(p->conn));
            return true;
        }
        if (PQisBusy(p->conn) == 1) return false;
    }
    PGresult *r = PQgetResult(p->conn);
    if (r == NULL) {
        if (!p->answered || PQstatus(p->conn) != CONNECTION_OK) break_off(p, PQerrorMessage(p->conn));
        p->answered = false;
        p->at++;
        return true;
    }
    if (PQresultStatus(r) == PGRES_PIPELINE_SYNC) finish_run(p);
    else take_result(p, r);
    PQclear(r);
    return true;
}

bool rt_pg_step(rt_pg_pipe *p) {
    while (p->running) {
        if (PQflush(p->conn) < 0) break_off(p, PQerrorMessage(p->conn));
        else if (!take_next(p)) break;
    }
    if (p->running && rt_mono_ms() >= p->deadline_ms) break_off(p, "the server does not answer in time");
    if (p->broken) finish_run(p);
    return !p->running;
}

short rt_pg_wants(rt_pg_pipe *p) {
    const bool more = p->running && !p->broken && PQflush(p->conn) == 1;
    return (short)(more ? POLLIN | POLLOUT : POLLIN);
}

void rt_pg_wait(rt_pg_pipe *p) {
    while (!rt_pg_step(p)) {
        struct pollfd fd = {.fd = PQsocket(p->conn), .events = rt_pg_wants(p)};
        const int64_t left = p->deadline_ms - rt_mono_ms();
        (void)poll(&fd, 1, left < 1 ? 1 : (int)left);
    }
}
