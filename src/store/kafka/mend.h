/* mend.h: a node's part in the work; and a copy that fell behind the journal's beginning, brought up to date.
 *
 * A node that was paused, or cut off from the brokers, for longer than the journal keeps its lines may never
 * be able to take in what it missed. It says so, gives its share of the work to the others, lets nobody look
 * at the copy until it has looked at the journal, and if lines are gone fills an empty copy as a new node
 * does. What became of a batch that was under way is then in the ledger. */
#ifndef RT_STORE_KAFKA_MEND_H
#define RT_STORE_KAFKA_MEND_H
#include "store/kafka/inside.h"

/* Takes a share of the work, and writes the retry topic if that is this node's part. May be tried again. */
RT_MUST_USE rt_code rt_ks_take_part(rt_ks *s, rt_err *err);
/* The process was paused: nobody has looked for so long that the journal may have been cut off behind us. */
bool rt_ks_is_away(const rt_ks *s);

/* Begins to see to the copy, in a thread of its own. Until it is over the engine's thread leaves alone what
 * is here, but for rt_mend_is_over. */
void rt_mend_begin(rt_ks *s);
bool rt_mend_is_over(rt_ks *s); /* true: none is under way, or it has just come to its end */
void rt_mend_stop(rt_ks *s);    /* gives it up, if one is under way */

#endif
