#include "seeds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct plan {
    uint64_t from, to;
    const char *dir;
} plan;

static bool read_plan(int argc, char **argv, bool on_disk, plan *p) {
    if (argc % 2 == 0) return false;
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--lmdb") == 0 && on_disk) {
            p->dir = argv[i + 1];
            continue;
        }
        const bool several = strcmp(argv[i], "--seeds") == 0;
        if (!several && strcmp(argv[i], "--seed") != 0) return false;
        char *rest;
        p->from = p->to = strtoull(argv[i + 1], &rest, 10);
        if (several && strncmp(rest, "..", 2) == 0) p->to = strtoull(rest + 2, &rest, 10);
        if (*rest != '\0') return false;
    }
    return p->from > 0 && p->to >= p->from;
}

static uint64_t run_below(seed_run *run, uint64_t seed, const char *dir) {
    char folder[512];
    char file[600];
    (void)snprintf(folder, sizeof folder, "%s/seed-XXXXXX", dir);
    if (mkdtemp(folder) == NULL) abort();
    const uint64_t hash = run(seed, folder);
    static const char *const FILES[] = {"data.mdb", "lock.mdb", "owner.lock"};
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
        (void)snprintf(file, sizeof file, "%s/%s", folder, FILES[i]);
        (void)unlink(file);
    }
    (void)rmdir(folder);
    return hash;
}

int seeds_main(int argc, char **argv, const char *name, seed_run *run, bool on_disk) {
    plan p = {0};
    if (!read_plan(argc, argv, on_disk, &p)) {
        (void)fprintf(stderr, "usage: %s --seeds FROM..TO | --seed N%s\n", name, on_disk ? " [--lmdb DIR]" : "");
        return 2;
    }
    for (uint64_t seed = p.from; seed <= p.to; seed++) {
        // Ids of a store on disk carry its tag, which is random: only the memory store does the same twice.
        if (p.dir != NULL) {
            (void)run_below(run, seed, p.dir);
            continue;
        }
        if (run(seed, NULL) == run(seed, NULL)) continue;
        (void)fprintf(stderr, "%s: seed %" PRIu64 " does not do the same twice\n", name, seed);
        return 1;
    }
    (void)printf("%s: seeds %" PRIu64 " to %" PRIu64 ": every invariant held\n", name, p.from, p.to);
    return 0;
}
