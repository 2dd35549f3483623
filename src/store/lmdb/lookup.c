/* lookup.c: one record by its key, in a view or the batch. */
#include "store/lmdb/inside.h"

int rt_lmdb_cursor(rt_lmdb_view *v, rt_tree tree, MDB_cursor **out) {
    const uint32_t bit = 1U << tree;
    if ((v->bound & bit) == 0) {
        // LMDB frees the cursors of a write transaction with it; those of a reader can be used again.
        const bool again = !v->is_batch && v->cursors[tree] != NULL;
        const int rc = again ? mdb_cursor_renew(v->txn, v->cursors[tree])
                             : mdb_cursor_open(v->txn, v->store->env.trees[tree], &v->cursors[tree]);
        if (rc != 0) return rc;
        v->bound |= bit;
    }
    *out = v->cursors[tree];
    return 0;
}

int rt_lmdb_find(rt_lmdb_view *v, rt_tree tree, uint64_t number, rt_str *value) {
    MDB_cursor *cursor;
    MDB_val key = {.mv_size = sizeof number, .mv_data = &number};
    MDB_val found;
    int rc = rt_lmdb_cursor(v, tree, &cursor);
    if (rc == 0) rc = mdb_cursor_get(cursor, &key, &found, MDB_SET);
    if (rc == 0) *value = rt_lmdb_str(&found);
    return rc;
}

int rt_lmdb_find_job(rt_lmdb_view *v, rt_id id, rt_job *out) {
    rt_str value;
    const int rc = rt_lmdb_find(v, RT_TREE_JOBS, id, &value);
    if (rc != 0) return rc;
    return rt_stored_read_job(id, value, out) ? 0 : MDB_CORRUPTED;
}
