#include "trace.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/id.h"

void trace_init(trace *t, uint64_t seed, bool verbose) {
    *t = (trace){.seed = seed, .hash = rt_hash_u64(seed + 1), .verbose = verbose};
}

void trace_note(trace *t, const char *what, uint64_t a, uint64_t b) {
    uint64_t word = 0;
    for (const char *c = what; *c != '\0'; c++) word = word * 31 + (unsigned char)*c;
    t->hash = rt_hash_u64(t->hash ^ rt_hash_u64(word + rt_hash_u64(a + 0x9e3779b97f4a7c15u) * 3 + b));
    t->hash = rt_hash_u64(t->hash + (uint64_t)t->at_ms);
    if (t->verbose) printf("%10.3f  %-16s %" PRIu64 " %" PRIu64 "\n", (double)t->at_ms / 1000, what, a, b);
}

void trace_say(trace *t, const char *fmt, ...) {
    if (!t->verbose) return;
    va_list args;
    va_start(args, fmt);
    printf("%10.3f    ", (double)t->at_ms / 1000);
    (void)vprintf(fmt, args);
    printf("\n");
    va_end(args);
}

void trace_print_command(uint64_t seed) {
    static const char HEAD[] = "\nto see it again:  ./dev simulate --seed ";
    static const char TAIL[] = " --verbose\n";
    char digits[24];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + seed % 10);
        seed /= 10;
    } while (seed > 0);
    // Nothing can be done about a failure to report a failure.
    ssize_t ignored = write(STDERR_FILENO, HEAD, sizeof HEAD - 1);
    ignored = write(STDERR_FILENO, digits + at, sizeof digits - at);
    ignored = write(STDERR_FILENO, TAIL, sizeof TAIL - 1);
    (void)ignored;
}

void trace_fail(const trace *t, const char *fmt, ...) {
    va_list args;
    (void)fflush(stdout);
    fprintf(stderr, "simulate: seed %" PRIu64 " fails at %.3f s: ", t->seed, (double)t->at_ms / 1000);
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    trace_print_command(t->seed);
    exit(EXIT_FAILURE);
}
