/* account.c: what must be so, whatever happens: checked with each batch that reaches the disk, from the batch before. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "farm.h"

void account_failed(const farm *f, const char *fact, const char *fmt, ...) {
    va_list args;
    (void)fprintf(stderr, "simulate_calls: seed %" PRIu64 " at %lld ms: %s\n  ", f->seed,
                  (long long)f->now_ms, fact);
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fprintf(stderr, "\n  again: simulate_calls --seed %" PRIu64 "\n", f->seed);
    abort();
}

static void mix(account *a, uint64_t what) { a->hash = rt_hash_u64(a->hash ^ what); }

known_call *account_call(farm *f, rt_id id) { return rt_map_get(&f->account.by_id, id); }

/* A batch, while it is looked at. */
typedef struct batch {
    farm *farm;
    rt_view *before, *after;
    const rt_job *touched[CALLS_MAX]; /* whose line may have moved */
    uint32_t touched_count;
    bool redriven;
    bool taken[TYPES]; /* calls of it were started or fetched */
} batch;

/* ---- single calls -------------------------------------------------------------------------------------- */

static known_call *learn(const batch *b, const rt_job *job) {
    farm *f = b->farm;
    account *a = &f->account;
    rt_str body;
    rt_call call;
    int64_t number;
    MUST(f, a->count < CALLS_MAX, "too many calls for this simulation");
    MUST(f, rt_view_body(b->after, job->body, &body) == RT_OK && rt_call_decode(body, &call),
         "a body that can be read");
    MUST(f, rt_str_to_i64(call.payload, &number) && number > 0 && number < NUMBERS_MAX,
         "the payload as it came in");
    known_call *c = &a->calls[a->count++];
    *c = (known_call){.job = *job, .number = (uint32_t)number, .past = call.past, .state = RT_JOB_SCHEDULED};
    if (!rt_map_put(&a->by_id, job->id, c)) abort();
    if (call.past == 0) {
        a->made[number]++;
        MUST(f, a->made[number] == 1, "call %lld was made twice", (long long)number);
        return c;
    }
    known_call *past = account_call(f, call.past);
    MUST(f, past != NULL && !past->moved && past->number == c->number, "it goes on from one that died, once");
    past->moved = true;
    return c;
}

static rt_queue queue_in(const farm *f, rt_view *v, rt_id id) {
    rt_queue queue;
    MUST(f, rt_view_queue(v, id, &queue) == RT_OK, "a queue");
    return queue;
}

/* It was taken by somebody in this batch. */
static void check_taken(batch *b, const rt_job *was, const rt_job *now) {
    farm *f = b->farm;
    const rt_queue before = queue_in(f, b->before, now->queue), after = queue_in(f, b->after, now->queue);
    const bool open = before.brakes.circuit == RT_CIRCUIT_OPEN && after.brakes.circuit == RT_CIRCUIT_OPEN;
    MUST(f, !open || before.brakes.circuit_since_ms != after.brakes.circuit_since_ms,
         "call %" PRIx64 " is taken while its circuit is open", now->id);
    if (was != NULL && was->state == RT_JOB_LEASED && (now->flags & RT_JOB_PULL)) {
        rt_lease lease;
        MUST(f, rt_view_lease(b->after, was->lease, &lease) == RT_E_ABSENT, "call %" PRIx64 " is held twice",
             now->id);
    }
    for (uint32_t i = 0; i < TYPES; i++) b->taken[i] = b->taken[i] || f->queues[i] == now->queue;
    if (!(now->flags & RT_JOB_PULL)) return;
    rt_lease lease;
    MUST(f, rt_view_lease(b->after, now->lease, &lease) == RT_OK && lease.jobs[0] == now->id,
         "a lease of its own");
    if (now->queue == f->queues[RATED_TYPE]) limits_fetched(f, lease.from_ms);
    const int64_t early_ms = before.brakes.pace_until_ms - lease.from_ms;
    const bool turned = early_ms > (int64_t)before.brakes.pace_ms; // of a clock that has been set back since
    const bool paced = before.brakes.pace_until_ms == after.brakes.pace_until_ms && before.brakes.pace_ms > 0;
    if (paced && !turned)
        MUST(f, early_ms <= 0, "call %" PRIx64 " is taken before its queue's pace allows", now->id);
}

