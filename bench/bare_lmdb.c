/* bare_lmdb.c: what bounds durable writes: LMDB alone, a sync with each commit.
 *
 *   bare_lmdb DIR PER-COMMIT SECONDS [BYTES]    puts of BYTES; each also deletes what is 10,000 puts old */
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>

#include "common.h"

static void must(int code, const char *what) {
    if (code != MDB_SUCCESS) die("%s: %s", what, mdb_strerror(code));
}

int main(int argc, char **argv) {
    if (argc < 4) die("usage: bare_lmdb DIR PER-COMMIT SECONDS [BYTES]");
    const uint64_t per_commit = number(argv[2], "PER-COMMIT");
    const uint64_t seconds = number(argv[3], "SECONDS");
    const size_t bytes = argc > 4 ? number(argv[4], "BYTES") : 1024;
    char *body = json_of(bytes);
    MDB_env *env;
    MDB_dbi dbi;
    must(mdb_env_create(&env), "create");
    must(mdb_env_set_mapsize(env, (size_t)8 << 30), "mapsize");
    must(mdb_env_open(env, argv[1], 0, 0600), "open");
    const uint64_t began = now_us(), until = began + seconds * 1000000;
    uint64_t puts = 0, commits = 0, now = began;
    for (bool first = true; now < until; first = false) {
        MDB_txn *txn;
        must(mdb_txn_begin(env, NULL, 0, &txn), "begin");
        if (first) must(mdb_dbi_open(txn, NULL, MDB_INTEGERKEY, &dbi), "dbi");
        for (uint64_t i = 0; i < per_commit; i++) {
            MDB_val key = {sizeof puts, &puts}, value = {bytes, body};
            must(mdb_put(txn, dbi, &key, &value, MDB_APPEND), "put");
            uint64_t old = puts - 10000;
            key.mv_data = &old;
            if (puts >= 10000) must(mdb_del(txn, dbi, &key, NULL), "del");
            puts++;
        }
        must(mdb_txn_commit(txn), "commit");
        commits++;
        now = now_us();
    }
    printf("{\"done\": %lu, \"per_second\": %.0f, \"commits_per_second\": %.0f}\n", puts,
           (double)puts * 1e6 / (double)(now - began), (double)commits * 1e6 / (double)(now - began));
    mdb_env_close(env);
    free(body);
    return 0;
}
