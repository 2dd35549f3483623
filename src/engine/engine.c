#include <stdlib.h>

#include "engine/machine/machine.h"

enum { BATCHES_MAX = 4, TIDY_OPS_LEAST = 512, TIDY_EVERY_MS = 60000, PUBLISH_EVERY_MS = 1000 };

rt_engine_settings rt_engine_settings_default(void) {
    return (rt_engine_settings){
        .in_flight_max = 4096,
        .in_flight_bytes_max = 64u << 20,
        .queue_in_flight_max = 64,
        .batch_commands_max = 1024,
        .message_ttl_s = 3600,
        .history_ms = INT64_C(7) * 24 * 3600 * 1000,
        .lease_margin_ms = 5000,
        .schedule_period_ms = 15000,
        .lock_timeout_ms = 60000,
        .node = "",
    };
}

rt_code rt_engine_open(rt_store *store, const rt_executor *executor, const rt_engine_settings *settings,
                       uint64_t seed, rt_engine **out, rt_err *err) {
    rt_engine *e = calloc(1, sizeof *e);
    if (e == NULL) return rt_fail(err, RT_E_NOMEM, 0, "engine");
    e->store = store;
    e->executor = *executor;
    e->settings = *settings;
    e->answers.bytes_max = settings->answers_bytes_max;
    e->rng = rt_rng_seeded(seed);
    e->tx.ops = calloc(RT_CHANGE_OPS_MAX, sizeof *e->tx.ops);
    if (store->loads) e->warming = calloc(RT_WARM_MAX, sizeof(rt_command *));
    if (e->tx.ops == NULL || (store->loads && e->warming == NULL)) {
        free(e->tx.ops);
        free(e->warming);
        free(e);
        return rt_fail(err, RT_E_NOMEM, 0, "engine");
    }
    rt_metrics_init(&e->metrics);
    e->waiting.inbox = &e->inbox;
    e->batch_max = settings->batch_commands_max;
    rt_schedule_init(&e->schedule, settings->in_flight_max, settings->in_flight_bytes_max);
    rt_flights_init(&e->flights, rt_rng_next(&e->rng));
    e->schedule.self = e->flights.last_token; // as random as any
    e->ready_pending = true;
    e->wakes_pending = true;
    e->cursors_pending = true;
    e->expiry_at_ms = 0;
    e->patrol_at_ms = 0;
    e->poll_at_ms = INT64_MIN;
    e->look_at_ms = INT64_MIN;
    e->tidy_at_ms = INT64_MIN;
    e->publish_at_ms = INT64_MIN;
    e->store_pause_until_ms = INT64_MIN;
    *out = e;
    return RT_OK;
}

void rt_engine_submit(rt_engine *e, rt_command *cmd) {
    RT_ASSERT(cmd->decide != NULL);
    RT_ASSERT(cmd->done != NULL);
    cmd->tries = 0;
    cmd->confirmed = false;
    rt_command_list_push(&e->inbox, cmd);
}

void rt_engine_outcome(rt_engine *e, const rt_outcome *outcome) { rt_attempts_outcome(e, outcome); }

/* Trims history along with other work; without any, once a minute. */
static void tidy(rt_engine *e) {
    if (e->now_ms < e->store_pause_until_ms) return;
    if (e->open == NULL && !e->tidy_pending && e->now_ms < e->tidy_at_ms) return;
    rt_batch *b = rt_batch_open(e);
    if (b == NULL) return;
    e->tidy_at_ms = e->now_ms + TIDY_EVERY_MS;
    // A line of history that goes is two writes: what goes must keep up with what comes.
    e->tidy_pending = rt_store_tidy(e->store, e->now_ms, TIDY_OPS_LEAST + 2 * b->writes);
    b->tidied = true;
}

/* A store that has no descriptor to tell by is asked again for batches whose end it did not know; one over a network, so
 * that it sees that nobody answers. */
static int64_t ask_again_ms(const rt_engine *e) {
    return e->ended_count > 0 && (e->store->fd < 0 || e->store->loads) ? e->now_ms + RT_STORE_PAUSE_MS : INT64_MAX;
}

static int64_t next_step_ms(const rt_engine *e) {
    if (e->inbox.count > 0) return e->now_ms;
    int64_t next = rt_earlier(rt_upkeep_next_ms(e), e->tidy_pending ? e->now_ms : e->tidy_at_ms);
    next = rt_earlier(next, ask_again_ms(e));
    if (e->own.count > 0) next = e->now_ms;
    const bool late = atomic_load_explicit(&e->metrics.oldest_due_ms, memory_order_relaxed) != 0;
    if (late)
        next = rt_earlier(next, e->publish_at_ms); // or the metric would stay when the lateness has gone
    if (!e->draining) {
        if (e->ready_pending && !rt_schedule_is_full(&e->schedule)) next = e->now_ms;
        next = rt_earlier(next, rt_schedule_next_ms(&e->schedule, e->now_ms));
    }
    // The engine's own work waits while the store is failing; commands try it each time.
    return next < e->store_pause_until_ms ? e->store_pause_until_ms : next;
}

