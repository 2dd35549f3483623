/* simulate_calls: failed calls through simulated lives, each given by a seed (seeds.h). Aborts at the first seed that breaks
 * an invariant, and says how to see it again. */
#include "../seeds.h"
#include "farm.h"

static uint64_t run(uint64_t seed, const char *dir) {
    (void)dir; // on the memory store only
    return farm_run(seed);
}

int main(int argc, char **argv) { return seeds_main(argc, argv, "simulate_calls", run, false); }
