/* cursor_step.h: carries a cursor on, whatever its kind. */
#ifndef RT_ENGINE_QUEUES_CURSOR_STEP_H
#define RT_ENGINE_QUEUES_CURSOR_STEP_H
#include "engine/common/cursor.h"

/* The command that carries one cursor on by a slice. */
typedef struct rt_cursor_step {
    rt_command cmd;
    rt_id id;
    bool finished;    /* out: its document is gone */
    int64_t next_ms;  /* out: not before */
} rt_cursor_step;
void rt_cursor_step_init(rt_cursor_step *c);

#endif
