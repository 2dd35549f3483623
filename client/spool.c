#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parts.h"
#include "spool_parts.h"

/* Calls may hold secrets: they are for those alone who make them. */
enum { FOLDER_MODE = 0700, FILE_MODE = 0600 };
enum { NAME_BYTES = 32, POSITION_BYTES = 10 + 1 + 20 + 1 + RTC_CRC_DIGITS + 1 };

static const char REFUSED[] = "refused.ndjson";

uint32_t rtc_crc32(const void *bytes, size_t len) {
    // What four bits do to the polynomial 0xedb88320, bit-reversed.
    static const uint32_t NIBBLE[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };
    const unsigned char *p = bytes;
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < len; i++) {
        crc = crc >> 4 ^ NIBBLE[(crc ^ p[i]) & 15];
        crc = crc >> 4 ^ NIBBLE[(crc ^ p[i] >> 4) & 15];
    }
    return ~crc;
}

static retry_code io_error(retry_error *error, const char *what) {
    return rtc_fail(error, RETRY_E_IO, "spool: %s: %s", what, strerror(errno));
}

retry_code rtc_folder_lock(rtc_spool *s, retry_error *error) {
    (void)pthread_mutex_lock(&s->folder);
    while (flock(s->lock_fd, LOCK_EX) != 0) {
        if (errno == EINTR) continue;
        const retry_code code = io_error(error, "lock");
        (void)pthread_mutex_unlock(&s->folder);
        return code;
    }
    return RETRY_OK;
}

void rtc_folder_unlock(rtc_spool *s) {
    (void)flock(s->lock_fd, LOCK_UN);
    (void)pthread_mutex_unlock(&s->folder);
}

/* The number in "0000000007.spool"; 0: no such name. */
static uint32_t segment_of(const char *name) {
    uint32_t segment = 0;
    for (size_t i = 0; i < 10; i++) {
        if (name[i] < '0' || name[i] > '9') return 0;
        if (__builtin_mul_overflow(segment, 10, &segment)) return 0;
        if (__builtin_add_overflow(segment, (uint32_t)(name[i] - '0'), &segment)) return 0;
    }
    return strcmp(name + 10, ".spool") == 0 ? segment : 0;
}

static void segment_name(char out[NAME_BYTES], uint32_t segment) {
    (void)snprintf(out, NAME_BYTES, "%010" PRIu32 ".spool", segment);
}

