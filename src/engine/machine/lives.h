/* lives.h: asks the kind of a job what it needs next, and what the outcome of an attempt means for it. */
#ifndef RT_ENGINE_MACHINE_LIVES_H
#define RT_ENGINE_MACHINE_LIVES_H
#include "engine/common/life.h"

rt_code rt_life_start(rt_tx *tx, const rt_job *job, rt_start *start);

/* Nothing if the job has ended meanwhile or is held by another token. */
void rt_settle_init(rt_settle *s, const rt_outcome *outcome, bool leased);
void rt_settle_deinit(rt_settle *s);

#endif
