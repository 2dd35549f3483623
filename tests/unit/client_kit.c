#include "client_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <dirent.h>
#include <microhttpd.h>

enum { ASKED_MAX = 4096, WAIT_MS = 10000 };

struct kit {
    char url[64];
    uint16_t port;
    struct MHD_Daemon *daemon;
    pthread_cond_t news;  /* an event has come */
    pthread_mutex_t lock; /* guards what follows */
    json_t *events, *ends, *sessions;
    size_t claimed; /* events handed out so far */
    char *asked[ASKED_MAX];
    size_t asked_count;
    char upset_suffix[64];
    unsigned upset_status, upset_times;
    bool leases_gone;
};

/* ---- folders ------------------------------------------------------------------------------------------- */

void kit_folder_make(char path[64]) {
    (void)snprintf(path, 64, "/tmp/retryd-client-XXXXXX");
    assert_non_null(mkdtemp(path));
}

void kit_spool_path(char out[96], const char *folder) { (void)snprintf(out, 96, "%s/s", folder); }

static void empty(const char *path) {
    DIR *dir = opendir(path);
    for (struct dirent *entry = dir == NULL ? NULL : readdir(dir); entry != NULL; entry = readdir(dir))
        (void)unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir != NULL) (void)closedir(dir);
    (void)rmdir(path);
}

void kit_folder_remove(const char *path) {
    char spool[96];
    kit_spool_path(spool, path);
    empty(spool);
    empty(path);
}

/* ---- answers ------------------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end) {
    const size_t len = strlen(text), tail = strlen(end);
    return len >= tail && strcmp(text + len - tail, end) == 0;
}

/* Takes `event`, unless its key is known. Returns the id. */
static json_int_t keep(kit *k, json_t *event) {
    size_t i;
    json_t *known;
    json_array_foreach(k->events, i,
                       known) if (json_equal(json_object_get(known, "key"), json_object_get(event, "key"))) {
        json_decref(event);
        return (json_int_t)i;
    }
    (void)json_array_append_new(k->events, event);
    (void)pthread_cond_broadcast(&k->news);
    return (json_int_t)json_array_size(k->events) - 1;
}

static json_t *header(struct MHD_Connection *connection, const char *name) {
    const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    return value == NULL ? json_null() : json_string(value);
}

/* The type in "/v1/PREFIX/TYPE/…". */
static json_t *type_in(const char *path) {
    const char *type = strchr(path + 4, '/') + 1;
    return json_stringn(type, strcspn(type, "/"));
}

static unsigned post_event(kit *k, struct MHD_Connection *connection, const char *path, const char *body,
                           size_t len, json_t **answer) {
    if (ends_with(path, "/unknown")) return 404;
    if (len == 3 && memcmp(body, "bad", 3) == 0) return 400;
    json_t *event =
        json_pack("{s:o,s:s%,s:o,s:o,s:o,s:o,s:o}", "type", type_in(path), "body", body, len, "key",
                  header(connection, "Idempotency-Key"), "reason", header(connection, "Retry-Reason"),
                  "order_key", header(connection, "Order-Key"), "deliver_after",
                  header(connection, "Deliver-After"), "content_type", header(connection, "Content-Type"));
    *answer = json_pack("{s:o}", "id", json_sprintf("%024" JSON_INTEGER_FORMAT, keep(k, event)));
    return 202;
}

