#include "serve_store.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/clock.h"
#include "runtime/file.h"
#include "store/kafka/store_kafka.h"
#include "store/lmdb/store_lmdb.h"
#include "store/plugin/store_plugin.h"
#include "store/postgres/store_postgres.h"

/* The faces ask for the time without saying whom. A process serves one store. */
static _Atomic(const rt_store *) clock_store;

int64_t rt_serve_now_ms(void) {
    const rt_store *store = atomic_load(&clock_store);
    return store == NULL ? rt_wall_ms() : store->ops->now_ms(store);
}

enum { KAFKA_PROPERTIES_MAX = 64 << 10 };

static rt_retention retention_of(const rt_config *c) {
    return (rt_retention){.age_ms = (int64_t)c->history_maximum_age_seconds * 1000,
                          .events = c->history_maximum_events};
}

static rt_code open_lmdb(const rt_config *c, const char *dir, rt_store **out, rt_err *err) {
    const rt_store_lmdb_config cfg = {
        .dir = dir,
        .map_bytes = c->store_lmdb_map_bytes,
        .disk_reserve_bytes = c->store_disk_reserve_bytes,
        .retention = retention_of(c),
    };
    return rt_store_lmdb_open(&cfg, out, err);
}

/* A tool has no requests that could wait together. */
typedef struct claim {
    bool tool, force;
    const rt_log *log; /* NULL: none */
} claim;

static rt_code open_postgres(const rt_config *c, const char *url, claim by, rt_store **out, rt_err *err) {
    const bool direct = c->store_postgres_listen[0] != '\0';
    const rt_store_postgres_config cfg = {
        .url = url,
        .listen_url = direct ? c->store_postgres_listen : NULL,
        .views_max = (uint32_t)c->store_postgres_connections,
        .connect_ms = (uint32_t)c->store_postgres_connect_timeout_ms,
        .statement_ms = (uint32_t)c->store_postgres_statement_timeout_ms,
        .retention = retention_of(c),
        .alone = by.tool && !by.force,
        .eager = by.tool,
    };
    return rt_store_postgres_open(&cfg, out, err);
}

static void log_kafka(void *ctx, bool grave, rt_str text) {
    const rt_log_field fields[] = {{.key = "message", .text = text}};
    if (ctx != NULL) rt_log_write(ctx, grave ? RT_LOG_WARN : RT_LOG_INFO, "kafka_store", fields, 1);
}

/* Signals are blocked before the first thread is made, and there is nobody yet who takes them. */
static bool is_told_to_stop(void *ctx) {
    (void)ctx;
    sigset_t set;
    return sigpending(&set) == 0 && (sigismember(&set, SIGTERM) == 1 || sigismember(&set, SIGINT) == 1);
}

/* "BROKERS/PREFIX". */
static rt_code open_kafka(const rt_config *c, rt_str text, claim by, rt_store **out, rt_err *err) {
    rt_str brokers;
    rt_str prefix;
    rt_buf properties = {0};
    if (!rt_str_cut(text, '/', &brokers, &prefix) || brokers.len == 0 || prefix.len == 0)
        return rt_fail(err, RT_E_INVALID, 0, "--store takes kafka://HOST:PORT,…/PREFIX");
    rt_code code = RT_OK;
    if (c->kafka_properties_file[0] != '\0')
        code = rt_file_read_of("kafka.properties_file", c->kafka_properties_file, KAFKA_PROPERTIES_MAX, true, &properties,
                               err);
    char *brokers_z = rt_str_dup(brokers);
    char *prefix_z = rt_str_dup(prefix);
    if (brokers_z == NULL || prefix_z == NULL) code = rt_fail(err, RT_E_NOMEM, 0, "the store's URL");
    const rt_store_kafka_config cfg = {
        .brokers = brokers_z,
        .properties = rt_buf_str(&properties),
        .prefix = prefix_z,
        .dir = c->kafka_copy,
        .map_bytes = c->store_lmdb_map_bytes,
        .disk_reserve_bytes = c->store_disk_reserve_bytes,
        .retention = retention_of(c),
        .partitions = (uint32_t)c->kafka_partitions,
        .replication = (uint32_t)c->kafka_replication,
        .create_topics = c->kafka_create_topics,
        .kept_ms = (int64_t)c->kafka_journal_kept_seconds * 1000,
        .start_ms = (int64_t)c->kafka_start_seconds * 1000,
        .alone = by.tool,
        .shuns = by.tool && !by.force,
        .say = log_kafka,
        .give_up = is_told_to_stop,
        .ctx = (void *)(uintptr_t)by.log, // only read
    };
    if (code == RT_OK) code = rt_store_kafka_open(&cfg, out, err);
    if (properties.ptr != NULL) explicit_bzero(properties.ptr, properties.cap);
    rt_buf_deinit(&properties);
    free(prefix_z);
    free(brokers_z);
    return code;
}

