#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

enum { TIMEOUT_MS = 10000, SPOOL_BYTES = 64 << 20 };

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_started;

static void start_curl(void) { curl_started = curl_global_init(CURL_GLOBAL_DEFAULT); }

const char *retry_version(void) { return RETRYD_VERSION; }

const char *retry_code_name(retry_code code) {
    switch (code) {
    case RETRY_OK: return "RETRY_OK";
    case RETRY_SCHEDULED: return "RETRY_SCHEDULED";
    case RETRY_SPOOLED: return "RETRY_SPOOLED";
    case RETRY_NOTHING: return "RETRY_NOTHING";
    case RETRY_E_INVALID: return "RETRY_E_INVALID";
    case RETRY_E_NOMEM: return "RETRY_E_NOMEM";
    case RETRY_E_AWAY: return "RETRY_E_AWAY";
    case RETRY_E_REFUSED: return "RETRY_E_REFUSED";
    case RETRY_E_STALE: return "RETRY_E_STALE";
    case RETRY_E_FULL: return "RETRY_E_FULL";
    case RETRY_E_IO: return "RETRY_E_IO";
    case RETRY_E_GAVE_UP: return "RETRY_E_GAVE_UP";
    }
    return "unknown";
}

static bool copy_if_given(char **to, const char *text) {
    if (text == NULL) return true;
    *to = rtc_copy(text, strlen(text));
    return *to != NULL;
}

static bool has_line_break(const char *text) { return text != NULL && strpbrk(text, "\r\n") != NULL; }

static retry_code check(const retry_client_config *cfg, retry_error *error) {
    if (cfg->url == NULL || (strncmp(cfg->url, "http://", 7) != 0 && strncmp(cfg->url, "https://", 8) != 0))
        return rtc_fail(error, RETRY_E_INVALID, "url begins with http:// or https://");
    if (has_line_break(cfg->project) || has_line_break(cfg->token))
        return rtc_fail(error, RETRY_E_INVALID, "project and token are one line");
    if (cfg->timeout_ms > INT32_MAX)
        return rtc_fail(error, RETRY_E_INVALID, "timeout_ms is at most %d", INT32_MAX);
    return RETRY_OK;
}

static bool take_settings(retry_client *c, const retry_client_config *cfg) {
    size_t len = strlen(cfg->url);
    while (len > 0 && cfg->url[len - 1] == '/') len--;
    c->url = rtc_copy(cfg->url, len);
    c->timeout_ms = cfg->timeout_ms == 0 ? TIMEOUT_MS : cfg->timeout_ms;
    c->log = cfg->log;
    c->log_arg = cfg->log_arg;
    return c->url != NULL && copy_if_given(&c->project, cfg->project) &&
           copy_if_given(&c->token, cfg->token) && copy_if_given(&c->ca_file, cfg->ca_file);
}

retry_code retry_client_open(const retry_client_config *config, retry_client **client, retry_error *error) {
    retry_client_config cfg;
    if (!rtc_take_config(&cfg, sizeof cfg, config, error)) return RETRY_E_INVALID;
    retry_code code = check(&cfg, error);
    if (code != RETRY_OK) return code;
    (void)pthread_once(&curl_once, start_curl);
    if (curl_started != CURLE_OK)
        return rtc_fail(error, RETRY_E_NOMEM, "libcurl: %s", curl_easy_strerror(curl_started));

    retry_client *c = calloc(1, sizeof *c);
    if (c == NULL) return rtc_fail(error, RETRY_E_NOMEM, "out of memory");
    (void)pthread_mutex_init(&c->lock, NULL);
    (void)pthread_mutex_init(&c->keeper_lock, NULL);
    (void)pthread_mutex_init(&c->sender_lock, NULL);
    (void)rtc_cond_init(&c->keeper_wake);
    (void)rtc_cond_init(&c->sender_wake);
    if (!take_settings(c, &cfg)) code = rtc_fail(error, RETRY_E_NOMEM, "out of memory");
    if (code == RETRY_OK && cfg.spool_dir != NULL) {
        code = rtc_spool_open(cfg.spool_dir, cfg.spool_bytes_max == 0 ? SPOOL_BYTES : cfg.spool_bytes_max,
                              &c->spool, error);
        if (code == RETRY_OK) code = rtc_sender_start(c, error);
    }
    if (code == RETRY_OK) *client = c;
    else retry_client_close(c);
    return code;
}

void retry_client_close(retry_client *client) {
    if (client == NULL) return;
    rtc_sender_stop(client);
    rtc_keeper_stop(client);
    rtc_spool_close(client->spool);
    rtc_http_cleanup(client);
    for (rtc_registration *r = client->registrations, *next; r != NULL; r = next) {
        next = r->next;
        free(r);
    }
    (void)pthread_cond_destroy(&client->sender_wake);
    (void)pthread_cond_destroy(&client->keeper_wake);
    (void)pthread_mutex_destroy(&client->sender_lock);
    (void)pthread_mutex_destroy(&client->keeper_lock);
    (void)pthread_mutex_destroy(&client->lock);
    free(client->url);
    free(client->project);
    free(client->token);
    free(client->ca_file);
    free(client);
}
