#include "port/executor.h"

#include <stdlib.h>
#include <string.h>

/* The strings of an attempt, in the order in which they lie behind it. */
static rt_str *string_at(rt_attempt *a, int i) {
    rt_str *const all[] = {&a->url,     &a->headers, &a->message_id,   &a->secrets[0], &a->secrets[1],
                           &a->subject, &a->from,    &a->content_type, &a->key,        &a->body};
    _Static_assert(RT_SECRETS_MAX == 2, "both secrets are listed");
    return i < (int)(sizeof all / sizeof all[0]) ? all[i] : NULL;
}

rt_attempt *rt_attempt_new(const rt_attempt *like) {
    rt_attempt shape = *like;
    size_t bytes = sizeof shape;
    for (int i = 0; string_at(&shape, i) != NULL; i++) {
        if (__builtin_add_overflow(bytes, string_at(&shape, i)->len + 1, &bytes)) return NULL;
    }
    rt_attempt *out = malloc(bytes);
    if (out == NULL) return NULL;
    *out = shape;
    char *at = (char *)(out + 1);
    for (int i = 0; string_at(out, i) != NULL; i++) {
        rt_str *s = string_at(out, i);
        if (s->len > 0) memcpy(at, s->ptr, s->len);
        at[s->len] = '\0';
        s->ptr = at;
        at += s->len + 1;
    }
    return out;
}

void rt_attempt_free(rt_attempt *attempt) { free(attempt); }

static bool is_token(rt_str s) {
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        const bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alnum && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL)) return false;
    }
    return s.len > 0;
}

rt_header_name rt_attempt_header_name(rt_str name) {
    static const char *const RESERVED[] = {
        "host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection",
        "te", "trailer", "upgrade", "expect",
        "webhook-id", "webhook-attempt", "webhook-timestamp", "webhook-signature",
    };
    if (!is_token(name)) return RT_HEADER_MALFORMED;
    for (size_t i = 0; i < sizeof RESERVED / sizeof RESERVED[0]; i++) {
        if (rt_str_eq_nocase(name, rt_str_of(RESERVED[i]))) return RT_HEADER_RESERVED;
    }
    return RT_HEADER_FREE;
}

rt_target rt_attempt_target(rt_str url) {
    if (rt_str_starts(url, RT_STR("plugin:"))) return RT_TARGET_PLUGIN;
    return rt_str_starts(url, RT_STR("kafka:")) ? RT_TARGET_KAFKA : RT_TARGET_WEBHOOK;
}

bool rt_plugin_name_is_valid(rt_str name) {
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-')) return false;
    }
    return name.len >= 1 && name.len <= RT_PLUGIN_NAME_MAX;
}

_Static_assert(RT_TOPIC_NAME_MAX == 249, "RT_TOPIC_NAME_RULE says so");

bool rt_topic_name_is_valid(rt_str name) {
    if (name.len == 0 || name.len > RT_TOPIC_NAME_MAX) return false;
    if (rt_str_eq(name, RT_STR(".")) || rt_str_eq(name, RT_STR(".."))) return false;
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.ptr[i];
        const bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alnum && c != '.' && c != '_' && c != '-') return false;
    }
    return true;
}
