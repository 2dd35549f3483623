/* lock.h: a named lock for maintenance that only one node should do at a time (Barbican's EntityLock): it sheds load, and
 * nothing that must be right rests on it. Taken by compare-and-set, stolen when its holder has not renewed it within the
 * timeout, released only by its holder. */
#ifndef RT_ENGINE_ORDERS_LOCK_H
#define RT_ENGINE_ORDERS_LOCK_H
#include "engine/common/command.h"

typedef struct rt_lock {
    rt_str holder;      /* node and boot */
    uint64_t token;     /* grows with each new holder */
    int64_t taken_ms, renewed_ms;
} rt_lock;
rt_str rt_lock_encode(rt_arena *arena, const rt_lock *l);
bool rt_lock_decode(rt_str value, rt_lock *out);

/* Takes it, or renews it if `holder` has it. *held false: another one has it. */
rt_code rt_lock_take(rt_tx *tx, rt_str name, rt_str holder, int64_t timeout_ms, bool *held);
/* Nothing if another one has it by now. */
rt_code rt_lock_release(rt_tx *tx, rt_str name, rt_str holder);

#endif
