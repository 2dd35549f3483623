/* The spool: what was acknowledged comes out again, once, in order, whatever happened to the file or the
 * process. */
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "client_kit.h"
#include "spool_parts.h"

enum { BOUND = 1 << 26, LINES = 5, THREADS = 8, EACH = 50 };

typedef struct fixture {
    char folder[64], path[96];
    rtc_spool *spool;
} fixture;

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    kit_folder_make(f->folder);
    kit_spool_path(f->path, f->folder);
    assert_int_equal(rtc_spool_open(f->path, BOUND, &f->spool, NULL), RETRY_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    rtc_spool_close(f->spool);
    kit_folder_remove(f->folder);
    free(f);
    return 0;
}

static void reopen(fixture *f) {
    rtc_spool_close(f->spool);
    assert_int_equal(rtc_spool_open(f->path, BOUND, &f->spool, NULL), RETRY_OK);
}

static void add(rtc_spool *s, const char *text) {
    assert_int_equal(rtc_spool_add(s, text, strlen(text), NULL), RETRY_OK);
}

/* Takes the next line, which must be `want`. */
static void take(rtc_spool *s, const char *want) {
    rtc_spool_batch batch;
    assert_int_equal(rtc_spool_read(s, &batch, NULL), RETRY_OK);
    assert_true(batch.count > 0);
    assert_int_equal(batch.lines[0].len, strlen(want));
    assert_memory_equal(batch.lines[0].text, want, strlen(want));
    assert_int_equal(rtc_spool_done(s, &batch, 1, NULL), RETRY_OK);
    rtc_spool_release(&batch);
}

static void assert_empty(rtc_spool *s) {
    rtc_spool_batch batch;
    assert_int_equal(rtc_spool_read(s, &batch, NULL), RETRY_OK);
    assert_int_equal(batch.count, 0);
    rtc_spool_release(&batch);
    assert_true(rtc_spool_is_empty(s));
}

static uint64_t damaged(rtc_spool *s) {
    retry_spool_state state;
    rtc_spool_measure(s, &state);
    return state.damaged;
}

static void segment_path(const fixture *f, uint32_t segment, char out[128]) {
    (void)snprintf(out, 128, "%s/%010" PRIu32 ".spool", f->path, segment);
}

static uint64_t segment_bytes(const fixture *f, uint32_t segment) {
    char path[128];
    struct stat st;
    segment_path(f, segment, path);
    assert_int_equal(stat(path, &st), 0);
    return (uint64_t)st.st_size;
}

static void write_segment(const fixture *f, uint32_t segment, const char *bytes, size_t len) {
    char path[128];
    segment_path(f, segment, path);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(rtc_write_all(fd, bytes, len), 0);
    (void)close(fd);
}

/* ---- formats ------------------------------------------------------------------------------------------- */

static void crc32__is_that_of_zlib(void **state) {
    (void)state;
    assert_int_equal(rtc_crc32("123456789", 9), 0xcbf43926); // the check value of CRC-32/ISO-HDLC
    assert_int_equal(rtc_crc32("", 0), 0);
}

static void base64__is_that_of_rfc_4648(void **state) {
    (void)state;
    static const char *const ROWS[][2] = {{"", ""},
                                          {"f", "Zg=="},
                                          {"fo", "Zm8="},
                                          {"foo", "Zm9v"},
                                          {"foob", "Zm9vYg=="},
                                          {"fooba", "Zm9vYmE="},
                                          {"foobar", "Zm9vYmFy"},
                                          {"\xff\xfe", "//4="}};
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        char *text = rtc_base64(ROWS[i][0], strlen(ROWS[i][0]));
        assert_string_equal(text, ROWS[i][1]);
        size_t len;
        char *back = rtc_unbase64(text, &len);
        assert_int_equal(len, strlen(ROWS[i][0]));
        assert_string_equal(back, ROWS[i][0]);
        free(back);
        free(text);
    }
    size_t len;
    assert_null(rtc_unbase64("Zm9*", &len));
}

/* ---- order and progress -------------------------------------------------------------------------------- */

static void spool__gives_lines_back_in_order_after_a_restart(void **state) {
    fixture *f = *state;
    assert_empty(f->spool);
    add(f->spool, "one");
    add(f->spool, "two");
    add(f->spool, "");
    reopen(f);
    take(f->spool, "one");
    reopen(f);
    take(f->spool, "two");
    take(f->spool, "");
    assert_empty(f->spool);
    reopen(f);
    assert_empty(f->spool);
    add(f->spool, "three");
    take(f->spool, "three");
}

