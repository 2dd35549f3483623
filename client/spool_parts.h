/* spool_parts.h: the folder of a spool, as its writer (spool_write.c) and its reader (spool_read.c) see
 * it. */
#ifndef RETRYD_CLIENT_SPOOL_PARTS_H
#define RETRYD_CLIENT_SPOOL_PARTS_H
#include <pthread.h>
#include <stdatomic.h>

#include "spool.h"

enum { RTC_CRC_DIGITS = 8 };

/* How far has been sent: up to `offset` of `segment`, and all segments before it. */
typedef struct rtc_position {
    uint32_t segment;
    uint64_t offset;
} rtc_position;

typedef struct rtc_waiting rtc_waiting;

struct rtc_spool {
    uint64_t bytes_max;
    int dir_fd, lock_fd, sender_fd, position_fd;
    pthread_mutex_t lock; /* guards the line of those who want to write */
    pthread_cond_t written;
    rtc_waiting *first, **last;
    bool writing;           /* one of them writes for all */
    pthread_mutex_t folder; /* within this process, what flock is between processes */
    rtc_position seen;      /* guarded by it: up to here damaged lines have been counted */
    atomic_uint_fast64_t damaged;
};

/* What is in the folder. */
typedef struct rtc_folder {
    uint32_t first, last; /* segments; 0: none */
    uint64_t last_bytes;
    uint64_t bytes;         /* of all segments */
    uint64_t refused_bytes; /* of refused.ndjson */
    uint64_t unsent;        /* of bytes, those behind the position */
} rtc_folder;

uint32_t rtc_crc32(const void *bytes, size_t len); /* as in zlib, gzip, PNG */

/* Both locks of the folder. RETRY_E_IO. */
retry_code rtc_folder_lock(rtc_spool *s, retry_error *error);
void rtc_folder_unlock(rtc_spool *s);

retry_code rtc_folder_look(rtc_spool *s, const rtc_position *at, rtc_folder *out, retry_error *error);
/* Opens a segment; -1 and errno: it could not be. */
int rtc_segment_open(rtc_spool *s, uint32_t segment, int flags);
retry_code rtc_segment_delete(rtc_spool *s, uint32_t segment, retry_error *error);
/* {0, 0} if there is none that can be read. */
rtc_position rtc_position_load(rtc_spool *s);
retry_code rtc_position_save(rtc_spool *s, rtc_position at, retry_error *error);
/* All of it, or -1 and errno. */
int rtc_write_all(int fd, const char *bytes, size_t len);

#endif
