#include "executor/plugin/reply.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "port/run.h"

enum { WORDS_MAX = 4096 /* of what clients are told; cut later, at whole characters */ };
_Static_assert((int)RETRYD_STATE_MAX == (int)RT_RUN_STATE_MAX, "what plugins are promised is what is taken");
_Static_assert((int)RETRYD_ARGS_MAX == (int)RT_RUN_ARGS_MAX, "what plugins are promised is what is taken");
_Static_assert((int)RETRYD_TASK_MAX == (int)RT_RUN_TASK_MAX, "what plugins are promised is what is taken");
_Static_assert((int)RETRYD_SECRET_MAX == (int)RT_RUN_SECRET_MAX,
               "what plugins are promised is what is taken");
_Static_assert((int)RETRYD_SECRETS_MAX == (int)RT_RUN_SECRETS_MAX,
               "what plugins are promised is what is taken");

/* Out of memory, or a rule broken: the whole reply is nonsense then, for the first reason. */
static bool refuse(rt_reply *r, const char *what, const char *rule) {
    if (r->wrong[0] == '\0') (void)snprintf(r->wrong, sizeof r->wrong, "%s %s", what, rule);
    return false;
}

static rt_reply *reply_of(struct retryd_reply *reply) { return (rt_reply *)(void *)reply; }

bool rt_reply_init(rt_reply *r, const struct retryd_calls *calls) {
    *r = (rt_reply){.face.calls = calls, .json = json_object()};
    return r->json != NULL;
}

void rt_reply_deinit(rt_reply *r) {
    json_decref(r->json);
    r->json = NULL;
}

/* ---- members ------------------------------------------------------------------------------------------- */

/* Takes `value`. */
static bool set(rt_reply *r, json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value) == 0 || refuse(r, key, "did not fit into memory");
}

static bool set_text(rt_reply *r, json_t *object, const char *key, const char *text, size_t max) {
    const rt_str s = rt_str_of(text);
    if (s.len > max) return refuse(r, key, "is too long");
    if (!rt_utf8_is_valid(s)) return refuse(r, key, "is not UTF-8");
    return set(r, object, key, json_stringn(s.ptr, s.len));
}

/* NULL: stays as it is. */
static bool set_json(rt_reply *r, const char *key, const char *text, bool array) {
    if (text == NULL) return true;
    if (strlen(text) > RETRYD_ARGS_MAX) return refuse(r, key, "is too long");
    json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    if (array ? json_is_array(value) : json_is_object(value)) return set(r, r->json, key, value);
    json_decref(value);
    return refuse(r, key, array ? "is no JSON array" : "is no JSON object");
}

/* ---- actions ------------------------------------------------------------------------------------------- */

/* The last action counts, and nothing of those before it stays. */
static bool act(rt_reply *r, const char *action) {
    static const char *const OF_ACTIONS[] = {"after_ms", "task", "args", "kwargs", "code", "reason"};
    for (size_t i = 0; i < sizeof OF_ACTIONS / sizeof *OF_ACTIONS; i++) {
        (void)json_object_del(r->json, OF_ACTIONS[i]); // fails where there is none
    }
    r->decided = true;
    return set_text(r, r->json, "action", action, WORDS_MAX);
}

static bool reply_done(struct retryd_reply *reply) { return act(reply_of(reply), "done"); }

static bool reply_failed(struct retryd_reply *reply, unsigned code, const char *reason) {
    rt_reply *r = reply_of(reply);
    char digits[16];
    (void)snprintf(digits, sizeof digits, "%u", code);
    return act(r, "failed") && set_text(r, r->json, "code", digits, sizeof digits) &&
           set_text(r, r->json, "reason", reason, WORDS_MAX);
}

static bool reply_retry(struct retryd_reply *reply, int64_t after_ms, const char *task, const char *args,
                        const char *kwargs) {
    rt_reply *r = reply_of(reply);
    if (!act(r, "retry")) return false;
    if (after_ms < 0) return refuse(r, "after_ms", "is below 0");
    if (task != NULL && task[0] == '\0') return refuse(r, "task", "is empty");
    return set(r, r->json, "after_ms", json_integer(after_ms)) &&
           (task == NULL || set_text(r, r->json, "task", task, RETRYD_TASK_MAX)) &&
           set_json(r, "args", args, true) && set_json(r, "kwargs", kwargs, false);
}

static bool reply_unavailable(struct retryd_reply *reply, int64_t after_ms) {
    rt_reply *r = reply_of(reply);
    return act(r, "unavailable") && (after_ms < 0 || set(r, r->json, "after_ms", json_integer(after_ms)));
}

static bool reply_state(struct retryd_reply *reply, const char *state) {
    rt_reply *r = reply_of(reply);
    return set_text(r, r->json, "state", state, RETRYD_STATE_MAX);
}

static bool reply_progress(struct retryd_reply *reply, const char *sub_status, const char *message) {
    rt_reply *r = reply_of(reply);
    return set_text(r, r->json, "sub_status", sub_status, WORDS_MAX) &&
           set_text(r, r->json, "message", message, WORDS_MAX);
}

