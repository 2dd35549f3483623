/* lmdb_dir.h: a temporary directory for one LMDB store, and the factory that the conformance suite wants. */
#ifndef RT_TESTS_STORE_LMDB_DIR_H
#define RT_TESTS_STORE_LMDB_DIR_H
#include "store/conformance.h"
#include "store/lmdb/store_lmdb.h"

typedef struct lmdb_dir {
    char path[64];
    rt_store_lmdb_config config; /* its dir is `path` */
} lmdb_dir;

/* False: no directory can be made. The config: no reserve on the disk, history without bounds, 1 GiB of map
 * unless it says otherwise. */
bool lmdb_dir_make(lmdb_dir *dir);
void lmdb_dir_remove(const lmdb_dir *dir); /* the store is closed */

/* ctx: a lmdb_dir, whose config but for the directory and the retention may be set before. */
extern const store_factory LMDB_FACTORY;

#endif
