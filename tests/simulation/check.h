/* check.h: the parts of the check of one batch, shared by check*.c only. */
#ifndef SIM_CHECK_H
#define SIM_CHECK_H
#include "world.h"

enum { EVENTS_MAX = 4096 };

/* One batch that has just reached the disk. */
typedef struct landing {
    world *world;
    rt_view *before, *after;
    rt_event events[EVENTS_MAX]; /* that are new; their texts are not kept */
    uint32_t count;
    bool trimmed; /* history is cut in this world: events may be missing */
} landing;

/* A job as its events say it should be, step by step from what it was. */
typedef struct told_story {
    uint8_t state; /* RT_JOB_SCHEDULED stands for any that is pending */
    uint8_t reason;
    uint32_t attempt, generation;
    uint32_t interval_ms; /* the delay that was last waited; 0: none since it started (afresh) */
    int64_t due_ms;       /* of the last ATTEMPT; -1: none */
    bool told;            /* there was an event at all */
    bool moved;
} told_story;

/* Does ATTEMPT, DELIVERED or DEAD follow from an outcome by one of the policies that may govern the job? Sets
 * the time at which the next attempt is due, if there is one. `story`: the job as it was when the attempt
 * ended. */
void check_attempt(const landing *l, const rt_job *job, const told_story *story, const rt_event *event,
                   int64_t *due_ms);

/* A message may have ended or moved as it did. */
void check_message_step(const landing *l, shadow *s, const rt_job *was, const rt_job *now);

#endif
