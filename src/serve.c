#include "serve.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/common/waiting.h"
#include "executor/executors.h"
#include "executor/plugin/plugins.h"
#include "executor/webhook/webhook.h"
#include "face/admin/admin.h"
#include "face/events/events.h"
#include "face/notifications/notifications.h"
#include "face/notifications/signature.h"
#include "face/orders/orders.h"
#include "face/work/work.h"
#include "http/listen.h"
#include "http/server.h"
#include "json/run_json.h"
#include "os/clock.h"
#include "runtime/engine_thread.h"
#include "runtime/file.h"
#include "runtime/log.h"
#include "runtime/tokens.h"
#include "serve_kafka.h"
#include "serve_store.h"
#include "store/copy/copy.h"

#ifdef RETRYD_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

enum {
    COMMANDS_BYTES_MAX = 128 * 1024 * 1024, /* of requests that wait for the engine */
    ANSWERS_BYTES_MAX = 128 * 1024 * 1024,  /* of what they are answered with, until the API thread takes it */
    ANSWER_EXCERPT_BYTES = 256,             /* of a webhook's answer, kept in the attempt's event */
    FACES_MAX = RT_ADMIN_FACES + RT_WORK_FACES + RT_ORDERS_FACES + RT_EVENTS_FACES + 2,
    PASSWORD_FILE_BYTES_MAX = 4096
};

typedef struct site {
    const rt_config *config;
    rt_log log;
    rt_tokens tokens;
    rt_address_list networks;
    rt_buf mail_password;
    rt_store *store;
    rt_engine_thread *thread;
    rt_webhook *webhook;
    rt_plugins *plugins;
    rt_serve_kafka kafka;
    rt_plugin_setting plugin_settings[1 + RT_CONFIG_PLUGIN_MAX];
    char delay_text[24];
    rt_executors executors;
    char node[128];
    rt_engine *engine;
    char signing_key[RT_SIGNING_KEY_LEN + 1];
    rt_api api;
    const rt_face *faces[FACES_MAX];
    rt_server *server;
    char host[RT_HOST_MAX];
    uint16_t port;
    pthread_t signals;
    bool signals_started;
    atomic_bool done, stopping;
    rt_waits_end end_waits;
} site;

static const char *or_null(const char *text) { return text[0] == '\0' ? NULL : text; }

static void tell_systemd(const char *state) {
#ifdef RETRYD_SYSTEMD
    (void)sd_notify(0, state);
#else
    (void)state;
#endif
}

/* ---- what the parts report ----------------------------------------------------------------------------- */

static void log_trouble(void *ctx, rt_code code, const rt_err *why) {
    const site *s = ctx;
    if (code == RT_OK) {
        rt_log_write(&s->log, RT_LOG_INFO, "store_ready", NULL, 0);
        return;
    }
    const rt_log_field fields[] = {{.key = "code", .text = rt_str_of(rt_code_name(code))},
                                   {.key = "message", .text = rt_str_of(why->msg)}};
    rt_log_write(&s->log, RT_LOG_WARN, "store_trouble", fields, 2);
}

static void log_reply(void *ctx, const rt_exchange *x, unsigned status, uint64_t took_us) {
    const site *s = ctx;
    const rt_log_field fields[] = {{.key = "method", .text = rt_exchange_method(x)},
                                   {.key = "path", .text = rt_exchange_path(x)},
                                   {.key = "status", .number = status},
                                   {.key = "took_us", .number = (int64_t)took_us},
                                   {.key = "request", .text = rt_str_of(rt_exchange_id(x))}};
    rt_log_write(&s->log, RT_LOG_DEBUG, "request", fields, 5);
}

static const char *refuse_target(void *ctx, rt_str host) {
    const site *s = ctx;
    if (!rt_address_literal_refused(&s->networks, host)) return NULL;
    return "The address is in a network that delivery.allow_networks does not list.";
}

static void server_stats(const void *server, uint64_t out[4]) {
    const rt_server_stats now = rt_server_stats_now(server);
    out[0] = now.requests;
    out[1] = now.connections;
    out[2] = now.suspended;
    out[3] = now.refused;
}

