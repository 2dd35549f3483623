#include <stdlib.h>
#include <string.h>

#include "base/pack.h"
#include "engine/calls/call.h"
#include "engine/machine/machine.h"
#include "engine/orders/order.h"
#include "engine/work/history.h"

enum { CALL_OPS_MAX = 8 }; /* between a call's body and its job */

uint64_t rt_engine_us(const rt_engine *e) { return e->settings.mono_us == NULL ? 0 : e->settings.mono_us(); }

rt_batch *rt_batch_open(rt_engine *e) {
    if (e->open != NULL) return e->open;
    rt_view *view = rt_store_batch(e->store, &e->err);
    if (view == NULL) {
        e->trouble = RT_E_UNAVAILABLE;
        e->trouble_why = e->err;
        e->store_pause_until_ms = e->now_ms + RT_STORE_PAUSE_MS;
        return NULL;
    }
    rt_batch *b = calloc(1, sizeof *b);
    if (b == NULL) {
        rt_store_abandon(e->store);
        return NULL;
    }
    b->no = ++e->batch_no;
    b->begun_us = rt_engine_us(e);
    b->ready_from = e->ready_after;
    e->open = b;
    return b;
}

rt_tx *rt_batch_tx(rt_engine *e) {
    if (rt_batch_open(e) == NULL) return NULL;
    rt_arena_clear(&e->arena);
    rt_tx *tx = &e->tx;
    *tx = (rt_tx){
        .view = rt_store_batch(e->store, &e->err),
        .now_ms = e->now_ms,
        .rng = &e->rng,
        .arena = &e->arena,
        .err = &e->err,
        .store = e->store,
        .settings = &e->settings,
        .flights = &e->flights,
        .schedule = &e->schedule,
        .waiting = &e->waiting,
        .answers = &e->answers,
        .ops = tx->ops,
    };
    e->err = (rt_err){0};
    return tx->view == NULL ? NULL : tx;
}

/* ---- taking note --------------------------------------------------------------------------------------- */

static void note_expiry(rt_engine *e, int64_t at_ms) {
    if (at_ms > 0 && at_ms < e->expiry_at_ms) e->expiry_at_ms = at_ms;
}

static void count_end(rt_tally *t, const rt_job *was, const rt_job *now) {
    if (now->state == RT_JOB_DEAD) t->dead[now->reason]++;
    if (now->state != RT_JOB_DONE || was == NULL) return;
    const bool message = (now->flags & RT_JOB_PULL) != 0;
    if (now->reason == RT_REASON_DELIVERED) t->delivered++;
    else if (message && now->reason == RT_REASON_EXPIRED) t->expired++;
    else if (message) t->deleted++;
}

static void count_call(rt_tally *t, const rt_job *was, const rt_job *now) {
    if (was != NULL && was->state == RT_JOB_DEAD && now->state != RT_JOB_DEAD && now->state != RT_JOB_DONE) t->redriven++;
    if (now->state == RT_JOB_DEAD) t->dead[now->reason]++;
}

/* A holder is no message of anybody's: it only keeps a body while its fan-out goes on. Nor is work, whose events count, nor
 * are tasks, whose orders count. */
static void count_job(rt_tally *t, const rt_job *was, const rt_job *now) {
    if (now->flags & RT_JOB_CALL) count_call(t, was, now);
    if (now->flags & (RT_JOB_HOLDER | RT_JOB_WORK | RT_JOB_TASK | RT_JOB_CALL)) return;
    const bool message = (now->flags & RT_JOB_PULL) != 0;
    if (was == NULL && message) t->posted++;
    if (was == NULL && !message) t->created++;
    if (was != NULL && was->state == RT_JOB_DEAD && now->state == RT_JOB_SCHEDULED) t->redriven++;
    if (message && now->state == RT_JOB_LEASED) t->claimed++;
    count_end(t, was, now);
}

/* What has become free may be waited for. */
static void tell_of_work(rt_engine *e, const rt_job *job) {
    if (job->state != RT_JOB_FREE) return;
    rt_waiting_tell(&e->waiting, job->queue);
    rt_waiting_tell(&e->waiting, job->key_hash);
}

/* Workers have fetched it: that is a start. */
static void note_fetched(rt_engine *e, const rt_job *job) {
    const rt_lane *lane = rt_map_get(&e->schedule.lanes, job->queue);
    if (lane != NULL && lane->brakes != NULL) rt_lane_brakes_started(lane->brakes, e->now_ms);
}

static void note_call(rt_engine *e, const rt_job *job) {
    if (!(job->flags & RT_JOB_PULL)) return;
    if (job->state == RT_JOB_FREE) rt_waiting_tell(&e->waiting, job->queue);
    if (job->state == RT_JOB_LEASED) note_fetched(e, job);
}

