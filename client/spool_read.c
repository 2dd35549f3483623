#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parts.h"
#include "spool_parts.h"

/* The first line feed at or behind `from`; `size`: none. */
static size_t line_end(const char *bytes, size_t from, size_t size) {
    const char *end = from < size ? memchr(bytes + from, '\n', size - from) : NULL;
    return end == NULL ? size : (size_t)(end - bytes);
}

static bool line_is_whole(const char *line, size_t len) {
    if (len <= RTC_CRC_DIGITS || line[RTC_CRC_DIGITS] != ' ') return false;
    uint32_t crc = 0;
    for (size_t i = 0; i < RTC_CRC_DIGITS; i++) {
        const char c = line[i];
        if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) return false;
        crc = crc << 4 | (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return crc == rtc_crc32(line + RTC_CRC_DIGITS + 1, len - RTC_CRC_DIGITS - 1);
}

/* Reads fd from `offset` on: as much as a batch should have, or as one line needs. */
static retry_code read_some(int fd, uint64_t offset, uint64_t size, char **bytes, size_t *got,
                            retry_error *error) {
    size_t room = RTC_SPOOL_BATCH_BYTES;
    *got = 0;
    *bytes = NULL;
    for (;;) {
        if (room > size - offset) room = (size_t)(size - offset);
        char *more = realloc(*bytes, room + 1);
        if (more == NULL) return rtc_fail(error, RETRY_E_NOMEM, "out of memory");
        *bytes = more;
        while (*got < room) {
            const ssize_t n = pread(fd, more + *got, room - *got, (off_t)(offset + *got));
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return rtc_fail(error, RETRY_E_IO, "spool: read: %s", strerror(errno));
            if (n == 0) break;
            *got += (size_t)n;
        }
        if (room == size - offset || line_end(more, 0, *got) < *got) return RETRY_OK;
        room *= 2;
    }
}

/* Counts a damaged line once, however often it is read. */
static void count_damage(rtc_spool *s, rtc_position end) {
    if (end.segment < s->seen.segment || (end.segment == s->seen.segment && end.offset <= s->seen.offset))
        return;
    s->seen = end;
    atomic_fetch_add(&s->damaged, 1);
}

/* Takes the whole lines out of bytes[got], which begin at `offset`; returns how far it came. `at_end`: the
 * segment has no more than this, and nobody writes to it now, so what has no end will never get one. */
static uint64_t take_lines(rtc_spool *s, rtc_spool_batch *batch, size_t got, uint64_t offset, bool at_end) {
    size_t from = 0;
    while (from < got && batch->count < RTC_SPOOL_BATCH_MAX) {
        const size_t end = line_end(batch->bytes, from, got);
        if (end == got && !at_end) break;
        if (end < got && line_is_whole(batch->bytes + from, end - from)) {
            batch->lines[batch->count++] = (rtc_spool_line){.text = batch->bytes + from + RTC_CRC_DIGITS + 1,
                                                            .len = end - from - RTC_CRC_DIGITS - 1,
                                                            .end = offset + end + 1};
        } else {
            count_damage(s, (rtc_position){.segment = batch->segment, .offset = offset + end});
        }
        from = end < got ? end + 1 : got;
    }
    return offset + from;
}

/* Reads from one segment. *over: there is nothing left in it. */
static retry_code read_segment(rtc_spool *s, rtc_position at, rtc_spool_batch *batch, bool *over,
                               retry_error *error) {
    const int fd = rtc_segment_open(s, at.segment, O_RDONLY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        const retry_code code =
            rtc_fail(error, RETRY_E_IO, "spool: segment %u: %s", at.segment, strerror(errno));
        if (fd >= 0) (void)close(fd);
        return code;
    }
    const uint64_t size = (uint64_t)st.st_size;
    retry_code code = RETRY_OK;
    *over = at.offset >= size;
    while (code == RETRY_OK && !*over && batch->count == 0) { // again only where all that was read is damaged
        free(batch->bytes);
        size_t got;
        code = read_some(fd, at.offset, size, &batch->bytes, &got, error);
        if (code != RETRY_OK) break;
        at.offset = take_lines(s, batch, got, at.offset, at.offset + got == size);
        *over = batch->count == 0 && at.offset >= size;
    }
    (void)close(fd);
    return code;
}

/* The oldest segment with something to send; those before it are deleted. */
static retry_code read_folder(rtc_spool *s, rtc_spool_batch *batch, retry_error *error) {
    for (;;) {
        rtc_position at = rtc_position_load(s);
        rtc_folder folder;
        retry_code code = rtc_folder_look(s, &at, &folder, error);
        if (code != RETRY_OK || folder.first == 0) return code;
        if (folder.first > at.segment) at = (rtc_position){.segment = folder.first};
        bool over = folder.first < at.segment;
        batch->segment = folder.first;
        if (!over) code = read_segment(s, at, batch, &over, error);
        if (code != RETRY_OK || !over) return code;
        // First the position: a later segment must not get this one's number.
        if (folder.first == at.segment && rtc_position_load(s).segment != at.segment)
            code = rtc_position_save(s, at, error);
        if (code == RETRY_OK) code = rtc_segment_delete(s, folder.first, error);
        if (code != RETRY_OK) return code;
    }
}

retry_code rtc_spool_read(rtc_spool *s, rtc_spool_batch *batch, retry_error *error) {
    batch->count = 0;
    batch->bytes = NULL;
    retry_code code = rtc_folder_lock(s, error);
    if (code != RETRY_OK) return code;
    code = read_folder(s, batch, error);
    rtc_folder_unlock(s);
    return code;
}

void rtc_spool_release(rtc_spool_batch *batch) {
    free(batch->bytes);
    batch->bytes = NULL;
    batch->count = 0;
}

retry_code rtc_spool_done(rtc_spool *s, const rtc_spool_batch *batch, size_t count, retry_error *error) {
    if (count == 0) return RETRY_OK;
    retry_code code = rtc_folder_lock(s, error);
    if (code != RETRY_OK) return code;
    const rtc_position at = {.segment = batch->segment, .offset = batch->lines[count - 1].end};
    code = rtc_position_save(s, at, error);
    rtc_folder_unlock(s);
    return code;
}
