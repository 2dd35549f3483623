#include "executor/executors.h"

#include <string.h>

/* A target that nobody serves may be served after the next start, so the attempt is one that is made again. */
static void fail(const rt_executors *x, rt_attempt *attempt, rt_target target) {
    static const struct {
        rt_reason reason;
        const char *why;
    } NOBODY[RT_TARGET_COUNT] = {
        [RT_TARGET_WEBHOOK] = {RT_REASON_CONNECT, "this server makes no deliveries over HTTP"},
        [RT_TARGET_PLUGIN] = {RT_REASON_NO_PLUGIN, "this server runs no plugins"},
        [RT_TARGET_KAFKA] = {RT_REASON_CONNECT, "no Kafka brokers are configured"},
    };
    const rt_str why = rt_str_of(NOBODY[target].why);
    rt_outcome out = {.job = attempt->job,
                      .token = attempt->token,
                      .reason = NOBODY[target].reason,
                      .retry_after_ms = -1,
                      .text_len = (uint16_t)why.len};
    memcpy(out.text, why.ptr, why.len);
    rt_attempt_free(attempt);
    x->outcome(x->ctx, &out);
}

static void start(void *ctx, rt_attempt *attempt) {
    const rt_executors *x = ctx;
    const rt_target target = rt_attempt_target(attempt->url);
    const rt_executor *executor = &x->of[target];
    if (executor->start != NULL) executor->start(executor->ctx, attempt);
    else fail(x, attempt, target);
}

rt_executor rt_executors_executor(rt_executors *executors) {
    RT_ASSERT(executors->outcome != NULL);
    return (rt_executor){.ctx = executors, .start = start};
}
