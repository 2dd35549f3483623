#include "config.h"

#include <errno.h>
#include <ini.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/file.h"

#ifndef RETRYD_PLUGINS_DIR
#define RETRYD_PLUGINS_DIR "/usr/local/lib/retryd/plugins" /* the build says where they are installed */
#endif

enum { FILE_BYTES_MAX = 1024 * 1024, NAME_MAX_BYTES = 64, VALUE_BYTES_MAX = 4096 };

typedef enum setting_kind {
    KIND_NUMBER,
    KIND_BYTES,
    KIND_BOOL,
    KIND_TEXT,
    KIND_CHOICE,
    KIND_LISTEN,
    KIND_NETWORKS
} setting_kind;

typedef struct setting {
    const char *name; /* "group.key" */
    setting_kind kind;
    const char *unit; /* of numbers; the words of a choice, separated by '|' */
    uint64_t min, max;
    const char *preset;
    size_t offset;
    const char *meaning;
} setting;

#define AT(field) offsetof(rt_config, field)
#define KI UINT64_C(1024)
static const setting SETTINGS[] = {
    {"server.listen", KIND_LISTEN, "HOST:PORT", 0, 0, "127.0.0.1:8888", AT(server_listen),
     "where to listen; port 0 takes a free one; anything but loopback wants auth.tokens_file or --insecure"},
    {"server.connections_max", KIND_NUMBER, "connections", 1, 1000000, "4096", AT(server_connections_max),
     "open at the same time; further clients wait in the backlog"},
    {"server.requests_max", KIND_NUMBER, "requests", 1, 1000000, "8192", AT(server_requests_max),
     "waiting for their commit or for a listing at the same time; one more is answered 503"},
    {"server.body_bytes_max", KIND_BYTES, "bytes", KI, 64 * KI * KI, "1M", AT(server_body_bytes_max),
     "largest body of a request; a larger one is answered 413"},
    {"server.idle_timeout_s", KIND_NUMBER, "seconds", 1, 3600, "60", AT(server_idle_timeout_s),
     "a connection without a request is closed after this long"},
    {"server.request_timeout_s", KIND_NUMBER, "seconds", 1, 3600, "30", AT(server_request_timeout_s),
     "a client that takes longer to send a request, or to read its answer, is cut off"},
    {"server.deadline_ms", KIND_NUMBER, "milliseconds", 100, 600000, "30000", AT(server_deadline_ms),
     "a request that waits longer for its commit is answered 503"},
    {"server.readers", KIND_NUMBER, "threads", 1, 64, "1", AT(server_readers),
     "threads for listings, which may wait for the disk"},
    {"auth.tokens_file", KIND_TEXT, "path", 0, 0, "", AT(auth_tokens_file),
     "a file of lines TOKEN PROJECT, where the project * opens everything; empty: no authentication"},
    {"store.lmdb_map_bytes", KIND_BYTES, "bytes", 16 * KI * KI, UINT64_C(1) << 46, "1T",
     AT(store_lmdb_map_bytes), "largest size of the LMDB file; the file is sparse, so be generous"},
    {"store.disk_reserve_bytes", KIND_BYTES, "bytes", 0, UINT64_C(1) << 40, "64M",
     AT(store_disk_reserve_bytes),
     "with less than this free on the disk, only what gives room back is accepted; 0: off"},
    {"history.maximum_age_seconds", KIND_NUMBER, "seconds", 1, 315360000, "604800",
     AT(history_maximum_age_seconds), "attempts and other events are kept this long"},
    {"history.maximum_events", KIND_NUMBER, "events", 1, UINT64_C(1) << 40, "1000000",
     AT(history_maximum_events), "no more of them are kept, the oldest go first"},
    {"delivery.allow_networks", KIND_NETWORKS, "list", 0, 0, "", AT(delivery_allow_networks),
     "networks that deliveries may go to although not public: CIDR, or the words loopback and private"},
    {"delivery.in_flight_max", KIND_NUMBER, "attempts", 2, 65536, "4096", AT(delivery_in_flight_max),
     "under way at the same time"},
    {"delivery.queue_in_flight_max", KIND_NUMBER, "attempts", 1, 65536, "64",
     AT(delivery_queue_in_flight_max), "under way at the same time for one subscription"},
    {"delivery.host_in_flight_max", KIND_NUMBER, "attempts", 0, 65536, "0", AT(delivery_host_in_flight_max),
     "under way at the same time to one host and port, whichever subscriptions they are of; 0: no limit"},
    {"delivery.connect_timeout_ms", KIND_NUMBER, "milliseconds", 1, 10000, "10000",
     AT(delivery_connect_timeout_ms), "an attempt that is not connected by then has failed"},
    {"delivery.drain_ms", KIND_NUMBER, "milliseconds", 0, 600000, "10000", AT(delivery_drain_ms),
     "when stopping, attempts under way get this long to end"},
    {"delivery.ca_file", KIND_TEXT, "path", 0, 0, "", AT(delivery_ca_file),
     "certificates that https endpoints are verified with; empty: the system's"},
    {"delivery.user_agent", KIND_TEXT, "text", 0, 0, "", AT(delivery_user_agent),
     "the User-Agent header of each delivery; empty: retryd/VERSION"},
    {"mail.relay", KIND_TEXT, "smtp://HOST:PORT", 0, 0, "", AT(mail_relay),
     "SMTP relay for mailto: subscribers, smtps:// for TLS; empty: such deliveries are dead at once"},
    {"mail.user", KIND_TEXT, "name", 0, 0, "", AT(mail_user), "user at the relay; empty: no login"},
    {"mail.password_file", KIND_TEXT, "path", 0, 0, "", AT(mail_password_file),
     "a file with the password in its first line; nobody but its owner may read it"},
    {"mail.from", KIND_TEXT, "address", 0, 0, "", AT(mail_from),
     "sender of mails; empty: retryd@localhost"},
    {"notification.require_confirmation", KIND_BOOL, "true|false", 0, 0, "false",
     AT(notification_require_confirmation), "a subscriber must confirm before anything else is sent to it"},
    {"scheduler.schedule_period_seconds", KIND_NUMBER, "seconds", 1, 3600, "15", AT(scheduler_period_s),
     "between two looks for tasks of orders that were lost sight of, a fifth more or less"},
    {"scheduler.retry_lock_timeout_seconds", KIND_NUMBER, "seconds", 1, 86400, "60",
     AT(scheduler_lock_timeout_s), "a lock that its holder has not renewed for so long is taken from it"},
    {"orders.host_href", KIND_TEXT, "URL", 0, 0, "", AT(orders_host_href),
     "what references to orders and secrets begin with, up to /v1; empty: http:// and the request's Host"},
    {"orders.demo", KIND_BOOL, "true|false", 0, 0, "false", AT(orders_demo),
     "registers the order types certificate, key and asymmetric for all projects that have none of their own"},
    {"plugins.directory", KIND_TEXT, "path", 0, 0, RETRYD_PLUGINS_DIR, AT(plugins_directory),
     "where plugin:NAME is NAME.so; what stands in a section [plugin.NAME] is handed to it"},
    {"plugins.processes", KIND_NUMBER, "processes", 1, RT_PLUGIN_PROCESSES_MAX, "4", AT(plugins_processes),
     "of one plugin at the same time, a call each; started when needed, gone when idle for a minute"},
    {"simple_certificate.delay_before_update_seconds", KIND_NUMBER, "seconds", 0, 2592000, "5",
     AT(simple_certificate_delay_s), "the demo certificate authority generates a certificate after so long"},
    {"log.level", KIND_CHOICE, "debug|info|warn|error", 0, 0, "info", AT(log_level),
     "least level that is written; debug has a line for each request"},
    {"log.format", KIND_CHOICE, "text|json", 0, 0, "text", AT(log_format), "of the lines on stderr"},
};
enum { SETTINGS_COUNT = sizeof SETTINGS / sizeof *SETTINGS };

