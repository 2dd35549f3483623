#include "engine/calls/call_metrics.h"

#include <string.h>

#include "engine/calls/call.h"

_Static_assert((int)RT_CALL_REASON_NAME_MAX == (int)RT_CALL_REASON_MAX, "every reason has room");

static uint32_t load(const atomic_uint *number) { return atomic_load_explicit(number, memory_order_relaxed); }

static bool keep(char *to, size_t max, rt_str name) {
    if (name.len > max) return false;
    if (name.len > 0) memcpy(to, name.ptr, name.len);
    to[name.len] = '\0';
    return true;
}

void rt_call_metrics_init(rt_call_metrics *m) { m->type_of[RT_CALL_REASONS_COUNTED] = RT_CALL_TYPES_COUNTED; }

uint32_t rt_call_metrics_find(const rt_call_metrics *m, rt_id queue) {
    const uint32_t known = load(&m->types);
    for (uint32_t i = 0; i < known; i++) {
        if (m->queues[i] == queue) return i;
    }
    return RT_CALL_TYPES_COUNTED;
}

uint32_t rt_call_metrics_add(rt_call_metrics *m, rt_id queue, rt_str name) {
    const uint32_t known = load(&m->types);
    if (known == RT_CALL_TYPES_COUNTED || !keep(m->names[known], RT_QUEUE_NAME_MAX, name))
        return RT_CALL_TYPES_COUNTED;
    m->queues[known] = queue;
    atomic_store_explicit(&m->types, known + 1, memory_order_release);
    return known;
}

uint32_t rt_call_metrics_reason(rt_call_metrics *m, uint32_t type, rt_str reason) {
    const uint32_t known = load(&m->reasons);
    for (uint32_t i = 0; i < known; i++) {
        if (m->type_of[i] == type && rt_str_eq(rt_str_of(m->reason[i]), reason)) return i;
    }
    if (known == RT_CALL_REASONS_COUNTED || type == RT_CALL_TYPES_COUNTED) return RT_CALL_REASONS_COUNTED;
    if (!keep(m->reason[known], RT_CALL_REASON_NAME_MAX, reason)) return RT_CALL_REASONS_COUNTED;
    m->type_of[known] = type;
    atomic_store_explicit(&m->reasons, known + 1, memory_order_release);
    return known;
}

void rt_call_metrics_count(rt_call_metrics *m, const rt_call_tally *t) {
    if (!t->any) return;
    for (uint32_t i = 0; i <= RT_CALL_REASONS_COUNTED; i++) {
        if (t->scheduled[i] > 0)
            atomic_fetch_add_explicit(&m->scheduled[i], t->scheduled[i], memory_order_relaxed);
    }
    for (uint32_t i = 0; i <= RT_CALL_TYPES_COUNTED; i++) {
        for (uint32_t what = 0; what < RT_CALL_COUNT_COUNT; what++) {
            const uint32_t n = t->counts[i][what];
            if (n > 0) atomic_fetch_add_explicit(&m->counts[i][what], n, memory_order_relaxed);
        }
    }
}