/* ---- signals ------------------------------------------------------------------------------------------- */

static sigset_t stop_signals(void) {
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    return set;
}

static void waits_ended(rt_command *cmd) { (void)cmd; }

/* Clients that wait for work are told now that there is none, so that the server can go. */
static void end_waits(site *s) {
    atomic_store(&s->stopping, true);
    rt_waits_end_init(&s->end_waits);
    s->end_waits.cmd.done = waits_ended;
    // Full: they wait until their time is over.
    (void)rt_engine_thread_submit(s->thread, &s->end_waits.cmd, sizeof s->end_waits);
}

static void *await_signals(void *arg) {
    site *s = arg;
    const sigset_t set = stop_signals();
    int number;
    bool stopping = false;
    for (;;) {
        if (sigwait(&set, &number) != 0) continue;
        if (atomic_load(&s->done)) return NULL;
        if (stopping) _exit(1);
        stopping = true;
        tell_systemd("STOPPING=1");
        rt_log_write(&s->log, RT_LOG_INFO, "stopping", NULL, 0);
        rt_server_stop(s->server);
        end_waits(s);
    }
}

static void end_signals(site *s) {
    if (!s->signals_started) return;
    atomic_store(&s->done, true);
    (void)pthread_kill(s->signals, SIGTERM);
    pthread_join(s->signals, NULL);
    s->signals_started = false;
}

/* ---- opening, part by part ----------------------------------------------------------------------------- */

static rt_code read_settings(site *s, bool insecure, rt_err *err) {
    const rt_config *c = s->config;
    const bool known = rt_log_level_parse(rt_str_of(c->log_level), &s->log.level);
    RT_ASSERT(known); // config.c has looked
    s->log.json = strcmp(c->log_format, "json") == 0;
    s->log.fd = STDERR_FILENO;
    const bool split = rt_config_split_listen(c->server_listen, s->host, &s->port);
    RT_ASSERT(split);
    rt_code code = rt_config_networks(c, &s->networks, err);
    if (code != RT_OK) return code;
    if (c->auth_tokens_file[0] != '\0') code = rt_tokens_read(c->auth_tokens_file, &s->tokens, err);
    if (code != RT_OK) return code;
    if (s->tokens.count == 0 && !insecure && !rt_listen_is_loopback(s->host)) {
        return rt_fail(err, RT_E_INVALID, 0,
                       "without tokens anybody who reaches %s could use this server: set "
                       "auth.tokens_file, listen on a loopback address, or give --insecure",
                       c->server_listen);
    }
    if (c->delivery_ca_file[0] != '\0' && access(c->delivery_ca_file, R_OK) != 0) {
        return rt_fail(err, RT_E_IO, errno, "delivery.ca_file: %s: %s", c->delivery_ca_file, strerror(errno));
    }
    if (c->mail_password_file[0] == '\0') return RT_OK;
    code = rt_file_read_of("mail.password_file", c->mail_password_file, PASSWORD_FILE_BYTES_MAX, true, &s->mail_password,
                           err);
    if (code != RT_OK) return code;
    char *end = s->mail_password.ptr == NULL ? NULL : strpbrk(s->mail_password.ptr, "\r\n");
    if (end != NULL) *end = '\0';
    return RT_OK;
}

static rt_code open_webhook(site *s, rt_err *err) {
    const rt_config *c = s->config;
    const rt_webhook_config cfg = {
        .outcome = rt_engine_thread_outcome,
        .ctx = s->thread,
        .allow = s->networks,
        .connections_max = (uint32_t)c->delivery_in_flight_max,
        .host_attempts_max = (uint32_t)c->delivery_host_in_flight_max,
        .connect_ms = (uint32_t)c->delivery_connect_timeout_ms,
        .drain_ms = 0, // rt_engine_thread_stop has waited before
        .excerpt_bytes = ANSWER_EXCERPT_BYTES,
        .ca_file = or_null(c->delivery_ca_file),
        .user_agent = or_null(c->delivery_user_agent),
        .mail_relay = or_null(c->mail_relay),
        .mail_user = or_null(c->mail_user),
        .mail_password = s->mail_password.ptr,
        .mail_from = or_null(c->mail_from),
    };
    return rt_webhook_open(&cfg, &s->webhook, err);
}