static void spool__goes_on_over_segments_and_deletes_those_that_were_sent(void **state) {
    fixture *f = *state;
    enum { BIG = 300 << 10, COUNT = 12 }; // four fit before a segment is full
    char *text = malloc(BIG + 1);
    assert_non_null(text);
    for (int i = 0; i < COUNT; i++) {
        memset(text, 'a' + i, BIG);
        text[BIG] = '\0';
        add(f->spool, text);
    }
    char path[128];
    segment_path(f, 3, path);
    assert_int_equal(access(path, F_OK), 0);
    for (int i = 0; i < COUNT; i++) {
        if (i == 7) reopen(f);
        memset(text, 'a' + i, BIG);
        take(f->spool, text);
    }
    free(text);
    assert_empty(f->spool);
    for (uint32_t i = 1; i <= 3; i++) {
        segment_path(f, i, path);
        assert_int_not_equal(access(path, F_OK), 0);
    }
    add(f->spool, "next"); // must not go into a number that the position has passed
    reopen(f);
    take(f->spool, "next");
}

static void spool__starts_with_the_oldest_segment_if_its_position_is_lost(void **state) {
    fixture *f = *state;
    add(f->spool, "one");
    add(f->spool, "two");
    take(f->spool, "one");
    char path[128];
    (void)snprintf(path, sizeof path, "%s/position", f->path);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "9", 1, 3), 1);
    (void)close(fd);
    reopen(f);
    take(f->spool, "one"); // again: its key tells the server
    take(f->spool, "two");
    assert_empty(f->spool);
}

/* ---- damage -------------------------------------------------------------------------------------------- */

static const char *const TEXTS[LINES] = {"{\"n\":1}", "{\"number\":\"two\"}", "",
                                         "{\"n\":\"f\xc3\xbcr vier\"}", "5"};

/* Fills `bytes` with what a spool wrote, and ends[] with where each line ends. */
static size_t written(fixture *f, char bytes[512], uint64_t ends[LINES]) {
    for (size_t i = 0; i < LINES; i++) {
        add(f->spool, TEXTS[i]);
        ends[i] = segment_bytes(f, 1);
    }
    char path[128];
    segment_path(f, 1, path);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t len = read(fd, bytes, 512);
    (void)close(fd);
    assert_int_equal(len, ends[LINES - 1]);
    return (size_t)len;
}

static void spool__survives_a_write_that_was_cut_at_any_byte(void **state) {
    fixture *f = *state;
    char bytes[512];
    uint64_t ends[LINES];
    const size_t len = written(f, bytes, ends);
    for (size_t cut = 0; cut <= len; cut++) {
        for (unsigned appended_before = 0; appended_before < 2; appended_before++) {
            (void)tear_down(state);
            (void)set_up(state);
            f = *state;
            write_segment(f, 1, bytes, cut);
            reopen(f);
            if (appended_before) add(f->spool, "new");
            // One that lacks nothing but its line feed is given it by who appends.
            const size_t seen = cut + appended_before;
            size_t whole = 0;
            for (; whole < LINES && ends[whole] <= seen; whole++) take(f->spool, TEXTS[whole]);
            if (appended_before == 0) {
                assert_empty(f->spool);
                add(f->spool, "new");
            }
            take(f->spool, "new");
            assert_empty(f->spool);
            const bool torn = cut > (whole == 0 ? 0 : ends[whole - 1]);
            assert_int_equal(damaged(f->spool), torn ? 1 : 0);
        }
    }
}

static void spool__skips_a_line_with_any_byte_changed(void **state) {
    fixture *f = *state;
    char bytes[512];
    uint64_t ends[LINES];
    const size_t len = written(f, bytes, ends);
    for (size_t at = ends[0]; at < ends[1] - 1; at++) {
        (void)tear_down(state);
        (void)set_up(state);
        f = *state;
        bytes[at] ^= 1;
        write_segment(f, 1, bytes, len);
        bytes[at] ^= 1;
        reopen(f);
        for (size_t i = 0; i < LINES; i++)
            if (i != 1) take(f->spool, TEXTS[i]);
        assert_empty(f->spool);
        assert_in_range(damaged(f->spool), 1, 2); // a byte may have become a line feed
    }
}

/* ---- bounds -------------------------------------------------------------------------------------------- */

