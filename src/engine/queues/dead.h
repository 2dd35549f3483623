/* dead.h: what an operator does with jobs that were given up, and with single jobs. */
#ifndef RT_ENGINE_QUEUES_DEAD_H
#define RT_ENGINE_QUEUES_DEAD_H
#include "engine/common/cursor.h"

/* Tries a dead job afresh: attempts and maximum age from 0, due now, same id. RT_E_ABSENT: no such job. RT_E_FENCED: it is
 * not dead. RT_E_INVALID: its subscription is gone. */
typedef struct rt_dead_redrive {
    rt_command cmd;
    rt_id id;
} rt_dead_redrive;
void rt_dead_redrive_init(rt_dead_redrive *c);

/* Deletes a job for good (an event stays). `only_dead`: RT_E_FENCED if it is not dead. RT_E_ABSENT if there is none or
 * it has ended. A try that is under way is not recalled; its outcome changes nothing. */
typedef struct rt_job_delete {
    rt_command cmd;
    rt_id id;
    bool only_dead;
} rt_job_delete;
void rt_job_delete_init(rt_job_delete *c);

/* Reads what it needs through `v`, and looks at the cheapest first. */
rt_code rt_dead_matches(rt_view *v, const rt_dead_filter *filter, const rt_job *job, bool *matches);

/* Redrives or deletes many: starts a cursor over what is dead now, `rate` a second (0: as fast as it goes).
 * The caller may count with rt_read_dead first (dry run). `cursor` names it in logs. */
typedef struct rt_dead_many {
    rt_command cmd;
    rt_dead_filter filter;
    bool remove;      /* delete instead of redrive */
    uint32_t rate;
    rt_id cursor;     /* out */
} rt_dead_many;
void rt_dead_many_init(rt_dead_many *c);

/* One slice of RT_CURSOR_DEAD. */
rt_cursor_slice rt_dead_slice;

#endif