/* ---- values -------------------------------------------------------------------------------------------- */

static uint64_t *number_of(rt_config *c, const setting *s) {
    return (uint64_t *)(void *)((char *)c + s->offset);
}
static bool *bool_of(rt_config *c, const setting *s) { return (bool *)(void *)((char *)c + s->offset); }
static char **text_of(rt_config *c, const setting *s) { return (char **)(void *)((char *)c + s->offset); }

static bool is_text(const setting *s) { return s->kind >= KIND_TEXT; }

/* k, M, G, T: powers of 1024. */
static bool take_suffix(rt_str *value, uint64_t *factor) {
    static const char SUFFIXES[] = "kMGT";
    *factor = 1;
    if (value->len == 0) return false;
    const char *at = strchr(SUFFIXES, value->ptr[value->len - 1]);
    if (at == NULL) return true;
    for (const char *p = SUFFIXES; p <= at; p++) *factor *= KI;
    value->len--;
    return true;
}

static bool parse_number(const setting *s, rt_str value, uint64_t *out) {
    uint64_t factor = 1;
    int64_t n;
    if (s->kind == KIND_BYTES && !take_suffix(&value, &factor)) return false;
    if (!rt_str_to_i64(value, &n) || n < 0) return false;
    uint64_t product;
    if (__builtin_mul_overflow((uint64_t)n, factor, &product)) return false;
    *out = product;
    return product >= s->min && product <= s->max;
}

