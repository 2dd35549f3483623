#include "base/code.h"

#include <stdio.h>
#include <stdlib.h>

const char *rt_code_name(rt_code code) {
    static const char *const NAMES[RT_CODE_COUNT] = {
        [RT_OK] = "ok",
        [RT_E_AGAIN] = "again",
        [RT_E_ABSENT] = "absent",
        [RT_E_EXISTS] = "exists",
        [RT_E_CONFLICT] = "conflict",
        [RT_E_FENCED] = "fenced",
        [RT_E_INVALID] = "invalid",
        [RT_E_TOO_LARGE] = "too_large",
        [RT_E_FULL] = "full",
        [RT_E_UNAVAILABLE] = "unavailable",
        [RT_E_FORBIDDEN] = "forbidden",
        [RT_E_IO] = "io",
        [RT_E_CORRUPT] = "corrupt",
        [RT_E_NOMEM] = "out_of_memory",
    };
    RT_ASSERT(code < RT_CODE_COUNT);
    return NAMES[code];
}

void rt_assert_failed(const char *fact, const char *file, int line) {
    (void)fprintf(stderr, "retryd: bug: %s does not hold (%s:%d)\n", fact, file, line);
    abort();
}
