/* store.c: opening and closing, and the life of a batch. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "os/clock.h"
#include "store/postgres/inside.h"

enum {
    COMMIT_STATEMENTS = 4,   /* a commit has the time of so many statements */
    NODES_KEPT_MS = 24 * 3600 * 1000
};

static rt_pg *pg_of(rt_store *s) { return (rt_pg *)s; }

/* ---- ends ---------------------------------------------------------------------------------------------- */

static void push_end(rt_pg *s, uint64_t no, rt_batch_end end, const rt_err *why) {
    RT_ASSERT(s->ends_count < RT_PG_ENDS_MAX);
    s->ends[s->ends_count++] = (rt_pg_end_of){.no = no, .end = end, .why = *why};
    rt_pg_turn_over(s, end);
    if (end != RT_BATCH_DURABLE) {
        s->history.looked = false;
        rt_pg_forget_all(&s->memory);
    } else if (s->commit_shouts) {
        rt_pg_shout(s);
    }
    rt_pg_wake(s);
}

/* Nobody waits for it; the next run does. */
static void roll_back(rt_pg *s) {
    if (s->pipe.conn == NULL) return;
    rt_pg_send(&s->pipe, RT_SQL_ROLLBACK, NULL, NULL, NULL);
    rt_pg_end(&s->pipe, s->statement_ms);
    (void)rt_pg_step(&s->pipe);
}

/* The commit's run is done. */
static void see_end(rt_pg *s) {
    s->committing = false;
    if (s->pipe.broken) { // neither yes nor no
        s->unsure = true;
        const rt_err why = s->pipe.err;
        rt_pg_link_lost(s, s->commit_no, &why);
        return;
    }
    const rt_err why = s->pipe.err;
    const rt_code code = s->pipe.code;
    if (code != RT_OK) roll_back(s);
    push_end(s, s->commit_no,
             code == RT_OK           ? RT_BATCH_DURABLE
             : code == RT_E_CONFLICT ? RT_BATCH_CONFLICT
                                     : RT_BATCH_FAILED,
             &why);
}

/* epoll tells when the rest of a large commit can be sent. */
static void watch_pouring(rt_pg *s) {
    const bool pours = s->pipe.conn != NULL && (rt_pg_wants(&s->pipe) & POLLOUT) != 0;
    if (pours == s->pours || s->pipe.conn == NULL) return;
    struct epoll_event event = {.events = pours ? EPOLLIN | EPOLLOUT : EPOLLIN};
    (void)epoll_ctl(s->base.fd, EPOLL_CTL_MOD, PQsocket(s->pipe.conn), &event);
    s->pours = pours;
}

/* A connection that ends while nothing is going on. */
static void look_after_idle(rt_pg *s) {
    if (s->pipe.conn == NULL || s->batch.open) return;
    (void)rt_pg_step(&s->pipe);
    if (!s->pipe.broken && !s->pipe.running && PQconsumeInput(s->pipe.conn) != 1) {
        s->pipe.broken = true;
        (void)rt_pg_fail(&s->pipe.err, RT_E_UNAVAILABLE, PQerrorMessage(s->pipe.conn));
    }
    if (!s->pipe.broken) return;
    const rt_err why = s->pipe.err;
    rt_pg_link_lost(s, 0, &why);
}

static bool poll_end(rt_store *store, uint64_t *batch_no, rt_batch_end *end, rt_err *err) {
    rt_pg *s = pg_of(store);
    uint64_t news;
    (void)!read(s->link.wake_fd, &news, sizeof news);
    bool durable;
    if (s->committing) {
        if (rt_pg_step(&s->pipe)) see_end(s);
    } else if (s->unsure) {
        if (rt_pg_link_resolved(s, &durable)) {
            s->unsure = false;
            const rt_err why = {.code = RT_E_UNAVAILABLE, .msg = "PostgreSQL: the connection was lost during the commit"};
            push_end(s, s->commit_no, durable ? RT_BATCH_DURABLE : RT_BATCH_FAILED, &why);
        }
    } else {
        look_after_idle(s);
    }
    watch_pouring(s);
    if (s->ends_count == 0) {
        if (s->unsure && err != NULL) rt_pg_link_why(s, err);
        return false;
    }
    const rt_pg_end_of first = s->ends[0];
    s->ends_count--;
    memmove(&s->ends[0], &s->ends[1], s->ends_count * sizeof s->ends[0]);
    *batch_no = first.no;
    *end = first.end;
    if (first.end != RT_BATCH_DURABLE && err != NULL) *err = first.why;
    return true;
}

