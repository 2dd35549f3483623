#include "kafka/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static rt_code set(rd_kafka_conf_t *conf, const char *name, const char *value, rt_err *err) {
    char why[8]; // never shown: it may repeat the value
    const rd_kafka_conf_res_t res = rd_kafka_conf_set(conf, name, value, why, sizeof why);
    if (res == RD_KAFKA_CONF_OK) return RT_OK;
    return rt_fail(err, RT_E_INVALID, 0, "librdkafka %s \"%.60s\"",
                   res == RD_KAFKA_CONF_UNKNOWN ? "has no property" : "does not take this value of", name);
}

static rt_code set_own(rd_kafka_conf_t *conf, const rt_kafka_property own[], size_t count, bool soft, rt_err *err) {
    rt_code code = RT_OK;
    for (size_t i = 0; i < count && code == RT_OK; i++) {
        if (own[i].soft == soft) code = set(conf, own[i].name, own[i].value, err);
    }
    return code;
}

static bool is_own(const char *name, const rt_kafka_property own[], size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!own[i].soft && strcmp(name, own[i].name) == 0) return true;
    }
    return strcmp(name, "bootstrap.servers") == 0 || strcmp(name, "metadata.broker.list") == 0;
}

/* One line of the file. The copy of the value is wiped: it may be a password. */
static rt_code take_line(rd_kafka_conf_t *conf, rt_str line, const rt_kafka_property own[], size_t count,
                         rt_err *err) {
    rt_str name, value;
    line = rt_str_trim(line);
    if (line.len == 0 || line.ptr[0] == '#') return RT_OK;
    if (!rt_str_cut(line, '=', &name, &value)) return rt_fail(err, RT_E_INVALID, 0, "not of the form name=value");
    char *name_z = rt_str_dup(rt_str_trim(name));
    value = rt_str_trim(value);
    char *value_z = rt_str_dup(value);
    rt_code code;
    if (name_z == NULL || value_z == NULL) code = rt_fail(err, RT_E_NOMEM, ENOMEM, "no memory for a property");
    else if (is_own(name_z, own, count)) {
        code = rt_fail(err, RT_E_INVALID, 0, "\"%.60s\" is set by retryd and must not be here", name_z);
    } else {
        code = set(conf, name_z, value_z, err);
    }
    if (value_z != NULL) explicit_bzero(value_z, value.len);
    free(value_z);
    free(name_z);
    return code;
}

static rt_code take_file(rd_kafka_conf_t *conf, rt_str text, const rt_kafka_property own[], size_t count,
                         rt_err *err) {
    for (size_t line_no = 1; text.len > 0; line_no++) {
        rt_str line;
        rt_err why;
        (void)rt_str_cut(text, '\n', &line, &text);
        const rt_code code = take_line(conf, line, own, count, &why);
        if (code != RT_OK) return rt_fail(err, code, 0, "kafka.properties_file, line %zu: %s", line_no, why.msg);
    }
    return RT_OK;
}

enum { SYSLOG_ERR = 3 };

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text) {
    const rt_kafka *k = rd_kafka_opaque(rk);
    // One file of properties serves producers and consumers; each complains of those that are for the other.
    if (strcmp(facility, "CONFWARN") == 0) return;
    if (k->say != NULL) k->say(k->ctx, level <= SYSLOG_ERR, rt_str_of(text));
}

/* Without it librdkafka logs a second time what its threads have logged. */
static void on_error(rd_kafka_t *rk, int error, const char *text, void *opaque) {
    const rt_kafka *k = opaque;
    (void)rk;
    if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && k->say != NULL) k->say(k->ctx, true, rt_str_of(text));
}

rt_code rt_kafka_conf(const rt_kafka *k, const rt_kafka_property own[], size_t count, rd_kafka_conf_t **out,
                      rt_err *err) {
    // librdkafka would take it for a part of the host's name, and say it aloud.
    if (strchr(k->brokers, '@') != NULL)
        return rt_fail(err, RT_E_INVALID, 0,
                       "Kafka's brokers are HOST:PORT,…: name and password belong in kafka.properties_file");
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    if (conf == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "rd_kafka_conf_new");
    rd_kafka_conf_set_log_cb(conf, on_log);
    rd_kafka_conf_set_error_cb(conf, on_error);
    rd_kafka_conf_set_opaque(conf, (void *)(uintptr_t)k); // never written through here
    rt_code code = set(conf, "client.id", "retryd", err);
    if (code == RT_OK) code = set_own(conf, own, count, true, err);
    if (code == RT_OK) code = take_file(conf, k->properties, own, count, err);
    if (code == RT_OK) code = set(conf, "bootstrap.servers", k->brokers, err);
    if (code == RT_OK) code = set_own(conf, own, count, false, err);
    if (code != RT_OK) {
        rd_kafka_conf_destroy(conf);
        return code;
    }
    *out = conf;
    return RT_OK;
}

static bool is_set(const rd_kafka_conf_t *conf, const char *name, const char *begin) {
    char value[64] = "";
    size_t size = sizeof value;
    return rd_kafka_conf_get(conf, name, value, &size) == RD_KAFKA_CONF_OK && strncmp(value, begin, strlen(begin)) == 0;
}

rt_code rt_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, rd_kafka_t **out, rt_err *err) {
    char why[200];
    *out = rd_kafka_new(type, conf, why, sizeof why);
    if (*out != NULL) return RT_OK;
    rd_kafka_conf_destroy(conf);
    return rt_fail(err, RT_E_INVALID, 0, "a Kafka %s: %s", type == RD_KAFKA_PRODUCER ? "producer" : "consumer", why);
}

rt_code rt_kafka_try(rd_kafka_type_t type, rd_kafka_conf_t *conf, rt_err *err) {
    const bool fetches = is_set(conf, "security.protocol", "sasl") &&
                         (is_set(conf, "sasl.mechanisms", "GSSAPI") || is_set(conf, "sasl.mechanisms", "OAUTHBEARER"));
    rt_code code = fetches ? RT_OK : set(conf, "bootstrap.servers", "", err); // so there is nobody to be reached
    if (fetches || code != RT_OK) {
        rd_kafka_conf_destroy(conf);
        return code;
    }
    rd_kafka_t *rk;
    code = rt_kafka_new(type, conf, &rk, err);
    if (code == RT_OK) rd_kafka_destroy(rk);
    return code;
}
