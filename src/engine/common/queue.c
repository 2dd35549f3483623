#include "engine/common/queue.h"

#include "engine/common/cursor.h"
#include "policy/circuit.h"

/* ---- records of lists -------------------------------------------------------------------------------- */

rt_str rt_queue_label(rt_arena *arena, rt_str tenant, rt_str queue, rt_str uri) {
    const char *slash = uri.len > 0 ? "/" : "";
    const rt_str label = rt_arena_printf(arena, "%.*s/%.*s%s%.*s", RT_STR_ARG(tenant), RT_STR_ARG(queue),
                                         slash, RT_STR_ARG(uri));
    if (label.len <= RT_QUEUE_NAME_MAX) return label;
    size_t len = RT_QUEUE_NAME_MAX;
    // The first byte that is cut off must not continue a UTF-8 character.
    while (len > 0 && ((unsigned char)label.ptr[len] & 0xC0u) == 0x80u) len--;
    return (rt_str){.ptr = label.ptr, .len = len};
}

rt_code rt_queue_load(rt_tx *tx, rt_id id, rt_queue *out) {
    const rt_code code = rt_view_queue(tx->view, id, out);
    if (code != RT_OK) return code;
    out->name = rt_arena_dup(tx->arena, out->name);
    return out->name.ptr == NULL ? rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a queue's name") : RT_OK;
}

rt_code rt_queue_is_paused(rt_tx *tx, rt_id id, bool *paused) {
    rt_queue queue = {0};
    const rt_code code = rt_view_queue(tx->view, id, &queue);
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    const bool forced_open = queue.brakes.forced && queue.brakes.circuit == RT_CIRCUIT_OPEN;
    *paused = code == RT_OK && (queue.paused_until_ms > tx->now_ms || forced_open);
    return RT_OK;
}

/* ---- emptying ---------------------------------------------------------------------------------------- */

rt_code rt_queue_drain(rt_tx *tx, rt_id id, rt_reason reason, bool keep_dead) {
    rt_queue was;
    rt_code code = rt_queue_load(tx, id, &was);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    rt_counts counts;
    code = rt_view_counts(tx->view, id, &counts);
    if (code != RT_OK) return code;
    const int64_t work = counts.scheduled + counts.free + counts.leased + (keep_dead ? 0 : counts.dead);
    if (work <= 0 && counts.dead <= 0) {
        rt_tx_put_queue(tx, &was, NULL);
        return RT_OK;
    }
    rt_queue now = was;
    now.gone = 1;
    rt_tx_put_queue(tx, &was, &now);
    if (work <= 0) return RT_OK;
    rt_cursor cursor = {.kind = RT_CURSOR_DRAIN, .queue = id, .reason = reason, .keep_dead = keep_dead};
    return rt_cursor_start(tx, &cursor);
}

rt_code rt_queue_forget(rt_tx *tx, rt_id id, uint32_t removed) {
    rt_queue was;
    rt_code code = rt_queue_load(tx, id, &was);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    if (!was.gone) return RT_OK;
    rt_counts counts;
    code = rt_view_counts(tx->view, id, &counts);
    if (code != RT_OK) return code;
    const int64_t left = counts.scheduled + counts.free + counts.leased + counts.dead - (int64_t)removed;
    if (left <= 0) rt_tx_put_queue(tx, &was, NULL);
    return RT_OK;
}
