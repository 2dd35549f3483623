/* spool.h: a bounded queue of lines of text in a folder on disk, shared by any number of threads and
 * processes.
 *
 * Lines go into segments ("0000000007.spool"), each line with its checksum before it: "CRC32 TEXT\n",
 * eight hex digits, CRC-32 of TEXT as in zlib. A write that was cut short is a line that breaks off or
 * whose checksum is wrong: it was never acknowledged, and is skipped. "position" holds how far has been
 * sent; a segment that was sent is deleted. Writers hold flock(2) on "lock" for one write and its
 * fdatasync, readers for one read; who sends holds it on "sender".
 *
 * Other clients of retryd (clients/python) read and write the same folder. */
#ifndef RETRYD_CLIENT_SPOOL_H
#define RETRYD_CLIENT_SPOOL_H
#include "retryd/client.h"

enum {
    RTC_SPOOL_SEGMENT_BYTES =
        1 << 20, /* no line is begun behind it: so long is what is kept after it was sent */
    RTC_SPOOL_BATCH_MAX = 64,
    RTC_SPOOL_BATCH_BYTES = 256 << 10 /* aimed at: a batch has at least one line, however long */
};

typedef struct rtc_spool rtc_spool;

/* Makes the folder if need be; it and the files in it are for its owner alone. Returns an owned *out. RETRY_E_IO: also
 * where the folder is another user's (but root's), or a symbolic link stands in the place of a file. */
retry_code rtc_spool_open(const char *dir, uint64_t bytes_max, rtc_spool **out, retry_error *error);
void rtc_spool_close(rtc_spool *s); /* NULL is a no-op */

/* Appends text[len], which has no line feed in it; on disk when it returns RETRY_OK. RETRY_E_FULL,
 * RETRY_E_IO: it is not, and will not be sent either. What several threads add at once shares one sync. */
retry_code rtc_spool_add(rtc_spool *s, const char *text, size_t len, retry_error *error);

/* Is there nothing to send? */
bool rtc_spool_is_empty(rtc_spool *s);
/* Fills bytes, refused_bytes and damaged. */
void rtc_spool_measure(rtc_spool *s, retry_spool_state *out);

/* Sending is for one at a time, of all processes. False: another one does. */
bool rtc_spool_lead(rtc_spool *s);
void rtc_spool_yield(rtc_spool *s);

typedef struct rtc_spool_line {
    const char *text;
    size_t len;
    uint64_t end; /* where the next one begins in its segment */
} rtc_spool_line;

typedef struct rtc_spool_batch {
    uint32_t segment;
    size_t count; /* 0: the spool is empty */
    rtc_spool_line lines[RTC_SPOOL_BATCH_MAX];
    char *bytes; /* what the lines point into */
} rtc_spool_batch;

/* The oldest lines, in order; the leader's. `batch` must be released in any case. RETRY_E_IO. */
retry_code rtc_spool_read(rtc_spool *s, rtc_spool_batch *batch, retry_error *error);
void rtc_spool_release(rtc_spool_batch *batch);
/* The first `count` lines of the batch are dealt with: they are not read again, also after a crash.
 * RETRY_E_IO. */
retry_code rtc_spool_done(rtc_spool *s, const rtc_spool_batch *batch, size_t count, retry_error *error);
/* Puts a line into refused.ndjson, synced. RETRY_E_IO. */
retry_code rtc_spool_refuse(rtc_spool *s, const char *text, size_t len, retry_error *error);

#endif