/* ---- what was made ------------------------------------------------------------------------------------- */

static bool set_payload(rt_reply *r, json_t *object, const struct retryd_secret *secret) {
    if (secret->payload_len > RETRYD_SECRET_MAX) return refuse(r, "payload", "is too long");
    const size_t cap = 4 * ((secret->payload_len + 2) / 3) + 1;
    unsigned char *text = malloc(cap);
    if (text == NULL) return refuse(r, "payload", "did not fit into memory");
    const int len = EVP_EncodeBlock(text, secret->payload, (int)secret->payload_len);
    const bool fine = set(r, object, "payload_base64", json_stringn((char *)text, (size_t)len));
    OPENSSL_cleanse(text, cap);
    free(text);
    return fine;
}

/* Sets `role` of `parent`. */
static bool set_secret(rt_reply *r, json_t *parent, const char *role, const struct retryd_secret *secret) {
    if (secret == NULL || secret->size < sizeof *secret) return refuse(r, role, "says no size");
    if (secret->payload == NULL) return refuse(r, role, "has no payload");
    json_t *object = json_object();
    if (!set(r, parent, role, object)) return false; // took it
    const char *type = secret->content_type != NULL ? secret->content_type : "application/octet-stream";
    return set_payload(r, object, secret) && set_text(r, object, "content_type", type, RT_RUN_NAME_MAX) &&
           (secret->name == NULL || set_text(r, object, "name", secret->name, RT_RUN_NAME_MAX));
}

static bool reply_secret(struct retryd_reply *reply, const struct retryd_secret *secret) {
    rt_reply *r = reply_of(reply);
    return set_secret(r, r->json, "secret", secret);
}

static bool reply_container(struct retryd_reply *reply, const char *name) {
    rt_reply *r = reply_of(reply);
    json_t *object = json_object();
    return set(r, r->json, "container", object) && set(r, object, "secrets", json_object()) &&
           (name == NULL || set_text(r, object, "name", name, RT_RUN_NAME_MAX));
}

static bool reply_member(struct retryd_reply *reply, const char *role, const struct retryd_secret *secret) {
    rt_reply *r = reply_of(reply);
    json_t *members = json_object_get(json_object_get(r->json, "container"), "secrets");
    if (members == NULL && !reply_container(reply, NULL)) return false;
    members = json_object_get(json_object_get(r->json, "container"), "secrets");
    const rt_str name = rt_str_of(role);
    if (name.len == 0 || name.len > RT_RUN_NAME_MAX || !rt_utf8_is_valid(name)) {
        return refuse(r, "role", "is empty, too long or not UTF-8");
    }
    if (json_object_size(members) == RETRYD_SECRETS_MAX && json_object_get(members, role) == NULL) {
        return refuse(r, "container", "has too many members");
    }
    return set_secret(r, members, role, secret);
}

static bool reply_refs(struct retryd_reply *reply, const char *secret_ref, const char *container_ref) {
    rt_reply *r = reply_of(reply);
    return (secret_ref == NULL || set_text(r, r->json, "secret_ref", secret_ref, RT_RUN_REF_MAX)) &&
           (container_ref == NULL || set_text(r, r->json, "container_ref", container_ref, RT_RUN_REF_MAX));
}

void rt_reply_fill(struct retryd_calls *calls) {
    calls->done = reply_done;
    calls->failed = reply_failed;
    calls->retry = reply_retry;
    calls->unavailable = reply_unavailable;
    calls->state = reply_state;
    calls->progress = reply_progress;
    calls->secret = reply_secret;
    calls->container = reply_container;
    calls->member = reply_member;
    calls->refs = reply_refs;
}

/* ---- the text ------------------------------------------------------------------------------------------ */

char *rt_reply_answer(rt_reply *r) {
    static const char *const OF_DONE[] = {"secret", "container", "secret_ref", "container_ref"};
    if (!r->decided && !reply_unavailable(&r->face, -1)) return NULL;
    const char *action = json_string_value(json_object_get(r->json, "action"));
    if (action == NULL) return NULL;
    for (size_t i = 0; strcmp(action, "done") != 0 && i < sizeof OF_DONE / sizeof *OF_DONE; i++) {
        (void)json_object_del(r->json, OF_DONE[i]); // fails where there is none
    }
    return json_dumps(r->json, JSON_COMPACT);
}

char *rt_reply_verdict(const rt_reply *r) {
    const char *action = json_string_value(json_object_get(r->json, "action"));
    const bool refused = action != NULL && strcmp(action, "failed") == 0;
    json_t *verdict = json_object();
    json_t *why = refused ? json_incref(json_object_get(r->json, "reason")) : json_null();
    char *text = NULL;
    if (json_object_set_new(verdict, "error", why) == 0) text = json_dumps(verdict, JSON_COMPACT);
    json_decref(verdict);
    return text;
}
