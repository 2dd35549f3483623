/* types.h: the words that all of retryd is written in: how a function says what went wrong, a borrowed string, an id.
 *
 * A function that can fail returns an rt_code; with an rt_err it also says why, in words for an operator. */
#ifndef RETRYD_TYPES_H
#define RETRYD_TYPES_H
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum rt_code {
    RT_OK = 0,
    RT_E_AGAIN,       /* not loaded yet, or nothing there yet: ask again later */
    RT_E_ABSENT,      /* no such record */
    RT_E_EXISTS,      /* there is one already */
    RT_E_CONFLICT,    /* the record changed since it was read: read and decide again */
    RT_E_FENCED,      /* the lease or claim that was named does not hold the job (any more) */
    RT_E_INVALID,     /* the request breaks a rule; the message names it */
    RT_E_TOO_LARGE,   /* over a written limit */
    RT_E_FULL,        /* disk, map or ring is full: try again later, nothing was changed */
    RT_E_UNAVAILABLE, /* the store does not answer now: try again later */
    RT_E_FORBIDDEN,   /* not allowed for this caller */
    RT_E_IO,          /* the operating system said no */
    RT_E_CORRUPT,     /* a stored record cannot be what we wrote */
    RT_E_NOMEM,
    RT_CODE_COUNT
} rt_code;

enum { RT_ERR_MSG_MAX = 240 };
typedef struct rt_err {
    rt_code code;
    int sys_errno; /* 0 = none */
    char msg[RT_ERR_MSG_MAX];
} rt_err;

#define RT_MUST_USE __attribute__((warn_unused_result))
#define RT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Fills *err (NULL: ignored; cut at RT_ERR_MSG_MAX) and returns `code`, which is not RT_OK, so that `return rt_fail(…)`
 * reads well. Here with its body, so that what is loaded into retryd need not be linked with it. */
RT_PRINTF(4, 5) static inline rt_code rt_fail(rt_err *err, rt_code code, int sys_errno, const char *fmt, ...) {
    if (err == NULL) return code;
    err->code = code;
    err->sys_errno = sys_errno;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(err->msg, sizeof err->msg, fmt, args);
    va_end(args);
    return code;
}

/* Never owns what it points to, and need not end in NUL. */
typedef struct rt_str {
    const char *ptr; /* may be NULL only if len == 0 */
    size_t len;
} rt_str;

#define RT_STR(literal) ((rt_str){.ptr = "" literal, .len = sizeof(literal) - 1})
#define RT_STR_EMPTY ((rt_str){.ptr = "", .len = 0})
/* For printf's "%.*s". */
#define RT_STR_ARG(s) (int)(s).len, ((s).ptr != NULL ? (s).ptr : "")

/* Names a record: home (16 bits) | sequence (48 bits), given out by the store and rising within a home whatever the clock
 * does. 0 is "none". */
typedef uint64_t rt_id;

#endif
