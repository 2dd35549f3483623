#include "serve_kafka.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/file.h"

enum {
    PROPERTIES_FILE_MAX = 64 * 1024,
    WAITING_BYTES_MAX = 64 * 1024 * 1024, /* of records that wait for brokers; as much as the engine ever has under way */
    LETTERS_BYTES_MAX = 32 * 1024 * 1024,
    LETTERS_DRAIN_MS = 1000
};

/* ---- what it reports ----------------------------------------------------------------------------------- */

static void log_client(void *ctx, bool grave, rt_str text) {
    const rt_serve_kafka *k = ctx;
    const rt_log_field fields[] = {{.key = "message", .text = text}};
    rt_log_write(k->log, grave ? RT_LOG_WARN : RT_LOG_INFO, "kafka", fields, 1);
}

static void log_source(void *ctx, const rt_source_event *event) {
    static const struct {
        const char *name;
        rt_log_level level;
    } KINDS[] = {
        [RT_SOURCE_ASSIGNED] = {"kafka_assigned", RT_LOG_INFO}, [RT_SOURCE_REVOKED] = {"kafka_revoked", RT_LOG_INFO},
        [RT_SOURCE_REFUSED] = {"kafka_refused", RT_LOG_WARN},   [RT_SOURCE_LOST] = {"kafka_lost", RT_LOG_ERROR},
        [RT_SOURCE_FENCED] = {"kafka_fenced", RT_LOG_WARN},     [RT_SOURCE_TROUBLE] = {"kafka_trouble", RT_LOG_WARN},
    };
    const rt_serve_kafka *k = ctx;
    const rt_log_field fields[] = {{.key = "topic", .text = rt_str_of(event->topic)},
                                   {.key = "partition", .number = event->partition},
                                   {.key = "offset", .number = event->offset},
                                   {.key = "message", .text = rt_str_of(event->text)}};
    rt_log_write(k->log, KINDS[event->news].level, KINDS[event->news].name, fields, 4);
}

