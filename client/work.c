#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

enum {
    INTERVAL_S = 5,
    INTERVAL_S_MAX = 3600,
    CANDIDATES_MAX = 1000,
    WAIT_MS_MAX = 60000,
    SESSIONS_TRIED_MAX = 3
};

/* A session of the server. Work that was claimed in it goes by it until its end, whatever the handle has
 * moved on to. */
typedef struct life {
    atomic_uint refs;
    rtc_beat *beat;
    char id[]; /* NUL-terminated */
} life;

struct retry_session {
    retry_client *client;
    char *opening;   /* body of POST /v1/sessions */
    int64_t life_ms; /* its interval */
    pthread_mutex_t lock;
    life *life; /* guarded by lock */
};

struct retry_work {
    retry_client *client;
    life *life;
    json_t *json; /* as claimed */
    char *value;  /* JSON */
};

/* ---- sessions ------------------------------------------------------------------------------------------ */

static life *life_ref(life *l) {
    (void)atomic_fetch_add(&l->refs, 1);
    return l;
}

static void life_unref(life *l) {
    if (l == NULL || atomic_fetch_sub(&l->refs, 1) != 1) return;
    rtc_beat_stop(l->beat);
    rtc_beat_unref(l->beat);
    free(l);
}

static life *life_new(retry_client *c, const char *id, int64_t since_ms, int64_t life_ms) {
    const size_t len = strlen(id);
    life *l = malloc(sizeof *l + len + 1);
    char *path = rtc_path("/v1/sessions/", id, "/heartbeat");
    rtc_beat *beat = l == NULL || path == NULL ? NULL : rtc_beat_start(c, path, "{}", since_ms, life_ms);
    free(path);
    if (beat == NULL) {
        free(l);
        return NULL;
    }
    atomic_init(&l->refs, 1);
    l->beat = beat;
    memcpy(l->id, id, len + 1);
    return l;
}

/* A new session on the server; holds s->lock. The old one is let go. */
static retry_code begin_life(retry_session *s, retry_error *error) {
    const int64_t since_ms = rtc_now_ms();
    const atomic_int_fast64_t until_ms = since_ms + s->client->timeout_ms;
    const rtc_ask ask = {.method = "POST",
                         .path = "/v1/sessions",
                         .body = s->opening,
                         .body_bytes = strlen(s->opening),
                         .timeout_ms = s->client->timeout_ms};
    rtc_answer answer;
    retry_code code = rtc_http_until(s->client, &ask, &until_ms, &answer, error);
    json_t *json = code == RETRY_OK ? rtc_answer_json(&answer, error) : NULL;
    const char *id = json_string_value(json_object_get(json, "session"));
    if (code == RETRY_OK && id == NULL)
        code = rtc_fail(error, RETRY_E_REFUSED, "the server answered without a session");
    life *fresh = code == RETRY_OK ? life_new(s->client, id, since_ms, s->life_ms) : NULL;
    if (code == RETRY_OK && fresh == NULL) code = rtc_fail(error, RETRY_E_NOMEM, "out of memory");
    if (code == RETRY_OK) {
        life_unref(s->life);
        s->life = fresh;
    }
    json_decref(json);
    free(answer.text);
    return code;
}

/* The session to claim in, alive as far as is known here; a reference is the caller's. NULL: *error is
 * filled. */
static life *living(retry_session *s, retry_code *code, retry_error *error) {
    *code = RETRY_OK;
    (void)pthread_mutex_lock(&s->lock);
    if (s->life == NULL || rtc_beat_lost(s->life->beat)) *code = begin_life(s, error);
    life *l = *code == RETRY_OK ? life_ref(s->life) : NULL;
    (void)pthread_mutex_unlock(&s->lock);
    return l;
}

retry_code retry_session_open(retry_client *client, const retry_session_config *config,
                              retry_session **session, retry_error *error) {
    retry_session_config cfg;
    char host[128];
    if (!rtc_take_config(&cfg, sizeof cfg, config, error)) return RETRY_E_INVALID;
    rtc_host_name(host, sizeof host);
    if (cfg.interval_s == 0) cfg.interval_s = INTERVAL_S;
    if (cfg.interval_s > INTERVAL_S_MAX)
        return rtc_fail(error, RETRY_E_INVALID, "interval_s is at most %d", INTERVAL_S_MAX);
    json_t *body =
        json_pack("{s:s,s:s,s:i}", "component", cfg.component == NULL ? "" : cfg.component, "runtime",
                  cfg.runtime == NULL ? host : cfg.runtime, "interval_s", (int)cfg.interval_s);
    if (body == NULL) return rtc_fail(error, RETRY_E_INVALID, "component and runtime are UTF-8");
    retry_session *s = calloc(1, sizeof *s);
    if (s != NULL) s->opening = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    if (s == NULL || s->opening == NULL) {
        free(s);
        return rtc_fail(error, RETRY_E_NOMEM, "out of memory");
    }
    s->client = client;
    s->life_ms = (int64_t)cfg.interval_s * 1000;
    (void)pthread_mutex_init(&s->lock, NULL);
    const retry_code code = begin_life(s, error);
    if (code == RETRY_OK) *session = s;
    else retry_session_close(s);
    return code;
}

