/* answer.h: what is read out of an endpoint's answer besides its status. Pure; any thread. */
#ifndef RT_EXECUTOR_WEBHOOK_ANSWER_H
#define RT_EXECUTOR_WEBHOOK_ANSWER_H
#include "base/str.h"

/* Retry-After's value in ms: whole seconds, or how far an HTTP date (RFC 9110, 10.2.3) lies ahead of
 * `now_s` (Unix seconds), at least 0 and at most a year. -1: it is neither. */
int64_t rt_retry_after_ms(rt_str value, int64_t now_s);

/* Writes printable UTF-8 to out[cap] and returns its length. Control characters become blanks, each byte
 * that is not UTF-8 becomes U+FFFD, and no character is cut: what does not fit is left out. `more`: `raw`
 * is the beginning of something longer, so a character begun at its end is no error but left out. */
size_t rt_excerpt_clean(rt_str raw, bool more, char *out, size_t cap);

#endif