/* ---- the batch ----------------------------------------------------------------------------------------- */

bool rt_pg_ready(rt_pg *s, rt_err *err) {
    if (s->committing) { // one connection, one transaction
        rt_pg_wait(&s->pipe);
        see_end(s);
    }
    if (s->unsure) {
        rt_err why;
        rt_pg_link_why(s, &why);
        (void)rt_fail(err, RT_E_UNAVAILABLE, 0, "the end of the last batch is not known yet: %.150s", why.msg);
        return false;
    }
    if (!rt_pg_link_ready(s, err)) return false;
    rt_pg_wait(&s->pipe);
    return true;
}

static rt_view *batch(rt_store *store, rt_err *err) {
    rt_pg *s = pg_of(store);
    if (s->batch.open) return &s->batch_view.base;
    if (!rt_pg_ready(s, err)) return NULL;
    s->batch.open = true;
    s->numbers.given_count = 0;
    s->numbers.usual = s->numbers.taken;
    s->numbers.taken = 0;
    rt_pg_habits_next(&s->habits);
    return &s->batch_view.base;
}

static void forget(rt_pg *s) {
    rt_pg_forget(&s->batch);
    s->numbers.failed = false;
}

static void abandon(rt_store *store) {
    rt_pg *s = pg_of(store);
    if (s->batch.in_txn) roll_back(s);
    rt_pg_turn_over(s, RT_BATCH_DURABLE);
    if (s->batch.dirty) s->history.looked = false;
    forget(s);
}

static rt_code take_commit_clock(void *ctx, const PGresult *rows) {
    rt_pg *s = ctx;
    if (PQntuples(rows) == 1) rt_pg_clock_note(&s->clock, s->sent_ms, rt_boot_ms(), rt_pg_read_i64(rows, 0, 1));
    return RT_OK;
}

static void send_commit(rt_pg *s) {
    rt_pg_args_clear(&s->args);
    rt_pg_arg_i64(&s->args, s->node);
    rt_pg_arg_i64(&s->args, (int64_t)s->commit_no);
    rt_pg_send(&s->pipe, RT_SQL_NODE, &s->args, take_commit_clock, s);
    rt_pg_send(&s->pipe, RT_SQL_COMMIT, NULL, NULL, NULL);
    rt_pg_end(&s->pipe, (int64_t)s->statement_ms * COMMIT_STATEMENTS);
    s->committing = true;
    if (rt_pg_step(&s->pipe)) see_end(s);
    watch_pouring(s);
}

static void commit(rt_store *store, uint64_t batch_no) {
    rt_pg *s = pg_of(store);
    rt_pg_batch *b = &s->batch;
    RT_ASSERT(b->open || !s->committing);
    s->commit_no = batch_no;
    s->commit_shouts = b->shout && s->can_shout;
    s->sent_ms = rt_boot_ms();
    if (s->numbers.failed && !b->broken) {
        (void)rt_fail(&b->why, RT_E_UNAVAILABLE, 0, "PostgreSQL: no numbers for new records");
        b->broken = true;
    }
    if (b->dirty && !b->broken && rt_pg_flush(s, &b->why) == RT_OK) {
        rt_pg_remember(s);
        send_commit(s);
    } else {
        const bool durable = !b->dirty && !b->broken;
        const rt_batch_end failed = b->why.code == RT_E_CONFLICT ? RT_BATCH_CONFLICT : RT_BATCH_FAILED;
        if (b->in_txn) roll_back(s);
        push_end(s, batch_no, durable ? RT_BATCH_DURABLE : failed, &b->why);
    }
    forget(s);
}

static rt_code apply(rt_store *store, const rt_change *change, rt_err *err) {
    if (batch(store, err) == NULL) return RT_E_UNAVAILABLE;
    return rt_pg_apply(pg_of(store), change, err);
}

static rt_code load(rt_store *store, rt_err *err) { return rt_pg_load(pg_of(store), err); }

