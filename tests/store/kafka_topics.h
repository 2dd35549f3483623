/* kafka_topics.h: stores on topics of their own, on the broker that RETRYD_TEST_KAFKA names, for the store's tests. */
#ifndef RT_TESTS_STORE_KAFKA_TOPICS_H
#define RT_TESTS_STORE_KAFKA_TOPICS_H
#include "store/conformance.h"
#include "store/kafka/store_kafka.h"

enum { KAFKA_NODES_MAX = 4 };

typedef struct kafka_topics {
    char prefix[64];
    char dirs[KAFKA_NODES_MAX][64]; /* of the nodes' copies */
    rt_store_kafka_config config;
} kafka_topics;

/* A prefix that nobody used before. The config: all jobs are taken, history without bounds. */
bool kafka_topics_make(kafka_topics *t);
void kafka_topics_remove(const kafka_topics *t); /* the nodes' folders */
rt_code kafka_node_open(const kafka_topics *t, int node, rt_store **out, rt_err *err);
void kafka_node_forget(const kafka_topics *t, int node); /* its folder; the store is closed */

extern const store_factory KAFKA_FACTORY;

#endif
