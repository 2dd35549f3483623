/* line.h: calls of one order key stand in line: the next starts only when the one before it has ended, whether it succeeded,
 * died or was deleted.
 *
 * Two kinds of documents hold it. The line (one a key; RT_DOC_CALL_LINE) knows how many there are and whose turn it is;
 * every decision about the key writes it, so that they meet there. A place (one a call; RT_DOC_CALL_PLACE) is found in
 * order of the calls' ids. Only the head is where calls without a key are: in the FIFO, scheduled, free, or held. The
 * others are SCHEDULED for RT_LINE_DUE_MS, which is so far away that their queue's next due time is never theirs unless
 * nothing else is there: they cost no look and wake nobody.
 * A dead call has left its line. Redriven, it stands in it again by its id: before those that came after it, but not
 * before the one that is having its turn. */
#ifndef RT_ENGINE_CALLS_LINE_H
#define RT_ENGINE_CALLS_LINE_H
#include "engine/calls/call_wait.h"

static inline bool rt_line_waits(const rt_job *job) {
    return job->state == RT_JOB_SCHEDULED && job->due_ms == RT_LINE_DUE_MS;
}

/* For decisions. An id for a call that is about to join: larger than those of all that stand in line. */
RT_MUST_USE rt_code rt_line_new_id(rt_tx *tx, rt_id queue, uint64_t key_hash, rt_id *out);
/* `job` (key_hash not 0, about to be written, placed as if it were alone) joins: stays as it is if it is
 * the head, and otherwise waits for its turn. Any number of calls may join a line within a change. */
rt_code rt_line_join(rt_tx *tx, rt_job *job);
/* `job` has ended, or died: whoever is next has its turn within this change. Only one call may leave a line within a
 * change: see rt_line_is_written. Nothing for a job without an order key. */
rt_code rt_line_leave(rt_tx *tx, const rt_job *job);
/* Has this change moved the line that `job` stands in already, or written one of it, who may be next? */
bool rt_line_is_written(rt_tx *tx, const rt_job *job);

/* Removes up to `max` documents of lines of a queue that is no more; *count: how many they were. */
rt_code rt_line_forget(rt_tx *tx, rt_id queue, uint32_t max, uint32_t *count);

#endif
