#include "plugin_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void on_outcome(void *ctx, const rt_outcome *outcome) {
    plugin_rig *r = ctx;
    pthread_mutex_lock(&r->lock);
    if (r->count == RIG_OUTCOMES_MAX) abort();
    r->outcomes[r->count++] = *outcome;
    pthread_cond_broadcast(&r->more);
    pthread_mutex_unlock(&r->lock);
}

static void on_line(void *ctx, rt_str plugin, rt_str line) {
    plugin_rig *r = ctx;
    pthread_mutex_lock(&r->lock);
    const int len = snprintf(r->log + r->log_len, RIG_LOG_BYTES - r->log_len, "%.*s: %.*s\n",
                             RT_STR_ARG(plugin), RT_STR_ARG(line));
    r->log_len += (size_t)len;
    if (r->log_len >= RIG_LOG_BYTES) abort();
    pthread_cond_broadcast(&r->more);
    pthread_mutex_unlock(&r->lock);
}

plugin_rig *rig_open(rt_plugins_config cfg, const char *directory) {
    plugin_rig *r = calloc(1, sizeof *r);
    assert_non_null(r);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->more, NULL);
    cfg.outcome = on_outcome;
    cfg.say = on_line;
    cfg.ctx = cfg.say_ctx = r;
    cfg.directory = directory;
    if (cfg.attempts_max == 0) cfg.attempts_max = RIG_OUTCOMES_MAX;
    if (cfg.processes == 0) cfg.processes = 4;
    rt_err err;
    assert_int_equal(rt_plugins_open(&cfg, &r->plugins, &err), RT_OK);
    r->executor = rt_plugins_executor(r->plugins);
    return r;
}

void rig_start_body(plugin_rig *r, rt_id id, const char *name, const char *body, uint32_t timeout_ms) {
    char url[512];
    (void)snprintf(url, sizeof url, "plugin:%s", name);
    const rt_attempt like = {.job = id,
                             .queue = 3,
                             .token = id + 1000,
                             .number = 1,
                             .timeout_ms = timeout_ms,
                             .answer_max = 4096,
                             .url = rt_str_of(url),
                             .body = rt_str_of(body)};
    rt_attempt *a = rt_attempt_new(&like);
    assert_non_null(a);
    r->executor.start(r->executor.ctx, a);
}

void rig_start(plugin_rig *r, rt_id id, const char *name, const char *task, const char *meta,
               uint32_t timeout_ms) {
    char body[4096];
    (void)snprintf(
        body, sizeof body,
        "{\"order\":\"0a0b\",\"type\":\"t\",\"task\":\"%s\",\"args\":[],\"kwargs\":{},\"meta\":%s,"
        "\"state\":null,\"attempt\":1,\"token\":\"00ff\",\"deadline\":4000000000000,\"verb\":\"run\"}",
        task, meta != NULL ? meta : "{}");
    rig_start_body(r, id, name, body, timeout_ms);
}

/* With the lock. NULL: not there yet. */
static const rt_outcome *find(const plugin_rig *r, rt_id id) {
    for (uint32_t i = r->count; i > 0; i--) {
        if (r->outcomes[i - 1].job == id) return &r->outcomes[i - 1];
    }
    return NULL;
}

static struct timespec in_seconds(int seconds) {
    struct timespec end;
    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += seconds;
    return end;
}

rt_outcome rig_wait(plugin_rig *r, rt_id id) {
    const struct timespec end = in_seconds(30);
    int failed = 0;
    const rt_outcome *found;
    pthread_mutex_lock(&r->lock);
    while ((found = find(r, id)) == NULL && failed == 0)
        failed = pthread_cond_timedwait(&r->more, &r->lock, &end);
    const rt_outcome out = found != NULL ? *found : (rt_outcome){0};
    pthread_mutex_unlock(&r->lock);
    assert_int_equal(out.job, id);
    assert_int_equal(out.token, id + 1000);
    assert_int_equal(out.retry_after_ms, -1);
    return out;
}

rt_outcome rig_run(plugin_rig *r, const char *name, const char *task, const char *meta) {
    static rt_id next = 1000000; // apart from the ids that tests choose
    const rt_id id = next++;
    rig_start(r, id, name, task, meta, 20000);
    return rig_wait(r, id);
}

void rig_wait_log(plugin_rig *r, const char *text) {
    const struct timespec end = in_seconds(30);
    int failed = 0;
    pthread_mutex_lock(&r->lock);
    while (strstr(r->log, text) == NULL && failed == 0)
        failed = pthread_cond_timedwait(&r->more, &r->lock, &end);
    const bool found = strstr(r->log, text) != NULL;
    pthread_mutex_unlock(&r->lock);
    if (!found) fail_msg("\"%s\" is not in the log:\n%s", text, r->log);
}

void rig_close(plugin_rig *r) {
    rt_plugins_close(r->plugins);
    pthread_cond_destroy(&r->more);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

void rig_assert_answer(rt_outcome *o, const char *json) {
    if (o->reason != RT_REASON_STATUS || o->answer == NULL) {
        fail_msg("%s: %.*s", rt_reason_name(o->reason), o->text_len, o->text);
    }
    assert_int_equal(o->status, 200);
    assert_int_equal(o->text_len, 0);
    assert_int_equal(o->answer_len, strlen(o->answer));
    if (strstr(o->answer, json) == NULL) fail_msg("\"%s\" is not in %s", json, o->answer);
    free(o->answer);
    o->answer = NULL;
}

void rig_assert_failed(const rt_outcome *o, rt_reason reason, const char *text) {
    char got[RT_EVENT_TEXT_MAX + 1];
    (void)snprintf(got, sizeof got, "%.*s", o->text_len, o->text);
    if (o->reason != reason) fail_msg("%s: %s", rt_reason_name(o->reason), got);
    if (strstr(got, text) == NULL) fail_msg("\"%s\" is not in \"%s\"", text, got);
    assert_null(o->answer);
    assert_int_equal(o->status, 0);
}
