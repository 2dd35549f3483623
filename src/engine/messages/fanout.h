/* fanout.h: from one message to a delivery for each subscription of its queue.
 *
 * A post makes up to RT_FANOUT_INLINE_MAX deliveries in its own change. The rest is a cursor's work, bounded
 * by the last subscription at the time of the post. Meanwhile a message may be deleted or expire, yet its
 * deliveries need its body. So the post also writes a HOLDER for each message: a job on the cursor's own id
 * as its queue, in a state and with flags that put it into no index but `all` of that queue (PULL, LEASED,
 * without a lease). It names the body and so keeps it; it says what a delivery needs to know; and the
 * holders that are left ARE the list of what is to be done, so that the cursor stays small. The cursor takes
 * the first holder, carries it through all subscriptions, and removes it. */
#ifndef RT_ENGINE_MESSAGES_FANOUT_H
#define RT_ENGINE_MESSAGES_FANOUT_H
#include "engine/common/cursor.h"
#include "engine/messages/message.h"

/* Subscriptions that get a delivery. */
typedef struct rt_targets {
    rt_id ids[RT_FANOUT_INLINE_MAX]; /* rising */
    uint32_t count;
    rt_id seen; /* looked at up to here, those that were passed over included */
    bool more;  /* there may be more behind `seen` */
} rt_targets;

/* Those of message queue `queue` behind `after` up to `last` that have not ended and, with `confirmed_only`,
 * are confirmed. At most `max`, which is at most RT_FANOUT_INLINE_MAX. */
rt_code rt_targets_read(rt_tx *tx, rt_id queue, rt_id after, rt_id last, bool confirmed_only, uint32_t max,
                        rt_targets *out);

/* One delivery of `message` (or its holder) to each of ids[count], subscriptions of message queue `queue`. */
void rt_fanout_deliver(rt_tx *tx, rt_id queue, const rt_job *message, const rt_id ids[], uint32_t count);

/* Goes on behind subscription `from` for all `messages[count]`: writes the cursor and the holders. */
rt_code rt_fanout_start(rt_tx *tx, rt_id queue, rt_id from, bool confirmed_only, const rt_job messages[],
                        uint32_t count);

/* One slice of RT_CURSOR_FANOUT. */
rt_cursor_slice rt_fanout_slice;

#endif
