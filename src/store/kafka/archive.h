/* archive.h: the retry topic, written by one node at a time, in cuts: all records that lines have changed
 * since the last one, as they are after some line, and a ledger that says which; in one transaction. So
 * whoever reads it to a cut has exactly what the journal says up to there. What other topics have for other
 * tools goes along. */
#ifndef RT_STORE_KAFKA_ARCHIVE_H
#define RT_STORE_KAFKA_ARCHIVE_H
#include "store/kafka/inside.h"

typedef struct rt_archive rt_archive;

/* Begins to write it whenever that is this node's part, in a thread of its own. */
RT_MUST_USE rt_code rt_archive_open(rt_ks *s, rt_archive **out, rt_err *err);
void rt_archive_close(rt_archive *archive); /* NULL is a no-op */

#endif
