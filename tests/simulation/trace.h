/* trace.h: what a run did, as one number; and the way in which a run fails.
 *
 * Two runs of one seed must end with the same hash: then a failure can be looked at again as often as it
 * takes. */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

typedef struct trace {
    uint64_t seed;
    uint64_t hash;
    int64_t at_ms; /* virtual time, for messages */
    bool verbose;
} trace;

void trace_init(trace *t, uint64_t seed, bool verbose);

/* Something happened: folded into the hash as a word and two numbers; printed when verbose. */
void trace_note(trace *t, const char *what, uint64_t a, uint64_t b);
/* The same with words for the reader, which do not count. */
void trace_say(trace *t, const char *fmt, ...) RT_PRINTF(2, 3);

/* An invariant is broken: says which, how to see it again, and ends the program with status 1. */
_Noreturn void trace_fail(const trace *t, const char *fmt, ...) RT_PRINTF(2, 3);
#define TRACE_CHECK(t, fact, ...) ((fact) ? (void)0 : trace_fail((t), __VA_ARGS__))

/* The one command that reproduces a seed, on stderr. Safe in a signal handler. */
void trace_print_command(uint64_t seed);

#endif
