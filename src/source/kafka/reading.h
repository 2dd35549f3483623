/* reading.h: what a Kafka record says of the event that it is. Pure but for librdkafka's accessors. */
#ifndef RT_SOURCE_KAFKA_READING_H
#define RT_SOURCE_KAFKA_READING_H
#include <librdkafka/rdkafka.h>

#include "engine/calls/intake.h"

enum { RT_POINTER_STEPS_MAX = 16 };

/* Where a record's value tells what its headers do not: JSON pointers (RFC 6901); lent; empty: nowhere. */
typedef struct rt_reading_rules {
    rt_str type, reason, key, id;
    bool order_by_key; /* a record without an order key of its own has the record's key for one */
} rt_reading_rules;

/* RT_E_INVALID: `pointer` is none; names `setting`. */
RT_MUST_USE rt_code rt_pointer_check(const char *setting, rt_str pointer, rt_err *err);

/* Reads headers (rtd-type, rtd-reason, rtd-key, rtd-id, content-type) and, for those that are missing, the
 * value. `type`: of records of this topic that name none; may be empty. Strings of *out lie in `arena` or in
 * the message. Returns NULL, or why the record can be no event. *nomem: memory ran out, try again later. */
const char *rt_reading_item(const rt_reading_rules *rules, rt_str type, const rd_kafka_message_t *message,
                            rt_arena *arena, rt_call_item *out, bool *nomem);

/* A header by its name, the last one if there are several; false: there is none. */
bool rt_reading_header(const rd_kafka_message_t *message, const char *name, rt_str *out);

#endif