static void log_plugin(void *ctx, rt_str plugin, rt_str line) {
    const site *s = ctx;
    const rt_log_field fields[] = {{.key = "plugin", .text = plugin}, {.key = "message", .text = line}};
    rt_log_write(&s->log, RT_LOG_INFO, "plugin", fields, 2);
}

static rt_code open_plugins(site *s, rt_err *err) {
    const rt_config *c = s->config;
    // The one section of a plugin that retryd itself knows.
    (void)snprintf(s->delay_text, sizeof s->delay_text, "%llu", (unsigned long long)c->simple_certificate_delay_s);
    s->plugin_settings[0] = (rt_plugin_setting){.plugin = RT_STR("simple_certificate"),
                                                .key = RT_STR("delay_before_update_seconds"),
                                                .value = rt_str_of(s->delay_text)};
    const rt_plugins_config cfg = {
        .outcome = rt_engine_thread_outcome,
        .ctx = s->thread,
        .say = log_plugin,
        .say_ctx = s,
        .directory = c->plugins_directory,
        .processes = (uint32_t)c->plugins_processes,
        .attempts_max = (uint32_t)c->delivery_in_flight_max,
        .drain_ms = 0, // rt_engine_thread_stop has waited before
        .settings = s->plugin_settings,
        .settings_count = 1 + rt_config_plugin_list(&c->plugin, s->plugin_settings + 1),
    };
    return rt_plugins_open(&cfg, &s->plugins, err);
}

static rt_code open_executors(site *s, rt_err *err) {
    rt_code code = open_webhook(s, err);
    if (code == RT_OK) code = open_plugins(s, err);
    if (code != RT_OK) return code;
    s->executors = (rt_executors){.outcome = rt_engine_thread_outcome, .ctx = s->thread};
    s->executors.of[RT_TARGET_WEBHOOK] = rt_webhook_executor(s->webhook);
    s->executors.of[RT_TARGET_PLUGIN] = rt_plugins_executor(s->plugins);
    return rt_serve_kafka_open(&s->kafka, s->config, &s->log, rt_engine_thread_outcome, s->thread,
                               &s->executors.of[RT_TARGET_KAFKA], err);
}

/* "HOST/PID/START": another one in each process. */
static void name_node(site *s) {
    char host[64] = "";
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(s->node, sizeof s->node, "%s/%ld/%lld", host, (long)getpid(), (long long)rt_wall_ms());
}

static rt_code open_engine(site *s, rt_err *err) {
    const rt_config *c = s->config;
    const rt_engine_thread_config thread = {
        .commands_max = (uint32_t)c->server_requests_max,
        .commands_bytes_max = COMMANDS_BYTES_MAX,
        .outcomes_max = (uint32_t)c->delivery_in_flight_max,
        .on_trouble = log_trouble,
        .ctx = s,
    };
    rt_code code = rt_engine_thread_open(&thread, &s->thread, err);
    if (code == RT_OK) code = open_executors(s, err);
    if (code != RT_OK) return code;
    rt_engine_settings settings = rt_engine_settings_default();
    settings.in_flight_max = (uint32_t)c->delivery_in_flight_max;
    settings.answers_bytes_max = ANSWERS_BYTES_MAX;
    settings.queue_in_flight_max = (uint32_t)c->delivery_queue_in_flight_max;
    settings.message_ttl_s = (uint32_t)c->transport.default_message_ttl;
    settings.message_delay_s = (uint16_t)c->transport.default_message_delay;
    settings.history_ms = (int64_t)c->history_maximum_age_seconds * 1000;
    settings.mono_us = rt_mono_us;
    settings.schedule_period_ms = (uint32_t)c->scheduler_period_s * 1000;
    settings.lock_timeout_ms = (uint32_t)c->scheduler_lock_timeout_s * 1000;
    settings.node = s->node;
    settings.read_run = rt_run_from_text;
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        return rt_fail(err, RT_E_IO, errno, "getrandom");
    name_node(s);
    const rt_executor executor = rt_executors_executor(&s->executors);
    code = rt_engine_open(s->store, &executor, &settings, seed, &s->engine, err);
    return code == RT_OK ? rt_engine_thread_start(s->thread, s->engine, s->store, err) : code;
}

