/* fault.h: says why the process dies when a page of the data cannot be read. LMDB reads through a memory map, so where the
 * file ends before its data does (a copy that was cut short), or where the disk fails, there is no error to
 * return: the kernel sends SIGBUS. */
#ifndef RT_STORE_LMDB_FAULT_H
#define RT_STORE_LMDB_FAULT_H

/* Once a process; later calls do nothing. The process ends by the signal all the same. Any thread. */
void rt_lmdb_fault_explain(void);

#endif