static bool parse_bool(rt_str value, bool *out) {
    static const char *const WORDS[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
        if (!rt_str_eq_nocase(value, rt_str_of(WORDS[i]))) continue;
        *out = i % 2 == 1;
        return true;
    }
    return false;
}

static bool is_one_of(const char *words, rt_str value) {
    rt_str rest = rt_str_of(words), word;
    bool more = true;
    while (more) {
        more = rt_str_cut(rest, '|', &word, &rest);
        if (rt_str_eq(word, value)) return true;
    }
    return false;
}

/* The words of delivery.allow_networks stand for these. */
static const struct {
    const char *word, *networks;
} NETWORK_WORDS[] = {
    {"loopback", "127.0.0.0/8,::1/128"},
    {"private", "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7"},
};
enum { NETWORK_WORDS_COUNT = sizeof NETWORK_WORDS / sizeof *NETWORK_WORDS };

static rt_code parse_networks(rt_str list, rt_address_list *out, rt_err *err) {
    rt_buf spelt_out = {0};
    rt_str rest = list;
    while (rest.len > 0) {
        rt_str item;
        (void)rt_str_cut(rest, ',', &item, &rest);
        for (size_t i = 0; i < NETWORK_WORDS_COUNT; i++) {
            if (rt_str_eq(item, rt_str_of(NETWORK_WORDS[i].word)))
                item = rt_str_of(NETWORK_WORDS[i].networks);
        }
        rt_buf_add(&spelt_out, item);
        rt_buf_add_char(&spelt_out, ',');
    }
    rt_err why;
    rt_code code = RT_OK;
    if (spelt_out.failed) code = rt_fail(err, RT_E_NOMEM, ENOMEM, "delivery.allow_networks");
    else if (rt_address_list_parse(rt_buf_str(&spelt_out), out, &why) != RT_OK) {
        code = rt_fail(err, RT_E_INVALID, 0, "delivery.allow_networks: %s", why.msg);
    }
    rt_buf_deinit(&spelt_out);
    return code;
}

rt_code rt_config_networks(const rt_config *c, rt_address_list *out, rt_err *err) {
    return parse_networks(rt_str_of(c->delivery_allow_networks), out, err);
}

/* Writes the items of a list with one comma between them; blanks separate them too. */
static rt_code parse_list(const setting *s, rt_str value, rt_buf *out, rt_err *err) {
    bool between = false;
    for (size_t i = 0; i < value.len; i++) {
        const char c = value.ptr[i];
        if (c == ',' || c == ' ' || c == '\t') {
            between = out->len > 0;
            continue;
        }
        if (between) rt_buf_add_char(out, ',');
        between = false;
        rt_buf_add_char(out, c);
    }
    if (out->failed) return rt_fail(err, RT_E_NOMEM, ENOMEM, "%s", s->name);
    rt_address_list networks;
    return parse_networks(rt_buf_str(out), &networks, err);
}

