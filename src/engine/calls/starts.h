/* starts.h: what limits the starts of a queue for all nodes together, where several take from one store.
 *
 * Rate, rate of release and pace count starts; concurrency and probes count what is under way. A document of the queue
 * remembers the starts. Whoever starts an attempt, or hands out a call, reads it, then the store's count of what is leased,
 * and writes it in the change that takes the lease. So of two nodes that decide on the same state the store refuses one,
 * which decides again, and the limits hold exactly, whatever dies in between. Attempts that end write nothing: until their
 * lease is given back they count as under way.
 *
 * Whoever has had jobs to start and no place for a while, as others have them all, asks for one there, and it is kept. Where
 * nodes take different jobs, one whose jobs do not end would otherwise have all places for good.
 *
 * Only for a queue that is limited at that moment; never with a store that only this engine takes from. */
#ifndef RT_ENGINE_CALLS_STARTS_H
#define RT_ENGINE_CALLS_STARTS_H
#include "engine/common/command.h"
#include "engine/common/schedule.h"

/* Fills in what `b`, which is otherwise complete, counts: rate, release and started_ms where they are shared, `others` where
 * anything asks for it (of a queue that is pushed from a store of our own, lanes know themselves). *doc is for what follows
 * in this decision. */
rt_code rt_starts_read(rt_tx *tx, rt_id queue, rt_lane_brakes *b, rt_doc *doc);
/* `count` start in this change. */
rt_code rt_starts_write(rt_tx *tx, const rt_doc *doc, rt_lane_brakes *b, uint32_t count);

typedef struct rt_starts_ask {
    rt_command cmd;
    rt_id queue;
} rt_starts_ask;
void rt_starts_ask_init(rt_starts_ask *c);

#endif