static bool tidy(rt_store *store, int64_t now_ms, uint32_t ops_max) {
    rt_err err;
    if (batch(store, &err) == NULL) return false;
    return rt_pg_tidy(pg_of(store), now_ms, ops_max);
}

static rt_code view(rt_store *store, rt_view **out, rt_err *err) { return rt_pg_view_open(pg_of(store), out, err); }
static rt_id new_id(rt_store *store) { return RT_PG_HOME | rt_pg_number(pg_of(store)); }
static uint64_t new_seq(rt_store *store) { return rt_pg_number(pg_of(store)); }
static int64_t now_ms(const rt_store *store) { return rt_pg_clock_now(&((const rt_pg *)store)->clock); }
static bool woken(rt_store *store) { return atomic_exchange(&pg_of(store)->link.shouted, false); }

/* ---- the batch's view ---------------------------------------------------------------------------------- */

static rt_code look_up(rt_view *v, rt_pg_record *r, rt_pg_record **out) {
    rt_pg *s = ((rt_pg_batch_view *)v)->store;
    rt_err err;
    if (r == NULL || (!r->known && !rt_pg_recall(s, r) && !rt_pg_want(&s->batch, r))) return RT_E_NOMEM;
    rt_pg_habit_note(&s->habits, r);
    if (!r->known && s->eager && rt_pg_load(s, &err) != RT_OK) return RT_E_UNAVAILABLE;
    if (!r->known) return RT_E_AGAIN;
    *out = r;
    return r->there ? RT_OK : RT_E_ABSENT;
}

static rt_code look_up_number(rt_view *v, rt_pg_part part, uint64_t key, rt_pg_record **out) {
    rt_pg *s = ((rt_pg_batch_view *)v)->store;
    if (key == 0 && part != RT_PG_COUNTERS) return RT_E_ABSENT;
    rt_pg_record *r = rt_pg_know(&s->batch, part, key);
    if (r != NULL && !r->known && rt_pg_is_fresh(&s->numbers, key)) rt_pg_settle_absent(r);
    return look_up(v, r, out);
}

static rt_code get_job(rt_view *v, rt_id id, rt_job *out) {
    rt_pg_record *r;
    const rt_code code = look_up_number(v, RT_PG_JOBS, id, &r);
    if (code == RT_OK) *out = r->job;
    return code;
}

static rt_code get_body(rt_view *v, rt_id id, rt_str *out) {
    rt_pg_record *r;
    const rt_code code = look_up_number(v, RT_PG_BODIES, id, &r);
    if (code == RT_OK) *out = r->body.bytes;
    return code;
}

static rt_code get_queue(rt_view *v, rt_id id, rt_queue *out) {
    rt_pg_record *r;
    const rt_code code = look_up_number(v, RT_PG_QUEUES, id, &r);
    if (code == RT_OK) *out = r->queue;
    return code;
}

static rt_code get_lease(rt_view *v, rt_id id, rt_lease *out) {
    rt_pg_record *r;
    const rt_code code = look_up_number(v, RT_PG_LEASES, id, &r);
    if (code == RT_OK) *out = r->lease;
    return code;
}

static rt_code get_doc(rt_view *v, rt_doc_kind kind, rt_str name, rt_doc *out) {
    rt_pg *s = ((rt_pg_batch_view *)v)->store;
    rt_pg_record *r = rt_pg_know_doc(&s->batch, kind, name);
    if (r != NULL && !r->known && rt_pg_starts_fresh(&s->numbers, name)) rt_pg_settle_absent(r);
    const rt_code code = look_up(v, r, &r);
    if (code == RT_OK) *out = r->doc;
    return code;
}

static rt_code get_event(rt_view *v, uint64_t seq, rt_event *out) {
    rt_pg_record *r;
    const rt_code code = look_up_number(v, RT_PG_EVENTS, seq, &r);
    if (code == RT_OK) *out = r->event;
    return code;
}

rt_counts rt_pg_counts_of(const rt_pg_sums *sums) {
    return (rt_counts){.ready = sums->ready,
                       .scheduled = sums->scheduled,
                       .free = sums->free,
                       .leased = sums->leased,
                       .dead = sums->dead,
                       .done = sums->done,
                       .bytes = sums->bytes};
}