static rt_code bad_value(const setting *s, rt_str value, rt_err *err) {
    const rt_str shown = {.ptr = value.ptr, .len = value.len > 40 ? 40 : value.len};
    if (s->kind == KIND_NUMBER || s->kind == KIND_BYTES) {
        return rt_fail(err, RT_E_INVALID, 0, "%s must be %" PRIu64 " to %" PRIu64 " %s%s, not \"%.*s\"",
                       s->name, s->min, s->max, s->unit,
                       s->kind == KIND_BYTES ? " (k, M, G, T may follow)" : "", RT_STR_ARG(shown));
    }
    return rt_fail(err, RT_E_INVALID, 0, "%s must be %s, not \"%.*s\"", s->name, s->unit, RT_STR_ARG(shown));
}

static rt_code set_text(rt_config *c, const setting *s, rt_str value, rt_err *err) {
    char *copy = rt_str_dup(value);
    if (copy == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "%s", s->name);
    char **at = text_of(c, s);
    free(*at);
    *at = copy;
    return RT_OK;
}

static rt_code set_value(rt_config *c, const setting *s, rt_str value, rt_err *err) {
    if (value.len > VALUE_BYTES_MAX) {
        return rt_fail(err, RT_E_INVALID, 0, "%s is longer than %d bytes", s->name, VALUE_BYTES_MAX);
    }
    bool fits = true;
    rt_buf list = {0};
    rt_code code = RT_OK;
    char host[RT_HOST_MAX];
    uint16_t port;
    switch (s->kind) {
    case KIND_NUMBER:
    case KIND_BYTES: {
        uint64_t number = 0;
        fits = parse_number(s, value, &number);
        if (fits) *number_of(c, s) = number;
        break;
    }
    case KIND_BOOL: fits = parse_bool(value, bool_of(c, s)); break;
    case KIND_TEXT: return set_text(c, s, value, err);
    case KIND_CHOICE:
        fits = is_one_of(s->unit, value);
        if (fits) code = set_text(c, s, value, err);
        break;
    case KIND_LISTEN:
        code = set_text(c, s, value, err);
        fits = code != RT_OK || rt_config_split_listen(*text_of(c, s), host, &port);
        break;
    case KIND_NETWORKS:
        code = parse_list(s, value, &list, err);
        if (code == RT_OK) code = set_text(c, s, rt_buf_str(&list), err);
        rt_buf_deinit(&list);
        break;
    }
    return fits ? code : bad_value(s, value, err);
}

bool rt_config_split_listen(const char *listen, char host[RT_HOST_MAX], uint16_t *port) {
    const char *colon = strrchr(listen, ':');
    int64_t number;
    if (colon == NULL || colon[1] == '+' || !rt_str_to_i64(rt_str_of(colon + 1), &number)) return false;
    if (number < 0 || number > UINT16_MAX) return false;
    rt_str name = {.ptr = listen, .len = (size_t)(colon - listen)};
    const bool bracketed = name.len >= 2 && name.ptr[0] == '[' && name.ptr[name.len - 1] == ']';
    if (bracketed) name = (rt_str){.ptr = name.ptr + 1, .len = name.len - 2};
    else if (name.len > 0 && memchr(name.ptr, ':', name.len) != NULL)
        return false; // ::1:80 could be read in two ways
    if (rt_str_eq(name, RT_STR("*"))) name = RT_STR_EMPTY;
    if (name.len >= RT_HOST_MAX) return false;
    memcpy(host, name.ptr, name.len);
    host[name.len] = '\0';
    *port = (uint16_t)number;
    return true;
}

/* ---- names --------------------------------------------------------------------------------------------- */

