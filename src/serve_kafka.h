/* serve_kafka.h: what a server has of Kafka: the executor of kafka: targets, and the source with its dead letters. Without
 * kafka.brokers there is nothing of it, and every function here is a no-op. */
#ifndef RT_SERVE_KAFKA_H
#define RT_SERVE_KAFKA_H
#include "config.h"
#include "executor/kafka/producer.h"
#include "runtime/log.h"
#include "source/kafka/source.h"

enum { RT_KAFKA_NAME_MAX = RT_TOPIC_NAME_MAX + 16 };

/* All zero: not opened. Stays where it is while it is open. */
typedef struct rt_serve_kafka {
    const rt_config *config;
    const rt_log *log;
    rt_buf properties;
    rt_kafka client;
    rt_producer *targets, *letters;
    rt_source *source;
    char intake[RT_KAFKA_NAME_MAX], dead[RT_KAFKA_NAME_MAX], instance[RT_KAFKA_NAME_MAX];
} rt_serve_kafka;

/* What a start would say of the settings, without reaching a broker. */
RT_MUST_USE rt_code rt_serve_kafka_check(const rt_config *config, rt_err *err);

/* Reads the settings and opens the executor; `executor->start` stays NULL where there is none. Outcomes as in
 * rt_producer_config. */
RT_MUST_USE rt_code rt_serve_kafka_open(rt_serve_kafka *k, const rt_config *config, const rt_log *log,
                                        void (*outcome)(void *ctx, const rt_outcome *outcome), void *ctx,
                                        rt_executor *executor, rt_err *err);
/* Starts the source, if there is to be one. `alone`: nobody shares the engine's store. */
RT_MUST_USE rt_code rt_serve_kafka_start(rt_serve_kafka *k, rt_engine *engine, bool alone,
                                         bool (*submit)(void *ctx, rt_command *cmd, size_t bytes), void *submit_ctx,
                                         rt_err *err);
void rt_serve_kafka_stop(rt_serve_kafka *k);            /* the source; before the engine's thread stops */
void rt_serve_kafka_close_executors(rt_serve_kafka *k); /* when nothing starts attempts any more */
void rt_serve_kafka_close(rt_serve_kafka *k);           /* after the engine is closed */

/* Adds the source's metrics, in Prometheus' text format; `k` is an rt_serve_kafka. */
void rt_serve_kafka_metrics(void *k, rt_buf *out);

#endif