static rt_code get_counts(rt_view *v, rt_id queue, rt_counts *out) {
    rt_pg_record *r;
    const rt_code code = look_up_number(v, RT_PG_COUNTERS, queue, &r);
    if (code == RT_OK) *out = rt_pg_counts_of(&r->sums);
    return code;
}

/* For listings that no decision needs often: what was noted is sent first, so that the database has all of it. */
static rt_pg_reader *read_through(rt_view *v) {
    rt_pg *s = ((rt_pg_batch_view *)v)->store;
    rt_err err;
    if (s->batch.broken) return NULL;
    if (rt_pg_flush(s, &err) != RT_OK) rt_pg_batch_break(s, &err);
    if (rt_pg_finish(s) != RT_OK || s->batch.broken) return NULL;
    rt_pg_flushed(s);
    return &s->reader;
}

static rt_code list_queues(rt_view *v, rt_id after, rt_each_queue *each, void *ctx) {
    rt_pg_reader *r = read_through(v);
    return r == NULL ? RT_E_UNAVAILABLE : rt_pg_page_queues(r, after, each, ctx);
}

static rt_code list_events(rt_view *v, uint64_t after_seq, rt_each_event *each, void *ctx) {
    rt_pg_reader *r = read_through(v);
    return r == NULL ? RT_E_UNAVAILABLE : rt_pg_page_events(r, after_seq, each, ctx);
}

static rt_code list_wakes(rt_view *v, rt_id after_queue, rt_each_wake *each, void *ctx) {
    rt_pg_reader *r = read_through(v);
    return r == NULL ? RT_E_UNAVAILABLE : rt_pg_page_wakes(r, after_queue, each, ctx);
}

static const rt_view_ops BATCH_OPS = {
    .job = get_job,
    .body = get_body,
    .queue = get_queue,
    .lease = get_lease,
    .doc = get_doc,
    .event = get_event,
    .jobs = rt_pg_batch_jobs,
    .docs = rt_pg_batch_docs,
    .queues = list_queues,
    .events = list_events,
    .expiries = rt_pg_batch_expiries,
    .wakes = list_wakes,
    .counts = get_counts,
};

/* ---- opening and closing ------------------------------------------------------------------------------- */

static void close_store(rt_store *store) {
    rt_pg *s = pg_of(store);
    rt_pg_link_close(s);
    rt_pg_views_deinit(s);
    rt_pg_known_deinit(&s->batch);
    rt_pg_memory_deinit(&s->memory);
    rt_pg_args_deinit(&s->args);
    rt_pg_args_deinit(&s->reader.args);
    rt_arena_deinit(&s->life);
    explicit_bzero(s->url, sizeof s->url);
    explicit_bzero(s->listen_url, sizeof s->listen_url);
    free(s);
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
    .now_ms = now_ms,
    .woken = woken,
};

/* The text itself is never repeated: it may hold a password. */
static rt_code keep_url(char out[RT_PG_TEXT_MAX], const char *url, rt_err *err) {
    char *why = NULL;
    PQconninfoOption *options = PQconninfoParse(url, &why);
    const bool good = options != NULL && strlen(url) < RT_PG_TEXT_MAX;
    PQconninfoFree(options);
    PQfreemem(why);
    if (!good) return rt_fail(err, RT_E_INVALID, 0, "the store's address is no PostgreSQL URL that libpq understands");
    memcpy(out, url, strlen(url) + 1);
    return RT_OK;
}

static bool has_setting(PGconn *conn, const char *name) {
    const char *const values[] = {name};
    PGresult *r = PQexecParams(conn, "SELECT 1 FROM pg_settings WHERE name = $1", 1, NULL, values, NULL, NULL, 0);
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
                   "DELETE FROM retryd_nodes WHERE seen_ms < extract(epoch FROM clock_timestamp()) * 1000 - %d",
                   NODES_KEPT_MS);
    PQclear(PQexec(conn, sql));
    PQclear(PQexec(conn, "DELETE FROM retryd_counters WHERE ready = 0 AND scheduled = 0 AND free = 0 AND leased = 0 "
                         "AND dead = 0 AND done = 0 AND bytes = 0 AND events = 0"));
}

