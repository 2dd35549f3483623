/* restore.h: an empty copy filled from the retry topic, for a node that is new or was away for longer than
 * the journal keeps.
 *
 * A cut is one transaction over all partitions. It is there as a whole once nothing new comes while all
 * partitions are read to ends that were asked for after the last record had come: whatever was committed by
 * then had been written everywhere. */
#ifndef RT_STORE_KAFKA_RESTORE_H
#define RT_STORE_KAFKA_RESTORE_H
#include "store/kafka/inside.h"

/* Ledger and all. RT_E_ABSENT: there is no cut in the retry topic. */
RT_MUST_USE rt_code rt_ks_restore(rt_ks *s, rt_err *err);

#endif
