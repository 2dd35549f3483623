/* simulate: runs the engine through simulated lives, each given by a seed.
 *
 *   simulate --seeds FROM..TO       each twice: both runs must do the same
 *   simulate --seed N [--verbose]   one of them, with all that happens in it
 *
 * Ends with status 1 at the first seed that breaks an invariant, and says how to see it again. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "world.h"

static volatile sig_atomic_t watching; /* `current` holds a seed */
static volatile uint64_t current;

static void on_abort(int signal_number) {
    (void)signal_number;
    if (watching) trace_print_command(current);
    _exit(EXIT_FAILURE);
}

static int usage(void) {
    fprintf(stderr, "usage: simulate --seeds FROM..TO | --seed N [--verbose]\n");
    return 2;
}

/* Both runs of a seed; adds what happened in one of them. */
static void run(uint64_t seed, bool verbose, tally *all) {
    current = seed;
    const tally first = world_run(seed, verbose);
    const tally second = world_run(seed, false);
    if (first.hash != second.hash) {
        fprintf(stderr, "simulate: seed %" PRIu64 " does not do the same twice\n", seed);
        trace_print_command(seed);
        exit(EXIT_FAILURE);
    }
    all->steps += first.steps;
    all->batches += first.batches;
    all->messages += first.messages;
    all->deliveries += first.deliveries;
    all->attempts += first.attempts;
    all->crashes += first.crashes;
}

static void report(uint64_t seeds, const tally *all) {
    printf("simulate: %" PRIu64 " seeds, each twice: every invariant held\n", seeds);
    printf("simulate: %" PRIu64 " messages, %" PRIu64 " deliveries, %" PRIu64 " attempts, %" PRIu64 " batches, %" PRIu64
           " crashes, %" PRIu64 " steps\n", all->messages, all->deliveries, all->attempts, all->batches, all->crashes, all->steps);
}

static bool parse_seed(rt_str text, uint64_t *out) {
    int64_t number;
    if (!rt_str_to_i64(text, &number) || number < 0) return false;
    *out = (uint64_t)number;
    return true;
}

static bool parse_range(rt_str text, uint64_t *from, uint64_t *to) {
    rt_str head;
    rt_str rest;
    if (!rt_str_cut(text, '.', &head, &rest) || rest.len < 2 || rest.ptr[0] != '.') return false;
    rest.ptr++;
    rest.len--;
    return parse_seed(head, from) && parse_seed(rest, to) && *from <= *to;
}

int main(int argc, char **argv) {
    uint64_t from = 0;
    uint64_t to = 0;
    bool chosen = false;
    bool verbose = false;
    for (int i = 1; i < argc; i++) {
        const rt_str value = rt_str_of(i + 1 < argc ? argv[i + 1] : NULL);
        if (strcmp(argv[i], "--verbose") == 0) {
            verbose = true;
        } else if (strcmp(argv[i], "--seed") == 0 && parse_seed(value, &from)) {
            to = from;
            chosen = true;
            i++;
        } else if (strcmp(argv[i], "--seeds") == 0 && parse_range(value, &from, &to)) {
            chosen = true;
            i++;
        } else {
            return usage();
        }
    }
    if (!chosen) return usage();
    (void)signal(SIGABRT, on_abort);
    watching = 1;
    tally all = {0};
    for (uint64_t seed = from;; seed++) {
        run(seed, verbose && from == to, &all);
        if (seed == to) break;
    }
    report(to - from + 1, &all);
    return EXIT_SUCCESS;
}