void retry_session_close(retry_session *s) {
    if (s == NULL) return;
    char *path = s->life == NULL ? NULL : rtc_path("/v1/sessions/", s->life->id, "");
    if (path != NULL) {
        rtc_beat_stop(s->life->beat);
        const rtc_ask ask = {.method = "DELETE", .path = path, .timeout_ms = s->client->timeout_ms};
        rtc_answer answer;
        (void)rtc_http(s->client, &ask, &answer, NULL); // one that cannot be told dies at its deadline
        free(answer.text);
    }
    free(path);
    life_unref(s->life);
    (void)pthread_mutex_destroy(&s->lock);
    free(s->opening);
    free(s);
}

/* ---- claims -------------------------------------------------------------------------------------------- */

/* The body without its session; NULL: *error is filled. */
static json_t *claim_body(const retry_claim_config *cfg, retry_error *error) {
    const bool by_kind = cfg->kind != NULL;
    if (by_kind == (cfg->candidates != NULL) || cfg->candidate_count > CANDIDATES_MAX) {
        (void)rtc_fail(error, RETRY_E_INVALID, "either kind or 1 to %d candidates", CANDIDATES_MAX);
        return NULL;
    }
    if (cfg->wait_ms > WAIT_MS_MAX) {
        (void)rtc_fail(error, RETRY_E_INVALID, "wait_ms is at most %d", WAIT_MS_MAX);
        return NULL;
    }
    json_t *names = json_array();
    for (size_t i = 0; !by_kind && i < cfg->candidate_count; i++)
        (void)json_array_append_new(names, json_string(cfg->candidates[i]));
    json_t *body = NULL;
    if (by_kind || json_array_size(names) == cfg->candidate_count)
        body =
            json_pack("{s:s,s:b,s:b,s:i,s:o}", "process", cfg->process == NULL ? "" : cfg->process, "strict",
                      cfg->strict, "ignore_backoff", cfg->ignore_backoff, "wait_ms", (int)cfg->wait_ms,
                      by_kind ? "kind" : "candidates", by_kind ? json_string(cfg->kind) : json_incref(names));
    json_decref(names);
    if (body == NULL) (void)rtc_fail(error, RETRY_E_INVALID, "process, kind and candidates are UTF-8");
    return body;
}

/* Takes `json` and `l`. */
static retry_code hold(retry_client *c, json_t *json, life *l, retry_work **work, retry_error *error) {
    retry_work *w = calloc(1, sizeof *w);
    const json_t *value = json_object_get(json, "value");
    if (w != NULL)
        w->value = value == NULL ? rtc_copy("null", 4) : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (w == NULL || w->value == NULL) {
        free(w);
        json_decref(json);
        life_unref(l);
        return rtc_fail(error, RETRY_E_NOMEM,
                        "out of memory; the work is free again when its session has ended");
    }
    w->client = c;
    w->json = json;
    w->life = l;
    *work = w;
    return RETRY_OK;
}

/* One claim in session `l`, which it takes. RETRY_E_STALE: the session has expired. */
static retry_code claim_in(retry_session *s, life *l, json_t *body, int64_t wait_ms, retry_work **work,
                           retry_error *error) {
    char key[RTC_KEY_DIGITS + 1], header[RTC_KEY_DIGITS + 32];
    rtc_new_key(key);
    (void)snprintf(header, sizeof header, "Idempotency-Key: %s", key);
    (void)json_object_set_new(body, "session", json_string(l->id));
    char *text = json_dumps(body, JSON_COMPACT);
    if (text == NULL) {
        life_unref(l);
        return rtc_fail(error, RETRY_E_NOMEM, "out of memory");
    }
    const int64_t timeout_ms = s->client->timeout_ms + wait_ms;
    const atomic_int_fast64_t until_ms = rtc_now_ms() + timeout_ms;
    const char *const headers[] = {header, NULL};
    const rtc_ask ask = {.method = "POST",
                         .path = "/v1/work/claim",
                         .body = text,
                         .body_bytes = strlen(text),
                         .headers = headers,
                         .timeout_ms = timeout_ms};
    rtc_answer answer;
    retry_code code = rtc_http_until(s->client, &ask, &until_ms, &answer, error);
    json_t *json = code == RETRY_OK && answer.status != 204 ? rtc_answer_json(&answer, error) : NULL;
    if (json != NULL) {
        code = hold(s->client, json, life_ref(l), work, error);
    } else if (code == RETRY_OK) {
        code = answer.status == 204 ? RETRY_NOTHING : RETRY_E_REFUSED;
    } else if (answer.status == 410) {
        rtc_beat_is_lost(l->beat);
        code = RETRY_E_STALE;
    } else if (answer.status == 409) {
        code = RETRY_NOTHING; // strict, and somebody else has it
    }
    free(answer.text);
    free(text);
    life_unref(l);
    return code;
}