static void look_at(void *ctx, const rt_job *was, const rt_job *now) {
    batch *b = ctx;
    farm *f = b->farm;
    if (!((now != NULL ? now : was)->flags & RT_JOB_CALL)) return;
    MUST(f, now != NULL, "a call does not vanish");
    known_call *c = was == NULL ? learn(b, now) : account_call(f, now->id);
    MUST(f, c != NULL, "call %" PRIx64 " is known", now->id);
    if (was != NULL) MUST(f, was->state != RT_JOB_DONE, "call %" PRIx64 " is done for good", now->id);
    if (was != NULL && now->generation > was->generation) b->redriven = true;
    else if (was != NULL)
        MUST(f, now->attempt >= was->attempt, "attempts of %" PRIx64 " are not forgotten", now->id);
    const bool taken = now->state == RT_JOB_LEASED &&
                       (was == NULL || was->state != RT_JOB_LEASED || was->lease != now->lease);
    if (taken) check_taken(b, was, now);
    c->job = *now;
    if (now->key_hash != 0) b->touched[b->touched_count++] = &c->job;
}

/* ---- histories ----------------------------------------------------------------------------------------- */

static bool tell(void *ctx, const rt_event *e) {
    batch *b = ctx;
    farm *f = b->farm;
    known_call *c = account_call(f, e->job);
    f->account.last_seq = e->seq;
    f->account.counts[e->type]++;
    mix(&f->account, (uint64_t)e->type << 56 ^ e->job ^ (uint64_t)e->at_ms << 8 ^ e->attempt);
    if (c == NULL) {
        MUST(f, e->type == RT_EVENT_CIRCUIT, "an event of something unknown");
        return true;
    }
    const bool alive = c->state == RT_JOB_SCHEDULED;
    if (e->type == RT_EVENT_ATTEMPT || e->type == RT_EVENT_DELIVERED ||
        (e->type == RT_EVENT_DEAD && e->attempt > 0)) {
        MUST(f, alive, "call %" PRIx64 ": an attempt of what is not pending", e->job);
        limits_learned(f, c, e);
        MUST(f, e->attempt == c->attempt + 1, "call %" PRIx64 ": attempt %u after %u", e->job, e->attempt,
             c->attempt);
        c->attempt = e->attempt;
    }
    if (e->type == RT_EVENT_DELIVERED) c->state = RT_JOB_DONE;
    if (e->type == RT_EVENT_DEAD) {
        MUST(f, alive, "call %" PRIx64 ": dies twice", e->job);
        MUST(f, e->reason != RT_REASON_EXPIRED || e->at_ms >= c->job.placed_ms + MAXIMUM_AGE_S * 1000,
             "call %" PRIx64 ": dies before its age", e->job);
        c->state = RT_JOB_DEAD;
    }
    if (e->type == RT_EVENT_MOVED) {
        MUST(f, c->state == RT_JOB_DEAD && c->moved, "call %" PRIx64 ": goes on without having died", e->job);
        c->state = RT_JOB_DONE;
    }
    if (e->type == RT_EVENT_ENDED) {
        MUST(f, c->state != RT_JOB_DONE, "call %" PRIx64 ": ends twice", e->job);
        c->state = RT_JOB_DONE;
    }
    if (e->type == RT_EVENT_REDRIVEN) {
        MUST(f, c->state == RT_JOB_DEAD, "call %" PRIx64 ": redriven, and was not dead", e->job);
        c->state = RT_JOB_SCHEDULED;
        c->attempt = 0;
    }
    return true;
}

static void compare(const farm *f) {
    for (uint32_t i = 0; i < f->account.count; i++) {
        const known_call *c = &f->account.calls[i];
        const rt_job_state state = (rt_job_state)c->job.state;
        MUST(f, (state == RT_JOB_DEAD) == (c->state == RT_JOB_DEAD),
             "call %" PRIx64 ": dead as in its history", c->job.id);
        MUST(f, (state == RT_JOB_DONE) == (c->state == RT_JOB_DONE),
             "call %" PRIx64 ": done as in its history", c->job.id);
        MUST(f, c->attempt == c->job.attempt, "call %" PRIx64 ": attempts as in its history", c->job.id);
    }
}