static void spool__refuses_what_is_beyond_its_bound_and_has_room_again(void **state) {
    fixture *f = *state;
    rtc_spool *small;
    retry_error error;
    char text[101];
    memset(text, 'x', 100);
    text[100] = '\0';
    assert_int_equal(rtc_spool_open(f->path, 330, &small, NULL), RETRY_OK); // three lines of 110 bytes
    for (int i = 0; i < 3; i++) add(small, text);
    assert_int_equal(rtc_spool_add(small, text, 100, &error), RETRY_E_FULL);
    assert_string_equal(error.message, "the spool has 330 of at most 330 bytes");
    assert_int_equal(rtc_spool_add(small, "", 0, &error), RETRY_E_FULL);
    for (int i = 0; i < 3; i++) take(small, text);
    assert_empty(small);
    add(small, text);
    assert_int_equal(rtc_spool_refuse(small, text, 100, NULL), RETRY_OK);
    retry_spool_state seen;
    rtc_spool_measure(small, &seen);
    assert_int_equal(seen.bytes, 110);
    assert_int_equal(seen.refused_bytes, 101);
    add(small, text);
    assert_int_equal(rtc_spool_add(small, text, 100, &error),
                     RETRY_E_FULL); // what was refused takes up room too
    rtc_spool_close(small);
}

static void spool__takes_a_failed_write_back(void **state) {
    fixture *f = *state;
    char text[61];
    memset(text, 'x', 60);
    text[60] = '\0';
    add(f->spool, text); // 70 bytes
    struct rlimit before, tight;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight = (struct rlimit){.rlim_cur = 100, .rlim_max = before.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN); // the write fails, after 30 bytes, with EFBIG: as on a full disk
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    retry_error error;
    const retry_code code = rtc_spool_add(f->spool, text, 60, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(code, RETRY_E_IO);
    assert_string_equal(error.message, "spool: write: File too large");
    assert_int_equal(segment_bytes(f, 1), 70);
    add(f->spool, "next");
    take(f->spool, text);
    take(f->spool, "next");
    assert_empty(f->spool);
    assert_int_equal(damaged(f->spool), 0);
}

static void spool__says_why_it_cannot_be_opened(void **state) {
    fixture *f = *state;
    char path[128];
    rtc_spool *other = NULL;
    retry_error error;
    (void)snprintf(path, sizeof path, "%s/none/s", f->folder);
    assert_int_equal(rtc_spool_open(path, BOUND, &other, &error), RETRY_E_IO);
    assert_non_null(strstr(error.message, "No such file or directory"));
    assert_null(other);
}

/* ---- company ------------------------------------------------------------------------------------------- */

static void assert_mode(const char *path, mode_t want) {
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, want);
}

static void spool__is_for_its_owner_alone(void **state) {
    fixture *f = *state;
    char path[128];
    const mode_t before = umask(0);
    add(f->spool, "secret");
    (void)umask(before);
    segment_path(f, 1, path);
    assert_mode(path, 0600);
    assert_mode(f->path, 0700);
}

static void spool__follows_nobody_elsewhere(void **state) {
    fixture *f = *state;
    rtc_spool *other = NULL;
    char path[128];
    (void)snprintf(path, sizeof path, "%s/sender", f->path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_int_equal(rtc_spool_open(f->path, BOUND, &other, NULL), RETRY_E_IO);
    assert_int_equal(unlink(path), 0);
    if (geteuid() == 0 && chown(f->path, 65534, 65534) == 0) // only root can give a folder away
        assert_int_equal(rtc_spool_open(f->path, BOUND, &other, NULL), RETRY_E_IO);
}

static void spool__is_shared_but_sent_by_one(void **state) {
    fixture *f = *state;
    rtc_spool *other;
    assert_int_equal(rtc_spool_open(f->path, BOUND, &other, NULL), RETRY_OK);
    add(f->spool, "one");
    add(other, "two");
    add(f->spool, "three");
    assert_true(rtc_spool_lead(f->spool));
    assert_false(rtc_spool_lead(other));
    take(f->spool, "one");
    rtc_spool_yield(f->spool);
    assert_true(rtc_spool_lead(other));
    take(other, "two");
    take(other, "three");
    assert_empty(f->spool);
    rtc_spool_close(other);
}

typedef struct writer {
    rtc_spool *spool;
    int number;
} writer;

static void *write_lines(void *arg) {
    const writer *w = arg;
    for (int i = 0; i < EACH; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "%d %d", w->number, i);
        if (rtc_spool_add(w->spool, text, strlen(text), NULL) != RETRY_OK) return NULL;
    }
    return arg;
}

