#include "base/rng.h"

#include "base/code.h"

static uint64_t splitmix(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

rt_rng rt_rng_seeded(uint64_t seed) {
    rt_rng rng;
    for (int i = 0; i < 4; i++) rng.s[i] = splitmix(&seed);
    return rng;
}

static uint64_t rotate_left(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

uint64_t rt_rng_next(rt_rng *rng) {
    uint64_t *s = rng->s;
    const uint64_t out = rotate_left(s[1] * 5, 7) * 9;
    const uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return out;
}

uint64_t rt_rng_below(rt_rng *rng, uint64_t bound) {
    RT_ASSERT(bound >= 1);
    // Numbers under `uneven` would make the low results likelier: draw again.
    const uint64_t uneven = (0 - bound) % bound;
    uint64_t drawn;
    do drawn = rt_rng_next(rng);
    while (drawn < uneven);
    return drawn % bound;
}
