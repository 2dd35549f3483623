#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "parts.h"

enum { CONNECT_MS_MAX = 5000 };

/* ---- handles: each keeps its connection, so they are used again ---------------------------------------- */

static CURL *handle_take(retry_client *c) {
    CURL *handle = NULL;
    (void)pthread_mutex_lock(&c->lock);
    if (c->idle_count > 0) handle = c->idle[--c->idle_count];
    (void)pthread_mutex_unlock(&c->lock);
    return handle == NULL ? curl_easy_init() : handle;
}

static void handle_give(retry_client *c, CURL *handle) {
    curl_easy_reset(handle); // keeps connections and the cache of names
    (void)pthread_mutex_lock(&c->lock);
    if (c->idle_count < RTC_IDLE_HANDLES_MAX) {
        c->idle[c->idle_count++] = handle;
        handle = NULL;
    }
    (void)pthread_mutex_unlock(&c->lock);
    curl_easy_cleanup(handle);
}

void rtc_http_cleanup(retry_client *c) {
    while (c->idle_count > 0) curl_easy_cleanup(c->idle[--c->idle_count]);
}

/* ---- one request --------------------------------------------------------------------------------------- */

typedef struct transfer {
    rtc_answer *answer;
    size_t room;
} transfer;

static size_t on_data(char *bytes, size_t size, size_t count, void *ctx) {
    transfer *t = ctx;
    rtc_answer *a = t->answer;
    const size_t more = size * count;
    if (more > RTC_ANSWER_BYTES_MAX - a->bytes) return 0;
    if (a->bytes + more + 1 > t->room) {
        const size_t room = 2 * (a->bytes + more + 1);
        char *text = realloc(a->text, room);
        if (text == NULL) return 0;
        a->text = text;
        t->room = room;
    }
    memcpy(a->text + a->bytes, bytes, more);
    a->bytes += more;
    a->text[a->bytes] = '\0';
    return more;
}

static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t d, curl_off_t e) {
    (void)a, (void)b, (void)d, (void)e;
    return atomic_load((const atomic_bool *)ctx) ? 1 : 0;
}

/* Appends to *list. False: out of memory. */
static bool add_header(struct curl_slist **list, const char *name, const char *value) {
    if (value == NULL) return true;
    char *line = NULL;
    if (asprintf(&line, "%s%s", name, value) < 0) return false;
    struct curl_slist *longer = curl_slist_append(*list, line);
    free(line);
    if (longer != NULL) *list = longer;
    return longer != NULL;
}

static bool all_headers(const retry_client *c, const rtc_ask *ask, struct curl_slist **list) {
    const char *type = ask->content_type == NULL ? "application/json" : ask->content_type;
    bool ok = add_header(list, "Expect:", "") && add_header(list, "X-Project-ID: ", c->project) &&
              add_header(list, "X-Auth-Token: ", c->token) &&
              add_header(list, "Content-Type: ", ask->body == NULL ? NULL : type);
    for (const char *const *h = ask->headers; ok && h != NULL && *h != NULL; h++)
        ok = add_header(list, *h, "");
    return ok;
}

static CURLcode perform(retry_client *c, CURL *handle, const rtc_ask *ask, struct curl_slist *headers,
                        char *url, transfer *t, char why[CURL_ERROR_SIZE]) {
    (void)curl_easy_setopt(handle, CURLOPT_URL, url);
    (void)curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, why);
    (void)curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_data);
    (void)curl_easy_setopt(handle, CURLOPT_WRITEDATA, t);
    (void)curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, (long)ask->timeout_ms);
    (void)curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS,
                           (long)(ask->timeout_ms < CONNECT_MS_MAX ? ask->timeout_ms : CONNECT_MS_MAX));
    if (ask->stop != NULL) {
        (void)curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
        (void)curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, on_progress);
        (void)curl_easy_setopt(handle, CURLOPT_XFERINFODATA, ask->stop);
    }
    if (c->ca_file != NULL) (void)curl_easy_setopt(handle, CURLOPT_CAINFO, c->ca_file);
    if (strcasecmp(ask->method, "GET") != 0) {
        (void)curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)ask->body_bytes);
        (void)curl_easy_setopt(handle, CURLOPT_POSTFIELDS, ask->body == NULL ? "" : ask->body);
    }
    (void)curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, ask->method);
    return curl_easy_perform(handle);
}

