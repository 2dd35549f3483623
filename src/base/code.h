/* code.h: what every function of retryd says when something went wrong, and what must never go wrong.
 *
 * RT_ASSERT is for our own bugs and stays on in release builds; bad input is an error, never an assertion. */
#ifndef RT_BASE_CODE_H
#define RT_BASE_CODE_H
#include "retryd/types.h"

/* A short lower-case word for logs and metrics: "ok", "absent", "conflict", … */
const char *rt_code_name(rt_code code);

/* Prints the failed fact with its place and aborts: state that we do not understand must not be written. */
_Noreturn void rt_assert_failed(const char *fact, const char *file, int line);
#define RT_ASSERT(fact) ((fact) ? (void)0 : rt_assert_failed(#fact, __FILE__, __LINE__))

#endif
