/* code.h: how every function of retryd says what went wrong.
 *
 * A function that can fail returns an rt_code; with an rt_err it also says why, in words for an operator.
 * RT_ASSERT is for our own bugs and stays on in release builds; bad input is an error, never an assertion. */
#ifndef RT_BASE_CODE_H
#define RT_BASE_CODE_H

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

/* Fills *err (NULL: ignored; cut at RT_ERR_MSG_MAX) and returns `code`, so that `return rt_fail(…)` reads well. */
rt_code rt_fail(rt_err *err, rt_code code, int sys_errno, const char *fmt, ...) RT_PRINTF(4, 5);

/* A short lower-case word for logs and metrics: "ok", "absent", "conflict", … */
const char *rt_code_name(rt_code code);

/* Prints the failed fact with its place and aborts: state that we do not understand must not be written. */
_Noreturn void rt_assert_failed(const char *fact, const char *file, int line);
#define RT_ASSERT(fact) ((fact) ? (void)0 : rt_assert_failed(#fact, __FILE__, __LINE__))

#endif