static rt_code read_server(rt_pg *s, PGconn *conn, rt_err *err) {
    rt_sql_flavour flavour = {.statement_ms = s->statement_ms};
    for (int i = 0; i < RT_SQL_PLANNER_COUNT; i++) flavour.planner[i] = has_setting(conn, RT_SQL_PLANNER[i][0]);
    if (!rt_sql_make(s->texts, &flavour, &s->life)) return rt_fail(err, RT_E_NOMEM, ENOMEM, "statements");
    s->can_shout = can(conn, "SELECT pg_notify('retryd_probe', '')");
    s->can_turn = can(conn, s->texts[RT_SQL_TURN]);
    const int64_t sent_ms = rt_boot_ms();
    PGresult *r = PQexecParams(conn, s->texts[RT_SQL_CLOCK], 0, NULL, NULL, NULL, NULL, 1);
    if (PQresultStatus(r) == PGRES_TUPLES_OK)
        rt_pg_clock_note(&s->clock, sent_ms, rt_boot_ms(), rt_pg_read_i64(r, 0, 0));
    PQclear(r);
    sweep(conn);
    return RT_OK;
}

static rt_code open_first(rt_pg *s, bool alone, rt_err *err) {
    PGconn *conn = rt_pg_connect(s, s->url, err);
    if (conn == NULL) return RT_E_UNAVAILABLE;
    rt_code code = alone ? rt_pg_wait_alone(conn, err) : RT_OK;
    if (code == RT_OK) code = rt_pg_schema_open(conn, &s->base.tag, err);
    if (code == RT_OK) code = read_server(s, conn, err);
    if (code != RT_OK) {
        PQfinish(conn);
        return code;
    }
    s->link.fresh = conn;
    s->link.session = rt_pg_has_session(conn);
    s->link.wanted = true;
    atomic_store(&s->link.up, true);
    return RT_OK;
}

static rt_code init(rt_pg *s, const rt_store_postgres_config *cfg, rt_err *err) {
    s->base = (rt_store){.ops = &OPS, .loads = true, .fd = -1};
    s->link.wake_fd = s->link.stop_fd = s->link.shout_fd = -1;
    s->connect_ms = cfg->connect_ms;
    s->statement_ms = cfg->statement_ms;
    s->retention = cfg->retention;
    s->eager = cfg->eager;
    s->numbers.wants = 1;
    s->views.max = cfg->views_max;
    s->batch_view = (rt_pg_batch_view){.base.ops = &BATCH_OPS, .store = s};
    s->reader = (rt_pg_reader){.pipe = &s->pipe, .arena = &s->batch.arena, .within_ms = s->statement_ms};
    uint64_t node = 0;
    if (getrandom(&node, sizeof node, 0) != (ssize_t)sizeof node) return rt_fail(err, RT_E_IO, errno, "getrandom");
    s->node = (int64_t)(node >> 1) | 1;
    s->slot = (int16_t)(node % RT_PG_SLOTS);
    const rt_code code = keep_url(s->url, cfg->url, err);
    if (code != RT_OK) return code;
    return keep_url(s->listen_url, cfg->listen_url != NULL ? cfg->listen_url : cfg->url, err);
}

rt_code rt_store_postgres_open(const rt_store_postgres_config *cfg, rt_store **out, rt_err *err) {
    RT_ASSERT(cfg->url != NULL);
    RT_ASSERT(cfg->views_max >= 1 && cfg->views_max <= RT_PG_VIEWS_MAX);
    RT_ASSERT(cfg->connect_ms >= 1000 && cfg->statement_ms >= 100);
    RT_ASSERT(cfg->retention.age_ms >= 1 && cfg->retention.events >= 1);
    rt_pg *s = calloc(1, sizeof *s);
    if (s == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "store");
    rt_code code = init(s, cfg, err);
    if (code == RT_OK) code = rt_pg_views_init(s, err);
    if (code != RT_OK) {
        free(s);
        return code;
    }
    code = rt_pg_link_init(s, err);
    if (code == RT_OK) code = open_first(s, cfg->alone, err);
    if (code == RT_OK) code = rt_pg_link_start(s, err);
    if (code != RT_OK) {
        close_store(&s->base);
        return code;
    }
    *out = &s->base;
    return RT_OK;
}