/* The place of its type's counters; their name is on its queue's record. */
static uint32_t type_of_call(rt_engine *e, const rt_tx *tx, rt_id queue) {
    const uint32_t known = rt_call_metrics_find(&e->metrics.calls, queue);
    rt_queue record;
    if (known < RT_CALL_TYPES_COUNTED) return known;
    rt_code code = rt_view_queue(tx->view, queue, &record);
    // Once for each type: the decision itself had no need of it.
    if (code == RT_E_AGAIN && rt_store_load(e->store, &e->err) == RT_OK) code = rt_view_queue(tx->view, queue, &record);
    if (code != RT_OK) return known;
    return rt_call_metrics_add(&e->metrics.calls, queue, record.name);
}

/* The body that this change gives to a new call: it is written right before its job, see call.c. */
static bool body_of_call(const rt_tx *tx, uint32_t at, rt_call *out) {
    const rt_id body = tx->ops[at].job.now->body;
    for (uint32_t i = at; i > 0 && at - i < CALL_OPS_MAX; i--) {
        const rt_op *op = &tx->ops[i - 1];
        if (op->kind == RT_OP_BODY && op->body.id == body) return rt_call_decode(op->body.bytes, out);
    }
    return false;
}

static void count_type(rt_engine *e, const rt_tx *tx, uint32_t at) {
    const rt_job *was = tx->ops[at].job.was, *now = tx->ops[at].job.now;
    if (now == NULL || !(now->flags & RT_JOB_CALL)) return;
    rt_call_tally *t = &e->open->tally.calls;
    const bool succeeded = was != NULL && now->state == RT_JOB_DONE && now->reason == RT_REASON_DELIVERED;
    const bool failed = was != NULL && !succeeded && now->attempt > was->attempt;
    const bool died = was != NULL && now->state == RT_JOB_DEAD;
    if (was != NULL && !succeeded && !failed && !died) return;
    const uint32_t type = type_of_call(e, tx, now->queue);
    rt_call call;
    t->any = true;
    if (succeeded) t->counts[type][RT_CALL_SUCCEEDED]++;
    if (failed) t->counts[type][RT_CALL_FAILED]++;
    if (died) t->counts[type][RT_CALL_DIED]++;
    if (was == NULL && body_of_call(tx, at, &call))
        t->scheduled[rt_call_metrics_reason(&e->metrics.calls, type, call.reason)]++;
}

static void note_job(rt_engine *e, rt_tally *t, const rt_job *was, const rt_job *now) {
    if (now == NULL) return;
    if (now->flags & RT_JOB_WORK) tell_of_work(e, now);
    if (now->flags & RT_JOB_CALL) note_call(e, now);
    count_job(t, was, now);
    if (now->state == RT_JOB_READY) e->ready_pending = true;
    const bool waits =
        now->state == RT_JOB_SCHEDULED || (now->state == RT_JOB_LEASED && !(now->flags & RT_JOB_PULL));
    // Out of memory: the wake time is on disk, and the next look at all of them finds it.
    if (waits && !rt_schedule_wake(&e->schedule, now->queue, now->due_ms)) e->wakes_pending = true;
    if (now->state != RT_JOB_DONE && now->state != RT_JOB_DEAD) note_expiry(e, now->expires_ms);
}

/* Has what holds workers up changed? The pace, which changes with every outcome, is waited for by time. */
static bool lets_workers_on(const rt_queue *was, const rt_queue *now) {
    if (now->kind == RT_QUEUE_WORK || was == NULL) return now->kind == RT_QUEUE_WORK;
    if (now->kind != RT_QUEUE_CALLS) return false;
    const rt_brakes *a = &was->brakes, *b = &now->brakes;
    return a->circuit != b->circuit || a->forced != b->forced || a->probes != b->probes ||
           a->pace_until_ms == b->pace_until_ms;
}

/* now NULL: it is gone, and with it whatever held its jobs up. */
static void note_queue(rt_engine *e, const rt_queue *was, const rt_queue *now) {
    if (now != NULL && lets_workers_on(was, now)) rt_waiting_wake_all(&e->waiting); // it may have been resumed
    rt_lane *lane = rt_map_get(&e->schedule.lanes, now != NULL ? now->id : was->id);
    if (lane == NULL) return;
    lane->known = false;
    rt_schedule_turn(&e->schedule, lane);
}

static void note_work(rt_engine *e, rt_tally *t, const rt_event *event) {
    rt_history line;
    if (!rt_history_read(event->text, &line)) return;
    const rt_work_count what = (rt_work_count)(event->type - RT_EVENT_STARTED);
    t->work[rt_work_metrics_at(&e->metrics.work, line.process)][what]++;
    t->worked = true;
}
_Static_assert(RT_EVENT_EXPIRED - RT_EVENT_STARTED == RT_WORK_EXPIRED, "in the same order");

