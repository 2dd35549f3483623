/* simulate_orders: orders through simulated lives, each given by a seed.
 *
 * simulate_orders --seeds FROM..TO [--lmdb DIR]   each twice: both runs must do the same simulate_orders
 * --seed N [--lmdb DIR]
 *
 * With --lmdb on a store in folders below DIR, which must be there; otherwise on the memory store, with its
 * faults. Aborts at the first seed that breaks an invariant, and says how to see it again. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "site.h"

static uint64_t run_seed(uint64_t seed, const char *dir) {
    if (dir == NULL) return site_run(seed, NULL);
    char folder[512];
    char file[600];
    (void)snprintf(folder, sizeof folder, "%s/orders-XXXXXX", dir);
    if (mkdtemp(folder) == NULL) abort();
    const uint64_t hash = site_run(seed, folder);
    static const char *const FILES[] = {"data.mdb", "lock.mdb"};
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(file, sizeof file, "%s/%s", folder, FILES[i]);
        (void)unlink(file);
    }
    (void)rmdir(folder);
    return hash;
}

int main(int argc, char **argv) {
    unsigned long long from = 0, to = 0;
    const char *dir = NULL;
    for (int i = 1; i + 1 < argc; i += 2) {
        char *rest = argv[i + 1];
        if (strcmp(argv[i], "--lmdb") == 0) {
            dir = argv[i + 1];
            continue;
        }
        from = to = strtoull(argv[i + 1], &rest, 10);
        if (strcmp(argv[i], "--seeds") == 0 && strncmp(rest, "..", 2) == 0)
            to = strtoull(rest + 2, &rest, 10);
        if (*rest != '\0') from = 0;
    }
    if (from == 0 || to < from) {
        (void)fprintf(stderr, "usage: simulate_orders --seeds FROM..TO | --seed N [--lmdb DIR]\n");
        return 2;
    }
    for (uint64_t seed = from; seed <= to; seed++) {
        const uint64_t first = run_seed(seed, dir);
        // Ids of a store on disk carry its tag, which is random: only the memory store does the same twice.
        if (dir != NULL || run_seed(seed, NULL) == first) continue;
        (void)fprintf(stderr, "simulate_orders: seed %" PRIu64 " does not do the same twice\n", seed);
        return 1;
    }
    (void)printf("simulate_orders: seeds %llu to %llu: every invariant held\n", from, to);
    return 0;
}
