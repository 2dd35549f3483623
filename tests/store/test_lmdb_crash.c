/* test_lmdb_crash.c: what is on the disk after a process or the power dies.
 *
 * kill -9 leaves the page cache, so it shows only that an answer follows its commit. For power cuts all
 * writes between two syncs are recorded, and images are built with any subset of those that no sync had
 * covered, torn ones too. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/disk.h"
#include "store/lmdb_dir.h"
#include "store/model.h"

/* Each batch writes its number here, so that one can see up to which the store got. */
static const rt_str MARK = {.ptr = "mark", .len = 4};

static void put_mark(rt_doc docs[2], uint64_t number, char value[24], rt_op *out) {
    (void)snprintf(value, 24, "%llu", (unsigned long long)number);
    docs[0] = (rt_doc){.kind = RT_DOC_CURSOR, .name = MARK, .version = number - 1};
    docs[1] = (rt_doc){.kind = RT_DOC_CURSOR, .name = MARK, .version = number, .value = rt_str_of(value)};
    *out = OP_DOC(number > 1 ? &docs[0] : NULL, &docs[1]);
}

static uint64_t read_mark(rt_view *v) {
    rt_doc doc = {0};
    const rt_code code = rt_view_doc(v, RT_DOC_CURSOR, MARK, &doc);
    if (code == RT_E_ABSENT) return 0;
    assert_int_equal(code, RT_OK);
    int64_t number = -1;
    assert_true(rt_str_to_i64(doc.value, &number));
    assert_int_equal(doc.version, number);
    return (uint64_t)number;
}

/* ---- kill -9 ------------------------------------------------------------------------------------------- */

enum { KILLS = 12, JOBS_A_BATCH = 5, QUEUE = 3 };

static bool commit_batch(rt_store *s, uint64_t number) {
    rt_job jobs[JOBS_A_BATCH];
    rt_op ops[JOBS_A_BATCH + 1];
    rt_doc docs[2];
    char value[24];
    rt_err err;
    for (int i = 0; i < JOBS_A_BATCH; i++) {
        jobs[i] = (rt_job){.id = rt_store_new_id(s), .queue = QUEUE, .version = 1, .due_ms = (int64_t)number,
                           .state = RT_JOB_SCHEDULED};
        ops[i] = OP_JOB(NULL, &jobs[i]);
    }
    put_mark(docs, number, value, &ops[JOBS_A_BATCH]);
    const rt_change change = {.ops = ops, .ops_count = JOBS_A_BATCH + 1};
    if (rt_store_apply(s, &change, &err) != RT_OK) return false;
    uint64_t no;
    rt_batch_end end;
    rt_store_commit(s, number);
    return rt_store_poll(s, &no, &end, &err) && end == RT_BATCH_DURABLE;
}

/* The process that will be killed: says the number of each batch once it is durable. */
static void child_main(const lmdb_dir *dir, int out) {
    rt_store *s = NULL;
    rt_err err;
    rt_view *v;
    if (rt_store_lmdb_open(&dir->config, &s, &err) != RT_OK) _exit(1);
    if (rt_store_view(s, &v, &err) != RT_OK) _exit(1);
    uint64_t number = read_mark(v);
    rt_view_close(v);
    for (;;) {
        if (!commit_batch(s, ++number)) _exit(1);
        if (write(out, &number, sizeof number) != (ssize_t)sizeof number) _exit(1);
    }
}

/* Lets the child do `batches` batches, kills it and returns the last that it said. */
static uint64_t run_and_kill(const lmdb_dir *dir, uint64_t batches) {
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)close(pipe_fds[0]);
        child_main(dir, pipe_fds[1]);
    }
    (void)close(pipe_fds[1]);
    uint64_t said = 0;
    for (uint64_t i = 0; i < batches; i++) {
        if (read(pipe_fds[0], &said, sizeof said) != (ssize_t)sizeof said) fail_msg("the child gave up");
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    uint64_t more;
    while (read(pipe_fds[0], &more, sizeof more) == (ssize_t)sizeof more) said = more;
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    (void)close(pipe_fds[0]);
    return said;
}

static void lmdb__what_was_answered_survives_kill_9(void **state) {
    (void)state;
    static kit_ids due;
    lmdb_dir dir = {0};
    assert_true(lmdb_dir_make(&dir));
    rt_rng rng = rt_rng_seeded(9);
    for (int round = 0; round < KILLS; round++) {
        const uint64_t said = run_and_kill(&dir, 1 + rt_rng_below(&rng, 40));
        rt_store *s = NULL;
        rt_view *v = NULL;
        rt_err err;
        assert_int_equal(rt_store_lmdb_open(&dir.config, &s, &err), RT_OK);
        assert_int_equal(rt_store_view(s, &v, &err), RT_OK);
        const uint64_t found = read_mark(v);
        assert_true(found == said || found == said + 1); // the last commit may have been done but not said
        kit_list(v, (rt_job_range){.index = RT_INDEX_DUE, .queue = QUEUE, .until_ms = INT64_MAX}, &due);
        assert_int_equal(due.count, found * JOBS_A_BATCH);
        assert_int_equal(kit_counts(v, QUEUE).scheduled, found * JOBS_A_BATCH);
        rt_view_close(v);
        rt_store_close(s);
    }
    lmdb_dir_remove(&dir);
}

/* ---- power cuts ---------------------------------------------------------------------------------------- */

enum { BATCHES = 60, CUTS = 250, SECTOR = 512, FILE_MAX = 16 << 20 };

typedef struct history {
    model after[BATCHES + 1];        /* what the store holds after each batch */
    size_t writes_before[BATCHES + 1]; /* how much was recorded when that batch's end was known */
    disk_record record;
} history;

