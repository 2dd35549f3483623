/* store_lmdb.h: the embedded store: memory-mapped B-trees, one writer, readers that never wait.
 *
 * Everything is in two files of LMDB in one directory; there is no log to replay, so it opens in milliseconds
 * whatever its size. One commit of a batch is one transaction and one sync. */
#ifndef RT_STORE_LMDB_STORE_LMDB_H
#define RT_STORE_LMDB_STORE_LMDB_H
#include "port/store.h"

#define RT_LMDB_MAP_BYTES_DEFAULT ((uint64_t)1 << 40)

enum {
    RT_LMDB_MAP_PERMILLE_MAX = 900, /* beyond this share of the map only changes that free are taken */
    RT_LMDB_VIEWS_MAX = 120,        /* open at the same time; one more is RT_E_UNAVAILABLE */
    RT_LMDB_RELEASE_WAIT_MS = 5000  /* how long a commit that went wrong waits for open views, see below */
};

typedef struct rt_store_lmdb_config {
    const char *dir;             /* made if missing (its parent must exist) */
    uint64_t map_bytes;          /* largest file size (sparse); 0: RT_LMDB_MAP_BYTES_DEFAULT */
    uint64_t disk_reserve_bytes; /* with less on the file system only changes that free are taken; 0: off */
    rt_retention retention;
    bool no_sync;                /* a commit is not on stable storage: for benchmarks, and for a copy of what others keep */
} rt_store_lmdb_config;

/* Borrows `cfg`. RT_OK: returns owned *out, closed by rt_store_close. Error: *out untouched.
 * RT_E_UNAVAILABLE: another process (or this one) has the directory open; the message says who. RT_E_INVALID:
 * what is in there was not written by us, or by a later version.
 *
 * Full disk, full map: the batch ends RT_BATCH_FAILED, views go on, and once there is room batches succeed
 * again. An error that leaves LMDB's own state in doubt makes it open the files afresh, as soon as all views
 * are closed; until then there are no batches and no new views. */
RT_MUST_USE rt_code rt_store_lmdb_open(const rt_store_lmdb_config *cfg, rt_store **out, rt_err *err);

/* ---- for a store that is fed from a log (feed.c) ------------------------------------------------------- */

/* One note beside the records, written and read with them: how far the log has been taken in. */
enum { RT_LMDB_NOTE_MAX = 64 << 10 };
/* Replaces the note, as part of the open batch. An error leaves the batch broken. */
RT_MUST_USE rt_code rt_store_lmdb_put_note(rt_store *store, rt_str note, rt_err *err);
/* The note as of `view`, one of this store's; lent like its records. RT_E_ABSENT: there never was one. */
RT_MUST_USE rt_code rt_store_lmdb_note(rt_view *view, rt_str *out);
/* Called per event and job that trimming took away. */
typedef void rt_lmdb_dropped(void *ctx, bool is_job, uint64_t key);
/* rt_store_tidy with bounds of its own. `dropped` may be NULL. */
bool rt_store_lmdb_tidy(rt_store *store, const rt_retention *bounds, int64_t now_ms, uint32_t ops_max,
                        rt_lmdb_dropped *dropped, void *ctx);
/* Puts a body, whether or not there is one, for as many jobs as `users` says; 0: takes it away. Within the open batch. For
 * a store that is filled by changes with an import, in any order. */
RT_MUST_USE rt_code rt_store_lmdb_put_body(rt_store *store, rt_id id, rt_str bytes, uint64_t users, rt_err *err);
/* The same for an event; `value` NULL: it goes. Otherwise as stored.h has it. */
RT_MUST_USE rt_code rt_store_lmdb_put_event(rt_store *store, uint64_t seq, const rt_str *value, rt_err *err);
RT_MUST_USE rt_code rt_store_lmdb_sync(rt_store *store, rt_err *err); /* all commits so far are on stable storage */

#endif
