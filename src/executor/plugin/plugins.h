/* plugins.h: makes attempts whose target is "plugin:NAME" with the shared object NAME.so of one directory.
 *
 * A plugin never runs in the server. Children of it load one plugin each and do one call at a time; up to
 * `processes` of them run for one plugin, are started when they are needed, used again, and sent away when
 * they were idle for a minute or their file is another one now. One thread of its own supervises them all, so
 * that a plugin that hangs, crashes or talks nonsense costs its attempt and holds up no other: what has no
 * turn waits, each attempt no longer than its own timeout.
 *
 * A child ends with the server, however that ends. What it prints goes to the log, bounded.
 *
 * The attempt's body is the run as JSON, the outcome's answer is JSON too, both as an HTTP worker has them
 * (docs/plugins.md). Reasons: STATUS with 200, an answer; TIMEOUT; CRASHED; NONSENSE, the plugin broke a
 * rule; BROKEN, the answer is too long; NO_PLUGIN, there is no such file or it is no plugin; UNAVAILABLE, no
 * process could be started. */
#ifndef RT_EXECUTOR_PLUGIN_PLUGINS_H
#define RT_EXECUTOR_PLUGIN_PLUGINS_H
#include "port/executor.h"

enum {
    RT_PLUGIN_NAMES_MAX = 256,      /* plugins used by one server */
    RT_PLUGIN_ANSWER_MAX = 1 << 20, /* bytes, where the attempt does not say */
    RT_PLUGIN_PROCESSES_MAX = 64
};

typedef struct rt_plugins rt_plugins;

/* One line of the plugin's section of the configuration. */
typedef struct rt_plugin_setting {
    rt_str plugin, key, value;
} rt_plugin_setting;

/* All but the callbacks' own doings is borrowed until rt_plugins_close. */
typedef struct rt_plugins_config {
    /* Called on the executor's thread with an outcome that is lent for the call, but for its answer, which is
     * given away. May not call into the executor. */
    void (*outcome)(void *ctx, const rt_outcome *outcome);
    void *ctx;
    /* A line that a child has printed, or how it ended. The same thread. */
    void (*say)(void *say_ctx, rt_str plugin, rt_str line);
    void *say_ctx;
    const char *directory;
    uint32_t processes;    /* of one plugin; 1..RT_PLUGIN_PROCESSES_MAX */
    uint32_t attempts_max; /* >= 1 and >= what the engine ever has under way */
    uint32_t drain_ms;     /* how long rt_plugins_close waits for what is under way */
    const rt_plugin_setting *settings;
    size_t settings_count;
} rt_plugins_config;

/* Copies `cfg`, starts the thread. RT_OK: returns owned *out. */
RT_MUST_USE rt_code rt_plugins_open(const rt_plugins_config *cfg, rt_plugins **out, rt_err *err);

/* The port's view of it; lives as long as `plugins`. `start` may be called from any thread. */
rt_executor rt_plugins_executor(rt_plugins *plugins);

/* Nobody may call `start` any more. Waits for what is under way, at most drain_ms; what is left then is
 * dropped without an outcome. All children are told to end, and killed a second later. Joins the thread. NULL
 * is a no-op. */
void rt_plugins_close(rt_plugins *plugins);

#endif
