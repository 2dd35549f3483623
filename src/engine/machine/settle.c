/* settle.c: the end of a batch: what was decided in it is told, started, counted; or undone. */
#include "engine/machine/machine.h"

static void add(atomic_uint_fast64_t *counter, uint64_t n) {
    if (n > 0) atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static void count_tally(rt_metrics *m, const rt_tally *t) {
    add(&m->messages_posted, t->posted);
    add(&m->messages_claimed, t->claimed);
    add(&m->messages_deleted, t->deleted);
    add(&m->messages_expired, t->expired);
    add(&m->deliveries_created, t->created);
    add(&m->deliveries_done, t->delivered);
    add(&m->attempts_started, t->started);
    add(&m->jobs_redriven, t->redriven);
    for (int i = 0; i < RT_REASON_COUNT; i++) {
        add(&m->attempts_failed[i], t->failed[i]);
        add(&m->jobs_dead[i], t->dead[i]);
    }
}

static void count_work(rt_work_metrics *m, const rt_tally *t) {
    add(&m->sessions_started, t->sessions_started);
    add(&m->sessions_ended, t->sessions_ended);
    if (!t->worked) return;
    for (uint32_t i = 0; i <= RT_WORK_COUNTED; i++) {
        for (uint32_t what = 0; what < RT_WORK_COUNT_COUNT; what++)
            add(&m->counts[i][what], t->work[i][what]);
    }
}

static void count_orders(rt_order_metrics *m, const rt_tally *t) {
    add(&m->runs, t->runs);
    for (uint32_t what = 0; what < RT_ORDER_COUNT_COUNT; what++) add(&m->counts[what], t->orders[what]);
}

static void answer(rt_engine *e, rt_command_list *commands) {
    rt_command *cmd;
    while ((cmd = rt_command_list_pop(commands)) != NULL) {
        if (cmd->code == RT_OK && cmd->wait != NULL && rt_waiting_park(&e->waiting, cmd, e->now_ms)) continue;
        // What it was woken for is still there for another.
        if (cmd->code != RT_OK && cmd->woken_by != 0) rt_waiting_tell(&e->waiting, cmd->woken_by);
        add(&e->metrics.commands, 1);
        if (cmd->code != RT_OK) add(&e->metrics.commands_refused[cmd->code], 1);
        cmd->done(cmd);
    }
}

/* What is in the store as leased must not be started when the lease is about to end: whoever finds it then starts it as
 * well. Where the lease is only ours, it begins now. */
static void start_flight(rt_engine *e, rt_flight *f) {
    if (e->store->sole_owner) {
        const int64_t until_ms = e->now_ms + f->attempt->timeout_ms + e->settings.lease_margin_ms;
        e->executor.start(e->executor.ctx, rt_flights_start(&e->flights, f, until_ms, until_ms));
        return;
    }
    // Nor when the clock was set back since it was decided: nobody knows how much of the lease is left.
    const bool in_time =
        e->now_ms <= f->lease_until_ms - RT_LEASE_RENEW_MS && e->now_ms >= f->lease_until_ms - RT_LEASE_MS;
    // Not started, it is told lost when the lease ends.
    const int64_t lost_ms = rt_earlier(f->lease_until_ms, e->now_ms + RT_LEASE_MS);
    rt_attempt *attempt = rt_flights_start(&e->flights, f, in_time ? f->until_ms : lost_ms,
                                           in_time ? f->lease_until_ms : lost_ms);
    if (in_time) e->executor.start(e->executor.ctx, attempt);
    else rt_attempt_free(attempt);
}

/* Others may have written what these did not see: they are decided again, before what came later. Of the engine's own, which
 * look again by themselves, only those that would be given up. */
static void confirm(rt_command_list *commands, rt_command_list *anew, bool own) {
    rt_command_list sure = {0}, again = {0};
    rt_command *cmd;
    while ((cmd = rt_command_list_pop(commands)) != NULL) {
        const bool unsure = cmd->unsure && (!own || cmd->code == RT_E_CORRUPT);
        cmd->confirmed = cmd->confirmed || unsure;
        rt_command_list_push(unsure ? &again : &sure, cmd);
    }
    *commands = sure;
    rt_command_list_put_back(anew, &again);
}

static void settle_durable(rt_engine *e, rt_batch *b) {
    e->trouble = RT_OK;
    e->store_pause_until_ms = INT64_MIN;
    if (e->batch_max < e->settings.batch_commands_max) e->batch_max *= 2;
    count_tally(&e->metrics, &b->tally);
    count_work(&e->metrics.work, &b->tally);
    count_orders(&e->metrics.orders, &b->tally);
    rt_call_metrics_count(&e->metrics.calls, &b->tally.calls);
    if (b->tally.changes > 0) {
        add(&e->metrics.commits, 1);
        rt_histogram_add(&e->metrics.commit_size, (double)b->tally.changes);
        if (e->settings.mono_us != NULL) {
            rt_histogram_add(&e->metrics.commit_s, (double)(rt_engine_us(e) - b->begun_us) / 1e6);
        }
    }
    for (rt_flight *f = b->flights, *next; f != NULL; f = next) {
        next = f->next;
        f->next = NULL;
        start_flight(e, f);
    }
    for (const rt_lesson *l = b->lessons; l != NULL; l = l->next) rt_circuits_learn(e, l);
    const bool others_write = e->store->lags || !e->store->sole_owner;
    if (others_write) confirm(&b->own, &e->own, true);
    answer(e, &b->own);
    if (others_write) confirm(&b->commands, &e->inbox, false);
    answer(e, &b->commands);
}

/* Nothing of it happened: what was taken is due again, where it was. */
static void undo(rt_engine *e, rt_batch *b) {
    if (e->ready_after > b->ready_from) e->ready_after = b->ready_from;
    e->ready_pending = true;
    e->wakes_pending = true;
    e->wakes_after = 0;
    e->expiry_at_ms = e->now_ms;
    rt_schedule_doubt(&e->schedule);
    for (rt_flight *f = b->flights, *next; f != NULL; f = next) {
        next = f->next;
        rt_attempts_ended(e, f, RT_LANE_UNDONE);
    }
}

/* Refusals too: they may rest on what an earlier command of this batch had written. */
static void refuse(rt_command_list *commands, rt_code code, const rt_err *why) {
    for (rt_command *cmd = commands->first; cmd != NULL; cmd = cmd->next)
        cmd->code = rt_fail(&cmd->err, code, why->sys_errno, "%s", why->msg);
}

static void settle_failed(rt_engine *e, rt_batch *b, const rt_err *why) {
    e->trouble = why->code == RT_OK ? RT_E_UNAVAILABLE : why->code;
    e->trouble_why = *why;
    e->store_pause_until_ms = e->now_ms + RT_STORE_PAUSE_MS;
    add(&e->metrics.commits_failed, 1);
    undo(e, b);
    const rt_code code = why->code == RT_E_FULL ? RT_E_FULL : RT_E_UNAVAILABLE;
    refuse(&b->own, code, why);
    refuse(&b->commands, code, why);
    answer(e, &b->own);
    answer(e, &b->commands);
    rt_waiting_wake_all(&e->waiting); // what they were told of may have been undone, and is there again
}

/* Others wrote what it was decided on: its commands are decided again, half as many at a time, so that one that meets
 * others again and again does not hold up the rest; and once by themselves, for what was started beside them may be what
 * met others, and callers wait for an answer. */
static void settle_conflict(rt_engine *e, rt_batch *b, const rt_err *why) {
    add(&e->metrics.conflicts, 1);
    undo(e, b);
    e->batch_max = b->commands.count > 1 ? b->commands.count / 2 : 1;
    refuse(&b->own, RT_E_CONFLICT, why);
    answer(e, &b->own); // they repeat themselves
    rt_command_list again = {0}, over = {0};
    rt_command *cmd;
    while ((cmd = rt_command_list_pop(&b->commands)) != NULL)
        rt_command_list_push(rt_batch_overtaken(cmd) ? &over : &again, cmd);
    e->callers_alone = again.count > 0;
    rt_command_list_put_back(&e->inbox, &again);
    answer(e, &over);
    rt_waiting_wake_all(&e->waiting);
}

/* The end of a batch is not known, because the store is in trouble. New commands need not wait for that. */
static void settle_later(rt_engine *e, const rt_err *why) {
    e->trouble = why->code;
    e->trouble_why = *why;
    refuse(&e->inbox, RT_E_UNAVAILABLE, why);
    answer(e, &e->inbox);
}

void rt_batch_settle(rt_engine *e) {
    uint64_t no;
    rt_batch_end end;
    rt_err why = {0};
    while (rt_store_poll(e->store, &no, &end, &why)) {
        rt_batch *b = e->ended_first;
        RT_ASSERT(b != NULL);
        RT_ASSERT(b->no == no);
        e->ended_first = b->next;
        if (e->ended_first == NULL) e->ended_last = NULL;
        e->ended_count--;
        switch (end) {
        case RT_BATCH_DURABLE: settle_durable(e, b); break;
        case RT_BATCH_CONFLICT: settle_conflict(e, b, &why); break;
        case RT_BATCH_FAILED: settle_failed(e, b, &why); break;
        }
        rt_batch_free(b);
        why = (rt_err){0};
    }
    if (e->ended_count > 0 && why.code != RT_OK) settle_later(e, &why);
}
