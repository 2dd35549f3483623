#include "store/kafka_topics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static const char *brokers(void) {
    const char *from_runner = getenv("RETRYD_TEST_KAFKA");
    if (from_runner != NULL) return from_runner;
    (void)fprintf(stderr, "RETRYD_TEST_KAFKA is not set: run this through tests/e2e/kafka_broker.py\n");
    exit(EXIT_FAILURE);
}

bool kafka_topics_make(kafka_topics *t) {
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) return false;
    *t = (kafka_topics){.config = {
                            .brokers = brokers(),
                            .map_bytes = UINT64_C(1) << 30,
                            .retention = {.age_ms = INT64_MAX, .events = UINT64_MAX},
                            .partitions = 4,
                            .create_topics = true,
                            .kept_ms = 600000,
                            .start_ms = 30000,
                            .alone = true,
                        }};
    (void)snprintf(t->prefix, sizeof t->prefix, "store-%016llx", (unsigned long long)number);
    for (int i = 0; i < KAFKA_NODES_MAX; i++) {
        (void)snprintf(t->dirs[i], sizeof t->dirs[i], "/tmp/retryd-kafka-XXXXXX");
        if (mkdtemp(t->dirs[i]) == NULL) return false;
    }
    return true;
}

void kafka_node_forget(const kafka_topics *t, int node) {
    static const char *const NAMES[] = {"data.mdb", "lock.mdb", "owner.lock", "boot", "origin"};
    char path[128];
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", t->dirs[node], NAMES[i]);
        (void)unlink(path);
    }
    (void)rmdir(t->dirs[node]);
}

void kafka_topics_remove(const kafka_topics *t) {
    for (int i = 0; i < KAFKA_NODES_MAX; i++) kafka_node_forget(t, i);
}

rt_code kafka_node_open(const kafka_topics *t, int node, rt_store **out, rt_err *err) {
    rt_store_kafka_config config = t->config;
    config.prefix = t->prefix;
    config.dir = t->dirs[node];
    return rt_store_kafka_open(&config, out, err);
}

/* ---- the factory --------------------------------------------------------------------------------------- */

static rt_code create(void *ctx, rt_retention retention, rt_store **out, rt_err *err) {
    kafka_topics *t = ctx;
    if (!kafka_topics_make(t)) return rt_fail(err, RT_E_IO, 0, "no folder");
    t->config.retention = retention;
    return kafka_node_open(t, 0, out, err);
}

static rt_code reopen(void *ctx, rt_store **s, rt_err *err) {
    rt_store_close(*s);
    *s = NULL;
    return kafka_node_open(ctx, 0, s, err);
}

/* … and even its folder is gone: all that counts is in Kafka. */
static rt_code crash(void *ctx, rt_store **s, rt_err *err) {
    rt_store_close(*s);
    *s = NULL;
    kafka_node_forget(ctx, 0);
    return kafka_node_open(ctx, 0, s, err);
}

static void destroy(void *ctx, rt_store *s) {
    rt_store_close(s);
    kafka_topics_remove(ctx);
}

static kafka_topics default_topics;

const store_factory KAFKA_FACTORY = {
    .name = "kafka",
    .ctx = &default_topics,
    .create = create,
    .reopen = reopen,
    .crash = crash,
    .destroy = destroy,
};
