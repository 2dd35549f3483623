/* engine_thread.h: the thread that drives an engine: commands and outcomes come in over bounded rings, the
 * clock is the real one. What arrives while a step commits goes into the next step, so commits grow with the
 * load by themselves. */
#ifndef RT_RUNTIME_ENGINE_THREAD_H
#define RT_RUNTIME_ENGINE_THREAD_H
#include "engine/engine.h"

typedef struct rt_engine_thread rt_engine_thread;

typedef struct rt_engine_thread_config {
    uint32_t commands_max;     /* waiting for the engine; >= 1 */
    size_t commands_bytes_max; /* and what they keep alive */
    uint32_t outcomes_max;     /* >= attempts under way at the same time */
    /* The engine's thread, when its store stops or starts again to take batches; may be NULL. */
    void (*on_trouble)(void *ctx, rt_code code, const rt_err *why);
    void *ctx;
} rt_engine_thread_config;

/* Makes the rings, so that an executor can be given rt_engine_thread_outcome before there is an engine. */
RT_MUST_USE rt_code rt_engine_thread_open(const rt_engine_thread_config *cfg, rt_engine_thread **out,
                                          rt_err *err);
/* Starts the thread. Borrows `e`, which belongs to the thread until rt_engine_thread_stop returns, and the store it is on:
 * its descriptor wakes the thread, its clock is the engine's. */
RT_MUST_USE rt_code rt_engine_thread_start(rt_engine_thread *t, rt_engine *e, const rt_store *store, rt_err *err);

/* These three take an rt_engine_thread as `ctx`, as rt_api and executors call them; any thread. */
bool rt_engine_thread_submit(void *ctx, rt_command *cmd, size_t bytes); /* false: full, or stopped */
void rt_engine_thread_outcome(void *ctx, const rt_outcome *outcome);
rt_code rt_engine_thread_trouble(void *ctx, rt_err *why); /* RT_E_UNAVAILABLE before the first step */

/* Starts no further attempts, waits up to `drain_ms` for those under way, gives the engine all that is in the
 * rings, and ends the thread. Commands that the engine still holds are answered by rt_engine_close. Nothing
 * may be submitted at the same time, later it is refused. Also when it was never started. */
void rt_engine_thread_stop(rt_engine_thread *t, uint32_t drain_ms);
void rt_engine_thread_close(rt_engine_thread *t); /* after the executor is closed. NULL is a no-op */

#endif
