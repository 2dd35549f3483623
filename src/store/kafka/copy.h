/* copy.h: all records on this node's disk, as of some line of the journal, and the ledger as of that line.
 * Kafka has them too, so nothing is synced while it runs: after a crash of the machine the copy may be
 * damaged, and is made again.
 *
 * One thread at a time, but for views. */
#ifndef RT_STORE_KAFKA_COPY_H
#define RT_STORE_KAFKA_COPY_H
#include "store/kafka/lines/ledger.h"
#include "store/kafka/store_kafka.h"

enum { RT_COPY_ORIGIN_BYTES = 512 };

typedef struct rt_copy {
    const rt_store_kafka_config *cfg;  /* lent: its folder, how large it may be, what it keeps */
    char origin[RT_COPY_ORIGIN_BYTES]; /* what it is a copy of: cluster and journal, one line */
    rt_store *local; /* LMDB; NULL: not open */
    rt_ledger ledger;
    uint64_t no;     /* of its last batch */
    bool unsure;     /* … whose end is not known */
    bool behind;     /* something went wrong here: what is stored has to be asked, and read on from there */
    bool lost;       /* lines that it has not taken in are gone: see mend.h */
} rt_copy;

/* Opens it, and the ledger in it; `cfg` and `origin` are set. What a crash of the machine may have damaged,
 * or is a copy of something else, is thrown away. */
RT_MUST_USE rt_code rt_copy_open(rt_copy *c, rt_err *err);
/* Throws the copy away and begins an empty one. */
RT_MUST_USE rt_code rt_copy_renew(rt_copy *c, rt_err *err);
void rt_copy_close(rt_copy *c);

/* Ends the open batch together with the ledger as it is then. RT_OK: c->ledger is `next`; else behind. */
RT_MUST_USE rt_code rt_copy_commit(rt_copy *c, const rt_ledger *next, rt_err *err);
/* Ends the open batch as it is, with the ledger that was stored before. */
RT_MUST_USE rt_code rt_copy_save(rt_copy *c, rt_err *err);
/* The ledger as it is stored, once the end of the last batch is known. */
RT_MUST_USE rt_code rt_copy_read_ledger(rt_copy *c, rt_err *err);

#endif
