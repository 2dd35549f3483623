/* plugin_rig.h: a running plugin executor for tests, with its outcomes and its log gathered. The test's main
 * has to be a plugin host when it is asked to. */
#ifndef TEST_PLUGIN_RIG_H
#define TEST_PLUGIN_RIG_H
#include <pthread.h>

#include "executor/plugin/host.h"
#include "executor/plugin/plugins.h"

enum { RIG_OUTCOMES_MAX = 1024, RIG_LOG_BYTES = 1 << 16 };

typedef struct plugin_rig {
    rt_plugins *plugins;
    rt_executor executor;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t more;
    uint32_t count;
    rt_outcome outcomes[RIG_OUTCOMES_MAX];
    char log[RIG_LOG_BYTES]; /* "NAME: LINE\n"… */
    size_t log_len;
} plugin_rig;

/* `cfg` needs neither callbacks nor limits; `directory` is where the plugins are. */
plugin_rig *rig_open(rt_plugins_config cfg, const char *directory);
/* Starts a run of `task` with `meta` (NULL: {}), by the plugin `name`; its job is `id`. */
void rig_start(plugin_rig *r, rt_id id, const char *name, const char *task, const char *meta,
               uint32_t timeout_ms);
void rig_start_body(plugin_rig *r, rt_id id, const char *name, const char *body, uint32_t timeout_ms);
/* Waits for the outcome of job `id`, at most 30 s, and returns it; its answer is the caller's. */
rt_outcome rig_wait(plugin_rig *r, rt_id id);
/* Both, with a generous timeout. */
rt_outcome rig_run(plugin_rig *r, const char *name, const char *task, const char *meta);
/* Waits until the log has `text`, at most 30 s. */
void rig_wait_log(plugin_rig *r, const char *text);
void rig_close(plugin_rig *r);

/* The outcome is an answer that has `json` (a piece of it); frees the answer. */
void rig_assert_answer(rt_outcome *o, const char *json);
/* The outcome failed for `reason`, with `text` in its text. */
void rig_assert_failed(const rt_outcome *o, rt_reason reason, const char *text);

#endif
