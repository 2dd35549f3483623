/* circuit.h: a circuit breaker: when to stop trying a dependency, when to probe it, when to trust it again.
 *
 * Pure: counts and times come in, a state comes out. closed: attempts go on and are counted in a sliding window;
 * too many failures (or slow answers) open it. open: nothing is tried until it has slept. half-open: a few
 * probes; all succeed: closed, one fails: open again, for twice as long.
 * Sources: Netflix Hystrix, "How it works"; resilience4j, "CircuitBreaker". */
#ifndef RT_POLICY_CIRCUIT_H
#define RT_POLICY_CIRCUIT_H
#include <stdbool.h>
#include <stdint.h>

/* Stored: only ever add at the end. */
typedef enum rt_circuit_state { RT_CIRCUIT_CLOSED, RT_CIRCUIT_OPEN, RT_CIRCUIT_HALF_OPEN } rt_circuit_state;
const char *rt_circuit_state_name(rt_circuit_state s); /* "closed", "open", "half_open" */

typedef struct rt_circuit_settings {
    bool enabled;             /* false: it never opens by itself */
    uint32_t window_s;        /* 10; 1..3600 */
    uint32_t minimum_attempts;/* 20: fewer in the window say nothing; 1..100000 */
    double failure_rate;      /* 0.5; above 0, at most 1 */
    double slow_call_s;       /* an answer that took so long counts as slow; 0: off */
    double slow_call_rate;    /* 1.0; above 0, at most 1 */
    uint32_t sleep_s;         /* 5; 1..86400, doubling to maximum_sleep_s while probes fail */
    uint32_t maximum_sleep_s; /* 300 */
    uint32_t probes;          /* 3; 1..1000 */
    uint32_t release_per_s;   /* 100: starts a second in the minute after closing; 0: no limit */
    uint32_t max_open_s;      /* 86400: then what waits is dead, reason circuit_open; 0: never */
} rt_circuit_settings;
rt_circuit_settings rt_circuit_settings_default(void); /* enabled, as above */
const char *rt_circuit_settings_check(const rt_circuit_settings *s); /* NULL: valid; otherwise a sentence, field and rule */

/* The sliding window: counts in slices of a tenth of it. Zero-initialized: empty. */
enum { RT_CIRCUIT_SLICES = 10 };
typedef struct rt_circuit_window {
    struct { uint32_t attempts, failures, slow; } slices[RT_CIRCUIT_SLICES];
    int64_t slice; /* number of the newest: time / (window / RT_CIRCUIT_SLICES) */
} rt_circuit_window;
void rt_circuit_window_add(rt_circuit_window *w, const rt_circuit_settings *s, int64_t now_ms, bool failed,
                           uint32_t took_ms);
/* Adds what another node has counted, which is of the same time: its clock may differ by less than the window. */
void rt_circuit_window_merge(rt_circuit_window *w, const rt_circuit_window *more, const rt_circuit_settings *s,
                             int64_t now_ms);
typedef struct rt_circuit_counts {
    uint64_t attempts, failures, slow;
} rt_circuit_counts;
rt_circuit_counts rt_circuit_window_counts(const rt_circuit_window *w, const rt_circuit_settings *s, int64_t now_ms);
/* Does what the window holds open a closed circuit? */
bool rt_circuit_trips(const rt_circuit_window *w, const rt_circuit_settings *s, int64_t now_ms);
/* Did an answer take so long that it counts as slow? */
bool rt_circuit_is_slow(const rt_circuit_settings *s, uint32_t took_ms);
/* How long it sleeps the next time, after `last_ms` (0: the first time). */
uint32_t rt_circuit_sleep_ms(const rt_circuit_settings *s, uint32_t last_ms);

#endif
