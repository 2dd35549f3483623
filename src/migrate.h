/* migrate.h: `retryd migrate-store FROM TO`, which retryctl offers as well. */
#ifndef RT_MIGRATE_H
#define RT_MIGRATE_H
#include "config.h"

typedef struct rt_migrate_options {
    const rt_config *config;
    const char *from, *to; /* as --store takes them */
    bool force;            /* do not look for others who use a database */
    bool json;             /* what was moved, as JSON */
} rt_migrate_options;

/* Moves the store; says on stderr how far it is, and on stdout what was moved. Returns the exit status: 0; 1: not yet
 * done, run it again; 2: that cannot be done. */
int rt_migrate(const rt_migrate_options *options);

#endif
