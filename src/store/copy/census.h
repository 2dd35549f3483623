/* census.h: how much a store holds, and a hash over all of it: two stores with the same one hold the same. */
#ifndef RT_STORE_COPY_CENSUS_H
#define RT_STORE_COPY_CENSUS_H
#include "store/copy/walk.h"

enum { RT_CENSUS_DIGEST_BYTES = 32 }; /* SHA-256 */

typedef struct rt_census {
    uint64_t records;
    uint64_t parts[RT_WALK_END];
    uint64_t jobs[RT_JOB_STATE_COUNT];
    uint64_t docs[RT_DOC_KIND_COUNT];
    unsigned char digest[RT_CENSUS_DIGEST_BYTES];
} rt_census;

/* `done` records so far. */
typedef void rt_census_tell(void *ctx, uint64_t done);

/* Reads the whole store. Nobody may write to it meanwhile. */
RT_MUST_USE rt_code rt_census_take(rt_store *store, rt_census *out, rt_census_tell *tell, void *ctx, rt_err *err);

/* RT_E_CORRUPT: they differ, and *err says in what. */
RT_MUST_USE rt_code rt_census_compare(const rt_census *from, const rt_census *to, rt_err *err);

const char *rt_walk_part_name(rt_walk_part part); /* "bodies", "queues", … */

#endif
