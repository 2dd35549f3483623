/* rng.h: the random numbers of the engine: seeded, repeatable, not for secrets.
 * Source: xoshiro256** by Blackman and Vigna, seeded by splitmix64 (https://prng.di.unimi.it/). */
#ifndef RT_BASE_RNG_H
#define RT_BASE_RNG_H
#include <stdint.h>

typedef struct rt_rng {
    uint64_t s[4];
} rt_rng;

rt_rng rt_rng_seeded(uint64_t seed);
uint64_t rt_rng_next(rt_rng *rng);
/* Uniform in [0, bound), without modulo bias. bound >= 1. */
uint64_t rt_rng_below(rt_rng *rng, uint64_t bound);

#endif
