#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

enum {
    THREADS_MAX = 256,
    BATCH_MAX = 20,
    WAIT_MS = 5000,
    WAIT_MS_MAX = 60000,
    LEASE_S = 30,
    LEASE_S_MIN = 3,
    LEASE_S_MAX = 12 * 3600
};

struct retry_workers {
    retry_client *client;
    const rtc_registration *registered;
    char *path, *body;  /* of a claim */
    int64_t timeout_ms; /* of a claim */
    uint32_t lease_s;
    atomic_bool stops;
    pthread_mutex_t lock; /* for `stop` */
    pthread_cond_t stop;
    uint32_t count;
    pthread_t threads[];
};

/* ---- one event ----------------------------------------------------------------------------------------- */

typedef struct job {
    const json_t *json; /* as claimed; borrowed */
    json_t *token;
    char *path;     /* "/v1/jobs/ID" */
    rtc_beat *beat; /* NULL: there was no memory to keep it alive; it is left to its lease */
} job;

static const char *text_of(const json_t *json, const char *name) {
    const char *text = json_string_value(json_object_get(json, name));
    return text == NULL ? "" : text;
}

/* Tells the server how it ended; `more` (NULL: nothing) goes into the request, and is taken. */
static void end(retry_workers *w, job *j, const char *verb, json_t *more) {
    json_t *body = more == NULL ? json_object() : more;
    (void)json_object_set(body, "token", j->token);
    char *text = json_dumps(body, JSON_COMPACT);
    char *path = NULL;
    if (text != NULL && asprintf(&path, "%s/%s", j->path, verb) >= 0) {
        // No more extensions from here on: they could arrive behind the end, and be taken for a loss.
        rtc_beat_stop(j->beat);
        const rtc_ask ask = {.method = "POST",
                             .path = path,
                             .body = text,
                             .body_bytes = strlen(text),
                             .timeout_ms = w->client->timeout_ms};
        rtc_answer answer;
        retry_error error;
        if (rtc_http_until(w->client, &ask, rtc_beat_good_until(j->beat), &answer, &error) != RETRY_OK)
            rtc_log(w->client, RETRY_LOG_WARNING, "%s: %s", path, error.message);
        free(answer.text);
        free(path);
    }
    free(text);
    json_decref(body);
}

/* What the callback said of its failure. The history shows "error". */
static json_t *failure(const retry_call *call) {
    const char *reason = call->failed_reason, *details = call->failed_details;
    json_t *said = json_object();
    if (reason[0] != '\0') (void)json_object_set_new(said, "reason", json_string(reason));
    if (details[0] != '\0')
        (void)json_object_set_new(said, "error",
                                  json_sprintf("%s%s%s", reason, reason[0] == '\0' ? "" : ": ", details));
    if (call->not_before_s > 0)
        (void)json_object_set_new(said, "retry_after_s", json_integer(call->not_before_s));
    if (call->gave_up) (void)json_object_set_new(said, "give_up", json_true());
    return said;
}

/* The body as bytes with a NUL behind them, owned. */
static char *body_of(const json_t *json, size_t *bytes) {
    const char *base64 = json_string_value(json_object_get(json, "body_base64"));
    if (base64 != NULL) return rtc_unbase64(base64, bytes);
    const json_t *body = json_object_get(json, "body");
    *bytes = json_string_length(body);
    if (json_is_string(body)) return rtc_copy(json_string_value(body), *bytes);
    char *text = body == NULL ? rtc_copy("", 0) : json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY);
    if (text != NULL) *bytes = strlen(text);
    return text;
}

