/* replay.h: taking in what a node decided. */
#ifndef RT_STORE_KAFKA_LINES_REPLAY_H
#define RT_STORE_KAFKA_LINES_REPLAY_H
#include "store/kafka/lines/entry.h"

/* Applies all of a batch's items to the open batch of `local`, a store of LMDB. RT_OK: they are in it.
 * RT_E_CONFLICT: it rests on what is no longer so, or is none of ours: it does not count, at any node, and
 * the caller abandons the batch. Anything else is trouble of this node alone. `arena` is cleared. *tag: the
 * store's new name, if the batch gives it one by an import; otherwise untouched. */
RT_MUST_USE rt_code rt_replay(rt_store *local, rt_str items, rt_arena *arena, uint32_t *tag, rt_err *err);

#endif
