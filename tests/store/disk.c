// liblmdb calls pwrite; with this macro, which Meson sets, our definition would be called pwrite64.
#undef _FILE_OFFSET_BITS
#include "store/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* A test program's own state; its stores write from one thread. */
static struct {
    disk_fault fault;
    int sys_errno;
    unsigned passes, times, failed;
    disk_record *record;
} disk;

void disk_fail(disk_fault fault, int sys_errno, unsigned passes, unsigned times) {
    disk.fault = fault;
    disk.sys_errno = sys_errno;
    disk.passes = passes;
    disk.times = times;
    disk.failed = 0;
}

void disk_heal(void) { disk.fault = DISK_FAULT_NONE; }
unsigned disk_failed_count(void) { return disk.failed; }

static bool fails(disk_fault fault) {
    const bool dies = disk.fault == DISK_FAULT_DEATH && (fault == DISK_FAULT_META || disk.failed > 0);
    if (disk.fault != fault && !dies) return false;
    if (disk.passes > 0) {
        disk.passes--;
        return false;
    }
    if (disk.times != 0 && disk.failed == disk.times) return false;
    disk.failed++;
    errno = disk.sys_errno;
    return true;
}

static bool is_stable(int fd) {
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_DSYNC) != 0;
}

/* ---- recording ----------------------------------------------------------------------------------------- */

bool disk_record_start(disk_record *record) {
    *record = (disk_record){.writes = calloc(DISK_WRITES_MAX, sizeof(disk_write))};
    disk.record = record;
    return record->writes != NULL;
}

void disk_record_stop(void) { disk.record = NULL; }

void disk_record_deinit(disk_record *record) {
    for (size_t i = 0; i < record->count; i++) free(record->writes[i].bytes);
    free(record->writes);
    *record = (disk_record){0};
}

static void note(disk_write write, const void *bytes) {
    disk_record *r = disk.record;
    if (r == NULL) return;
    if (write.len > 0) write.bytes = malloc(write.len);
    if (r->count == DISK_WRITES_MAX || (write.len > 0 && write.bytes == NULL)) {
        r->overflowed = true;
        free(write.bytes);
        return;
    }
    if (write.len > 0) memcpy(write.bytes, bytes, write.len);
    r->writes[r->count++] = write;
}

/* ---- what liblmdb calls -------------------------------------------------------------------------------- */

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset) {
    const bool stable = is_stable(fd);
    if (fails(stable ? DISK_FAULT_META : DISK_FAULT_WRITE)) return -1;
    if (!stable && fails(DISK_FAULT_SHORT)) len /= 2;
    const ssize_t done = syscall(SYS_pwrite64, fd, bytes, len, offset);
    if (done > 0) note((disk_write){.is_stable = stable, .offset = (uint64_t)offset, .len = (size_t)done}, bytes);
    return done;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (fails(DISK_FAULT_WRITE)) return -1;
    if (fails(DISK_FAULT_SHORT)) count = 1;
    const off_t from = lseek(fd, 0, SEEK_CUR);
    const ssize_t done = syscall(SYS_writev, fd, parts, count);
    uint64_t offset = (uint64_t)from;
    for (int i = 0; i < count && done > 0 && from >= 0; i++) {
        note((disk_write){.offset = offset, .len = parts[i].iov_len}, parts[i].iov_base);
        offset += parts[i].iov_len;
    }
    return done;
}

int fdatasync(int fd) {
    if (fails(DISK_FAULT_SYNC)) return -1;
    const int rc = (int)syscall(SYS_fdatasync, fd);
    if (rc == 0) note((disk_write){.is_sync = true}, NULL);
    return rc;
}
