#include "store/kafka/topics.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "os/clock.h"
#include "store/kafka/words.h"

enum { ASK_MS = 30000, SLICE_MS = 200, NAP_MS = 50 };

typedef struct topic_config {
    const char *name, *value;
    bool must; /* not only when it is made */
} topic_config;

/* Brokers compact and delete only what is not written to any more; a gigabyte and a week, as they have it, is
 * much to read for a node that begins. */
#define SEGMENT_BYTES "67108864"
#define SEGMENT_MS "3600000"

static const topic_config JOURNAL[] = {
    {"cleanup.policy", "delete", true}, // what is in the retry topic is deleted by retryd itself
    {"retention.ms", "-1", true},
    {"retention.bytes", "-1", true},
    {"segment.bytes", SEGMENT_BYTES, false}, // whole segments go
};
static const topic_config RETRY[] = {
    {"cleanup.policy", "compact", true},
    {"min.compaction.lag.ms", "60000", false},
    {"delete.retention.ms", "86400000", false}, // who reads from the beginning must meet each tombstone
    {"segment.bytes", SEGMENT_BYTES, false},
    {"segment.ms", SEGMENT_MS, false},
};
static const topic_config OPEN[] = {{"cleanup.policy", "compact", false}, {"segment.ms", SEGMENT_MS, false}};
#define COUNT(list) (sizeof(list) / sizeof *(list))

/* ---- admin requests ------------------------------------------------------------------------------------ */

typedef struct request {
    rt_ks *store;
    rd_kafka_t *rk;
    rd_kafka_AdminOptions_t *options;
    rd_kafka_queue_t *queue;
    rd_kafka_event_t *event; /* the answer */
} request;

static request begin(rt_ks *s, rd_kafka_admin_op_t op) {
    char why[8];
    request r = {.store = s, .rk = s->journal.writer};
    r.options = rd_kafka_AdminOptions_new(r.rk, op);
    r.queue = rd_kafka_queue_new(r.rk);
    (void)rd_kafka_AdminOptions_set_request_timeout(r.options, (int)s->cfg.start_ms, why, sizeof why);
    return r;
}

static rt_code wait_for(request *r, const char *what, rt_err *err) {
    rt_ks *s = r->store;
    const int64_t until_ms = rt_mono_ms() + s->cfg.start_ms + 1000;
    rt_ks_came(s);
    while ((r->event = rd_kafka_queue_poll(r->queue, SLICE_MS)) == NULL && rt_mono_ms() < until_ms) {
        (void)rd_kafka_poll(r->rk, 0); // why nobody answers
        if (!rt_ks_still_waits(s, what, err)) return RT_E_UNAVAILABLE;
    }
    const rd_kafka_resp_err_t error =
        r->event == NULL ? RD_KAFKA_RESP_ERR__TIMED_OUT : rd_kafka_event_error(r->event);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return RT_OK;
    const bool silent = error == RD_KAFKA_RESP_ERR__TIMED_OUT && s->journal.why.msg[0] != '\0';
    const char *why = r->event == NULL ? "no answer" : rd_kafka_event_error_string(r->event);
    return rt_fail(err, RT_E_UNAVAILABLE, 0, "Kafka: %s: no answer from the brokers %.80s: %.150s", what,
                   s->brokers, silent ? s->journal.why.msg : why);
}

static void finish(request *r) {
    if (r->event != NULL) rd_kafka_event_destroy(r->event);
    rd_kafka_queue_destroy(r->queue);
    rd_kafka_AdminOptions_destroy(r->options);
}

/* ---- making -------------------------------------------------------------------------------------------- */

/* The broker's own words, if it has any. */
static const char *topic_error(const rd_kafka_topic_result_t *result) {
    const char *words = rd_kafka_topic_result_error_string(result);
    return words != NULL && words[0] != '\0' ? words : rd_kafka_err2str(rd_kafka_topic_result_error(result));
}

