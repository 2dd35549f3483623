/* settings.h: what an engine is told when it is opened. */
#ifndef RT_ENGINE_COMMON_SETTINGS_H
#define RT_ENGINE_COMMON_SETTINGS_H
#include "port/run.h"

typedef struct rt_engine_settings {
    uint32_t in_flight_max;         /* attempts under way in all; >= 2 (4096) */
    uint64_t in_flight_bytes_max;   /* their bodies and headers (64 MiB) */
    uint32_t queue_in_flight_max;   /* of one queue (64) */
    uint32_t batch_commands_max;    /* decided in one step (1024) */
    size_t answers_bytes_max;       /* of bodies copied for callers who have yet to take them (answers.h); 0: no bound (0) */
    uint32_t message_ttl_s;         /* default time to live of messages (3600) */
    uint16_t message_delay_s;       /* default delay of messages (0) */
    int64_t history_ms;             /* what is known of an entity that is gone is kept this long (7 days) */
    uint32_t lease_margin_ms;       /* a pushed job's lease ends this long after its attempt's timeout (5000) */
    uint32_t schedule_period_ms;    /* between two rounds of the patrol of orders, a fifth more or less (15000) */
    uint32_t lock_timeout_ms;       /* a lock that has not been renewed for so long is taken from its holder (60000) */
    const char *node;               /* holder of locks: another one in each process; outlives the engine ("") */
    rt_run_read_fn *read_run;       /* reads what runs of orders answer; NULL: there are no orders */
    uint64_t (*mono_us)(void);      /* for durations in metrics only; NULL: they are not measured */
} rt_engine_settings;

#endif