static void make_history(history *h, const lmdb_dir *dir, uint64_t seed) {
    static model_change change;
    static model m;
    rt_rng rng = rt_rng_seeded(seed);
    rt_store *s = NULL;
    rt_err err;
    assert_true(disk_record_start(&h->record));
    assert_int_equal(rt_store_lmdb_open(&dir->config, &s, &err), RT_OK);
    h->writes_before[0] = h->record.count;
    for (uint64_t number = 1; number <= BATCHES; number++) {
        for (uint64_t i = 0; i < 1 + number % 20; i++) {
            model_step(&m, &rng, s, &change);
            const rt_change c = {.ops = change.ops, .ops_count = (uint32_t)change.count};
            assert_int_equal(rt_store_apply(s, &c, &err), RT_OK);
        }
        rt_doc docs[2];
        char value[24];
        rt_op op;
        put_mark(docs, number, value, &op);
        assert_int_equal(rt_store_apply(s, &(rt_change){.ops = &op, .ops_count = 1}, &err), RT_OK);
        uint64_t no;
        rt_batch_end end;
        rt_store_commit(s, number);
        assert_true(rt_store_poll(s, &no, &end, &err));
        assert_int_equal(end, RT_BATCH_DURABLE);
        h->after[number] = m;
        h->writes_before[number] = h->record.count;
    }
    disk_record_stop();
    assert_false(h->record.overflowed);
    rt_store_close(s);
}

typedef struct disk_image {
    unsigned char *bytes; /* FILE_MAX */
    size_t len;
} disk_image;

static void put(disk_image *image, const disk_write *w, size_t from, size_t to) {
    assert_true(w->offset + to <= FILE_MAX);
    memcpy(image->bytes + w->offset + from, w->bytes + from, to - from);
    if (w->offset + to > image->len) image->len = w->offset + to;
}

/* A write that no sync had covered: all of it, nothing of it, or some of its sectors. */
static void put_perhaps(disk_image *image, const disk_write *w, rt_rng *rng) {
    const uint64_t way = rt_rng_below(rng, 3);
    if (way == 0) return;
    if (way == 1) {
        put(image, w, 0, w->len);
        return;
    }
    for (size_t from = 0; from < w->len; from += SECTOR) {
        const size_t to = from + SECTOR < w->len ? from + SECTOR : w->len;
        if (rt_rng_below(rng, 2) == 0) put(image, w, from, to);
    }
}

/* The disk when the power fails while write number `cut` is on its way. */
static void make_image(const disk_record *record, size_t cut, rt_rng *rng, disk_image *image) {
    size_t synced = 0;
    for (size_t i = 0; i < cut; i++) {
        if (record->writes[i].is_sync) synced = i;
    }
    memset(image->bytes, 0, image->len);
    image->len = 0;
    for (size_t i = 0; i <= cut && i < record->count; i++) {
        const disk_write *w = &record->writes[i];
        if (w->is_sync) continue;
        if (i < synced || (w->is_stable && i < cut)) put(image, w, 0, w->len);
        else put_perhaps(image, w, rng);
    }
}

static void save_image(const disk_image *image, const lmdb_dir *dir) {
    char path[96];
    (void)snprintf(path, sizeof path, "%s/data.mdb", dir->path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(image->bytes, 1, image->len, file), image->len);
    assert_int_equal(fclose(file), 0);
}

static void assert_image(const history *h, const lmdb_dir *dir, size_t cut) {
    uint64_t known = 0;
    while (known < BATCHES && h->writes_before[known + 1] <= cut) known++;
    rt_store *s = NULL;
    rt_view *v = NULL;
    rt_err err;
    if (rt_store_lmdb_open(&dir->config, &s, &err) != RT_OK) fail_msg("cut %zu: %s", cut, err.msg);
    assert_int_equal(rt_store_view(s, &v, &err), RT_OK);
    const uint64_t found = read_mark(v);
    if (found != known && found != known + 1) {
        fail_msg("cut %zu: batch %llu was durable, found %llu", cut, (unsigned long long)known,
                 (unsigned long long)found);
    }
    model_assert_same(&h->after[found], v);
    rt_view_close(v);
    // What came back can be built on.
    assert_true(commit_batch(s, found + 1));
    rt_store_close(s);
}

static void lmdb__a_power_cut_leaves_the_last_batch_or_the_next(void **state) {
    (void)state;
    history *h = calloc(1, sizeof *h);
    disk_image image = {.bytes = calloc(1, FILE_MAX)};
    assert_non_null(h);
    assert_non_null(image.bytes);
    lmdb_dir dir = {.config.map_bytes = FILE_MAX};
    assert_true(lmdb_dir_make(&dir));
    make_history(h, &dir, 2024);
    lmdb_dir_remove(&dir);
    assert_true(h->record.count > 5 * BATCHES); // the recorder really stands between
    rt_rng rng = rt_rng_seeded(7);
    const size_t first = h->writes_before[0];
    for (int i = 0; i < CUTS; i++) {
        const size_t cut = first + (size_t)rt_rng_below(&rng, h->record.count - first);
        make_image(&h->record, cut, &rng, &image);
        lmdb_dir copy = {.config = {.map_bytes = FILE_MAX, .no_sync = true}};
        assert_true(lmdb_dir_make(&copy));
        save_image(&image, &copy);
        assert_image(h, &copy, cut);
        lmdb_dir_remove(&copy);
    }
    disk_record_deinit(&h->record);
    free(image.bytes);
    free(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lmdb__what_was_answered_survives_kill_9),
        cmocka_unit_test(lmdb__a_power_cut_leaves_the_last_batch_or_the_next),
    };
    return cmocka_run_group_tests_name("lmdb crashes", tests, NULL, NULL);
}
