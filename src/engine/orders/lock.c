#include "engine/orders/lock.h"

#include "engine/common/name.h"
#include "engine/common/stored.h"

enum { FORMAT = 1 };

rt_str rt_lock_encode(rt_arena *arena, const rt_lock *l) {
    rt_buf b = {0};
    rt_pack_u8(&b, FORMAT);
    rt_pack_str(&b, l->holder);
    rt_pack_u64(&b, l->token);
    rt_pack_i64(&b, l->taken_ms);
    rt_pack_i64(&b, l->renewed_ms);
    return rt_pack_finish(&b, arena);
}

bool rt_lock_decode(rt_str value, rt_lock *out) {
    rt_unpack u = {.rest = value};
    if (rt_unpack_u8(&u) != FORMAT) return false;
    *out = (rt_lock){.holder = rt_unpack_str(&u)};
    out->token = rt_unpack_u64(&u);
    out->taken_ms = rt_unpack_i64(&u);
    out->renewed_ms = rt_unpack_i64(&u);
    return !u.failed && u.rest.len == 0;
}

/* Renewed later than any holder's clock can say by now: the clock was set back, and the lock would seem
 * fresh for as long as it was. */
static bool is_stale(const rt_lock *l, int64_t timeout_ms, int64_t now_ms) {
    return l->renewed_ms <= now_ms - timeout_ms || l->renewed_ms > now_ms + timeout_ms;
}

rt_code rt_lock_take(rt_tx *tx, rt_str name, rt_str holder, int64_t timeout_ms, bool *held) {
    rt_doc was;
    rt_lock lock;
    *held = false;
    const rt_code code = rt_doc_load(tx, RT_DOC_LOCK, rt_arena_dup(tx->arena, name), &was);
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    // One that nobody can read has no holder who could release it.
    const bool there = code == RT_OK && rt_lock_decode(was.value, &lock);
    const bool ours = there && rt_str_eq(lock.holder, holder);
    if (there && !ours && !is_stale(&lock, timeout_ms, tx->now_ms)) return RT_OK;
    if (!ours) lock = (rt_lock){.holder = holder, .token = rt_tx_new_id(tx), .taken_ms = tx->now_ms};
    lock.renewed_ms = tx->now_ms;
    rt_doc now = was;
    now.value = rt_lock_encode(tx->arena, &lock);
    if (now.value.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a lock");
    rt_tx_put_doc(tx, was.version == 0 ? NULL : &was, &now);
    *held = true;
    return RT_OK;
}

rt_code rt_lock_release(rt_tx *tx, rt_str name, rt_str holder) {
    rt_doc was;
    rt_lock lock;
    const rt_code code = rt_doc_load(tx, RT_DOC_LOCK, rt_arena_dup(tx->arena, name), &was);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    if (rt_lock_decode(was.value, &lock) && rt_str_eq(lock.holder, holder)) rt_tx_put_doc(tx, &was, NULL);
    return RT_OK;
}
