/* window.h: what attempts have taught all nodes of a queue's target, where several take from one store.
 *
 * Each node counts its own outcomes; a document of the queue holds the counts of all. While some of them are failures or
 * slow, each node adds what it has to say once a second at most, also that all went well. So together they open the circuit
 * as one node would, a second later at most, and while all goes well nothing is written. From the first bad news on, others
 * have a moment to be heard before the circuit opens, as what they know may speak for the target; meanwhile a node for which
 * that is enough starts nothing.
 *
 * A document counts for one time that the circuit is closed (circuit_since_ms), and for one length of the window. */
#ifndef RT_ENGINE_CALLS_WINDOW_H
#define RT_ENGINE_CALLS_WINDOW_H
#include "engine/common/command.h"
#include "engine/common/schedule.h"

enum { RT_WINDOW_TELL_MS = 1000, RT_WINDOW_HEAR_MS = 500 };

/* From a node to the others, and what it hears. */
typedef struct rt_window_news {
    rt_circuit_window told;
    rt_circuit_window window; /* out: all nodes', `told` included … */
    int64_t since_ms;         /* out: … of this closing of the circuit */
    int64_t heard_ms;         /* out: since when not all goes well; 0: it does */
} rt_window_news;

/* For decisions: adds what is told. *trips: that opens the circuit, which is closed. */
rt_code rt_window_tell(rt_tx *tx, const rt_queue *queue, const rt_circuit_settings *s, rt_window_news *news, bool *trips);
/* For decisions: what others have told, into b->window, with what is untold here. */
rt_code rt_window_know(rt_tx *tx, rt_id queue, rt_lane_brakes *b);

/* Is it time to tell others, or to open the circuit, which is closed? `trips`: b->window says that. */
bool rt_window_has_news(const rt_lane_brakes *b, bool trips, int64_t now_ms);
/* The news are durable; NULL: they are lost. */
void rt_window_end(rt_lane_brakes *b, const rt_window_news *news, int64_t now_ms);

/* For faces: the counts of a circuit that is closed. RT_E_ABSENT: none are shared, or all goes well. */
rt_code rt_read_window(rt_view *v, const rt_queue *queue, int64_t now_ms, rt_circuit_counts *out);

#endif
