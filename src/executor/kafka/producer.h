/* producer.h: writes attempts to kafka:TOPIC targets, for consumers that try again in place.
 *
 * One thread of its own around one idempotent librdkafka producer: a record counts once all brokers in sync have it.
 * The record's value is the attempt's body and its key the attempt's key, spread over partitions as Java clients do it, so
 * that records of one key stay in order. Its headers are the attempt's, and rtd-id (stable over retries), rtd-attempt
 * (1 = the first) and content-type.
 *
 * Outcomes: acknowledged is status 200. What no retry can mend is a status that policies do not retry: 400, the brokers
 * refuse the record or its topic's name; 413, it is larger than they take. Otherwise CONNECT, RESOLVE or TLS while no
 * broker can be reached, TIMEOUT, or BROKEN with the broker's word for it. A record that was not acknowledged in time may
 * still be written a little later: delivery is at least once. */
#ifndef RT_EXECUTOR_KAFKA_PRODUCER_H
#define RT_EXECUTOR_KAFKA_PRODUCER_H
#include "kafka/client.h"
#include "port/executor.h"

enum { RT_PRODUCER_ATTEMPT_MS_MAX = 30000 /* an attempt that is allowed to take longer ends as TIMEOUT all the same */ };

typedef struct rt_producer rt_producer;

typedef struct rt_producer_config {
    rt_kafka kafka;
    /* Called on the producer's thread with an outcome that is lent for the call. May not call into the producer. */
    void (*outcome)(void *ctx, const rt_outcome *outcome);
    void *ctx;
    uint32_t attempts_max; /* >= 1 and >= what the engine ever has under way */
    size_t bytes_max;      /* of records that wait for the brokers; more are turned away as BROKEN */
    uint32_t drain_ms;     /* how long rt_producer_close waits for what is under way */
} rt_producer_config;

/* Copies `cfg`, starts the thread; needs no broker yet. RT_OK: returns owned *out. */
RT_MUST_USE rt_code rt_producer_open(const rt_producer_config *cfg, rt_producer **out, rt_err *err);

/* What rt_producer_open would say of the settings, without reaching a broker. */
RT_MUST_USE rt_code rt_producer_check(const rt_producer_config *cfg, rt_err *err);

/* The port's view of it; lives as long as the producer. `start` may be called from any thread. */
rt_executor rt_producer_executor(rt_producer *producer);

/* Nobody may call `start` any more. What is left after drain_ms is dropped without an outcome, as by a crash. Joins the
 * thread. NULL is a no-op. */
void rt_producer_close(rt_producer *producer);

#endif
