#include "inside.h"

static int bind(sqlite3_stmt *stmt, int place, const sq_value *value) {
    if (!value->is_bytes) return sqlite3_bind_int64(stmt, place, value->number);
    // No bytes are bytes too, where a NULL pointer would be SQL's NULL.
    const char *bytes = value->bytes.len > 0 ? value->bytes.ptr : "";
    return sqlite3_bind_blob64(stmt, place, bytes, value->bytes.len, SQLITE_STATIC);
}

sqlite3_stmt *sq_begin(sqlite3 *db, const char *sql, const sq_value *values, size_t count) {
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    const int places = sqlite3_bind_parameter_count(stmt);
    for (int i = 0; i < places && (size_t)i < count && rc == SQLITE_OK; i++) rc = bind(stmt, i + 1, &values[i]);
    if (rc == SQLITE_OK) return stmt;
    (void)sqlite3_finalize(stmt);
    return NULL;
}

int sq_run(sqlite3 *db, const char *sql, const sq_value *values, size_t count) {
    sqlite3_stmt *stmt = sq_begin(db, sql, values, count);
    if (stmt == NULL) return sqlite3_errcode(db);
    const int rc = sqlite3_step(stmt);
    (void)sqlite3_finalize(stmt);
    return rc;
}

rt_code sq_fail(rt_err *err, sqlite3 *db, int rc, const char *what) {
    const int primary = rc & 0xff;
    const rt_code code = primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB ? RT_E_CORRUPT
                         : primary == SQLITE_NOMEM                              ? RT_E_NOMEM
                                                                                : RT_E_UNAVAILABLE;
    return rt_fail(err, code, db != NULL ? sqlite3_system_errno(db) : 0, "%s: %s", what,
                   db != NULL ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
}