void rt_serve_kafka_metrics(void *k, rt_buf *out) {
    const rt_serve_kafka *kafka = k;
    if (kafka->source == NULL) return;
    const rt_source_stats *s = rt_source_stats_of(kafka->source);
    const struct {
        const char *name, *help;
        const atomic_uint_fast64_t *value;
    } rows[] = {
        {"records_taken", "Records taken over as new events.", &s->taken},
        {"records_known", "Records whose id was known already.", &s->known},
        {"records_refused", "Records that can never be events, written to the dead-letter topic.", &s->refused},
        {"records_lost", "Records that Kafka deleted before they were taken over.", &s->lost},
        {"batches_fenced", "Batches that another node was faster with.", &s->fenced},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_buf_addf(out, "# HELP retryd_kafka_%s_total %s\n# TYPE retryd_kafka_%s_total counter\n",
                    rows[i].name, rows[i].help, rows[i].name);
        rt_buf_addf(out, "retryd_kafka_%s_total %" PRIu64 "\n", rows[i].name,
                    (uint64_t)atomic_load_explicit(rows[i].value, memory_order_relaxed));
    }
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static rt_code make_names(rt_serve_kafka *k, rt_err *err) {
    const char *prefix = k->config->kafka_prefix;
    if (!rt_topic_name_is_valid(rt_str_of(prefix)) || strlen(prefix) > RT_TOPIC_NAME_MAX - 16)
        return rt_fail(err, RT_E_INVALID, 0, "kafka.prefix: \"%.80s\" cannot begin a topic's name: " RT_TOPIC_NAME_RULE,
                       prefix);
    (void)snprintf(k->intake, sizeof k->intake, "%s.intake", prefix);
    (void)snprintf(k->dead, sizeof k->dead, "%s.dlq", prefix);
    return RT_OK;
}

static rt_code read_settings(rt_serve_kafka *k, rt_err *err) {
    const rt_config *c = k->config;
    rt_code code = make_names(k, err);
    if (code == RT_OK && c->kafka_properties_file[0] != '\0')
        code = rt_file_read_of("kafka.properties_file", c->kafka_properties_file, PROPERTIES_FILE_MAX, true, &k->properties,
                               err);
    k->client = (rt_kafka){.brokers = c->kafka_brokers, .properties = rt_buf_str(&k->properties)};
    return code;
}

/* For the caller to add who hears of outcomes. */
static rt_producer_config of_targets(const rt_serve_kafka *k) {
    return (rt_producer_config){.kafka = k->client,
                                .attempts_max = (uint32_t)k->config->delivery_in_flight_max,
                                .bytes_max = WAITING_BYTES_MAX};
}

rt_code rt_serve_kafka_open(rt_serve_kafka *k, const rt_config *config, const rt_log *log,
                            void (*outcome)(void *ctx, const rt_outcome *outcome), void *ctx, rt_executor *executor,
                            rt_err *err) {
    k->config = config;
    k->log = log;
    if (config->kafka_brokers[0] == '\0') return RT_OK;
    rt_code code = read_settings(k, err);
    if (code != RT_OK) return code;
    k->client.say = log_client;
    k->client.ctx = k;
    rt_producer_config cfg = of_targets(k);
    cfg.outcome = outcome;
    cfg.ctx = ctx;
    code = rt_producer_open(&cfg, &k->targets, err);
    if (code == RT_OK) *executor = rt_producer_executor(k->targets);
    return code;
}

/* For the caller to add the engine. */
static rt_source_config of_source(const rt_serve_kafka *k) {
    const rt_config *c = k->config;
    return (rt_source_config){
        .kafka = k->client,
        .group = c->kafka_group[0] == '\0' ? c->kafka_prefix : c->kafka_group,
        .instance = k->instance,
        .topics = c->kafka_source_topics[0] == '\0' ? k->intake : c->kafka_source_topics,
        .dead_topic = k->dead,
        .project = c->kafka_project,
        .type_pointer = c->kafka_type_pointer,
        .reason_pointer = c->kafka_reason_pointer,
        .key_pointer = c->kafka_key_pointer,
        .id_pointer = c->kafka_id_pointer,
        .order_by_key = c->kafka_order_by_record_key,
        .create_topics = c->kafka_create_topics,
    };
}

static bool has_source(const rt_config *c) { return strcmp(c->kafka_source_topics, "none") != 0; }

static rt_code open_source(rt_serve_kafka *k, rt_engine *engine, bool alone,
                           bool (*submit)(void *ctx, rt_command *cmd, size_t bytes), void *submit_ctx, rt_err *err) {
    const rt_config *c = k->config;
    if (c->kafka_instance[0] != '\0') {
        (void)snprintf(k->instance, sizeof k->instance, "%.200s", c->kafka_instance);
    } else if (alone) {
        (void)snprintf(k->instance, sizeof k->instance, "%s-%08x", c->kafka_prefix, (unsigned)rt_engine_tag(engine));
    }
    rt_source_config cfg = of_source(k);
    cfg.engine = engine;
    cfg.submit = submit;
    cfg.submit_ctx = submit_ctx;
    cfg.tell = log_source;
    cfg.tell_ctx = k;
    return rt_source_open(&cfg, &k->source, err);
}

rt_code rt_serve_kafka_start(rt_serve_kafka *k, rt_engine *engine, bool alone,
                             bool (*submit)(void *ctx, rt_command *cmd, size_t bytes), void *submit_ctx, rt_err *err) {
    if (k->targets == NULL || !has_source(k->config)) return RT_OK;
    rt_code code = open_source(k, engine, alone, submit, submit_ctx, err);
    const rt_producer_config of_letters = {
        .kafka = k->client,
        .outcome = rt_source_outcome,
        .ctx = k->source,
        .attempts_max = RT_SOURCE_LETTERS_MAX,
        .bytes_max = LETTERS_BYTES_MAX,
        .drain_ms = LETTERS_DRAIN_MS,
    };
    if (code == RT_OK) code = rt_producer_open(&of_letters, &k->letters, err);
    if (code != RT_OK) return code;
    const rt_executor letters = rt_producer_executor(k->letters);
    return rt_source_start(k->source, &letters, err);
}

/* ---- checking ------------------------------------------------------------------------------------------ */

rt_code rt_serve_kafka_check(const rt_config *config, rt_err *err) {
    rt_serve_kafka k = {.config = config};
    if (config->kafka_brokers[0] == '\0') return RT_OK;
    rt_code code = read_settings(&k, err);
    const rt_producer_config targets = of_targets(&k);
    const rt_source_config source = of_source(&k);
    if (code == RT_OK) code = rt_producer_check(&targets, err);
    if (code == RT_OK && has_source(config)) code = rt_source_check(&source, err);
    rt_serve_kafka_close(&k);
    return code;
}

/* ---- closing ------------------------------------------------------------------------------------------- */

void rt_serve_kafka_stop(rt_serve_kafka *k) { rt_source_stop(k->source); }

void rt_serve_kafka_close_executors(rt_serve_kafka *k) {
    rt_producer_close(k->targets);
    rt_producer_close(k->letters);
    k->targets = k->letters = NULL;
}

void rt_serve_kafka_close(rt_serve_kafka *k) {
    rt_source_close(k->source);
    k->source = NULL;
    if (k->properties.ptr != NULL) explicit_bzero(k->properties.ptr, k->properties.cap);
    rt_buf_deinit(&k->properties);
}