int rtc_segment_open(rtc_spool *s, uint32_t segment, int flags) {
    char name[NAME_BYTES];
    segment_name(name, segment);
    return openat(s->dir_fd, name, flags | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
}

retry_code rtc_segment_delete(rtc_spool *s, uint32_t segment, retry_error *error) {
    char name[NAME_BYTES];
    segment_name(name, segment);
    if (unlinkat(s->dir_fd, name, 0) == 0 || errno == ENOENT) return RETRY_OK;
    return io_error(error, name);
}

static void count_file(rtc_folder *f, const rtc_position *at, const char *name, uint64_t bytes) {
    if (strcmp(name, REFUSED) == 0) f->refused_bytes = bytes;
    const uint32_t segment = segment_of(name);
    if (segment == 0) return;
    if (f->first == 0 || segment < f->first) f->first = segment;
    if (segment > f->last) {
        f->last = segment;
        f->last_bytes = bytes;
    }
    f->bytes += bytes;
    if (segment > at->segment) f->unsent += bytes;
    else if (segment == at->segment && bytes > at->offset) f->unsent += bytes - at->offset;
}

retry_code rtc_folder_look(rtc_spool *s, const rtc_position *at, rtc_folder *out, retry_error *error) {
    *out = (rtc_folder){0};
    // A descriptor of its own: the place where a listing stands belongs to the open file.
    const int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        const retry_code code = io_error(error, "folder");
        if (fd >= 0) (void)close(fd);
        return code;
    }
    errno = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        struct stat st;
        if (fstatat(s->dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            count_file(out, at, entry->d_name, (uint64_t)st.st_size);
        errno = 0; // a segment that was deleted meanwhile is no error
    }
    const retry_code code = errno == 0 ? RETRY_OK : io_error(error, "folder");
    (void)closedir(dir);
    return code;
}

rtc_position rtc_position_load(rtc_spool *s) {
    char text[POSITION_BYTES + 1] = "";
    rtc_position at = {0};
    unsigned crc = 0;
    if (pread(s->position_fd, text, POSITION_BYTES, 0) != POSITION_BYTES) return at;
    if (sscanf(text, "%10" SCNu32 " %20" SCNu64 " %8x", &at.segment, &at.offset, &crc) != 3 ||
        crc != rtc_crc32(text, POSITION_BYTES - RTC_CRC_DIGITS - 2))
        return (rtc_position){0};
    return at;
}

retry_code rtc_position_save(rtc_spool *s, rtc_position at, retry_error *error) {
    // Always as long, and written over itself: one sector, and no room needed on a full disk.
    char text[POSITION_BYTES + 1];
    const int numbers = snprintf(text, sizeof text, "%010" PRIu32 " %020" PRIu64, at.segment, at.offset);
    (void)snprintf(text + numbers, sizeof text - (size_t)numbers, " %08" PRIx32 "\n",
                   rtc_crc32(text, (size_t)numbers));
    if (pwrite(s->position_fd, text, POSITION_BYTES, 0) != POSITION_BYTES || fdatasync(s->position_fd) != 0)
        return io_error(error, "position");
    return RETRY_OK;
}

int rtc_write_all(int fd, const char *bytes, size_t len) {
    while (len > 0) {
        const ssize_t wrote = write(fd, bytes, len);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return -1;
        bytes += wrote;
        len -= (size_t)wrote;
    }
    return 0;
}

static int open_file(rtc_spool *s, const char *name, int flags) {
    return openat(s->dir_fd, name, flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
}

/* Whoever owns the folder decides what becomes of the calls in it. Returns a descriptor, or -1 and errno. */
static int open_folder(const char *dir) {
    if (mkdir(dir, FOLDER_MODE) != 0 && errno != EEXIST) return -1;
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || (fstat(fd, &st) == 0 && (st.st_uid == geteuid() || st.st_uid == 0))) return fd;
    (void)close(fd);
    errno = EPERM;
    return -1;
}

retry_code rtc_spool_open(const char *dir, uint64_t bytes_max, rtc_spool **out, retry_error *error) {
    retry_code code;
    rtc_spool *s = calloc(1, sizeof *s);
    if (s == NULL) return rtc_fail(error, RETRY_E_NOMEM, "out of memory");
    *s = (rtc_spool){.bytes_max = bytes_max, .dir_fd = -1, .lock_fd = -1, .sender_fd = -1, .position_fd = -1};
    s->last = &s->first;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_mutex_init(&s->folder, NULL);
    (void)pthread_cond_init(&s->written, NULL);
    s->dir_fd = open_folder(dir);
    if (s->dir_fd < 0) goto fail;
    s->lock_fd = open_file(s, "lock", O_RDWR);
    s->sender_fd = open_file(s, "sender", O_RDWR);
    s->position_fd = open_file(s, "position", O_RDWR);
    if (s->lock_fd < 0 || s->sender_fd < 0 || s->position_fd < 0 || fsync(s->dir_fd) != 0) goto fail;
    *out = s;
    return RETRY_OK;
fail:
    code = io_error(error, dir);
    rtc_spool_close(s);
    return code;
}

void rtc_spool_close(rtc_spool *s) {
    if (s == NULL) return;
    const int fds[] = {s->dir_fd, s->lock_fd, s->sender_fd, s->position_fd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0) (void)close(fds[i]);
    (void)pthread_cond_destroy(&s->written);
    (void)pthread_mutex_destroy(&s->folder);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

bool rtc_spool_is_empty(rtc_spool *s) {
    retry_spool_state state;
    rtc_spool_measure(s, &state);
    return state.bytes == 0;
}

void rtc_spool_measure(rtc_spool *s, retry_spool_state *out) {
    // Without the locks, so as not to wait for somebody's sync: what this thread has added is seen anyway.
    const rtc_position at = rtc_position_load(s);
    rtc_folder folder;
    if (rtc_folder_look(s, &at, &folder, NULL) != RETRY_OK) folder = (rtc_folder){.unsent = 1};
    out->bytes = folder.unsent;
    out->refused_bytes = folder.refused_bytes;
    out->damaged = s->damaged;
}

bool rtc_spool_lead(rtc_spool *s) {
    while (flock(s->sender_fd, LOCK_EX | LOCK_NB) != 0)
        if (errno != EINTR) return false;
    return true;
}

void rtc_spool_yield(rtc_spool *s) { (void)flock(s->sender_fd, LOCK_UN); }

retry_code rtc_spool_refuse(rtc_spool *s, const char *text, size_t len, retry_error *error) {
    retry_code code = rtc_folder_lock(s, error);
    if (code != RETRY_OK) return code;
    const int fd = open_file(s, REFUSED, O_WRONLY | O_APPEND);
    if (fd < 0 || rtc_write_all(fd, text, len) != 0 || rtc_write_all(fd, "\n", 1) != 0 || fdatasync(fd) != 0)
        code = io_error(error, REFUSED);
    if (fd >= 0) (void)close(fd);
    rtc_folder_unlock(s);
    return code;
}
