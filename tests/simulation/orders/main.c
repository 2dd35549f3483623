/* simulate_orders: orders through simulated lives, each given by a seed (seeds.h). Aborts at the first seed that breaks an
 * invariant, and says how to see it again. */
#include "../seeds.h"
#include "site.h"

int main(int argc, char **argv) { return seeds_main(argc, argv, "simulate_orders", site_run, true); }
