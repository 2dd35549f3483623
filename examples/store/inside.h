/* inside.h: what the files of this store share.
 *
 *   store.c   opening, the life of a batch, numbers
 *   read.c    a view: the open batch, or a snapshot
 *   write.c   a change, all or nothing; upkeep
 *   sql.c     SQLite in few words
 *
 * One connection writes and belongs to the engine's thread; each view has a connection of its own, so that SQLite's
 * write-ahead log gives it a snapshot that never waits for the writer. Statements are prepared anew each time: this store
 * is for reading, not for races. */
#ifndef SQLITE_STORE_INSIDE_H
#define SQLITE_STORE_INSIDE_H
#include <retryd/store.h>
#include <sqlite3.h>

/* ---- sql.c ------------------------------------------------------------------------------------------------------- */

/* What a statement's ?1, ?2, … stand for. */
typedef struct sq_value {
    bool is_bytes;
    int64_t number;
    rt_str bytes;
} sq_value;

/* Numbers that have no place in SQLite's signed 64 bits are beyond all that are stored. */
static inline sq_value sq_number(uint64_t n) {
    return (sq_value){.number = n > INT64_MAX ? INT64_MAX : (int64_t)n};
}
static inline sq_value sq_time(int64_t ms) { return (sq_value){.number = ms}; }
static inline sq_value sq_bytes(rt_str bytes) { return (sq_value){.is_bytes = true, .bytes = bytes}; }
static inline sq_value sq_record(const void *record, size_t len) {
    return sq_bytes((rt_str){.ptr = record, .len = len});
}
#define SQ_VALUES(...) (const sq_value[]){__VA_ARGS__}, sizeof((const sq_value[]){__VA_ARGS__}) / sizeof(sq_value)

/* A statement to be stepped through; those of the values that it does not name are passed over. NULL: sqlite3_errcode. To
 * be given to sqlite3_finalize. */
sqlite3_stmt *sq_begin(sqlite3 *db, const char *sql, const sq_value *values, size_t count);
/* Runs one that gives no rows. SQLITE_DONE, or what is wrong. */
int sq_run(sqlite3 *db, const char *sql, const sq_value *values, size_t count);
/* "What: why." in *err, for `rc` of the connection. */
rt_code sq_fail(rt_err *err, sqlite3 *db, int rc, const char *what);

/* ---- read.c ------------------------------------------------------------------------------------------------------ */

typedef struct sq_lent sq_lent; /* strings that somebody may still read */

typedef struct sq_view {
    rt_view base; /* first: what callers hold */
    sqlite3 *db;
    sq_lent *lent;
} sq_view;

extern const rt_view_ops sq_view_ops;

/* What a view has lent is no longer read. */
void sq_take_back(sq_view *v);

/* ---- write.c ----------------------------------------------------------------------------------------------------- */

typedef struct sq_store {
    rt_store base; /* first: what callers hold */
    sq_view batch; /* has the connection that writes */
    char *path;
    int owner_fd; /* locked while this process has the store */
    rt_retention retention;
    uint64_t disk_reserve_bytes;

    bool importing;    /* the change that is being written comes from another store */
    bool begun, dirty; /* a transaction is open; it has written something */
    bool broken;       /* it can only end as FAILED, because of `why` */
    rt_err why;

    bool ended, unsure; /* an end to be told; whether it was written is not known, see make_sure */
    uint64_t ended_no;
    rt_batch_end end;

    uint64_t next_id, next_seq;   /* to be given out */
    uint64_t id_limit, seq_limit; /* promised on disk: smaller numbers are never given out after a restart */
} sq_store;

/* Within the open transaction, see rt_store_ops. */
rt_code sq_apply(sq_store *s, const rt_change *change, rt_err *err);
bool sq_tidy(sq_store *s, int64_t now_ms, uint32_t ops_max);
/* From here on the batch can only fail. */
void sq_break(sq_store *s, int rc, const char *what);

/* ---- the schema -------------------------------------------------------------------------------------------------- */

/* In which index a job is follows from its state (see rule 4 of retryd/store.h), so each is an index over a part of the
 * table, and its condition is written the same way where it is read. */
#define SQ_READY "state = 1"
#define SQ_DUE "(state = 2 OR (state = 4 AND NOT pull))"
#define SQ_FREE "state = 3"
#define SQ_ALL "(pull AND state IN (2, 3, 4))"
#define SQ_DEAD "state = 5"
#define SQ_EXPIRES "(expires_ms > 0 AND state NOT IN (5, 6))"
_Static_assert(RT_JOB_READY == 1 && RT_JOB_SCHEDULED == 2 && RT_JOB_FREE == 3 && RT_JOB_LEASED == 4 && RT_JOB_DEAD == 5 &&
               RT_JOB_DONE == 6, "the numbers above");

#endif
