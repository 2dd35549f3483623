/* tree.c: single writes to the trees of the open batch. */
#include "store/lmdb/inside.h"

int rt_lmdb_insert(rt_lmdb *s, rt_tree tree, uint64_t number, MDB_val *value, unsigned flags) {
    MDB_cursor *cursor;
    int rc = rt_lmdb_cursor(&s->batch, tree, &cursor);
    if (rc != 0) return rc;
    s->dirty = true;
    MDB_val key = {.mv_size = sizeof number, .mv_data = &number};
    const bool is_last = number > s->env.last[tree];
    rc = mdb_cursor_put(cursor, &key, value, flags | (is_last ? MDB_APPEND : MDB_NOOVERWRITE));
    if (rc == 0 && is_last) s->env.last[tree] = number;
    return rc;
}

int rt_lmdb_remove_at(rt_lmdb *s, rt_tree tree, MDB_val key) {
    MDB_cursor *cursor;
    int rc = rt_lmdb_cursor(&s->batch, tree, &cursor);
    MDB_val value;
    if (rc == 0) rc = mdb_cursor_get(cursor, &key, &value, MDB_SET);
    s->dirty = true;
    if (rc == 0) rc = mdb_cursor_del(cursor, 0);
    // What was compared says that it is there.
    return rc == MDB_NOTFOUND ? MDB_CORRUPTED : rc;
}

int rt_lmdb_remove(rt_lmdb *s, rt_tree tree, uint64_t number) {
    return rt_lmdb_remove_at(s, tree, (MDB_val){.mv_size = sizeof number, .mv_data = &number});
}

int rt_lmdb_put_at(rt_lmdb *s, rt_tree tree, MDB_val key, MDB_val value) {
    MDB_cursor *cursor;
    int rc = rt_lmdb_cursor(&s->batch, tree, &cursor);
    s->dirty = true;
    if (rc == 0) rc = mdb_cursor_put(cursor, &key, &value, 0);
    return rc;
}
