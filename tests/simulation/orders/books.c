/* books.c: the invariants of barbican-retry.md §9, by their numbers. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "site.h"

void books_failed(const site *s, const char *fact, const char *fmt, ...) {
    va_list args;
    (void)fprintf(stderr, "simulate_orders: seed %" PRIu64 " at %lld ms: %s\n  ", s->seed,
                  (long long)s->now_ms, fact);
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fprintf(stderr, "\n  again: simulate_orders --seed %" PRIu64 "\n", s->seed);
    abort();
}

/* ---- comparing ----------------------------------------------------------------------------------------- */

static bool is(rt_str found, const char *must) { return rt_str_eq(found, rt_str_of(must)); }

/* 5, 11: all of an order is of one piece. */
static bool matches(const order *o, const rt_order *found) {
    const bool error = o->status == RT_ORDER_ERROR;
    return found->status == o->status && (found->job != 0) == (o->status == RT_ORDER_PENDING) &&
           found->retries == o->retries && found->failures == o->failures && is(found->task, o->task) &&
           is(found->args, o->args) && is(found->kwargs, o->kwargs) && is(found->state, o->state) &&
           found->has_sub_status == o->has_sub_status && is(found->sub_status, o->sub_status) &&
           is(found->sub_status_message, o->message) && is(found->error_code, error ? o->code : "") &&
           is(found->error_reason, error ? o->reason : "") && (found->secret != 0) == (o->made == 1) &&
           (found->container != 0) == (o->made == 2) && (found->secret_ref.len > 0) == (o->made == 3) &&
           found->created_ms == o->created_ms && is(found->type, TYPE_NAMES[o->type]);
}

static bool is_of(const run *r, const site *s, const order *o) {
    return !r->cancel && &s->orders[r->order] == o;
}

/* 1: whoever was given the task last. NULL: nobody was, of this attempt. */
static run *last_run(site *s, const order *o, uint32_t attempt) {
    for (uint32_t i = s->runs_count; i > 0; i--) {
        run *r = &s->runs[i - 1];
        if (is_of(r, s, o)) return r->attempt == attempt ? r : NULL;
    }
    return NULL;
}

/* ---- a task that has ended ----------------------------------------------------------------------------- */

/* Jumps of the clock before something was decided at `wall_ms`: what stands in the future was decided
 * before the last. */
static uint32_t jumps_before(const site *s, int64_t wall_ms) {
    return wall_ms > site_wall_ms(s) ? s->jumps - 1 : s->jumps;
}

/* How long a lease is at first: of a run, or, with one owner, of a worker that answers later. */
static int64_t lease_ms(const site *s) {
    const int64_t run_ms = s->run_limit_ms + rt_engine_settings_default().lease_margin_ms;
    if (s->nodes_count == 1) return ANSWER_LIMIT_S * 1000;
    return run_ms < LEASE_MS ? run_ms : LEASE_MS;
}

/* 6: nobody loses a task before its time. A clock that was set back may hasten it. */
static void check_lost(site *s, const order *o, const rt_event *e, const run *r) {
    const int64_t limit_ms = s->run_limit_ms + rt_engine_settings_default().lease_margin_ms;
    if (o->image.state == RT_JOB_LEASED) {
        MUST(s, o->image.due_ms <= e->at_ms || s->jumps > o->lease_jumps, "6: a lease was ended too early");
        // With one owner only the lease of a worker who answers later is stored.
        const bool later = s->nodes_count == 1 && r != NULL && s->jumps == r->jumps;
        MUST(s, !later || e->at_ms >= r->accepted_wall_ms + ANSWER_LIMIT_S * 1000,
             "6: a worker has more time");
    } else {
        MUST(s, r != NULL, "6: a run was lost that never was");
        MUST(s, r->started_wall_ms + limit_ms <= e->at_ms || s->jumps > r->jumps,
             "6: a run was lost too early");
    }
}

/* 3, 5: what became of the order is what one worker said, all of it, and the one that had the task. */
static void take(site *s, order *o, const rt_order *found, const rt_event *e) {
    run *r = last_run(s, o, e->attempt);
    order now = *o;
    rt_event_type type = RT_EVENT_NONE;
    const bool lost = e->reason == RT_REASON_LOST;
    MUST(s, o->status == RT_ORDER_PENDING, "7: an order that had ended goes on");
    MUST(s, e->attempt == o->attempts + 1, "10: attempt %u after %u", e->attempt, o->attempts);
    if (lost) check_lost(s, o, e, r);
    else MUST(s, r != NULL && r->said && !r->consumed, "1: a result of nobody who holds the task was taken");
    if (!lost && r->words.say == SAY_ACCEPT && o->image.state == RT_JOB_LEASED) {
        MUST(s, e->at_ms < o->image.due_ms || s->jumps > o->lease_jumps,
             "6: a result came too late and was taken");
    }
    const int64_t delay_ms = books_predict(&now, lost ? NULL : &r->words, &type);
    if (!lost) r->consumed = true;
    MUST(s, e->type == type, "5: event %s (%s, %u) instead of %s", rt_event_type_name(e->type),
         rt_reason_name(e->reason), e->status, rt_event_type_name(type));
    MUST(s, matches(&now, found), "5: order %d is not what its worker said", (int)(o - s->orders));
    MUST(s, now.status != RT_ORDER_PENDING || e->delay_ms == delay_ms, "10: waits %u ms", e->delay_ms);
    now.attempts++;
    now.due_ms = e->at_ms + delay_ms;
    now.due_jumps = jumps_before(s, e->at_ms);
    *o = now;
    s->taken++;
    s->lost += lost;
    site_mix(s, (uint64_t)e->at_ms << 8 ^ (uint64_t)type ^ (uint64_t)(o - s->orders) << 50);
}