/* ---- lines --------------------------------------------------------------------------------------------- */

static bool in_line(const rt_job *job) { return job->state != RT_JOB_DONE && job->state != RT_JOB_DEAD; }

/* Of the calls of one key exactly one has its turn; of the others it was the oldest. */
static void check_line(const batch *b, const rt_job *of) {
    const farm *f = b->farm;
    const rt_job *head = NULL;
    uint32_t waiting = 0;
    rt_id oldest = UINT64_MAX;
    for (uint32_t i = 0; i < f->account.count; i++) {
        const rt_job *job = &f->account.calls[i].job;
        if (job->queue != of->queue || job->key_hash != of->key_hash || !in_line(job)) continue;
        if (rt_line_waits(job)) {
            waiting++;
            if (job->id < oldest) oldest = job->id;
            continue;
        }
        MUST(f, head == NULL, "calls %" PRIx64 " and %" PRIx64 " of one order key", head->id, job->id);
        head = job;
    }
    MUST(f, waiting == 0 || head != NULL, "%u calls of one order key wait for nobody", waiting);
    if (head == NULL || b->redriven || head->generation > 0) return;
    rt_job was;
    const bool new_turn = rt_view_job(b->before, head->id, &was) == RT_OK && rt_line_waits(&was);
    // One that was redriven waits before it, by its id, if that was done while another had its turn.
    rt_job first;
    const bool back = waiting > 0 && rt_view_job(b->after, oldest, &first) == RT_OK && first.generation > 0;
    MUST(f, !new_turn || back || head->id < oldest, "call %" PRIx64 " overtakes %" PRIx64, head->id, oldest);
}

/* ---- brakes -------------------------------------------------------------------------------------------- */

typedef struct holding {
    rt_id queue;
    int64_t since_ms;
    const batch *batch;
    uint32_t probes, leased;
} holding;

static bool count_probe(void *ctx, const rt_job *job) {
    holding *h = ctx;
    rt_lease lease;
    if (job->state != RT_JOB_LEASED) return true;
    h->leased++;
    if (rt_view_lease(h->batch->after, job->lease, &lease) == RT_OK && lease.from_ms >= h->since_ms)
        h->probes++;
    return true;
}

/* It sleeps as long as it said, unless an operator or its type takes it out of there. */
static void check_sleep(const batch *b, const rt_brakes *was, const rt_brakes *now) {
    const farm *f = b->farm;
    if (was->circuit != RT_CIRCUIT_OPEN || was->forced || now->circuit != RT_CIRCUIT_HALF_OPEN) return;
    const int64_t early_ms = was->circuit_until_ms - now->circuit_since_ms;
    const bool turned = early_ms > (int64_t)was->sleep_ms;
    const bool ordered = was->opened_ms != now->opened_ms; // closed, opened and made to probe within a batch
    MUST(f, early_ms <= 0 || turned || ordered, "a circuit wakes %lld ms too early", (long long)early_ms);
}

static void check_brakes(const batch *b, uint32_t type) {
    const farm *f = b->farm;
    const rt_queue q = queue_in(f, b->after, f->queues[type]), before = queue_in(f, b->before, q.id);
    const rt_brakes *k = &q.brakes;
    check_sleep(b, &before.brakes, k);
    mix(&b->farm->account, (uint64_t)k->circuit << 8 ^ k->pace_ms);
    MUST(f, k->circuit != RT_CIRCUIT_CLOSED || (k->opened_ms == 0 && k->probes == 0), "closed is closed");
    MUST(f, k->circuit == RT_CIRCUIT_CLOSED || k->opened_ms != 0, "open since when?");
    MUST(f, k->sleep_ms <= 10000, "sleep is bounded");
    if (!type_is_pulled(type) || k->circuit != RT_CIRCUIT_HALF_OPEN) return;
    holding h = {.queue = q.id, .since_ms = k->circuit_since_ms, .batch = b};
    const rt_job_range all = {.index = RT_INDEX_ALL, .queue = q.id};
    MUST(f, rt_view_jobs(b->after, &all, count_probe, &h) == RT_OK, "calls that are held");
    // After the clock was set back leases of before look younger than they are.
    if (!f->set_back)
        MUST(f, h.probes + k->probes <= 2, "%u probes under way, %u succeeded", h.probes, k->probes);
}

