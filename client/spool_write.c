#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parts.h"
#include "spool_parts.h"

/* A thread that waits for its line to be on disk; stands on that thread's stack. */
struct rtc_waiting {
    rtc_waiting *next;
    const char *line; /* checksum and line feed included */
    size_t len;
    bool over;
    retry_code code;
    retry_error error;
};

/* The segment to append to, positioned at its end (*bytes). -1: *error is filled. */
static int open_last(rtc_spool *s, const rtc_folder *folder, uint32_t sent, uint64_t *bytes,
                     retry_error *error) {
    *bytes = folder->last_bytes;
    int fd = -1;
    if (folder->last != 0 && folder->last >= sent && *bytes < RTC_SPOOL_SEGMENT_BYTES)
        fd = rtc_segment_open(s, folder->last, O_RDWR | O_APPEND);
    if (fd >= 0) return fd;
    // Behind the position too: it outlives the segments that it names.
    const uint32_t next = (folder->last > sent ? folder->last : sent) + 1;
    *bytes = 0;
    fd = rtc_segment_open(s, next, O_RDWR | O_APPEND | O_CREAT | O_EXCL);
    if (fd < 0 || fsync(s->dir_fd) != 0) {
        (void)rtc_fail(error, RETRY_E_IO, "spool: a new segment: %s", strerror(errno));
        if (fd >= 0) (void)close(fd);
        return -1;
    }
    return fd;
}

/* A line that a crash cut short gets its end, so that the next one is not taken for a part of it. */
static int end_torn_line(int fd, uint64_t bytes) {
    char last = '\n';
    if (bytes > 0 && pread(fd, &last, 1, (off_t)(bytes - 1)) != 1) return -1;
    return last == '\n' ? 0 : rtc_write_all(fd, "\n", 1);
}

static retry_code append(int fd, uint64_t bytes, rtc_waiting *first, retry_error *error) {
    int failed = end_torn_line(fd, bytes);
    for (rtc_waiting *w = first; w != NULL && failed == 0; w = w->next)
        if (w->code == RETRY_OK) failed = rtc_write_all(fd, w->line, w->len);
    if (failed == 0) failed = fdatasync(fd);
    if (failed == 0) return RETRY_OK;
    const retry_code code = rtc_fail(error, RETRY_E_IO, "spool: write: %s", strerror(errno));
    // Nobody has read it, since the folder is locked. If this fails too, a whole line may be sent after all.
    if (ftruncate(fd, (off_t)bytes) != 0) return code;
    (void)fdatasync(fd);
    return code;
}

static void refuse_what_is_too_much(const rtc_spool *s, const rtc_folder *folder, rtc_waiting *first) {
    uint64_t bytes = folder->bytes + folder->refused_bytes;
    for (rtc_waiting *w = first; w != NULL; w = w->next) {
        if (bytes + w->len <= s->bytes_max) bytes += w->len;
        else
            w->code = rtc_fail(&w->error, RETRY_E_FULL,
                               "the spool has %" PRIu64 " of at most %" PRIu64 " bytes", bytes, s->bytes_max);
    }
}

/* One sync for all of them; fills in code and error of each. */
static void write_out(rtc_spool *s, rtc_waiting *first) {
    retry_error error = {0};
    rtc_folder folder;
    retry_code code = rtc_folder_lock(s, &error);
    if (code == RETRY_OK) {
        const rtc_position at = rtc_position_load(s);
        code = rtc_folder_look(s, &at, &folder, &error);
        if (code == RETRY_OK) {
            refuse_what_is_too_much(s, &folder, first);
            uint64_t bytes;
            const int fd = open_last(s, &folder, at.segment, &bytes, &error);
            code = fd < 0 ? RETRY_E_IO : append(fd, bytes, first, &error);
            if (fd >= 0) (void)close(fd);
        }
        rtc_folder_unlock(s);
    }
    for (rtc_waiting *w = first; w != NULL && code != RETRY_OK; w = w->next) {
        if (w->code != RETRY_OK) continue;
        w->code = code;
        w->error = error;
    }
}

/* Holds s->lock, and gives it up for the write. */
static void write_for_all(rtc_spool *s) {
    rtc_waiting *first = s->first;
    s->first = NULL;
    s->last = &s->first;
    s->writing = true;
    (void)pthread_mutex_unlock(&s->lock);
    write_out(s, first);
    (void)pthread_mutex_lock(&s->lock);
    s->writing = false;
    for (rtc_waiting *w = first, *next; w != NULL; w = next) {
        next = w->next; // once it is over, its thread may go on
        w->over = true;
    }
    (void)pthread_cond_broadcast(&s->written);
}

retry_code rtc_spool_add(rtc_spool *s, const char *text, size_t len, retry_error *error) {
    char *line = malloc(RTC_CRC_DIGITS + 1 + len + 2);
    if (line == NULL) return rtc_fail(error, RETRY_E_NOMEM, "out of memory");
    (void)snprintf(line, RTC_CRC_DIGITS + 2, "%08" PRIx32 " ", rtc_crc32(text, len));
    memcpy(line + RTC_CRC_DIGITS + 1, text, len);
    line[RTC_CRC_DIGITS + 1 + len] = '\n';
    rtc_waiting mine = {.line = line, .len = RTC_CRC_DIGITS + 1 + len + 1};
    (void)pthread_mutex_lock(&s->lock);
    *s->last = &mine;
    s->last = &mine.next;
    while (!mine.over) {
        if (s->writing) (void)pthread_cond_wait(&s->written, &s->lock);
        else write_for_all(s);
    }
    (void)pthread_mutex_unlock(&s->lock);
    free(line);
    if (mine.code != RETRY_OK && error != NULL) *error = mine.error;
    return mine.code;
}
