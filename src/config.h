/* config.h: every setting of retryd, in one table that parser, --set and `retryd config --explain` share. */
#ifndef RT_CONFIG_H
#define RT_CONFIG_H
#include "config_plugin.h"
#include "executor/webhook/address.h"
#include "face/notifications/limits.h"

/* Strings are owned and never NULL. Lists are words separated by one comma. */
typedef struct rt_config {
    char *server_listen; /* HOST:PORT */
    uint64_t server_connections_max, server_requests_max, server_body_bytes_max, server_replies_bytes_max;
    uint64_t server_idle_timeout_s, server_request_timeout_s, server_deadline_ms, server_readers;
    char *auth_tokens_file;
    uint64_t store_lmdb_map_bytes, store_disk_reserve_bytes;
    char *store_postgres_listen; /* may hold a password */
    uint64_t store_postgres_connections, store_postgres_connect_timeout_ms, store_postgres_statement_timeout_ms;
    uint64_t history_maximum_age_seconds, history_maximum_events;
    char *delivery_allow_networks; /* list of "loopback", "private", CIDR */
    uint64_t delivery_in_flight_max, delivery_queue_in_flight_max, delivery_host_in_flight_max;
    uint64_t delivery_connect_timeout_ms, delivery_drain_ms;
    char *delivery_ca_file, *delivery_user_agent;
    char *mail_relay, *mail_user, *mail_password_file, *mail_from;
    bool notification_require_confirmation;
    rt_limits transport;
    uint64_t scheduler_period_s, scheduler_lock_timeout_s;
    char *orders_host_href;
    bool orders_demo;
    char *plugins_directory;
    uint64_t plugins_processes, simple_certificate_delay_s;
    rt_config_plugin plugin; /* [plugin.NAME] */
    char *kafka_brokers, *kafka_properties_file, *kafka_prefix, *kafka_source_topics, *kafka_group, *kafka_instance;
    char *kafka_project, *kafka_type_pointer, *kafka_reason_pointer, *kafka_key_pointer, *kafka_id_pointer;
    bool kafka_order_by_record_key, kafka_create_topics;
    char *kafka_copy;
    uint64_t kafka_partitions, kafka_replication, kafka_journal_kept_seconds, kafka_start_seconds;
    char *log_level, *log_format;
} rt_config;

/* All defaults; free with rt_config_deinit. RT_E_NOMEM: nothing to free. */
RT_MUST_USE rt_code rt_config_init(rt_config *c, rt_err *err);
void rt_config_deinit(rt_config *c);

/* Reads an INI file over what is there. RT_E_INVALID names file, line, setting and, for an unknown one, the
 * one that was probably meant. Settings before a wrong line may have been taken. */
RT_MUST_USE rt_code rt_config_read(rt_config *c, const char *file, rt_err *err);
RT_MUST_USE rt_code rt_config_parse(rt_config *c, rt_str text, const char *name, rt_err *err);
/* "group.key=value", as --set has it. */
RT_MUST_USE rt_code rt_config_assign(rt_config *c, const char *assignment, rt_err *err);

/* delivery.allow_networks, spelt out. */
RT_MUST_USE rt_code rt_config_networks(const rt_config *c, rt_address_list *out, rt_err *err);

/* Adds every setting with its unit, range, default and meaning, as a configuration file that sets nothing. */
void rt_config_explain(rt_buf *out);

/* Cuts "HOST:PORT", "[V6]:PORT", ":PORT" or "*:PORT". `host` has room for RT_HOST_MAX bytes; "" stands for
 * all addresses. False: of no such form, or the port is no number up to 65535. */
enum { RT_HOST_MAX = 256 };
bool rt_config_split_listen(const char *listen, char host[RT_HOST_MAX], uint16_t *port);

#endif