/* All or none. */
static unsigned post_batch(kit *k, const json_t *batch, json_t **answer) {
    size_t i;
    json_t *item, *ids = json_array(), *kept = json_array();
    unsigned status = 202;
    json_array_foreach(json_object_get(batch, "events"), i, item) {
        size_t len = 0;
        const char *type = json_string_value(json_object_get(item, "type"));
        char *body = rtc_unbase64(json_string_value(json_object_get(item, "body_base64")), &len);
        if (strcmp(type, "unknown") == 0) status = 404;
        else if (strcmp(body, "bad") == 0) status = 400;
        (void)json_array_append_new(
            kept, json_pack("{s:s,s:s%,s:O,s:O?,s:O?,s:O?,s:O?}", "type", type, "body", body, len, "key",
                            json_object_get(item, "idempotency_key"), "reason",
                            json_object_get(item, "reason"), "order_key", json_object_get(item, "order_key"),
                            "deliver_after", json_object_get(item, "deliver_after"), "content_type",
                            json_object_get(item, "content_type")));
        free(body);
    }
    json_array_foreach(kept, i, item) if (status == 202)(void)
        json_array_append_new(ids, json_integer(keep(k, json_incref(item))));
    json_decref(kept);
    *answer = json_pack("{s:o}", "ids", ids);
    return status;
}

/* Each event is handed out once; the attempt is counted from 1. */
static unsigned claim_events(kit *k, const json_t *request, json_t **answer) {
    json_t *jobs = json_array();
    const size_t limit = (size_t)json_integer_value(json_object_get(request, "limit"));
    const int64_t until_ms = rtc_now_ms() + json_integer_value(json_object_get(request, "wait_ms"));
    while (k->claimed == json_array_size(k->events) && rtc_now_ms() < until_ms)
        rtc_cond_wait_until(&k->news, &k->lock, until_ms);
    for (; k->claimed < json_array_size(k->events) && json_array_size(jobs) < limit; k->claimed++) {
        json_t *event = json_array_get(k->events, k->claimed);
        (void)json_array_append_new(jobs, json_pack("{s:o,s:s,s:O,s:O,s:O?,s:i}", "id",
                                                    json_sprintf("job%zu", k->claimed), "token", "t0ken",
                                                    "type", json_object_get(event, "type"), "body",
                                                    json_object_get(event, "body"), "reason",
                                                    json_object_get(event, "reason"), "attempt", 1));
    }
    if (json_array_size(jobs) == 0) {
        json_decref(jobs);
        return 204;
    }
    *answer = json_pack("{s:o}", "jobs", jobs);
    return 200;
}

static unsigned end(kit *k, const char *path, const json_t *request) {
    if (k->leases_gone) return 409;
    if (ends_with(path, "/extend") || ends_with(path, "/heartbeat")) return 200;
    const char *id = strchr(path + 4, '/') + 1, *verb = strchr(id, '/') + 1;
    const char *names[] = {"error", "cause"};
    json_t *line = json_sprintf("%s %.*s", verb, (int)(verb - id - 1), id);
    for (size_t i = 0; i < 2; i++) {
        const char *word = json_string_value(json_object_get(request, names[i]));
        if (word == NULL) continue;
        json_t *longer = json_sprintf("%s %s", json_string_value(line), word);
        json_decref(line);
        line = longer;
    }
    if (json_is_true(json_object_get(request, "give_up"))) {
        json_t *longer = json_sprintf("%s (gave up)", json_string_value(line));
        json_decref(line);
        line = longer;
    }
    (void)json_array_append_new(k->ends, line);
    return 200;
}

static unsigned claim_work(kit *k, const json_t *request, json_t **answer) {
    (void)k;
    const char *session = json_string_value(json_object_get(request, "session"));
    if (k->leases_gone && strcmp(session, "session0") == 0) return 410;
    if (json_is_true(json_object_get(request, "strict"))) return 409;
    if (strcmp(json_string_value(json_object_get(request, "process")), "idle") == 0) return 204;
    *answer = json_pack("{s:s,s:s,s:s,s:s,s:O,s:f,s:{s:i}}", "work", "w1", "token", "t0ken", "session",
                        session, "entity", "m 1", "process", json_object_get(request, "process"),
                        "previous_interval_s", 2.5, "value", "rack", 7);
    return 200;
}