/* Due time of the first job that waits for its turn, or for an outcome of its queue; 0: none does. */
static int64_t oldest_due_ms(const rt_engine *e) {
    int64_t oldest = INT64_MAX;
    size_t at = 0;
    for (const rt_lane *lane; (lane = rt_map_next(&e->schedule.lanes, &at)) != NULL;) {
        if (lane->backlog && lane->paused_until_ms <= e->now_ms)
            oldest = rt_earlier(oldest, lane->wake.at_ms);
    }
    return oldest > e->now_ms ? 0 : oldest;
}

static void publish(rt_engine *e) {
    rt_metrics *m = &e->metrics;
    if (e->now_ms >= e->publish_at_ms) { // it walks over all lanes
        e->publish_at_ms = e->now_ms + PUBLISH_EVERY_MS;
        atomic_store_explicit(&m->oldest_due_ms, oldest_due_ms(e), memory_order_relaxed);
    }
    atomic_store_explicit(&m->attempts_in_flight, e->schedule.in_flight, memory_order_relaxed);
    atomic_store_explicit(&m->bytes_in_flight, e->schedule.bytes, memory_order_relaxed);
}

/* The wall clock was set back. What is stored stays where it is, but no wait of our own lasts longer for it. */
static void set_back(rt_engine *e, int64_t by_ms) {
    rt_heap_hasten(&e->flights.deadlines, by_ms);
    rt_heap_hasten(&e->cursors, by_ms);
    rt_heap_hasten(&e->waiting.deadlines, by_ms);
    e->poll_at_ms = INT64_MIN;
    e->look_at_ms = INT64_MIN;
    e->tidy_at_ms = INT64_MIN;
    e->publish_at_ms = INT64_MIN;
    e->patrol_at_ms = INT64_MIN;
    e->store_pause_until_ms = INT64_MIN;
    rt_schedule_set_back(&e->schedule, e->now_ms);
}

int64_t rt_engine_step(rt_engine *e, int64_t now_ms) {
    const int64_t back_ms = e->now_ms - now_ms;
    e->now_ms = now_ms;
    if (back_ms > 0) set_back(e, back_ms);
    rt_batch_settle(e);
    // Where reading takes round trips, what comes in meanwhile makes up the next batch.
    const size_t most = e->store->loads ? 1 : BATCHES_MAX;
    if (e->ended_count >= most) return ask_again_ms(e); // nothing more until one has ended
    rt_upkeep(e);
    const size_t commands_max =
        e->batch_max < e->settings.batch_commands_max ? e->batch_max : e->settings.batch_commands_max;
    const bool alone = e->callers_alone;
    e->callers_alone = false;
    rt_warm_commands(e, commands_max);
    if (!alone) rt_batch_decide_own(e); // first: outcomes and upkeep free what new work needs
    rt_batch_decide(e, commands_max);
    if (!alone) rt_take_due(e);
    if (!alone) tidy(e);
    rt_batch_submit(e);
    rt_batch_settle(e);
    publish(e);
    return next_step_ms(e);
}

void rt_engine_drain(rt_engine *e) {
    e->draining = true;
    rt_waiting_close(&e->waiting);
}

size_t rt_engine_busy(const rt_engine *e) {
    return e->inbox.count + e->own.count + e->ended_count + e->flights.by_job.count;
}

rt_code rt_engine_trouble(const rt_engine *e, rt_err *why) {
    if (e->trouble != RT_OK && why != NULL) *why = e->trouble_why;
    return e->trouble;
}

rt_code rt_engine_view(rt_engine *e, rt_view **out, rt_err *err) { return rt_store_view(e->store, out, err); }
uint32_t rt_engine_tag(const rt_engine *e) { return e->store->tag; }
rt_metrics *rt_engine_metrics(rt_engine *e) { return &e->metrics; }

void rt_engine_answered(rt_engine *e, rt_command *cmd) { rt_answers_taken(&e->answers, cmd); }

static void refuse_all(rt_command_list *list) {
    rt_command *cmd;
    while ((cmd = rt_command_list_pop(list)) != NULL) {
        cmd->code = rt_fail(&cmd->err, RT_E_UNAVAILABLE, 0, "the server is stopping");
        cmd->done(cmd);
    }
}

void rt_engine_close(rt_engine *e) {
    if (e == NULL) return;
    rt_store_abandon(e->store);
    for (rt_batch *b = e->ended_first, *next; b != NULL; b = next) {
        next = b->next;
        refuse_all(&b->own);
        refuse_all(&b->commands);
        rt_batch_free(b);
    }
    rt_waiting_deinit(&e->waiting);
    refuse_all(&e->inbox);
    rt_upkeep_close(e);
    rt_flights_deinit(&e->flights);
    rt_schedule_deinit(&e->schedule);
    rt_arena_deinit(&e->arena);
    free(e->tx.ops);
    free(e->warming);
    free(e);
}
