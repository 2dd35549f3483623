#include "port/executor.h"

#include <stdlib.h>
#include <string.h>

/* The strings of an attempt, in the order in which they lie behind it. */
static rt_str *string_at(rt_attempt *a, int i) {
    rt_str *const all[] = {&a->url,        &a->headers, &a->message_id, &a->secrets[0],
                           &a->secrets[1], &a->subject, &a->from,       &a->body};
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
