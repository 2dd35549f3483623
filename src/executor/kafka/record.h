/* record.h: an attempt as a Kafka record, and a broker's answer as an outcome. Pure but for librdkafka's memory. */
#ifndef RT_EXECUTOR_KAFKA_RECORD_H
#define RT_EXECUTOR_KAFKA_RECORD_H
#include <librdkafka/rdkafka.h>

#include "port/executor.h"

/* The topic of a kafka: target, as long as the attempt lives. */
const char *rt_record_topic(const rt_attempt *attempt);
/* Returns owned headers: those of the attempt, rtd-id, rtd-attempt, content-type. NULL: out of memory. */
rd_kafka_headers_t *rt_record_headers(const rt_attempt *attempt);

/* What `error` (0: acknowledged) means for an attempt. Fills reason, status and text; `detail` may be NULL. */
void rt_record_outcome(rd_kafka_resp_err_t error, const char *detail, rt_outcome *out);
void rt_record_say(rt_outcome *out, const char *fmt, ...) RT_PRINTF(2, 3);

#endif
