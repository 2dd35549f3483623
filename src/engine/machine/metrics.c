#include "engine/machine/metrics.h"

#include <string.h>

const double RT_BOUNDS_SECONDS[RT_HISTOGRAM_BUCKETS - 1] = {
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30, 60};
const double RT_BOUNDS_COUNT[RT_HISTOGRAM_BUCKETS - 1] = {1,   2,   4,    8,    16,   32,   64,   128,
                                                          256, 512, 1024, 2048, 4096, 8192, 16384};

void rt_histogram_add(rt_histogram *h, double value) {
    // Also keeps what is no number out of the conversion below.
    if (!(value >= 0)) value = 0;
    int bucket = 0;
    while (bucket < RT_HISTOGRAM_BUCKETS - 1 && value > h->bounds[bucket]) bucket++;
    const double micro = value * 1e6;
    const uint64_t add = micro < 1e18 ? (uint64_t)(micro + 0.5) : (uint64_t)1e18;
    (void)atomic_fetch_add_explicit(&h->buckets[bucket], 1, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&h->sum_micro, add, memory_order_relaxed);
}

uint32_t rt_work_metrics_at(rt_work_metrics *m, rt_str process) {
    const uint32_t known = atomic_load_explicit(&m->processes, memory_order_relaxed);
    for (uint32_t i = 0; i < known; i++) {
        if (rt_str_eq(rt_str_of(m->names[i]), process)) return i;
    }
    if (known == RT_WORK_COUNTED || process.len > RT_WORK_COUNTER_NAME_MAX) return RT_WORK_COUNTED;
    memcpy(m->names[known], process.ptr, process.len);
    atomic_store_explicit(&m->processes, known + 1, memory_order_release);
    return known;
}

void rt_metrics_init(rt_metrics *m) {
    *m = (rt_metrics){0};
    m->lateness_s.bounds = RT_BOUNDS_SECONDS;
    m->attempt_s.bounds = RT_BOUNDS_SECONDS;
    m->commit_s.bounds = RT_BOUNDS_SECONDS;
    m->commit_size.bounds = RT_BOUNDS_COUNT;
    memcpy(m->work.names[RT_WORK_COUNTED], "other", sizeof "other");
    rt_call_metrics_init(&m->calls);
}
