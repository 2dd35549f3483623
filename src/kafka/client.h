/* client.h: what every use of Kafka shares: how the brokers are reached, and what becomes of librdkafka's own words. */
#ifndef RT_KAFKA_CLIENT_H
#define RT_KAFKA_CLIENT_H
#include <librdkafka/rdkafka.h>

#include "base/str.h"

/* Strings are borrowed as long as any client lives that was made of it. */
typedef struct rt_kafka {
    const char *brokers; /* "HOST:PORT,…" */
    /* Properties of librdkafka, "name=value" a line; '#' begins a line of comment. Holds secrets: nothing of a value is
     * ever repeated, neither in an error nor to `say`. */
    rt_str properties;
    /* Any thread: trouble in librdkafka's words; `grave`: an error. NULL: nobody listens. */
    void (*say)(void *ctx, bool grave, rt_str text);
    void *ctx;
} rt_kafka;

typedef struct rt_kafka_property {
    const char *name, *value;
    bool soft; /* a better default than librdkafka's; otherwise what a client's promises need, and no file may change it */
} rt_kafka_property;

/* Returns an owned *out: brokers and properties of `k`, and `own`. RT_E_INVALID names the line and the property. `k` is
 * the client's opaque and stays where it is while the client lives: the first member of what other callbacks need. */
RT_MUST_USE rt_code rt_kafka_conf(const rt_kafka *k, const rt_kafka_property own[], size_t count,
                                  rd_kafka_conf_t **out, rt_err *err);

/* Returns an owned *out. Takes `conf` either way. RT_E_INVALID: its properties do not go together. */
RT_MUST_USE rt_code rt_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, rd_kafka_t **out, rt_err *err);

/* RT_E_INVALID: librdkafka makes no client of `conf`, as its properties do not go together or name what is not there. Takes
 * `conf`. Reaches no broker; where librdkafka would fetch tickets or tokens first, nothing is tried. */
RT_MUST_USE rt_code rt_kafka_try(rd_kafka_type_t type, rd_kafka_conf_t *conf, rt_err *err);

#endif