/* Problem details have "detail" or at least a title. */
static retry_code judge(const rtc_answer *answer, retry_error *error) {
    const long status = answer->status;
    if (status >= 200 && status < 300) return RETRY_OK;
    const retry_code code = status == 408 || status == 429 || status >= 500 ? RETRY_E_AWAY : RETRY_E_REFUSED;
    json_t *json = answer->bytes == 0 ? NULL : json_loadb(answer->text, answer->bytes, 0, NULL);
    const char *words = json_string_value(json_object_get(json, "detail"));
    if (words == NULL) words = json_string_value(json_object_get(json, "title"));
    (void)rtc_fail(error, code, "the server answered %ld%s%s", status, words == NULL ? "" : ": ",
                   words == NULL ? "" : words);
    if (error != NULL) error->status = (int)status;
    json_decref(json);
    return code;
}

retry_code rtc_http(retry_client *c, const rtc_ask *ask, rtc_answer *answer, retry_error *error) {
    *answer = (rtc_answer){0};
    transfer t = {.answer = answer};
    char why[CURL_ERROR_SIZE] = "";
    char *url = NULL;
    struct curl_slist *headers = NULL;
    retry_code code = RETRY_E_NOMEM;
    CURL *handle = handle_take(c);
    if (asprintf(&url, "%s%s", c->url, ask->path) < 0) url = NULL;
    if (handle == NULL || url == NULL || !all_headers(c, ask, &headers)) {
        (void)rtc_fail(error, code, "out of memory");
    } else {
        const CURLcode done = perform(c, handle, ask, headers, url, &t, why);
        (void)curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &answer->status);
        if (done == CURLE_OK) code = judge(answer, error);
        else
            code = rtc_fail(error, RETRY_E_AWAY, "no answer from %s: %s", c->url,
                            why[0] == '\0' ? curl_easy_strerror(done) : why);
    }
    if (handle != NULL) handle_give(c, handle);
    curl_slist_free_all(headers);
    free(url);
    return code;
}

retry_code rtc_http_until(retry_client *c, const rtc_ask *ask, const atomic_int_fast64_t *until_ms,
                          rtc_answer *answer, retry_error *error) {
    for (uint32_t n = 0;; n++) {
        const retry_code code = rtc_http(c, ask, answer, error);
        if (code != RETRY_E_AWAY) return code;
        const int64_t pause = rtc_pause_ms(n);
        if (rtc_now_ms() + pause >= atomic_load(until_ms)) return code;
        free(answer->text);
        answer->text = NULL;
        rtc_sleep_ms(pause);
    }
}

json_t *rtc_answer_json(const rtc_answer *answer, retry_error *error) {
    json_t *json =
        answer->bytes == 0 ? NULL : json_loadb(answer->text, answer->bytes, JSON_ALLOW_NUL, NULL);
    if (json_is_object(json)) return json;
    json_decref(json);
    (void)rtc_fail(error, RETRY_E_REFUSED, "the server answered %ld with something that is no JSON object",
                   answer->status);
    return NULL;
}

char *rtc_path(const char *prefix, const char *segment, const char *suffix) {
    char *encoded = curl_easy_escape(NULL, segment, 0);
    char *path = NULL;
    if (encoded == NULL || asprintf(&path, "%s%s%s", prefix, encoded, suffix) < 0) path = NULL;
    curl_free(encoded);
    return path;
}

retry_code retry_ask(retry_client *client, const char *method, const char *path, const char *json,
                     char **answer, retry_error *error) {
    const rtc_ask ask = {.method = method,
                         .path = path,
                         .body = json,
                         .body_bytes = json == NULL ? 0 : strlen(json),
                         .timeout_ms = client->timeout_ms};
    rtc_answer got;
    const retry_code code = rtc_http(client, &ask, &got, error);
    if (code == RETRY_OK && answer != NULL) {
        *answer = got.text == NULL ? rtc_copy("", 0) : got.text;
        if (*answer == NULL) return rtc_fail(error, RETRY_E_NOMEM, "out of memory");
    } else {
        free(got.text);
    }
    return code;
}

void retry_free(void *memory) { free(memory); }
