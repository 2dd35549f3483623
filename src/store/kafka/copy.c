#include "store/kafka/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/lmdb/store_lmdb.h"

enum { PATH_BYTES = 4096, LINE_BYTES = RT_COPY_ORIGIN_BYTES /* of either file */ };

static const char BOOT_ID[] = "/proc/sys/kernel/random/boot_id";
static const char CLEAN[] = "clean\n";

/* ---- which store it is of, and which boot of the machine has written it -------------------------------- */

static bool path_in(const rt_copy *c, const char *name, char out[PATH_BYTES]) {
    const int need = snprintf(out, PATH_BYTES, "%s/%s", c->cfg->dir, name);
    return need > 0 && need < PATH_BYTES;
}

/* Empty: there is none. */
static void read_file(const char *path, char out[LINE_BYTES]) {
    memset(out, 0, LINE_BYTES);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const ssize_t got = read(fd, out, LINE_BYTES - 1);
    out[got > 0 ? got : 0] = '\0';
    (void)close(fd);
}

static rt_code write_file(const char *path, const char *text, rt_err *err) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return rt_fail(err, RT_E_IO, errno, "%s: %s", path, strerror(errno));
    const size_t len = strlen(text);
    const bool good = write(fd, text, len) == (ssize_t)len && fsync(fd) == 0;
    const int saved = errno;
    (void)close(fd);
    return good ? RT_OK : rt_fail(err, RT_E_IO, saved, "%s: %s", path, strerror(saved));
}

static void remove_files(const rt_copy *c) {
    static const char *const NAMES[] = {"data.mdb", "lock.mdb", "boot", "origin"};
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        if (path_in(c, NAMES[i], path)) (void)unlink(path);
    }
}

/* What was written by an earlier boot, and not closed in good order, may be damaged; and a copy of another
 * store would make this one's lines mean something else. */
static void discard_doubtful(const rt_copy *c) {
    char path[PATH_BYTES], was[LINE_BYTES], now[LINE_BYTES];
    if (!path_in(c, "boot", path)) return;
    read_file(path, was);
    read_file(BOOT_ID, now);
    const bool doubtful = strcmp(was, CLEAN) != 0 && strcmp(was, now) != 0;
    if (!path_in(c, "origin", path)) return;
    read_file(path, was);
    if (doubtful || strcmp(was, c->origin) != 0) remove_files(c);
}

static rt_code mark(const rt_copy *c, bool clean, rt_err *err) {
    char path[PATH_BYTES], now[LINE_BYTES];
    if (!path_in(c, "boot", path)) return rt_fail(err, RT_E_INVALID, 0, "the folder's path is too long");
    read_file(BOOT_ID, now);
    return write_file(path, clean ? CLEAN : now, err);
}

static rt_code note_origin(const rt_copy *c, rt_err *err) {
    char path[PATH_BYTES];
    if (!path_in(c, "origin", path)) return rt_fail(err, RT_E_INVALID, 0, "the folder's path is too long");
    return write_file(path, c->origin, err);
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

rt_code rt_copy_open(rt_copy *c, rt_err *err) {
    if (mkdir(c->cfg->dir, 0700) != 0 && errno != EEXIST)
        return rt_fail(err, RT_E_IO, errno, "%s: %s", c->cfg->dir, strerror(errno));
    discard_doubtful(c);
    const rt_store_lmdb_config cfg = {
        .dir = c->cfg->dir,
        .map_bytes = c->cfg->map_bytes,
        .disk_reserve_bytes = c->cfg->disk_reserve_bytes,
        .retention = c->cfg->retention,
        .no_sync = true,
    };
    rt_code code = rt_store_lmdb_open(&cfg, &c->local, err);
    if (code == RT_OK) code = note_origin(c, err);
    if (code == RT_OK) code = mark(c, false, err);
    return code == RT_OK ? rt_copy_read_ledger(c, err) : code;
}

rt_code rt_copy_renew(rt_copy *c, rt_err *err) {
    rt_store_close(c->local);
    c->local = NULL;
    c->no = 0;
    c->unsure = c->behind = c->lost = false;
    remove_files(c);
    return rt_copy_open(c, err);
}

void rt_copy_close(rt_copy *c) {
    rt_err err;
    if (c->local == NULL) return;
    const bool synced = rt_store_lmdb_sync(c->local, &err) == RT_OK;
    rt_store_close(c->local);
    c->local = NULL;
    if (synced) (void)mark(c, true, &err);
}

/* ---- the ledger ---------------------------------------------------------------------------------------- */

/* True: the last batch has an end. */
static bool learn_end(rt_copy *c, rt_batch_end *end, rt_err *err) {
    uint64_t no;
    c->unsure = !rt_store_poll(c->local, &no, end, err);
    return !c->unsure;
}

rt_code rt_copy_read_ledger(rt_copy *c, rt_err *err) {
    rt_view *view;
    rt_str note;
    rt_batch_end end;
    if (c->unsure && !learn_end(c, &end, err))
        return rt_fail(err, RT_E_UNAVAILABLE, 0, "the copy is being opened afresh");
    rt_code code = rt_store_view(c->local, &view, err);
    if (code != RT_OK) return code;
    code = rt_store_lmdb_note(view, &note);
    if (code == RT_E_ABSENT) rt_ledger_init(&c->ledger);
    else if (code == RT_OK && !rt_ledger_decode(note, &c->ledger)) code = RT_E_CORRUPT;
    rt_view_close(view);
    if (code == RT_OK || code == RT_E_ABSENT) return RT_OK;
    return rt_fail(err, code, 0, "%s: what it holds of the journal cannot be read", c->cfg->dir);
}

rt_code rt_copy_save(rt_copy *c, rt_err *err) {
    rt_batch_end end;
    rt_store_commit(c->local, ++c->no);
    if (!learn_end(c, &end, err)) return rt_fail(err, RT_E_UNAVAILABLE, 0, "the copy is being opened afresh");
    return end == RT_BATCH_DURABLE ? RT_OK : RT_E_UNAVAILABLE;
}

rt_code rt_copy_commit(rt_copy *c, const rt_ledger *next, rt_err *err) {
    rt_buf note = {0};
    rt_ledger_encode(next, &note);
    rt_code code = note.failed ? rt_fail(err, RT_E_NOMEM, ENOMEM, "the copy")
                               : rt_store_lmdb_put_note(c->local, rt_buf_str(&note), err);
    rt_buf_deinit(&note);
    if (code == RT_OK) code = rt_copy_save(c, err);
    else rt_store_abandon(c->local);
    if (code == RT_OK) c->ledger = *next;
    else c->behind = true;
    return code;
}