/* "FILE" or "FILE?REST". */
static rt_code open_plugin(const rt_config *c, rt_str text, rt_store **out, rt_err *err) {
    rt_str file;
    rt_str rest;
    if (!rt_str_cut(text, '?', &file, &rest)) rest = RT_STR_EMPTY;
    char *path = rt_str_dup(file);
    char *what = rt_str_dup(rest);
    rt_code code = path != NULL && what != NULL ? RT_OK : rt_fail(err, RT_E_NOMEM, 0, "the store's URL");
    const rt_store_plugin_config cfg = {
        .path = path,
        .rest = what,
        .retention = retention_of(c),
        .disk_reserve_bytes = c->store_disk_reserve_bytes,
    };
    if (code == RT_OK) code = rt_store_plugin_open(&cfg, out, err);
    free(path);
    free(what);
    return code;
}

static rt_code open_url(const rt_config *config, const char *url, claim by, rt_store **out, rt_err *err) {
    const rt_str text = rt_str_of(url);
    const rt_str lmdb = RT_STR("lmdb:");
    const rt_str plugin = RT_STR("plugin:");
    const rt_str kafka = RT_STR("kafka://");
    rt_code code;
    if (rt_str_starts(text, RT_STR("postgresql://")) || rt_str_starts(text, RT_STR("postgres://"))) {
        code = open_postgres(config, url, by, out, err);
    } else if (rt_str_starts(text, lmdb) && text.len > lmdb.len) {
        code = open_lmdb(config, url + lmdb.len, out, err);
    } else if (rt_str_starts(text, kafka)) {
        code = open_kafka(config, rt_str_of(url + kafka.len), by, out, err);
    } else if (rt_str_starts(text, plugin) && text.len > plugin.len) {
        code = open_plugin(config, rt_str_of(url + plugin.len), out, err);
    } else { // not repeated: what is mistyped may hold a password
        return rt_fail(err, RT_E_INVALID, 0,
                       "--store takes lmdb:DIR, postgresql://…, kafka://BROKERS/PREFIX or plugin:FILE?REST");
    }
    return code;
}

rt_code rt_serve_store_open(const rt_config *config, const char *url, const rt_log *log, rt_store **out, rt_err *err) {
    const rt_code code = open_url(config, url, (claim){.log = log}, out, err);
    if (code == RT_OK && (*out)->ops->now_ms != NULL) atomic_store(&clock_store, *out);
    return code;
}

rt_code rt_serve_store_claim(const rt_config *config, const char *url, bool force, rt_store **out, rt_err *err) {
    static const rt_log STDERR = {.level = RT_LOG_INFO, .fd = STDERR_FILENO};
    return open_url(config, url, (claim){.tool = true, .force = force, .log = &STDERR}, out, err);
}

void rt_serve_store_close(rt_store *store) {
    atomic_store(&clock_store, NULL);
    rt_store_close(store);
}
