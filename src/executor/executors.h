/* executors.h: one executor made of several: each attempt goes to the one that its URL names
 * (rt_attempt_target). */
#ifndef RT_EXECUTOR_EXECUTORS_H
#define RT_EXECUTOR_EXECUTORS_H
#include "port/executor.h"

typedef struct rt_executors {
    rt_executor of[RT_TARGET_COUNT]; /* start NULL: there is none; its attempts fail at once, and say so */
    /* Where those outcomes go. Called from `start`, so on the engine's thread: it must have room for every
     * attempt that may be under way. */
    void (*outcome)(void *ctx, const rt_outcome *outcome);
    void *ctx;
} rt_executors;

/* Borrows `executors` and what is in it. */
rt_executor rt_executors_executor(rt_executors *executors);

#endif