void account_landed(void *ctx, rt_view *before, rt_view *after) {
    static batch b;
    b = (batch){.farm = ctx, .before = before, .after = after};
    farm *f = b.farm;
    rt_memory_each_changed_job(before, after, look_at, &b);
    MUST(f, rt_view_events(after, f->account.last_seq, tell, &b) == RT_OK, "events");
    compare(f);
    for (uint32_t i = 0; i < b.touched_count; i++) check_line(&b, b.touched[i]);
    for (uint32_t i = 0; i < TYPES && f->queues[TYPES - 1] != 0; i++) {
        check_brakes(&b, i);
        limits_landed(f, before, after, i, b.taken[i]);
    }
}

/* ---- starts -------------------------------------------------------------------------------------------- */

void account_start(farm *f, const rt_attempt *a) {
    const known_call *c = account_call(f, a->job);
    MUST(f, c != NULL, "an attempt at something unknown");
    MUST(f, !rt_line_waits(&c->job), "call %" PRIx64 " starts out of its line", a->job);
    for (uint32_t i = 0; i < f->attempts_count; i++) {
        const attempt *other = &f->attempts[i];
        const bool same = other->what->job == a->job && other->node->life == other->life;
        // A clock that leaps forward ends leases, and what was deleted and redriven is another attempt.
        const bool over = f->jumped_ms >= other->started_ms || other->generation != c->job.generation;
        MUST(f, !same || over, "call %" PRIx64 " is under way twice", a->job);
    }
    rt_view *view = rt_memory_disk_view(f->disk);
    if (view == NULL) abort();
    const rt_brakes k = queue_in(f, view, a->queue).brakes;
    rt_view_close(view);
    // What was decided before the circuit opened may start a batch or two later, and no more than that.
    const bool turned = f->jumped_ms >= f->now_ms - 15000;
    const bool lately = k.circuit_since_ms > farm_wall_ms(f) - 1500;
    MUST(f, k.circuit != RT_CIRCUIT_OPEN || lately || turned,
         "call %" PRIx64 " starts while its circuit is open", a->job);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static bool count_doc(void *ctx, const rt_doc *doc) {
    (void)doc;
    ++*(uint32_t *)ctx;
    return true;
}

static uint32_t docs(const farm *f, rt_view *v, rt_doc_kind kind) {
    uint32_t count = 0;
    MUST(f, rt_view_docs(v, kind, RT_STR_EMPTY, RT_STR_EMPTY, count_doc, &count) == RT_OK, "documents");
    return count;
}

void account_close(farm *f, rt_view *view) {
    for (uint32_t i = 0; i < f->account.count; i++) {
        const known_call *c = &f->account.calls[i];
        MUST(f, c->state != RT_JOB_SCHEDULED,
             "call %" PRIx64 " of %u is stuck, state %s, due %lld, wall %lld", c->job.id, c->number,
             rt_job_state_name((rt_job_state)c->job.state), (long long)c->job.due_ms,
             (long long)farm_wall_ms(f));
    }
    for (uint32_t n = 1; n < NUMBERS_MAX; n++) {
        if (f->account.told[n] == 0) continue;
        MUST(f, f->account.made[n] == 1, "call %u was acknowledged, and is not there", n);
        MUST(f, account_call(f, f->account.told[n]) != NULL, "call %u was acknowledged by another id", n);
    }
    MUST(f, docs(f, view, RT_DOC_CALL_LINE) == 0, "a line without calls");
    MUST(f, docs(f, view, RT_DOC_CALL_PLACE) == 0, "places without calls");
    rt_counts counts;
    MUST(f, rt_view_counts(view, 0, &counts) == RT_OK && counts.leased == 0, "nothing is held");
    MUST(f, counts.ready + counts.scheduled + counts.free == 0, "nothing waits");
    for (uint32_t i = 0; i < TYPES; i++)
        MUST(f, queue_in(f, view, f->queues[i]).brakes.forced == 0, "no circuit is forced");
}