static void spool__keeps_the_order_of_each_of_many_threads(void **state) {
    fixture *f = *state;
    pthread_t threads[THREADS];
    writer writers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        writers[i] = (writer){.spool = f->spool, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &writers[i]), 0);
    }
    int next[THREADS] = {0};
    for (int taken = 0; taken < THREADS * EACH;) { // while they write
        rtc_spool_batch batch;
        assert_int_equal(rtc_spool_read(f->spool, &batch, NULL), RETRY_OK);
        for (size_t i = 0; i < batch.count; i++, taken++) {
            int who, what;
            char text[32];
            (void)snprintf(text, sizeof text, "%.*s", (int)batch.lines[i].len, batch.lines[i].text);
            assert_int_equal(sscanf(text, "%d %d", &who, &what), 2);
            assert_in_range(who, 0, THREADS - 1);
            assert_int_equal(what, next[who]++);
        }
        assert_int_equal(rtc_spool_done(f->spool, &batch, batch.count, NULL), RETRY_OK);
        rtc_spool_release(&batch);
    }
    for (int i = 0; i < THREADS; i++) {
        void *ended;
        assert_int_equal(pthread_join(threads[i], &ended), 0);
        assert_non_null(ended);
    }
    assert_empty(f->spool);
}

/* Adds lines and tells of each through the pipe, until it is killed. */
static _Noreturn void add_until_killed(const char *path, int round, int tell) {
    rtc_spool *s;
    if (rtc_spool_open(path, BOUND, &s, NULL) != RETRY_OK) _exit(1);
    for (int i = 0;; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "%d %d", round, i);
        if (rtc_spool_add(s, text, strlen(text), NULL) != RETRY_OK || write(tell, &i, sizeof i) != sizeof i)
            _exit(1);
    }
}

static void spool__has_all_that_a_killed_process_was_told(void **state) {
    fixture *f = *state;
    enum { ROUNDS = 20 };
    int told[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) add_until_killed(f->path, round, ends[1]);
        (void)close(ends[1]);
        for (int i = 0; i <= 3 * round; i++)
            assert_int_equal(read(ends[0], &told[round], sizeof(int)), sizeof(int));
        assert_int_equal(kill(child, SIGKILL), 0);
        int more, status;
        while (read(ends[0], &more, sizeof more) == sizeof more) told[round] = more;
        (void)close(ends[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
    }
    int next[ROUNDS] = {0};
    rtc_spool_batch batch;
    do {
        assert_int_equal(rtc_spool_read(f->spool, &batch, NULL), RETRY_OK);
        for (size_t i = 0; i < batch.count; i++) {
            char text[32];
            int round, what;
            (void)snprintf(text, sizeof text, "%.*s", (int)batch.lines[i].len, batch.lines[i].text);
            assert_int_equal(sscanf(text, "%d %d", &round, &what), 2);
            assert_in_range(round, 0, ROUNDS - 1);
            assert_int_equal(what, next[round]++);
        }
        const size_t count = batch.count;
        assert_int_equal(rtc_spool_done(f->spool, &batch, count, NULL), RETRY_OK);
        rtc_spool_release(&batch);
        if (count == 0) break;
    } while (true);
    for (int round = 0; round < ROUNDS; round++) assert_true(next[round] > told[round]);
}

int main(void) {
#define SPOOL(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc32__is_that_of_zlib),
        cmocka_unit_test(base64__is_that_of_rfc_4648),
        SPOOL(spool__gives_lines_back_in_order_after_a_restart),
        SPOOL(spool__goes_on_over_segments_and_deletes_those_that_were_sent),
        SPOOL(spool__starts_with_the_oldest_segment_if_its_position_is_lost),
        SPOOL(spool__survives_a_write_that_was_cut_at_any_byte),
        SPOOL(spool__skips_a_line_with_any_byte_changed),
        SPOOL(spool__refuses_what_is_beyond_its_bound_and_has_room_again),
        SPOOL(spool__takes_a_failed_write_back),
        SPOOL(spool__says_why_it_cannot_be_opened),
        SPOOL(spool__is_for_its_owner_alone),
        SPOOL(spool__follows_nobody_elsewhere),
        SPOOL(spool__is_shared_but_sent_by_one),
        SPOOL(spool__keeps_the_order_of_each_of_many_threads),
        SPOOL(spool__has_all_that_a_killed_process_was_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
