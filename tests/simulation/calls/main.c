/* simulate_calls: failed calls through simulated lives, each given by a seed.
 *
 * simulate_calls --seeds FROM..TO   each twice: both runs must do the same
 * simulate_calls --seed N
 *
 * Aborts at the first seed that breaks an invariant, and says how to see it again. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "farm.h"

int main(int argc, char **argv) {
    unsigned long long from = 0, to = 0;
    char *rest = argc == 3 ? argv[2] : NULL;
    if (rest != NULL) from = to = strtoull(argv[2], &rest, 10);
    if (rest != NULL && strcmp(argv[1], "--seeds") == 0 && strncmp(rest, "..", 2) == 0)
        to = strtoull(rest + 2, &rest, 10);
    if (rest == NULL || *rest != '\0' || to < 1 || from > to) {
        (void)fprintf(stderr, "usage: simulate_calls --seeds FROM..TO | --seed N\n");
        return 2;
    }
    for (uint64_t seed = from; seed <= to; seed++) {
        if (farm_run(seed) == farm_run(seed)) continue;
        (void)fprintf(stderr, "simulate_calls: seed %" PRIu64 " does not do the same twice\n", seed);
        return 1;
    }
    (void)printf("simulate_calls: seeds %llu to %llu: every invariant held\n", from, to);
    return 0;
}
