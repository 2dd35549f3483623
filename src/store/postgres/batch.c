#include "store/postgres/batch.h"

#include <string.h>
#include <unistd.h>

#include "os/clock.h"
#include "store/postgres/flush.h"
#include "store/postgres/txn.h"

enum { COMMIT_STATEMENTS = 4 /* a commit has the time of so many statements */ };

/* ---- ends ---------------------------------------------------------------------------------------------- */

static void push_end(rt_pg *s, uint64_t no, rt_batch_end end, const rt_err *why) {
    RT_ASSERT(s->ends_count < RT_PG_ENDS_MAX);
    s->ends[s->ends_count++] = (rt_pg_end_of){.no = no, .end = end, .why = *why};
    rt_pg_turn_over(&s->turn, end);
    if (end != RT_BATCH_DURABLE) {
        s->history.looked = false;
        rt_pg_forget_all(&s->memory);
    } else if (s->commit_shouts) {
        rt_pg_shout(&s->listener);
    }
    rt_pg_wake(&s->link);
}

/* The commit's run is done. */
static void see_end(rt_pg *s) {
    s->committing = false;
    if (s->pipe.broken) { // neither yes nor no
        s->unsure = true;
        const rt_err why = s->pipe.err;
        rt_pg_link_lost(&s->link, s->commit_no, &why);
        return;
    }
    const rt_err why = s->pipe.err;
    const rt_code code = s->pipe.code;
    if (code != RT_OK) rt_pg_roll_back(s);
    push_end(s, s->commit_no,
             code == RT_OK           ? RT_BATCH_DURABLE
             : code == RT_E_CONFLICT ? RT_BATCH_CONFLICT
                                     : RT_BATCH_FAILED,
             &why);
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
    rt_pg_link_lost(&s->link, 0, &why);
}

bool rt_pg_batch_poll(rt_pg *s, uint64_t *batch_no, rt_batch_end *end, rt_err *err) {
    uint64_t news;
    (void)!read(s->link.wake_fd, &news, sizeof news);
    bool durable;
    if (s->committing) {
        if (rt_pg_step(&s->pipe)) see_end(s);
    } else if (s->unsure) {
        if (rt_pg_link_resolved(&s->link, &durable)) {
            s->unsure = false;
            const rt_err why = {.code = RT_E_UNAVAILABLE,
                                .msg = "PostgreSQL: the connection was lost during the commit"};
            push_end(s, s->commit_no, durable ? RT_BATCH_DURABLE : RT_BATCH_FAILED, &why);
        }
    } else {
        look_after_idle(s);
    }
    rt_pg_link_watch(&s->link);
    if (s->ends_count == 0) {
        if (s->unsure && err != NULL) rt_pg_link_why(&s->link, err);
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
        rt_pg_link_why(&s->link, &why);
        (void)rt_fail(err, RT_E_UNAVAILABLE, 0, "the end of the last batch is not known yet: %.150s",
                      why.msg);
        return false;
    }
    if (!rt_pg_link_ready(&s->link, err)) return false;
    rt_pg_wait(&s->pipe);
    return true;
}

rt_view *rt_pg_batch_open(rt_pg *s, rt_err *err) {
    if (s->batch.open) return &s->batch_view.base;
    if (!rt_pg_ready(s, err)) return NULL;
    s->batch.open = true;
    rt_pg_numbers_next(&s->numbers);
    rt_pg_habits_next(&s->habits);
    return &s->batch_view.base;
}

static void forget(rt_pg *s) {
    rt_pg_forget(&s->batch);
    s->numbers.failed = false;
}

void rt_pg_batch_abandon(rt_pg *s) {
    if (s->batch.in_txn) rt_pg_roll_back(s);
    rt_pg_turn_over(&s->turn, RT_BATCH_DURABLE);
    if (s->batch.dirty) s->history.looked = false;
    forget(s);
}

static rt_code take_commit_clock(void *ctx, const PGresult *rows) {
    rt_pg *s = ctx;
    if (PQntuples(rows) == 1)
        rt_pg_clock_note(&s->clock, s->sent_ms, rt_boot_ms(), rt_pg_read_i64(rows, 0, 1));
    return RT_OK;
}

static void send_commit(rt_pg *s) {
    rt_pg_args_clear(&s->args);
    rt_pg_arg_i64(&s->args, s->server.node);
    rt_pg_arg_i64(&s->args, (int64_t)s->commit_no);
    rt_pg_send(&s->pipe, RT_SQL_NODE, &s->args, take_commit_clock, s);
    rt_pg_send(&s->pipe, RT_SQL_COMMIT, NULL, NULL, NULL);
    rt_pg_end(&s->pipe, (int64_t)s->server.statement_ms * COMMIT_STATEMENTS);
    s->committing = true;
    if (rt_pg_step(&s->pipe)) see_end(s);
    rt_pg_link_watch(&s->link);
}

void rt_pg_batch_commit(rt_pg *s, uint64_t batch_no) {
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
        rt_pg_remember(&s->memory, b);
        send_commit(s);
    } else {
        const bool durable = !b->dirty && !b->broken;
        const rt_batch_end failed = b->why.code == RT_E_CONFLICT ? RT_BATCH_CONFLICT : RT_BATCH_FAILED;
        if (b->in_txn) rt_pg_roll_back(s);
        push_end(s, batch_no, durable ? RT_BATCH_DURABLE : failed, &b->why);
    }
    forget(s);
}