/* 0 partitions: as many as the brokers give. */
static rt_code make_topic(rt_ks *s, const char *name, uint32_t partitions, const topic_config *configs,
                          size_t count, rt_err *err) {
    char why[100];
    const int replication = s->cfg.replication == 0 ? -1 : (int)s->cfg.replication;
    const int spread = partitions == 0 ? -1 : (int)partitions;
    rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, spread, replication, why, sizeof why);
    if (topic == NULL) return rt_fail(err, RT_E_INVALID, 0, "%s: %s", name, why);
    for (size_t i = 0; i < count; i++)
        (void)rd_kafka_NewTopic_set_config(topic, configs[i].name, configs[i].value);
    request r = begin(s, RD_KAFKA_ADMIN_OP_CREATETOPICS);
    rd_kafka_CreateTopics(r.rk, &topic, 1, r.options, r.queue);
    rt_code code = wait_for(&r, name, err);
    if (code == RT_OK) {
        size_t results = 0;
        const rd_kafka_topic_result_t *const *result =
            rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(r.event), &results);
        const rd_kafka_resp_err_t error =
            results == 1 ? rd_kafka_topic_result_error(result[0]) : RD_KAFKA_RESP_ERR__FAIL;
        if (error != RD_KAFKA_RESP_ERR_NO_ERROR && error != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
            code = rt_fail(err, RT_E_INVALID, 0,
                           "Kafka: the topic %s cannot be made with kafka.replication=%u: %.200s", name,
                           s->cfg.replication,
                           results == 1 ? topic_error(result[0]) : rd_kafka_err2str(error));
    }
    finish(&r);
    rd_kafka_NewTopic_destroy(topic);
    return code;
}

/* ---- looking ------------------------------------------------------------------------------------------- */

static rt_code check_configs(const rd_kafka_ConfigResource_t *resource, const char *name,
                             const topic_config *configs, size_t count, rt_err *err) {
    size_t entries;
    const rd_kafka_ConfigEntry_t **entry = rd_kafka_ConfigResource_configs(resource, &entries);
    for (size_t i = 0; i < entries; i++) {
        for (size_t k = 0; k < count; k++) {
            const char *value = rd_kafka_ConfigEntry_value(entry[i]);
            if (!configs[k].must || strcmp(rd_kafka_ConfigEntry_name(entry[i]), configs[k].name) != 0)
                continue;
            if (value != NULL && strcmp(value, configs[k].value) == 0) continue;
            return rt_fail(err, RT_E_INVALID, 0, "Kafka: the topic %s must have %s=%s, and has %.60s", name,
                           configs[k].name, configs[k].value, value != NULL ? value : "none");
        }
    }
    return RT_OK;
}

/* *unknown: the broker that was asked has not heard of it (yet). */
static rt_code look_at_topic(rt_ks *s, const char *name, const topic_config *configs, size_t count,
                             bool *unknown, rt_err *err) {
    rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, name);
    request r = begin(s, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
    rd_kafka_DescribeConfigs(r.rk, &resource, 1, r.options, r.queue);
    rt_code code = wait_for(&r, name, err);
    if (code == RT_OK) {
        size_t results = 0;
        const rd_kafka_ConfigResource_t **result = rd_kafka_DescribeConfigs_result_resources(
            rd_kafka_event_DescribeConfigs_result(r.event), &results);
        const rd_kafka_resp_err_t error =
            results == 1 ? rd_kafka_ConfigResource_error(result[0]) : RD_KAFKA_RESP_ERR__FAIL;
        *unknown = error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
        if (error == RD_KAFKA_RESP_ERR_NO_ERROR) code = check_configs(result[0], name, configs, count, err);
        else if (*unknown && !s->cfg.create_topics)
            code = rt_fail(err, RT_E_INVALID, 0,
                           "Kafka: there is no topic %s, and kafka.create_topics is false", name);
        // Who may not look at it has to trust who made it.
        else if (error != RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
            code = rt_fail(err, RT_E_INVALID, 0, "Kafka: the topic %s: %s", name, rd_kafka_err2str(error));
    }
    finish(&r);
    rd_kafka_ConfigResource_destroy(resource);
    return code;
}

static rt_code check_topic(rt_ks *s, const char *name, const topic_config *configs, size_t count,
                           rt_err *err) {
    const int64_t until_ms = rt_mono_ms() + (s->cfg.create_topics ? ASK_MS : 0);
    for (;;) {
        bool unknown = false;
        const rt_code code = look_at_topic(s, name, configs, count, &unknown, err);
        if (!unknown || rt_mono_ms() >= until_ms) return code;
        (void)poll(NULL, 0, NAP_MS); // it was just made, and word of it has not come round
    }
}

/* How many partitions it has. */
static rt_code count_partitions(rt_ks *s, const char *name, uint32_t *out, rt_err *err) {
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(s->journal.writer, name, NULL);
    if (topic == NULL) return rt_fail(err, RT_E_INVALID, 0, "Kafka: the topic %s", name);
    const rd_kafka_resp_err_t error = rd_kafka_metadata(s->journal.writer, 0, topic, &metadata, ASK_MS);
    rt_code code = RT_OK;
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR || metadata->topic_cnt != 1)
        code = rt_fail(err, RT_E_UNAVAILABLE, 0, "Kafka: the topic %s: %s", name, rd_kafka_err2str(error));
    else if (metadata->topics[0].partition_cnt < 1)
        code = rt_fail(err, RT_E_INVALID, 0, "Kafka: there is no topic %s", name);
    else *out = (uint32_t)metadata->topics[0].partition_cnt;
    if (metadata != NULL) rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(topic);
    return code;
}

