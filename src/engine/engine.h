/* engine.h: the state machine: commands and outcomes in, one batch a step, replies and attempts out.
 *
 * Deterministic: the same inputs, clock readings, store answers and seed give the same changes. It knows no thread, socket,
 * file or clock; whoever drives it calls rt_engine_step. All functions belong to one thread except rt_engine_view,
 * rt_engine_tag, rt_engine_metrics and rt_engine_answered. */
#ifndef RT_ENGINE_ENGINE_H
#define RT_ENGINE_ENGINE_H
#include "engine/common/command.h"
#include "engine/common/settings.h"
#include "engine/machine/metrics.h"
#include "port/executor.h"

typedef struct rt_engine rt_engine;

rt_engine_settings rt_engine_settings_default(void);

/* Returns an owned engine; free with rt_engine_close. Borrows `store`, `executor` and copies `settings`. `seed` feeds jitter
 * and tokens. */
RT_MUST_USE rt_code rt_engine_open(rt_store *store, const rt_executor *executor, const rt_engine_settings *settings,
                                   uint64_t seed, rt_engine **out, rt_err *err);

/* Lends `cmd` until its `done` is called from a later rt_engine_step. The list of waiting commands has no bound here:
 * the ring in front of it has. */
void rt_engine_submit(rt_engine *e, rt_command *cmd);
/* Copies the outcome and takes its answer. Never refused; kept until it is durable, over as many failed batches as it
 * takes. */
void rt_engine_outcome(rt_engine *e, const rt_outcome *outcome);

/* One step at Unix time `now_ms`: settles batches that ended (done, attempts), decides what came in and what is due, and
 * submits one batch; with a store whose commit waits, settles that too. Bounded work.
 * Returns when to call again if nothing comes in: <= now_ms: at once, there is more to do; INT64_MAX: never. */
int64_t rt_engine_step(rt_engine *e, int64_t now_ms);

/* From now on no new attempts are started; commands and outcomes go on. */
void rt_engine_drain(rt_engine *e);
/* Attempts under way, commands waiting, batches not yet ended: 0 when a drained engine may be closed. */
size_t rt_engine_busy(const rt_engine *e);

/* Last failure of the store: RT_OK while it takes batches. For /readyz; engine's thread (the runtime copies it). */
rt_code rt_engine_trouble(const rt_engine *e, rt_err *why);

RT_MUST_USE rt_code rt_engine_view(rt_engine *e, rt_view **out, rt_err *err); /* any thread */
uint32_t rt_engine_tag(const rt_engine *e);                                   /* any thread: tag of shown ids */
rt_metrics *rt_engine_metrics(rt_engine *e);                                  /* any thread */

/* Any thread, once `cmd` is done and before it is used anew: what it was answered with is its caller's business now. */
void rt_engine_answered(rt_engine *e, rt_command *cmd);

/* Waiting commands get `done` with RT_E_UNAVAILABLE. NULL is a no-op. */
void rt_engine_close(rt_engine *e);

#endif