retry_code retry_claim(retry_session *session, const retry_claim_config *config, retry_work **work,
                       retry_error *error) {
    retry_claim_config cfg;
    if (!rtc_take_config(&cfg, sizeof cfg, config, error)) return RETRY_E_INVALID;
    json_t *body = claim_body(&cfg, error);
    if (body == NULL) return RETRY_E_INVALID;
    retry_code code = RETRY_E_STALE;
    for (int i = 0; i < SESSIONS_TRIED_MAX && code == RETRY_E_STALE; i++) {
        life *l = living(session, &code, error);
        if (l != NULL) code = claim_in(session, l, body, cfg.wait_ms, work, error);
    }
    json_decref(body);
    return code;
}

/* ---- work that is held --------------------------------------------------------------------------------- */

static const char *member(const retry_work *w, const char *name) {
    const char *text = json_string_value(json_object_get(w->json, name));
    return text == NULL ? "" : text;
}

const char *retry_work_id(const retry_work *work) { return member(work, "work"); }
const char *retry_work_entity(const retry_work *work) { return member(work, "entity"); }
const char *retry_work_process(const retry_work *work) { return member(work, "process"); }
const char *retry_work_value(const retry_work *work) { return work->value; }
bool retry_work_lost(const retry_work *work) { return rtc_beat_lost(work->life->beat); }

double retry_work_previous_interval_s(const retry_work *work) {
    return json_number_value(json_object_get(work->json, "previous_interval_s"));
}

static void work_free(retry_work *w) {
    life_unref(w->life);
    json_decref(w->json);
    free(w->value);
    free(w);
}

static retry_code post_end(retry_work *w, const char *verb, const char *body, retry_error *error) {
    char *path = rtc_path("/v1/work/", retry_work_id(w), verb);
    if (path == NULL) return rtc_fail(error, RETRY_E_NOMEM, "out of memory");
    const rtc_ask ask = {.method = "POST",
                         .path = path,
                         .body = body,
                         .body_bytes = strlen(body),
                         .timeout_ms = w->client->timeout_ms};
    rtc_answer answer;
    retry_code code = rtc_http_until(w->client, &ask, rtc_beat_good_until(w->life->beat), &answer, error);
    if (answer.status == 410) rtc_beat_is_lost(w->life->beat);
    if (answer.status == 404 || answer.status == 409 || answer.status == 410) code = RETRY_E_STALE;
    if (code == RETRY_E_STALE && error != NULL) error->code = code;
    free(answer.text);
    free(path);
    return code;
}

/* Takes `work`; `name` and `json` (a member in JSON; NULL: none), and `cause` (NULL: none) go with it. */
static retry_code end(retry_work *w, const char *verb, const char *name, const char *json, const char *cause,
                      retry_error *error) {
    retry_code code = RETRY_OK;
    json_t *body = json_pack("{s:s,s:O}", "session", w->life->id, "token", json_object_get(w->json, "token"));
    if (json != NULL) {
        json_t *value = json_loads(json, JSON_DECODE_ANY, NULL);
        if (value == NULL) code = rtc_fail(error, RETRY_E_INVALID, "%s is JSON", name);
        else (void)json_object_set_new(body, name, value);
    }
    if (cause != NULL && json_object_set_new(body, "cause", json_string(cause)) != 0)
        code = rtc_fail(error, RETRY_E_INVALID, "cause is UTF-8");
    char *text = code == RETRY_OK && body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    if (text != NULL) code = post_end(w, verb, text, error);
    else if (code == RETRY_OK) code = rtc_fail(error, RETRY_E_NOMEM, "out of memory");
    free(text);
    json_decref(body);
    work_free(w);
    return code;
}

retry_code retry_work_finish(retry_work *work, const char *entity_patch, retry_error *error) {
    return end(work, "/finish", "entity_patch", entity_patch, NULL, error);
}

retry_code retry_work_fail(retry_work *work, const char *cause, const char *backoff, retry_error *error) {
    return end(work, "/fail", "backoff", backoff, cause, error);
}

retry_code retry_work_cancel(retry_work *work, retry_error *error) {
    return end(work, "/cancel", "", NULL, NULL, error);
}