/* Where reading takes round trips, a thread for each connection that is there for it. */
static uint32_t readers_of(const site *s) {
    const uint64_t set = s->config->server_readers;
    const uint64_t connections = s->config->store_postgres_connections;
    const uint64_t readers = s->store->loads && connections > set ? connections : set;
    return readers < 64 ? (uint32_t)readers : 64;
}

static rt_code open_server(site *s, rt_err *err) {
    const rt_config *c = s->config;
    const rt_server_config cfg = {
        .listen_host = s->host,
        .listen_port = s->port,
        .faces = s->faces,
        .faces_count = FACES_MAX,
        .body_bytes_max = c->server_body_bytes_max,
        .replies_bytes_max = c->server_replies_bytes_max,
        .connections_max = (uint32_t)c->server_connections_max,
        .idle_timeout_s = (uint32_t)c->server_idle_timeout_s,
        .request_timeout_s = (uint32_t)c->server_request_timeout_s,
        .deadline_ms = (uint32_t)c->server_deadline_ms,
        .suspended_max = (uint32_t)c->server_requests_max,
        .readers = readers_of(s),
        .reads_wait = s->store->loads,
        .on_reply = s->log.level == RT_LOG_DEBUG ? log_reply : NULL,
        .ctx = s,
    };
    rt_code code = rt_server_open(&cfg, &s->server, err);
    if (code != RT_OK) return code;
    s->api.server = s->server; // before the first request: rt_server_run comes later
    const int bad = pthread_create(&s->signals, NULL, await_signals, s);
    if (bad != 0) return rt_fail(err, RT_E_IO, bad, "signal thread: %s", strerror(bad));
    s->signals_started = true;
    return RT_OK;
}

static rt_str without_slash(const char *url) {
    rt_str s = rt_str_of(url);
    while (s.len > 0 && s.ptr[s.len - 1] == '/') s.len--;
    return s;
}

static rt_code open_faces(site *s, rt_err *err) {
    s->api = (rt_api){
        .engine = s->engine,
        .submit = rt_engine_thread_submit,
        .submit_ctx = s->thread,
        .now_ms = rt_serve_now_ms,
        .tokens = s->tokens.list,
        .tokens_count = s->tokens.count,
        .deadline_ms = (int64_t)s->config->server_deadline_ms,
        .stopping = &s->stopping,
        .require_confirmation = s->config->notification_require_confirmation,
        .limits = &s->config->transport,
        .mail_relay = s->config->mail_relay[0] != '\0',
        .orders_href = without_slash(s->config->orders_host_href),
        .refuse_target = refuse_target,
        .refuse_target_ctx = s,
        .trouble = rt_engine_thread_trouble,
        .trouble_ctx = s->thread,
        .server_stats = server_stats,
        .more_metrics = rt_serve_kafka_metrics,
        .more_metrics_ctx = &s->kafka,
    };
    rt_code code = rt_signing_key_load(&s->api, s->signing_key, err);
    if (code == RT_OK && s->config->orders_demo) code = rt_orders_demo(&s->api, err);
    if (code != RT_OK) return code;
    s->api.signing_key = rt_str_of(s->signing_key);
    rt_face_admin(&s->api, s->faces);
    rt_face_work(&s->api, s->faces + RT_ADMIN_FACES);
    rt_face_orders(&s->api, s->faces + RT_ADMIN_FACES + RT_WORK_FACES);
    rt_face_events(&s->api, s->faces + RT_ADMIN_FACES + RT_WORK_FACES + RT_ORDERS_FACES);
    s->faces[FACES_MAX - 2] = rt_face_notifications(&s->api);
    s->faces[FACES_MAX - 1] = rt_face_root(&s->api); // last: whatever nobody else answers for
    return RT_OK;
}

