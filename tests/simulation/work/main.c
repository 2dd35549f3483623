/* simulate_work: worker fleets through simulated lives, each given by a seed (seeds.h). Aborts at the first seed that breaks
 * an invariant, and says how to see it again. */
#include "../seeds.h"
#include "fleet.h"

int main(int argc, char **argv) { return seeds_main(argc, argv, "simulate_work", fleet_run, true); }
