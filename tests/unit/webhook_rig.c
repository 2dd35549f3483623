#include "webhook_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

static void on_outcome(void *ctx, const rt_outcome *outcome) {
    rig *r = ctx;
    pthread_mutex_lock(&r->lock);
    if (r->count == RIG_OUTCOMES_MAX) abort();
    r->outcomes[r->count++] = *outcome;
    pthread_cond_broadcast(&r->more);
    pthread_mutex_unlock(&r->lock);
}

rig *rig_open(rt_webhook_config cfg, const char *allow) {
    rig *r = calloc(1, sizeof *r);
    assert_non_null(r);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->more, NULL);
    cfg.outcome = on_outcome;
    cfg.ctx = r;
    if (cfg.connections_max == 0) cfg.connections_max = 1024;
    if (cfg.excerpt_bytes == 0) cfg.excerpt_bytes = RT_EVENT_TEXT_MAX;
    rt_err err;
    assert_int_equal(rt_address_list_parse(rt_str_of(allow), &cfg.allow, &err), RT_OK);
    assert_int_equal(rt_webhook_open(&cfg, &r->webhook, &err), RT_OK);
    r->executor = rt_webhook_executor(r->webhook);
    return r;
}

rt_attempt rig_attempt(const char *url) {
    return (rt_attempt){.job = 7, .queue = 3, .token = 99, .number = 1, .timeout_ms = 5000, .url = rt_str_of(url),
                        .headers = RT_STR_EMPTY, .message_id = RT_STR("msg_1"),
                        .secrets = {RT_STR_EMPTY, RT_STR_EMPTY}, .subject = RT_STR_EMPTY, .from = RT_STR_EMPTY,
                        .body = RT_STR("{\"body\": 1}")};
}

void rig_start(rig *r, const rt_attempt *like) {
    rt_attempt *a = rt_attempt_new(like);
    assert_non_null(a);
    r->executor.start(r->executor.ctx, a);
}

void rig_wait(rig *r, uint32_t count) {
    struct timespec end;
    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 20;
    int failed = 0;
    pthread_mutex_lock(&r->lock);
    while (r->count < count && failed == 0) failed = pthread_cond_timedwait(&r->more, &r->lock, &end);
    const uint32_t have = r->count;
    pthread_mutex_unlock(&r->lock);
    assert_int_equal(have, count);
}

rt_outcome rig_try(rig *r, const rt_attempt *like) {
    pthread_mutex_lock(&r->lock);
    const uint32_t before = r->count;
    pthread_mutex_unlock(&r->lock);
    rig_start(r, like);
    rig_wait(r, before + 1);
    return r->outcomes[before];
}

rt_outcome rig_get(rig *r, const char *url) {
    const rt_attempt a = rig_attempt(url);
    return rig_try(r, &a);
}

void rig_close(rig *r) {
    rt_webhook_close(r->webhook);
    pthread_cond_destroy(&r->more);
    pthread_mutex_destroy(&r->lock);
    free(r);
}