static unsigned answer_to(kit *k, struct MHD_Connection *connection, const char *method, const char *path,
                          const char *body, size_t len, json_t **answer) {
    json_t *request = json_loadb(body, len, 0, NULL);
    unsigned status = 404;
    if (strcmp(path, "/v1/events") == 0) status = post_batch(k, request, answer);
    else if (strncmp(path, "/v1/events/", 11) == 0)
        status = post_event(k, connection, path, body, len, answer);
    else if (strcmp(path, "/v1/work/claim") == 0) status = claim_work(k, request, answer);
    else if (ends_with(path, "/claim")) status = claim_events(k, request, answer);
    else if (strcmp(path, "/v1/sessions") == 0) {
        *answer = json_pack("{s:o}", "session", json_sprintf("session%zu", json_array_size(k->sessions)));
        (void)json_array_append_new(k->sessions, json_incref(request));
        status = 201;
    } else if (strcmp(method, "DELETE") == 0) status = 204;
    else if (strncmp(path, "/v1/", 4) == 0) status = end(k, path, request);
    json_decref(request);
    return status;
}

/* ---- the server ---------------------------------------------------------------------------------------- */

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status, json_t *answer) {
    char *text = NULL;
    if (status >= 400) text = rtc_copy("{\"detail\":\"no such luck\"}", 25);
    else text = answer == NULL ? rtc_copy("", 0) : json_dumps(answer, JSON_COMPACT);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_COPY);
    const enum MHD_Result queued = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    free(text);
    json_decref(answer);
    return queued;
}

typedef struct upload {
    char *body;
    size_t len;
} upload;

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *data, size_t *size,
                                  void **state) {
    (void)version;
    kit *k = ctx;
    upload *r = *state;
    if (r == NULL) {
        *state = calloc(1, sizeof *r);
        return *state == NULL ? MHD_NO : MHD_YES;
    }
    if (*size > 0) {
        char *body = realloc(r->body, r->len + *size);
        if (body == NULL) return MHD_NO;
        memcpy(body + r->len, data, *size);
        *r = (upload){.body = body, .len = r->len + *size};
        *size = 0;
        return MHD_YES;
    }
    json_t *answer = NULL;
    (void)pthread_mutex_lock(&k->lock);
    if (k->asked_count < ASKED_MAX) k->asked[k->asked_count++] = rtc_copy(path, strlen(path));
    const bool upset = k->upset_times > 0 && ends_with(path, k->upset_suffix);
    if (upset) k->upset_times--;
    const unsigned upset_status = upset ? k->upset_status : 0;
    const unsigned status = upset_status != 0 ? upset_status
                                              : answer_to(k, connection, method, path,
                                                          r->body == NULL ? "" : r->body, r->len, &answer);
    (void)pthread_mutex_unlock(&k->lock);
    if (!upset || upset_status != 0) return reply(connection, status, answer);
    json_decref(answer);
    return MHD_NO; // closes the connection
}

static void on_end(void *ctx, struct MHD_Connection *connection, void **state,
                   enum MHD_RequestTerminationCode why) {
    (void)ctx, (void)connection, (void)why;
    upload *r = *state;
    if (r != NULL) free(r->body);
    free(r);
}