static void run_job(retry_workers *w, job *j) {
    size_t bytes = 0;
    char *body = body_of(j->json, &bytes);
    if (body == NULL) {
        end(w, j, "fail", json_pack("{s:s}", "error", "the worker could not decode the body"));
        return;
    }
    retry_call call = {.type = w->registered->type,
                       .id = text_of(j->json, "id"),
                       .reason = text_of(j->json, "reason"),
                       .content_type = text_of(j->json, "content_type"),
                       .order_key = text_of(j->json, "order_key"),
                       .body = body,
                       .body_bytes = bytes,
                       .beat = j->beat,
                       .attempt = (uint32_t)json_integer_value(json_object_get(j->json, "attempt"))};
    const int failed = w->registered->callback(&call, w->registered->arg);
    if (failed == 0) end(w, j, "finish", NULL);
    else end(w, j, "fail", failure(&call));
    free(body);
}

/* Begins to keep the lease alive. */
static void hold(retry_workers *w, job *j, const json_t *json, int64_t since_ms) {
    *j = (job){.json = json, .token = json_object_get(json, "token")};
    char *extend = NULL, *body = NULL;
    json_t *extension = json_pack("{s:O,s:i}", "token", j->token, "lease_s", (int)w->lease_s);
    j->path = rtc_path("/v1/jobs/", text_of(json, "id"), "");
    if (extension != NULL) body = json_dumps(extension, JSON_COMPACT);
    if (j->path != NULL && body != NULL && asprintf(&extend, "%s/extend", j->path) >= 0)
        j->beat = rtc_beat_start(w->client, extend, body, since_ms, (int64_t)w->lease_s * 1000);
    if (j->beat == NULL)
        rtc_log(w->client, RETRY_LOG_WARNING, "an event is left to its lease: out of memory");
    else free(extend);
    free(body);
    json_decref(extension);
}

static void run_jobs(retry_workers *w, const json_t *claimed, int64_t since_ms) {
    const json_t *list = json_object_get(claimed, "jobs");
    job jobs[BATCH_MAX];
    const size_t count = json_array_size(list) < BATCH_MAX ? json_array_size(list) : BATCH_MAX;
    for (size_t i = 0; i < count; i++) hold(w, &jobs[i], json_array_get(list, i), since_ms);
    for (size_t i = 0; i < count; i++) {
        job *j = &jobs[i];
        if (j->beat != NULL && !rtc_beat_lost(j->beat)) {
            if (atomic_load(&w->stops)) end(w, j, "release", NULL);
            else run_job(w, j);
        }
        rtc_beat_stop(j->beat);
        rtc_beat_unref(j->beat);
        free(j->path);
    }
}

/* ---- threads ------------------------------------------------------------------------------------------- */

static void rest(retry_workers *w, int64_t until_ms) {
    (void)pthread_mutex_lock(&w->lock);
    while (!atomic_load(&w->stops) && rtc_now_ms() < until_ms)
        rtc_cond_wait_until(&w->stop, &w->lock, until_ms);
    (void)pthread_mutex_unlock(&w->lock);
}

static void *work(void *arg) {
    retry_workers *w = arg;
    uint32_t failures = 0;
    while (!atomic_load(&w->stops)) {
        const int64_t since_ms = rtc_now_ms();
        const rtc_ask ask = {.method = "POST",
                             .path = w->path,
                             .body = w->body,
                             .body_bytes = strlen(w->body),
                             .timeout_ms = w->timeout_ms};
        rtc_answer answer;
        retry_error error = {0};
        retry_code code = rtc_http(w->client, &ask, &answer, &error);
        if (code == RETRY_OK && answer.status != 204) {
            json_t *claimed = rtc_answer_json(&answer, &error);
            if (claimed == NULL) code = RETRY_E_REFUSED;
            else run_jobs(w, claimed, since_ms);
            json_decref(claimed);
        }
        free(answer.text);
        if (code == RETRY_OK) {
            failures = 0;
            continue;
        }
        if (failures == 0) rtc_log(w->client, RETRY_LOG_WARNING, "%s: %s", w->path, error.message);
        rest(w, rtc_now_ms() + rtc_pause_ms(failures++));
    }
    return NULL;
}

