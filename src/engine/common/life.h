/* life.h: what a due job needs next, and what the outcome of an attempt means for it. Each kind of job answers these two
 * questions in its own file, and the machine asks them without knowing the kind (machine/lives.h). */
#ifndef RT_ENGINE_COMMON_LIFE_H
#define RT_ENGINE_COMMON_LIFE_H
#include "engine/common/command.h"
#include "port/executor.h"

typedef enum rt_due {
    RT_DUE_START,   /* an attempt: *attempt is owned by the caller */
    RT_DUE_WRITTEN  /* none: its end (expired, unsubscribed), its freedom (a delayed message) or its rest is written */
} rt_due;

/* Decides about one push job, or a pull job that was delayed, which is due at tx->now_ms. Writes go to tx.
 * With `write_lease` (a store that others take from too) the job is also written as leased by `token`, for a while.
 * *bytes is what the attempt keeps in memory. */
typedef struct rt_start {
    uint64_t token;
    bool write_lease;
    rt_due due;           /* out */
    rt_attempt *attempt;  /* out, with RT_DUE_START */
    size_t bytes;         /* out */
    int64_t deadline_ms;  /* out: the attempt is over by then, or lost */
    int64_t lease_until_ms; /* out: as it was written */
} rt_start;

/* What the outcome of an attempt does to its job. Nothing if the job has ended meanwhile or is held by another token.
 * `leased`: the store holds the lease, so the job must carry the token. `worked`: the endpoint is alive: it gave an
 * answer that is not retried. */
typedef struct rt_settle {
    rt_command cmd;
    rt_outcome outcome;   /* its answer is owned: rt_settle_deinit */
    bool leased;
    bool worked;          /* out */
    bool expired;         /* in: that the stored lease has ended is all that is known; it may have been prolonged since */
    bool again;           /* out: the job may be due again at once */
} rt_settle;

/* One kind of job. `settle` is called for a job that is alive and held by the outcome's token. */
typedef struct rt_life {
    rt_code (*start)(rt_tx *tx, const rt_job *job, rt_start *start);
    rt_code (*settle)(rt_tx *tx, const rt_job *job, rt_settle *settle);
} rt_life;

/* Hands over an attempt that looks like `like` (job, queue, token and number are filled in here): the job needs it now.
 * Writes the lease where that is wanted. */
rt_code rt_start_attempt(rt_tx *tx, const rt_job *job, rt_attempt like, rt_start *start);
/* Is an attempt at the job under way here that holds `token`, and its outcome not known yet? For a store with one owner,
 * where nothing of that is stored. */
bool rt_life_is_under_way(const rt_tx *tx, const rt_job *job, uint64_t token);
/* The line of history that the outcome is: number, duration, status, reason and text. */
rt_event rt_settle_event(const rt_job *job, const rt_outcome *outcome);

#endif