static void note_session(rt_tally *t, const rt_op *op) {
    if (op->doc.was == NULL) t->sessions_started++;
    if (op->doc.now == NULL) t->sessions_ended++;
}

static void note_order(rt_engine *e, rt_tally *t, const rt_op *op) {
    rt_order was = {0}, now = {0};
    if (op->doc.was != NULL && !rt_order_decode(op->doc.was->value, &was)) return;
    if (op->doc.now != NULL && !rt_order_decode(op->doc.now->value, &now)) return;
    if (e->patrol_at_ms == INT64_MAX) e->patrol_at_ms = e->now_ms + e->settings.schedule_period_ms;
    if (op->doc.was == NULL) t->orders[RT_ORDER_CREATED]++;
    else if (op->doc.now == NULL) t->orders[RT_ORDER_DELETED]++;
    else if (now.status == RT_ORDER_ACTIVE) t->orders[RT_ORDER_SUCCEEDED]++;
    else if (now.status == RT_ORDER_ERROR) t->orders[RT_ORDER_FAILED]++;
    else if (now.job != was.job) t->orders[RT_ORDER_REPAIRED]++;
    else if (now.retries != was.retries) t->orders[RT_ORDER_RETRIED]++;
}

static void note_event(rt_engine *e, rt_tally *t, const rt_event *event) {
    if (event->type >= RT_EVENT_STARTED && event->type <= RT_EVENT_EXPIRED) note_work(e, t, event);
    if (event->attempt > 0 && (event->type == RT_EVENT_ATTEMPT || event->type == RT_EVENT_DEAD))
        t->failed[event->reason]++;
}

/* Without memory for it the circuit learns less. */
static void note_lessons(rt_batch *b, const rt_lesson *lessons) {
    for (const rt_lesson *l = lessons; l != NULL; l = l->next) {
        rt_lesson *kept = malloc(sizeof *kept);
        if (kept == NULL) return;
        *kept = *l;
        kept->next = b->lessons;
        b->lessons = kept;
    }
}

static void note_change(rt_engine *e, const rt_tx *tx) {
    rt_tally *t = &e->open->tally;
    t->changes++;
    note_lessons(e->open, tx->lessons);
    for (uint32_t i = 0; i < tx->ops_count; i++) {
        const rt_op *op = &tx->ops[i];
        switch (op->kind) {
        case RT_OP_JOB:
            note_job(e, t, op->job.was, op->job.now);
            count_type(e, tx, i);
            break;
        case RT_OP_QUEUE:
            note_queue(e, op->queue.was, op->queue.now);
            break;
        case RT_OP_LEASE:
            if (op->lease.now != NULL) note_expiry(e, op->lease.now->until_ms);
            break;
        case RT_OP_DOC:
            if ((op->doc.was != NULL ? op->doc.was : op->doc.now)->kind == RT_DOC_SESSION)
                note_session(t, op);
            if ((op->doc.was != NULL ? op->doc.was : op->doc.now)->kind == RT_DOC_ORDER) note_order(e, t, op);
            if (op->doc.now == NULL) break;
            note_expiry(e, op->doc.now->expires_ms);
            if (op->doc.now->kind == RT_DOC_CURSOR && op->doc.was == NULL) {
                rt_cursors_note(e, rt_get_be64((const unsigned char *)op->doc.now->name.ptr));
            }
            break;
        case RT_OP_BODY: break;
        case RT_OP_EVENT: note_event(e, t, op->event); break;
        }
    }
}

/* ---- deciding ------------------------------------------------------------------------------------------ */

rt_code rt_batch_apply(rt_engine *e, rt_tx *tx) {
    if (tx->overflow)
        return rt_fail(tx->err, RT_E_TOO_LARGE, 0, "the request touches too many records at once");
    if (tx->ops_count == 0) return RT_OK;
    const rt_change change = {
        .guards = tx->guards,
        .guards_count = tx->guards_count,
        .ops = tx->ops,
        .ops_count = tx->ops_count,
        .frees = tx->frees,
    };
    const rt_code code = rt_store_apply(e->store, &change, &e->err);
    if (code != RT_OK) return code;
    e->open->writes += tx->ops_count;
    note_change(e, tx);
    if (tx->topics_count > RT_TX_TOPICS_MAX) rt_waiting_wake_all(&e->waiting);
    else
        for (uint32_t i = 0; i < tx->topics_count; i++) rt_waiting_tell(&e->waiting, tx->topics[i]);
    return RT_OK;
}