static retry_code take_config(retry_workers_config *cfg, const retry_workers_config *config,
                              retry_error *error) {
    if (!rtc_take_config(cfg, sizeof *cfg, config, error)) return RETRY_E_INVALID;
    if (cfg->threads == 0) cfg->threads = 1;
    if (cfg->lease_s == 0) cfg->lease_s = LEASE_S;
    if (cfg->batch == 0) cfg->batch = 1;
    if (cfg->wait_ms == 0) cfg->wait_ms = WAIT_MS;
    if (cfg->threads > THREADS_MAX)
        return rtc_fail(error, RETRY_E_INVALID, "threads is at most %d", THREADS_MAX);
    if (cfg->lease_s < LEASE_S_MIN || cfg->lease_s > LEASE_S_MAX)
        return rtc_fail(error, RETRY_E_INVALID, "lease_s is from %d to %d", LEASE_S_MIN, LEASE_S_MAX);
    if (cfg->batch > BATCH_MAX) return rtc_fail(error, RETRY_E_INVALID, "batch is at most %d", BATCH_MAX);
    if (cfg->wait_ms > WAIT_MS_MAX)
        return rtc_fail(error, RETRY_E_INVALID, "wait_ms is at most %d", WAIT_MS_MAX);
    return RETRY_OK;
}

static bool prepare(retry_workers *w, const retry_workers_config *cfg) {
    char host[128];
    rtc_host_name(host, sizeof host);
    json_t *body = json_pack("{s:s,s:i,s:i,s:i}", "worker", cfg->name == NULL ? host : cfg->name, "limit",
                             (int)cfg->batch, "lease_s", (int)cfg->lease_s, "wait_ms", (int)cfg->wait_ms);
    w->body = body == NULL ? NULL : json_dumps(body, JSON_COMPACT);
    json_decref(body);
    w->path = rtc_path("/v1/event-types/", w->registered->type, "/claim");
    w->lease_s = cfg->lease_s;
    w->timeout_ms = w->client->timeout_ms + cfg->wait_ms;
    return w->body != NULL && w->path != NULL;
}

retry_code retry_workers_start(retry_client *client, const char *type, const retry_workers_config *config,
                               retry_workers **workers, retry_error *error) {
    retry_workers_config cfg;
    const rtc_registration *registered = rtc_registered(client, type, error);
    if (registered == NULL) return RETRY_E_INVALID;
    retry_code code = take_config(&cfg, config, error);
    if (code != RETRY_OK) return code;
    retry_workers *w = calloc(1, sizeof *w + cfg.threads * sizeof w->threads[0]);
    if (w == NULL) return rtc_fail(error, RETRY_E_NOMEM, "out of memory");
    w->client = client;
    w->registered = registered;
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)rtc_cond_init(&w->stop);
    if (!prepare(w, &cfg))
        code = rtc_fail(error, RETRY_E_NOMEM, "out of memory, or a name that is not UTF-8");
    while (code == RETRY_OK && w->count < cfg.threads) {
        if (rtc_thread_start(&w->threads[w->count], work, w)) w->count++;
        else
            code = rtc_fail(error, RETRY_E_IO, "thread %u of %u could not be started", w->count + 1,
                            cfg.threads);
    }
    if (code == RETRY_OK) *workers = w;
    else retry_workers_stop(w);
    return code;
}

void retry_workers_stop(retry_workers *w) {
    if (w == NULL) return;
    (void)pthread_mutex_lock(&w->lock);
    atomic_store(&w->stops, true);
    (void)pthread_cond_broadcast(&w->stop);
    (void)pthread_mutex_unlock(&w->lock);
    for (uint32_t i = 0; i < w->count; i++) (void)pthread_join(w->threads[i], NULL);
    (void)pthread_cond_destroy(&w->stop);
    (void)pthread_mutex_destroy(&w->lock);
    free(w->path);
    free(w->body);
    free(w);
}
