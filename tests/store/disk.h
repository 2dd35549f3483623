/* disk.h: stands between LMDB and the kernel: makes writes fail, or records them for crash images.
 *
 * The program that links disk.c defines pwrite, writev and fdatasync itself, and the dynamic linker gives
 * them to liblmdb too. Descriptors opened with O_DSYNC (LMDB's for the page that makes a commit count) sync
 * what they write. */
#ifndef RT_TESTS_STORE_DISK_H
#define RT_TESTS_STORE_DISK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- faults -------------------------------------------------------------------------------------------- */

typedef enum disk_fault {
    DISK_FAULT_NONE,
    DISK_FAULT_WRITE, /* pwrite or writev of data */
    DISK_FAULT_SHORT, /* half of it is written */
    DISK_FAULT_SYNC,  /* fdatasync */
    DISK_FAULT_META,  /* a write to an O_DSYNC descriptor */
    DISK_FAULT_DEATH  /* the same, and from then on everything else fails too */
} disk_fault;

/* Calls of this kind fail with `sys_errno`, after `passes` of them went through; `times` of them (0: until
 * healed). */
void disk_fail(disk_fault fault, int sys_errno, unsigned passes, unsigned times);
void disk_heal(void);
unsigned disk_failed_count(void); /* since the last disk_fail */

/* ---- recording ----------------------------------------------------------------------------------------- */

typedef struct disk_write {
    bool is_sync;   /* fdatasync: what was written before is stable */
    bool is_stable; /* written with O_DSYNC: stable once it returned */
    uint64_t offset;
    size_t len;
    unsigned char *bytes; /* owned by the record */
} disk_write;

enum { DISK_WRITES_MAX = 65536 };
typedef struct disk_record {
    disk_write *writes; /* DISK_WRITES_MAX */
    size_t count;
    bool overflowed;
} disk_record;

bool disk_record_start(disk_record *record); /* false: out of memory */
void disk_record_stop(void);
void disk_record_deinit(disk_record *record);

#endif