/* The event of an attempt since the last look; attempt 0: none. */
static rt_event news(site *s, rt_view *view, const order *o, const rt_job *job) {
    rt_event event, out = {.attempt = 0};
    for (uint64_t seq = job->last_event; seq != o->last_event; seq = event.prev) {
        MUST(s, seq != 0 && rt_view_event(view, seq, &event) == RT_OK, "a line of history");
        if (event.attempt == 0) continue;
        MUST(s, out.attempt == 0, "3: two results at once");
        out = event;
    }
    return out;
}

/* ---- orders -------------------------------------------------------------------------------------------- */

typedef struct look {
    site *site;
    rt_view *view;
    uint32_t count;
    bool seen[ORDERS_MAX];
} look;

static void first_sight(site *s, order *o, const rt_order *found) {
    MUST(s, !o->gone, "8: an order that was deleted is back");
    o->there = true;
    o->id = found->id;
    o->job = found->job;
    o->created_ms = found->created_ms;
    o->due_ms = found->created_ms;
    o->due_jumps = jumps_before(s, found->created_ms);
    o->status = RT_ORDER_PENDING;
    (void)snprintf(o->task, sizeof o->task, "create_order");
    (void)snprintf(o->args, sizeof o->args, "[]");
    (void)snprintf(o->kwargs, sizeof o->kwargs, "{}");
}

/* 2, 10: the live task of an order that is PENDING, and when it is due. */
static void check_task(site *s, order *o, const rt_job *job) {
    MUST(s, job->state != RT_JOB_DONE && job->state != RT_JOB_DEAD, "2: a PENDING order without a live task");
    MUST(s, job->flags == RT_JOB_TASK && job->owner == o->id, "2: the task of another");
    MUST(s, job->attempt == o->attempts, "10: attempts");
    if (job->state == RT_JOB_SCHEDULED) {
        const bool woken = o->wake_asked && job->due_ms < o->due_ms;
        MUST(s, job->due_ms == o->due_ms || woken, "10: due at another time than it must be");
        o->due_ms = job->due_ms;
    }
    if (job->state != RT_JOB_LEASED || job->lease == o->image.lease) return;
    o->leases[o->leases_count++ % LEASES_MAX] = job->lease;
    o->lease_jumps = jumps_before(s, job->due_ms - lease_ms(s));
    if (o->wake_asked) o->due_ms = 0; // woken and taken in one batch
}

static bool see_order(void *ctx, const rt_order *found) {
    look *l = ctx;
    site *s = l->site;
    unsigned number = ORDERS_MAX;
    char meta[32];
    (void)snprintf(meta, sizeof meta, "%.*s", RT_STR_ARG(found->meta));
    MUST(s, sscanf(meta, "{\"n\": %u}", &number) == 1 && number < s->orders_count, "9: an order of nobody");
    order *o = &s->orders[number];
    MUST(s, !l->seen[number], "9: one order for each request");
    l->seen[number] = true;
    l->count++;
    if (!o->there) first_sight(s, o, found);
    MUST(s, o->id == found->id, "9: one order for each request");
    rt_job job;
    MUST(s, rt_view_job(l->view, o->job, &job) == RT_OK, "2: the job of order %u", number);
    const rt_event event = news(s, l->view, o, &job);
    if (event.attempt != 0) take(s, o, found, &event);
    MUST(s, matches(o, found), "5, 7: order %u has changed by itself", number);
    if (o->status == RT_ORDER_PENDING) {
        MUST(s, found->job == o->job, "2: another job");
        check_task(s, o, &job);
    } else {
        MUST(s, job.state == RT_JOB_DONE, "2: an order that has ended has a live task");
    }
    o->last_event = job.last_event;
    o->image = job;
    if (o->wakes_open == 0) o->wake_asked = false;
    return true;
}