static const setting *find(rt_str name) {
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        if (rt_str_eq(name, rt_str_of(SETTINGS[i].name))) return &SETTINGS[i];
    }
    return NULL;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* How many letters must be put in, left out or changed. Source: Wagner and Fischer, 1974. */
static size_t edit_distance(rt_str a, rt_str b) {
    size_t row[NAME_MAX_BYTES + 1];
    for (size_t j = 0; j <= b.len; j++) row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            const size_t above = row[j];
            const size_t changed = diagonal + (a.ptr[i - 1] == b.ptr[j - 1] ? 0 : 1);
            row[j] = least(changed, least(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[b.len];
}

static rt_code unknown(rt_str name, rt_err *err) {
    const rt_str shown = {.ptr = name.ptr, .len = least(name.len, NAME_MAX_BYTES)};
    const setting *closest = &SETTINGS[0];
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        const size_t distance = edit_distance(shown, rt_str_of(SETTINGS[i].name));
        if (distance >= best) continue;
        best = distance;
        closest = &SETTINGS[i];
    }
    return rt_fail(err, RT_E_INVALID, 0, "there is no setting \"%.*s\"; did you mean %s?", RT_STR_ARG(shown),
                   closest->name);
}

static rt_code assign(rt_config *c, rt_str name, rt_str value, rt_err *err) {
    const setting *s = find(name);
    if (s != NULL) return set_value(c, s, value, err);
    return rt_config_plugin_is(name) ? rt_config_plugin_take(&c->plugin, name, value, err) : unknown(name, err);
}

rt_code rt_config_assign(rt_config *c, const char *assignment, rt_err *err) {
    rt_str name, value;
    if (!rt_str_cut(rt_str_of(assignment), '=', &name, &value)) {
        return rt_fail(err, RT_E_INVALID, 0, "\"%.60s\" is not of the form group.key=value", assignment);
    }
    return assign(c, rt_str_trim(name), rt_str_trim(value), err);
}

/* ---- files --------------------------------------------------------------------------------------------- */

/* What inih reads from and tells. It counts no lines for its handler, so the reader does. */
typedef struct reading {
    rt_config *config;
    const char *name;
    rt_str rest;
    size_t line_no;
    bool continues; /* the line begins with a space: it goes on with the setting before it */
    rt_code code;   /* of the first line with a wrong setting */
    size_t wrong_no; /* and its number */
    rt_err *err;
} reading;

static void wrong_line(reading *r, const rt_err *why) {
    if (r->code != RT_OK) return;
    r->wrong_no = r->line_no;
    r->code = rt_fail(r->err, why->code, why->sys_errno, "%s:%zu: %s", r->name, r->line_no, why->msg);
}

/* As fgets, but never part of a line: inih would take the rest of a longer one for a line of its own. */
static char *read_line(char *to, int num, void *stream) {
    reading *r = stream;
    if (r->rest.len == 0 || num < 2) return NULL;
    rt_str line;
    (void)rt_str_cut(r->rest, '\n', &line, &r->rest);
    r->line_no++;
    rt_err why = {.code = RT_OK};
    if (line.len > (size_t)num - 2) {
        (void)rt_fail(&why, RT_E_INVALID, 0,
                      "the line is longer than %d bytes (a list may go on in lines that begin with a space)",
                      num - 2);
    } else if (line.len > 0 && memchr(line.ptr, '\0', line.len) != NULL) {
        (void)rt_fail(&why, RT_E_INVALID, 0, "there is a NUL in it");
    }
    if (why.code != RT_OK) {
        wrong_line(r, &why);
        line = RT_STR_EMPTY;
    }
    r->continues = line.len > 0 && (line.ptr[0] == ' ' || line.ptr[0] == '\t');
    memcpy(to, line.ptr, line.len);
    to[line.len] = '\n';
    to[line.len + 1] = '\0';
    return to;
}

static rt_code append(rt_config *c, const setting *s, const char *value, rt_err *err) {
    if (s->kind != KIND_NETWORKS) {
        return rt_fail(err, RT_E_INVALID, 0,
                       "a line that begins with a space goes on with a list, but %s is none", s->name);
    }
    rt_buf all = {0};
    rt_buf_addf(&all, "%s,%s", *text_of(c, s), value);
    const rt_code code = all.failed ? rt_fail(err, RT_E_NOMEM, ENOMEM, "%s", s->name)
                                    : set_value(c, s, rt_buf_str(&all), err);
    rt_buf_deinit(&all);
    return code;
}

static int take_line(void *user, const char *group, const char *key, const char *value) {
    reading *r = user;
    rt_err why = {.code = RT_OK};
    rt_buf name = {0};
    rt_buf_addf(&name, "%s.%s", group, key);
    const setting *s = find(rt_buf_str(&name));
    rt_code code;
    if (name.failed) code = rt_fail(&why, RT_E_NOMEM, ENOMEM, "out of memory");
    else if (s != NULL && r->continues) code = append(r->config, s, value, &why);
    else code = assign(r->config, rt_buf_str(&name), rt_str_of(value), &why);
    rt_buf_deinit(&name);
    if (code != RT_OK) wrong_line(r, &why);
    return code == RT_OK;
}

rt_code rt_config_parse(rt_config *c, rt_str text, const char *name, rt_err *err) {
    reading r = {.config = c, .name = name, .rest = text, .code = RT_OK, .err = err};
    const int line = ini_parse_stream(read_line, &r, take_line, &r);
    if (line < 0) return rt_fail(err, RT_E_NOMEM, ENOMEM, "%s", name);
    // inih goes on behind a line that it cannot read, and tells the first one in the end.
    const bool unreadable = line > 0 && (r.code == RT_OK || (size_t)line < r.wrong_no);
    if (unreadable) return rt_fail(err, RT_E_INVALID, 0, "%s:%d: neither [group] nor key = value", name, line);
    return r.code;
}

rt_code rt_config_read(rt_config *c, const char *file, rt_err *err) {
    rt_buf text = {0};
    rt_code code = rt_file_read(file, FILE_BYTES_MAX, false, &text, err);
    if (code == RT_OK) code = rt_config_parse(c, rt_buf_str(&text), file, err);
    rt_buf_deinit(&text);
    return code;
}

/* ---- all of them --------------------------------------------------------------------------------------- */

rt_code rt_config_init(rt_config *c, rt_err *err) {
    *c = (rt_config){0};
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        const rt_code code = set_value(c, &SETTINGS[i], rt_str_of(SETTINGS[i].preset), err);
        if (code == RT_OK) continue;
        rt_config_deinit(c);
        return code;
    }
    return RT_OK;
}

