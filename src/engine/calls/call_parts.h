/* call_parts.h: the inside of calls, shared by its own files only. For decisions. */
#ifndef RT_ENGINE_CALLS_CALL_PARTS_H
#define RT_ENGINE_CALLS_CALL_PARTS_H
#include "engine/calls/call.h"

/* Places a call that may be tried from `due_ms` on (now or before: at once) where its kind is tried from: state and due
 * time. */
void rt_call_place(rt_tx *tx, rt_job *job, int64_t due_ms);

/* A call that waits, or is about to, notes when it will be too old by its type. */
void rt_call_note_age(rt_job *job, const rt_call_type *type);
/* The type is changed: if its calls may not grow as old as before, those that wait note it (a cursor). */
rt_code rt_call_watch_age(rt_tx *tx, const rt_call_type *was, const rt_call_type *now);

/* An attempt is over. What that means for the call is the policy's. */
typedef struct rt_call_news {
    rt_verdict verdict;
    rt_reason rejected_as;  /* REJECTED: why it is dead */
    bool target_failed;     /* for circuit and pace … */
    bool tells_nothing;     /* … unless it says nothing of the target */
    bool obey;              /* retry_after_ms counts whatever the policy respects */
    int64_t retry_after_ms; /* -1: none */
    uint64_t holder;        /* kept in the job, for who asks again; 0: nobody will */
    rt_event attempt;
} rt_call_news;
/* `queue` and `type` are the job's. *until_ms: when it is tried again; 0: it is not. */
rt_code rt_call_over(rt_tx *tx, const rt_job *job, const rt_queue *queue, const rt_call_type *type,
                     const rt_call_news *news, int64_t *until_ms);
/* Dead without an attempt: too old, or its circuit did not close. `type` NULL: it has none any more. */
rt_code rt_call_give_up(rt_tx *tx, const rt_job *job, const rt_call_type *type, rt_reason reason);

#endif