/* 8, 9: an order goes only when somebody wants it to, and its task with it. */
static void see_gone(site *s, rt_view *view, order *o) {
    rt_job job;
    MUST(s, o->delete_asked, "9: order %d is lost", (int)(o - s->orders));
    MUST(s, rt_view_job(view, o->job, &job) == RT_OK && job.state == RT_JOB_DONE,
         "2: a live task of a deleted order");
    o->there = false;
    o->gone = true;
    o->was_pending = o->status == RT_ORDER_PENDING;
    const rt_event event = news(s, view, o, &job);
    run *r = event.attempt == 0 ? NULL : last_run(s, o, event.attempt);
    if (r != NULL) r->consumed = true; // within the same batch
    site_mix(s, o->id);
}

/* 2: no live task that is nobody's. */
typedef struct tasks {
    site *site;
    uint32_t count;
} tasks;

static bool add_task(void *ctx, const rt_job *job) {
    tasks *t = ctx;
    site *s = t->site;
    if ((job->flags & (RT_JOB_TASK | RT_JOB_CANCEL)) != RT_JOB_TASK) return true;
    bool known = false;
    for (uint32_t i = 0; i < s->orders_count; i++) {
        const order *o = &s->orders[i];
        known = known || (o->there && o->job == job->id && o->status == RT_ORDER_PENDING);
    }
    MUST(s, known, "2: a task of no PENDING order");
    t->count++;
    return true;
}

static bool add_type(void *ctx, rt_str name, const rt_order_type *t) {
    site *s = ctx;
    for (uint32_t i = 0; i < TYPES; i++) {
        if (is(name, TYPE_NAMES[i])) s->queues[i] = t->queue;
    }
    return true;
}

static void count_tasks(site *s, rt_view *view) {
    tasks t = {.site = s};
    uint32_t pending = 0;
    for (uint32_t i = 0; i < s->orders_count; i++)
        pending += s->orders[i].there && s->orders[i].status == RT_ORDER_PENDING;
    MUST(s, rt_read_order_types(view, TENANT, add_type, s) == RT_OK, "types");
    const rt_job_range ready = {.index = RT_INDEX_READY};
    MUST(s, rt_view_jobs(view, &ready, add_task, &t) == RT_OK, "jobs");
    for (uint32_t i = 0; i < TYPES; i++) {
        const rt_job_range due = {.index = RT_INDEX_DUE, .queue = s->queues[i], .until_ms = INT64_MAX};
        if (s->queues[i] != 0) MUST(s, rt_view_jobs(view, &due, add_task, &t) == RT_OK, "jobs");
    }
    MUST(s, t.count == pending, "2: %u live tasks of %u PENDING orders", t.count, pending);
}

/* 12: the total that a listing shows is that of what is there. */
static void look_at_count(site *s, rt_view *view, uint32_t there) {
    int64_t count = 0;
    const rt_code code = rt_read_order_count(view, TENANT, &count);
    MUST(s, code == RT_OK || (code == RT_E_ABSENT && there == 0), "12: %u orders are not counted", there);
    MUST(s, count == (int64_t)there, "12: %u orders are counted as %lld", there, (long long)count);
}

/* ---- the lock ------------------------------------------------------------------------------------------ */

static bool copy_lock(void *ctx, rt_str name, const rt_lock *l) {
    (void)name;
    *(rt_lock *)ctx = *l;
    return true;
}

/* 6: taken when it is free or stale, released by its holder. */
static void look_at_lock(site *s, rt_view *view) {
    rt_lock now = {.token = 0};
    const rt_lock *was = &s->lock;
    MUST(s, rt_read_locks(view, copy_lock, &now) == RT_OK, "locks");
    const rt_str writer = rt_str_of(s->stepping->name);
    if (now.token == 0 && was->token != 0)
        MUST(s, rt_str_eq(was->holder, writer), "6: %s released another's lock", s->stepping->name);
    if (now.token != 0 && (now.token != was->token || now.renewed_ms != was->renewed_ms))
        MUST(s, rt_str_eq(now.holder, writer), "6: a lock of who does not work");
    if (now.token != 0 && was->token != 0 && now.token != was->token) {
        const int64_t age_ms = now.taken_ms - was->renewed_ms;
        MUST(s, age_ms >= LOCK_TIMEOUT_MS || age_ms < -LOCK_TIMEOUT_MS, "6: stolen after %lld ms",
             (long long)age_ms);
        MUST(s, now.token > was->token, "6: a lock's token does not grow");
    }
    s->lock = now;
    (void)snprintf(s->lock_holder, sizeof s->lock_holder, "%.*s", RT_STR_ARG(now.holder));
    s->lock.holder = rt_str_of(s->lock_holder);
}

void books_look(site *s, rt_view *view) {
    look l = {.site = s, .view = view};
    MUST(s, rt_read_orders(view, TENANT, 0, see_order, &l) == RT_OK, "orders");
    for (uint32_t i = 0; i < s->orders_count; i++) {
        if (s->orders[i].there && !l.seen[i]) see_gone(s, view, &s->orders[i]);
    }
    count_tasks(s, view);
    look_at_count(s, view, l.count);
    look_at_lock(s, view);
}
