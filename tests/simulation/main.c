/* simulate: runs the engine through simulated lives, each given by a seed.
 *
 *   simulate [--seeds FROM..TO] [--jobs N]   each twice: both runs must do the same. N processes share the
 * seeds simulate --seed N [--verbose]            one of them, with all that happens in it
 *
 * Ends with status 1 at the first seed that breaks an invariant, and says how to see it again. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "world.h"

enum { JOBS_MAX = 64 };

typedef struct options {
    uint64_t from, to;
    uint64_t jobs;
    bool verbose;
} options;

static volatile sig_atomic_t watching; /* `current` holds a seed */
static volatile uint64_t current;

static void on_abort(int signal_number) {
    (void)signal_number;
    if (watching) trace_print_command(current);
    _exit(EXIT_FAILURE);
}

/* ---- seeds --------------------------------------------------------------------------------------------- */

static void add(tally *all, const tally *more) {
    all->steps += more->steps;
    all->batches += more->batches;
    all->messages += more->messages;
    all->deliveries += more->deliveries;
    all->attempts += more->attempts;
    all->crashes += more->crashes;
}

/* Both runs of a seed; adds what happened in one of them. */
static void run(uint64_t seed, bool verbose, tally *all) {
    current = seed;
    watching = 1;
    const tally first = world_run(seed, verbose);
    const tally second = world_run(seed, false);
    if (first.hash != second.hash) {
        fprintf(stderr, "simulate: seed %" PRIu64 " does not do the same twice\n", seed);
        trace_print_command(seed);
        exit(EXIT_FAILURE);
    }
    add(all, &first);
}

/* Every `jobs`-th seed from the `number`-th on. */
static tally run_share(const options *o, uint64_t number) {
    tally all = {0};
    for (uint64_t seed = o->from + number; seed <= o->to && seed >= o->from; seed += o->jobs) {
        run(seed, o->verbose && o->from == o->to, &all);
    }
    return all;
}

/* A process that runs its share and writes its tally into the pipe. */
static pid_t fork_share(const options *o, uint64_t number, int to_parent) {
    const pid_t child = fork();
    if (child != 0) return child;
    const tally share = run_share(o, number);
    _exit(write(to_parent, &share, sizeof share) == (ssize_t)sizeof share ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* False: one of them failed, and has said why. */
static bool run_forked(const options *o, tally *all) {
    int ends[2];
    if (pipe(ends) != 0) return false;
    bool well = true;
    uint64_t started = 0;
    for (; started < o->jobs && well; started++) well = fork_share(o, started, ends[1]) > 0;
    (void)close(ends[1]);
    for (uint64_t i = 0; i < started; i++) {
        int status = 0;
        if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS) well = false;
    }
    // A tally is far shorter than what a pipe takes at once.
    tally share;
    while (well && read(ends[0], &share, sizeof share) == (ssize_t)sizeof share) add(all, &share);
    (void)close(ends[0]);
    return well;
}
_Static_assert(JOBS_MAX * sizeof(tally) <= 4096, "all tallies fit into a pipe before anybody reads");

/* ---- command line -------------------------------------------------------------------------------------- */

static int usage(void) {
    fprintf(stderr, "usage: simulate [--seeds FROM..TO] [--jobs N] | --seed N [--verbose]\n");
    return 2;
}

static bool parse_number(rt_str text, uint64_t *out) {
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
    return parse_number(head, from) && parse_number(rest, to) && *from <= *to;
}

static bool parse(int argc, char **argv, options *o) {
    for (int i = 1; i < argc; i++) {
        const rt_str value = rt_str_of(i + 1 < argc ? argv[i + 1] : NULL);
        if (strcmp(argv[i], "--verbose") == 0) {
            o->verbose = true;
            continue;
        }
        bool good = false;
        if (strcmp(argv[i], "--seed") == 0) {
            good = parse_number(value, &o->from);
            o->to = o->from;
        } else if (strcmp(argv[i], "--seeds") == 0) {
            good = parse_range(value, &o->from, &o->to);
        } else if (strcmp(argv[i], "--jobs") == 0) {
            good = parse_number(value, &o->jobs) && o->jobs >= 1 && o->jobs <= JOBS_MAX;
        }
        if (!good) return false;
        i++;
    }
    return true;
}

int main(int argc, char **argv) {
    options o = {.from = 1, .to = 10000, .jobs = 1};
    if (!parse(argc, argv, &o)) return usage();
    (void)signal(SIGABRT, on_abort);
    tally all = {0};
    if (o.jobs == 1) all = run_share(&o, 0);
    else if (!run_forked(&o, &all)) return EXIT_FAILURE;
    printf("simulate: %" PRIu64 " seeds, each twice, every invariant held: %" PRIu64 " messages, %" PRIu64
           " deliveries, "
           "%" PRIu64 " attempts, %" PRIu64 " batches, %" PRIu64 " crashes\n",
           o.to - o.from + 1, all.messages, all.deliveries, all.attempts, all.batches, all.crashes);
    return EXIT_SUCCESS;
}