bool rt_batch_overtaken(rt_command *cmd) {
    if (++cmd->tries < RT_DECIDE_TRIES_MAX) return false;
    cmd->code = rt_fail(&cmd->err, RT_E_UNAVAILABLE, 0, "others keep changing the same records; try again in a moment");
    return true;
}

/* One try. True: settled for this batch (cmd->code says how). False: it must be decided again; AGAIN: after a load. */
static bool decide_once(rt_engine *e, rt_command *cmd) {
    rt_tx *tx = rt_batch_tx(e);
    if (tx == NULL) {
        cmd->code = rt_fail(&cmd->err, RT_E_UNAVAILABLE, 0, "%s", e->err.msg);
        return true;
    }
    cmd->unsure = false;
    const uint64_t told = e->waiting.told; // what is told from here on is news to it
    cmd->wait = NULL;
    rt_code code = cmd->decide(tx, cmd);
    if (cmd->wait != NULL) cmd->wait->seen = told;
    const bool decided = code == RT_OK;
    if (decided) code = rt_batch_apply(e, tx);
    const bool overtaken = decided && code == RT_E_CONFLICT;
    cmd->code = code;
    cmd->err = e->err;
    if (code == RT_E_AGAIN) return false;
    // What others wrote in between may have been read in part: it then makes no sense.
    const bool senseless = code == RT_E_CORRUPT || (decided && code == RT_E_EXISTS);
    const bool torn = senseless && !e->store->sole_owner;
    const bool behind = e->store->lags && (code != RT_OK || tx->ops_count == 0);
    cmd->unsure = (torn || behind) && !cmd->confirmed;
    if (!overtaken) return true;
    atomic_fetch_add_explicit(&e->metrics.conflicts, 1, memory_order_relaxed);
    return rt_batch_overtaken(cmd);
}

static void decide_list(rt_engine *e, rt_command_list *list, size_t max) {
    rt_command_list again = {0};
    for (int round = 0; round < RT_LOAD_ROUNDS_MAX; round++) {
        rt_command *cmd;
        while (max > 0 && (cmd = rt_command_list_pop(list)) != NULL) {
            max--;
            if (!decide_once(e, cmd)) {
                rt_command_list_push(&again, cmd);
            } else if (e->open != NULL) {
                rt_command_list_push(list == &e->own ? &e->open->own : &e->open->commands, cmd);
            } else { // no batch could be had: nothing was promised
                cmd->done(cmd);
            }
        }
        if (again.count == 0) return;
        if (round + 1 == RT_LOAD_ROUNDS_MAX || rt_store_load(e->store, &e->err) != RT_OK) break;
        max += again.count;
        rt_command_list_put_back(list, &again); // what is decided again stands before what came later
    }
    rt_command *cmd;
    while ((cmd = rt_command_list_pop(&again)) != NULL) {
        cmd->code = rt_fail(&cmd->err, RT_E_UNAVAILABLE, 0, "the store does not answer");
        if (e->open != NULL) rt_command_list_push(list == &e->own ? &e->open->own : &e->open->commands, cmd);
        else cmd->done(cmd);
    }
}

void rt_batch_decide(rt_engine *e, size_t max) { decide_list(e, &e->inbox, max); }

void rt_batch_decide_own(rt_engine *e) {
    // Not while the store is known to be failing.
    if (e->now_ms >= e->store_pause_until_ms) decide_list(e, &e->own, e->own.count);
}

/* ---- ending -------------------------------------------------------------------------------------------- */

void rt_batch_free(rt_batch *b) {
    if (b == NULL) return;
    for (rt_lesson *l = b->lessons, *next; l != NULL; l = next) {
        next = l->next;
        free(l);
    }
    free(b);
}

static bool has_unsure(const rt_batch *b) {
    for (const rt_command *cmd = b->commands.first; cmd != NULL; cmd = cmd->next)
        if (cmd->unsure) return true;
    return false;
}

void rt_batch_submit(rt_engine *e) {
    rt_batch *b = e->open;
    if (b == NULL) return;
    e->open = NULL;
    if (b->commands.first == NULL && b->own.first == NULL && b->flights == NULL && b->tally.changes == 0 && !b->tidied) {
        rt_store_abandon(e->store);
        rt_batch_free(b);
        return;
    }
    if (has_unsure(b)) {
        const rt_code code = rt_store_apply(e->store, &(rt_change){.frees = true}, &e->err);
        (void)code; // if that failed, so does the commit
    }
    b->next = NULL;
    if (e->ended_last != NULL) e->ended_last->next = b;
    else e->ended_first = b;
    e->ended_last = b;
    e->ended_count++;
    rt_store_commit(e->store, b->no);
}