void kit_return(kit *k) {
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(k->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    k->daemon =
        MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION, 0, NULL, NULL,
                         on_request, k, MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_LISTENING_ADDRESS_REUSE,
                         1u, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL, MHD_OPTION_END);
    assert_non_null(k->daemon);
    k->port = MHD_get_daemon_info(k->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

kit *kit_open(void) {
    kit *k = calloc(1, sizeof *k);
    assert_non_null(k);
    (void)pthread_mutex_init(&k->lock, NULL);
    assert_true(rtc_cond_init(&k->news));
    k->events = json_array();
    k->ends = json_array();
    k->sessions = json_array();
    kit_return(k);
    (void)snprintf(k->url, sizeof k->url, "http://127.0.0.1:%u", k->port);
    return k;
}

void kit_leave(kit *k) {
    if (k->daemon != NULL) MHD_stop_daemon(k->daemon);
    k->daemon = NULL;
}

void kit_close(kit *k) {
    kit_leave(k);
    json_decref(k->events);
    json_decref(k->ends);
    json_decref(k->sessions);
    for (size_t i = 0; i < k->asked_count; i++) free(k->asked[i]);
    (void)pthread_cond_destroy(&k->news);
    (void)pthread_mutex_destroy(&k->lock);
    free(k);
}

const char *kit_url(const kit *k) { return k->url; }

retry_client *kit_client(const kit *k, const char *spool_dir, uint32_t timeout_ms) {
    retry_client_config config = RETRY_CLIENT_CONFIG(k->url);
    config.spool_dir = spool_dir;
    config.timeout_ms = timeout_ms;
    retry_client *client = NULL;
    retry_error error = {0};
    if (retry_client_open(&config, &client, &error) != RETRY_OK) fail_msg("%s", error.message);
    return client;
}

void kit_upset(kit *k, const char *suffix, unsigned status, unsigned times) {
    (void)pthread_mutex_lock(&k->lock);
    (void)snprintf(k->upset_suffix, sizeof k->upset_suffix, "%s", suffix);
    k->upset_status = status;
    k->upset_times = times;
    (void)pthread_mutex_unlock(&k->lock);
}

void kit_forget_leases(kit *k) {
    (void)pthread_mutex_lock(&k->lock);
    k->leases_gone = true;
    (void)pthread_mutex_unlock(&k->lock);
}

static json_t *copy_of(kit *k, json_t *list) {
    (void)pthread_mutex_lock(&k->lock);
    json_t *copy = json_deep_copy(list);
    (void)pthread_mutex_unlock(&k->lock);
    assert_non_null(copy);
    return copy;
}

json_t *kit_events(kit *k) { return copy_of(k, k->events); }
json_t *kit_ends(kit *k) { return copy_of(k, k->ends); }

unsigned kit_asked(kit *k, const char *suffix) {
    unsigned count = 0;
    (void)pthread_mutex_lock(&k->lock);
    for (size_t i = 0; i < k->asked_count; i++) count += ends_with(k->asked[i], suffix);
    (void)pthread_mutex_unlock(&k->lock);
    return count;
}

void kit_wait_ends(kit *k, size_t count) {
    for (int64_t until_ms = rtc_now_ms() + WAIT_MS;; rtc_sleep_ms(2)) {
        (void)pthread_mutex_lock(&k->lock);
        const size_t now = json_array_size(k->ends);
        (void)pthread_mutex_unlock(&k->lock);
        if (now >= count) return;
        if (rtc_now_ms() > until_ms) fail_msg("waited for %zu ends, there are %zu", count, now);
    }
}

void kit_wait_asked(kit *k, const char *suffix, unsigned count) {
    for (const int64_t until_ms = rtc_now_ms() + WAIT_MS; kit_asked(k, suffix) < count; rtc_sleep_ms(2))
        if (rtc_now_ms() > until_ms)
            fail_msg("waited for %u requests of %s, there are %u", count, suffix, kit_asked(k, suffix));
}

/* ---- fixtures ------------------------------------------------------------------------------------------ */

int kit_set_up(void **state) {
    kit_fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    (void)setenv("no_proxy", "127.0.0.1", 1);
    kit_folder_make(f->folder);
    kit_spool_path(f->spool, f->folder);
    f->kit = kit_open();
    *state = f;
    return 0;
}

int kit_tear_down(void **state) {
    kit_fixture *f = *state;
    kit_close(f->kit);
    kit_folder_remove(f->folder);
    free(f);
    return 0;
}

retry_code kit_schedule(retry_client *c, const char *type, const char *body, const char *order_key,
                        retry_receipt *receipt, retry_error *error) {
    retry_request request = RETRY_REQUEST(body, strlen(body));
    request.order_key = order_key;
    return retry_schedule(c, type, &request, receipt, error);
}

void kit_assert_field(const json_t *events, size_t i, const char *name, const char *want) {
    const char *got = json_string_value(json_object_get(json_array_get(events, i), name));
    if (want == NULL) assert_null(got);
    else assert_string_equal(got, want);
}
