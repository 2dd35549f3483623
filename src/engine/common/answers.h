/* answers.h: bodies that decisions copy for callers who have not taken them yet.
 *
 * A claim of a few hundred bytes is answered with megabytes, and thousands may come at once: what is copied for all of
 * them together has a bound. */
#ifndef RT_ENGINE_COMMON_ANSWERS_H
#define RT_ENGINE_COMMON_ANSWERS_H
#include <stdatomic.h>

#include "engine/common/command.h"

typedef struct rt_answers {
    size_t bytes_max; /* 0: no bound. One answer alone may be larger */
    atomic_size_t bytes;
} rt_answers;

/* Puts a copy of *body, which the view lends, into `arena`, the caller's of `cmd`. Where the decision is only tried
 * (warm.c) it stays the view's. RT_E_FULL: too much waits to be taken; RT_E_NOMEM. */
RT_MUST_USE rt_code rt_answers_copy(rt_tx *tx, rt_command *cmd, rt_arena *arena, rt_str *body);
/* `cmd` is done, and its caller has what it wanted. Any thread. */
void rt_answers_taken(rt_answers *a, rt_command *cmd);

#endif