void rt_config_deinit(rt_config *c) {
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        if (is_text(&SETTINGS[i])) free(*text_of(c, &SETTINGS[i]));
    }
    rt_buf_deinit(&c->plugin.text);
    *c = (rt_config){0};
}

static void explain_range(const setting *s, rt_buf *out) {
    if (s->kind == KIND_NUMBER || s->kind == KIND_BYTES) {
        rt_buf_addf(out, "# %s, %" PRIu64 " to %" PRIu64 "%s\n", s->unit, s->min, s->max,
                    s->kind == KIND_BYTES ? "; k, M, G, T may follow a number" : "");
    } else {
        rt_buf_addf(out, "# %s\n", s->unit);
    }
}

void rt_config_explain(rt_buf *out) {
    rt_str group_before = RT_STR_EMPTY;
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        const setting *s = &SETTINGS[i];
        rt_str group, key;
        (void)rt_str_cut(rt_str_of(s->name), '.', &group, &key);
        if (!rt_str_eq(group, group_before)) {
            rt_buf_addf(out, "%s[%.*s]\n", i == 0 ? "" : "\n\n", RT_STR_ARG(group));
        }
        group_before = group;
        rt_buf_addf(out, "\n# %s\n", s->meaning);
        explain_range(s, out);
        rt_buf_addf(out, "#%.*s = %s\n", RT_STR_ARG(key), s->preset);
    }
}