static rt_code make_all(rt_ks *s, rt_err *err) {
    rt_code code = make_topic(s, s->journal_topic, 1, JOURNAL, COUNT(JOURNAL), err);
    if (code == RT_OK) code = make_topic(s, s->retry_topic, s->cfg.partitions, RETRY, COUNT(RETRY), err);
    if (code == RT_OK) code = make_topic(s, s->dead_topic, 0, NULL, 0, err);
    if (code == RT_OK) code = make_topic(s, s->audit_topic, 0, NULL, 0, err);
    return code == RT_OK ? make_topic(s, s->open_topic, 0, OPEN, COUNT(OPEN), err) : code;
}

/* Without one of them a cut could never be written. */
static rt_code check_all(rt_ks *s, rt_err *err) {
    rt_code code = check_topic(s, s->journal_topic, JOURNAL, COUNT(JOURNAL), err);
    if (code == RT_OK) code = check_topic(s, s->retry_topic, RETRY, COUNT(RETRY), err);
    if (code == RT_OK) code = check_topic(s, s->dead_topic, NULL, 0, err);
    if (code == RT_OK) code = check_topic(s, s->audit_topic, NULL, 0, err);
    return code == RT_OK ? check_topic(s, s->open_topic, OPEN, COUNT(OPEN), err) : code;
}

/* Those who take a share of the work are in its group. */
static rt_code look_for_others(rt_ks *s, rt_err *err) {
    const struct rd_kafka_group_list *list = NULL;
    const rd_kafka_resp_err_t error = rd_kafka_list_groups(s->journal.writer, s->retry_topic, &list, ASK_MS);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
        return rt_fail(err, RT_E_UNAVAILABLE, 0, "Kafka: the group %s: %s", s->retry_topic,
                       rd_kafka_err2str(error));
    const int others = list->group_cnt == 1 ? list->groups[0].member_cnt : 0;
    rd_kafka_group_list_destroy(list);
    if (others == 0) return RT_OK;
    return rt_fail(err, RT_E_UNAVAILABLE, 0,
                   "%d node%s this store (one that was killed counts for 8 s): stop %s first", others,
                   others == 1 ? " uses" : "s use", others == 1 ? "it" : "them");
}

static void note_origin(rt_ks *s) {
    char *cluster = rd_kafka_clusterid(s->journal.writer, ASK_MS);
    (void)snprintf(s->copy.origin, sizeof s->copy.origin, "%.200s %s\n", cluster != NULL ? cluster : "",
                   s->journal_topic);
    if (cluster != NULL) rd_kafka_mem_free(s->journal.writer, cluster);
}

rt_code rt_ks_topics(rt_ks *s, rt_err *err) {
    uint32_t lines = 0;
    rt_code code = s->cfg.create_topics ? make_all(s, err) : RT_OK;
    if (code == RT_OK) code = check_all(s, err);
    if (code == RT_OK) code = count_partitions(s, s->journal_topic, &lines, err);
    if (code == RT_OK && lines != 1)
        code = rt_fail(err, RT_E_INVALID, 0, "Kafka: the topic %s must have one partition, and has %u",
                       s->journal_topic, lines);
    if (code == RT_OK) code = count_partitions(s, s->retry_topic, &s->partitions, err);
    if (code == RT_OK && s->partitions > RT_STORE_KAFKA_PARTITIONS_MAX)
        code = rt_fail(err, RT_E_INVALID, 0, "Kafka: the topic %s has more than %d partitions",
                       s->retry_topic, RT_STORE_KAFKA_PARTITIONS_MAX);
    if (code == RT_OK) note_origin(s);
    return code == RT_OK && s->cfg.shuns ? look_for_others(s, err) : code;
}
