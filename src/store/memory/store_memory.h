/* store_memory.h: a store in memory, for tests: the model that the other stores are checked against.
 *
 * It keeps no index, no counter and no log. What it holds is lost with the process, and the memory of a write
 * is kept until the disk is freed: it is meant for runs that end. */
#ifndef RT_STORE_MEMORY_H
#define RT_STORE_MEMORY_H
#include "port/store.h"

typedef struct rt_store_memory_config {
    uint32_t tag;           /* see rt_store */
    bool sole_owner;        /* see rt_store */
    bool loads;             /* see rt_store */
    bool commit_waits;      /* rt_store.fd is -1: ends are told at once, so no batch is late */
    uint32_t jobs_max;      /* a change that adds jobs beyond it: RT_E_FULL, unless it frees; 0: no bound */
    rt_retention retention; /* all 0: history is kept for ever */
} rt_store_memory_config;

/* A store with a disk of its own, which is freed with it. Borrows `config`.
 * RT_OK: an owned store, for rt_store_close. */
RT_MUST_USE rt_code rt_store_memory_new(const rt_store_memory_config *config, rt_store **out, rt_err *err);

/* ---- for the simulation: disks that outlive a crash, several nodes on one disk, faults ----------------- */

/* What is durable. Nodes read and write it through stores of their own; each batch reaches it whole or not at
 * all. A batch ends RT_BATCH_CONFLICT when another node's batch reached the disk since it was begun. All stores
 * of one disk belong to one thread, views excepted. */
typedef struct rt_memory_disk rt_memory_disk;

/* Returns an owned disk, or NULL: out of memory. */
rt_memory_disk *rt_memory_disk_new(const rt_store_memory_config *config);
/* No store may be attached any more. NULL is a no-op. */
void rt_memory_disk_free(rt_memory_disk *disk);

/* Chances in permille of the calls they strike. All zero: no faults. */
typedef struct rt_memory_faults {
    uint16_t again;       /* records that the batch view answers RT_E_AGAIN for until rt_store_load */
    uint16_t conflict;    /* changes: RT_E_CONFLICT */
    uint16_t full;        /* changes that do not free: RT_E_FULL */
    uint16_t broken;      /* changes: RT_E_UNAVAILABLE, and the batch will fail */
    uint16_t failed;      /* batches: RT_BATCH_FAILED */
    uint16_t late;        /* batches: told only after several polls; half of them are on the disk before */
    uint16_t unavailable; /* rt_store_batch: NULL; rt_store_load: RT_E_UNAVAILABLE; 1000: rt_store_view too */
} rt_memory_faults;

/* A node's store on `disk`. Closing it is also how a node crashes: its open batch is gone; a batch whose end
 * was not told may be on the disk or not. `seed` decides which faults strike where. RT_OK: an owned store,
 * for rt_store_close. */
RT_MUST_USE rt_code rt_store_memory_attach(rt_memory_disk *disk, uint64_t seed, rt_store **out, rt_err *err);
/* From now on. `store` must come from rt_store_memory_attach. */
void rt_store_memory_set_faults(rt_store *store, const rt_memory_faults *faults);
/* The next batch with changes ends RT_BATCH_FAILED. */
void rt_store_memory_fail_next(rt_store *store);
/* Batches that were committed and whose end rt_store_poll has not told yet. */
uint32_t rt_store_memory_untold(const rt_store *store);

/* ---- for those who check ------------------------------------------------------------------------------- */

/* A view of what is durable, without faults. NULL: out of memory. */
rt_view *rt_memory_disk_view(rt_memory_disk *disk);
/* `landed` is called whenever a batch has reached the disk, before anybody is told; both views are lent for
 * the call. */
void rt_memory_disk_watch(rt_memory_disk *disk, void (*landed)(void *ctx, rt_view *before, rt_view *after),
                          void *ctx);
/* The jobs that differ between two views of one disk, by id. was NULL: new; now NULL: gone. before NULL: all
 * of `after`. */
typedef void rt_each_changed_job(void *ctx, const rt_job *was, const rt_job *now);
void rt_memory_each_changed_job(const rt_view *before, const rt_view *after, rt_each_changed_job *each,
                                void *ctx);

#endif
