/* seeds.h: what the simulators have in common: seeds from the command line, each run twice.
 *
 *   NAME --seeds FROM..TO [--lmdb DIR]
 *   NAME --seed N [--lmdb DIR]
 *
 * Each seed, from 1, is run twice: both runs must do the same. With --lmdb once, on a store in a folder of its
 * own below DIR, which must be there. */
#ifndef SIMULATION_SEEDS_H
#define SIMULATION_SEEDS_H
#include <stdbool.h>
#include <stdint.h>

/* One simulated life; a hash of what was done in it. `dir` NULL: on the memory store. Aborts when an invariant is broken. */
typedef uint64_t seed_run(uint64_t seed, const char *dir);

/* Runs what the command line says. `on_disk`: --lmdb may be given. Returns the exit status. */
int seeds_main(int argc, char **argv, const char *name, seed_run *run, bool on_disk);

#endif
