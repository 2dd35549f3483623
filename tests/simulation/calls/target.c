/* target.c: where calls are pushed to: up, down, slow; and nodes that crash while it thinks. */
#include <stdlib.h>

#include "farm.h"

static void start(void *ctx, rt_attempt *what) {
    node *n = ctx;
    farm *f = n->farm;
    account_start(f, what);
    MUST(f, f->attempts_count < ATTEMPTS_MAX, "attempts are bounded");
    const int64_t took_ms = farm_chance(f, 50) ? farm_draw(f, 1000, 9000) : farm_draw(f, 1, 300);
    f->attempts[f->attempts_count++] = (attempt){.what = what,
                                                 .node = n,
                                                 .life = n->life,
                                                 .generation = account_call(f, what->job)->job.generation,
                                                 .started_ms = f->now_ms,
                                                 .answer_ms = f->now_ms + took_ms};
}

rt_executor target_executor(node *n) { return (rt_executor){.ctx = n, .start = start}; }

static uint32_t type_of(const farm *f, rt_id queue) {
    uint32_t t = 0;
    while (t < TYPES && f->queues[t] != queue) t++;
    return t;
}

static void take_out(farm *f, uint32_t at) {
    rt_attempt_free(f->attempts[at].what);
    f->attempts[at] = f->attempts[--f->attempts_count];
}

static void answer(farm *f, uint32_t at) {
    const attempt a = f->attempts[at];
    const uint32_t type = type_of(f, a.what->queue);
    const bool fails = !f->calm && farm_chance(f, type < TYPES && f->down[type] ? 900 : 150);
    rt_outcome o = {
        .job = a.what->job,
        .token = a.what->token,
        .reason = RT_REASON_STATUS,
        .status = 200,
        .took_ms = (uint32_t)(f->now_ms - a.started_ms),
        .retry_after_ms = -1,
    };
    if (fails && farm_chance(f, 50)) o.status = 404;
    else if (fails && farm_chance(f, 300)) o.reason = RT_REASON_CONNECT;
    else if (fails) o.status = 503;
    if (o.reason == RT_REASON_CONNECT) o.status = 0;
    if (fails && farm_chance(f, 200)) o.retry_after_ms = farm_draw(f, 1, 5000);
    take_out(f, at);
    if (a.node->life != a.life) return; // whoever asked is no more
    rt_engine_outcome(a.node->engine, &o);
    a.node->wake_ms = f->now_ms;
}

void target_answer(farm *f) {
    for (uint32_t i = 0; i < f->attempts_count;) {
        if (f->attempts[i].answer_ms <= f->now_ms) answer(f, i);
        else i++;
    }
}

void target_forget(farm *f, node *n) {
    for (uint32_t i = 0; i < f->attempts_count;) {
        if (f->attempts[i].node == n) take_out(f, i);
        else i++;
    }
}

int64_t target_next_ms(const farm *f) {
    int64_t next = INT64_MAX;
    for (uint32_t i = 0; i < f->attempts_count; i++) {
        if (f->attempts[i].answer_ms < next) next = f->attempts[i].answer_ms;
    }
    return next;
}