/* In the order that lets each part end with nobody using it. */
static void close_site(site *s) {
    rt_serve_kafka_stop(&s->kafka);
    if (s->thread != NULL) rt_engine_thread_stop(s->thread, (uint32_t)s->config->delivery_drain_ms);
    rt_webhook_close(s->webhook);
    rt_plugins_close(s->plugins);
    rt_serve_kafka_close_executors(&s->kafka);
    rt_engine_close(s->engine); // answers what still waits, so that the server gets its exchanges back
    end_signals(s); // until here a second signal ends the process; from here on there is no server to stop
    rt_server_close(s->server);
    rt_serve_kafka_close(&s->kafka);
    rt_engine_thread_close(s->thread);
    rt_serve_store_close(s->store);
    rt_tokens_deinit(&s->tokens);
    if (s->mail_password.ptr != NULL) explicit_bzero(s->mail_password.ptr, s->mail_password.cap);
    rt_buf_deinit(&s->mail_password);
    explicit_bzero(s->signing_key, sizeof s->signing_key);
}

/* ---- serving ------------------------------------------------------------------------------------------- */

/* Clients, webhooks and the store all take descriptors; the usual limit of 1024 is soon used up. */
static void raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void say_ready(const site *s) {
    const bool all = s->host[0] == '\0';
    const bool six = strchr(s->host, ':') != NULL;
    (void)fprintf(stderr, "retryd: listening on http://%s%s%s:%u\n", six ? "[" : "",
                  all ? "0.0.0.0" : s->host, six ? "]" : "", (unsigned)rt_server_port(s->server));
    tell_systemd("READY=1");
}

/* With the system's reason, if the message has not said it already. */
static void complain(const rt_err *err) {
    const char *why = err->sys_errno == 0 ? "" : strerror(err->sys_errno);
    const bool said = strstr(err->msg, why) != NULL;
    (void)fprintf(stderr, "retryd: %s%s%s\n", err->msg, said ? "" : ": ", said ? "" : why);
}

int rt_serve(const rt_serve_options *options) {
    site *s = calloc(1, sizeof *s);
    if (s == NULL) return 1;
    s->config = options->config;
    rt_err err = {.code = RT_OK};
    raise_descriptor_limit();
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); // at a limit on the size of files a write then fails, as on a full disk
    const sigset_t set = stop_signals();
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    rt_code code = read_settings(s, options->insecure, &err);
    if (code == RT_OK) code = rt_serve_store_open(s->config, options->store, &s->log, &s->store, &err);
    if (code == RT_OK) code = rt_copy_check_whole(s->store, &err);
    const bool usage = code == RT_E_INVALID || code == RT_E_FORBIDDEN;
    if (code == RT_OK) code = open_engine(s, &err);
    if (code == RT_OK) code = open_faces(s, &err);
    if (code == RT_OK) code = open_server(s, &err);
    if (code == RT_OK)
        code = rt_serve_kafka_start(&s->kafka, s->engine, s->store->sole_owner, rt_engine_thread_submit, s->thread, &err);
    if (code == RT_OK) {
        say_ready(s);
        code = rt_server_run(s->server, &err);
    }
    close_site(s);
    if (code != RT_OK) complain(&err);
    else rt_log_write(&s->log, RT_LOG_INFO, "stopped", NULL, 0);
    free(s);
    return code == RT_OK ? 0 : usage ? 2 : 1;
}

int rt_serve_check(const rt_serve_options *options) {
    site *s = calloc(1, sizeof *s);
    if (s == NULL) return 1;
    s->config = options->config;
    rt_err err = {.code = RT_OK};
    rt_code code = read_settings(s, options->insecure, &err);
    if (code == RT_OK) code = rt_serve_kafka_check(s->config, &err);
    close_site(s);
    if (code != RT_OK) complain(&err);
    free(s);
    return code == RT_OK ? 0 : code == RT_E_NOMEM ? 1 : 2;
}
