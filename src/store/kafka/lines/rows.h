/* rows.h: records as they stand in the retry topic, where other tools read them and new nodes begin.
 *
 *   key                 value
 *   job/ID              store/lmdb/stored.h; headers say what other tools want to know, see rt_row_headers
 *   body/ID             the bytes as they are stored; header rtd-users: how many jobs need it
 *   queue/ID lease/ID event/SEQ    store/lmdb/stored.h
 *   doc/KIND/NAME       the same; KIND is a decimal number, NAME the rest, any bytes
 *   cut                 the ledger as of the cut; always in partition 0
 * ID and SEQ are 16 hex digits. No value: there is no such record (any more). */
#ifndef RT_STORE_KAFKA_LINES_ROWS_H
#define RT_STORE_KAFKA_LINES_ROWS_H
#include <librdkafka/rdkafka.h>

#include "store/kafka/lines/dirty.h"

#define RT_ROW_CUT RT_STR("cut")

void rt_row_write_key(rt_buf *out, const rt_dirty_key *key);
/* False: not ours. Lends the name. */
RT_MUST_USE bool rt_row_read_key(rt_str text, rt_dirty_key *out);

typedef struct rt_row {
    bool there;
    uint64_t users;   /* of a body */
    rt_job job;       /* of a job */
    rt_queue queue;   /* of a job: its own; of a queue; its name is lent by the view */
    rt_event event;   /* of an event */
    uint32_t partition;
} rt_row;

/* What `view` has under that key; the value is added to *out. */
RT_MUST_USE rt_code rt_row_read(rt_view *view, const rt_dirty_key *key, uint32_t partitions, rt_buf *out,
                                rt_row *row);

/* Makes the open batch of `local`, which is being filled, say the same. `value` NULL: the record goes. */
RT_MUST_USE rt_code rt_row_put(rt_store *local, const rt_dirty_key *key, const rt_str *value, uint64_t users,
                               rt_err *err);

/* Headers of a job: rtd-id as the API shows it, rtd-type (its queue), rtd-attempt, rtd-state, rtd-due (Unix
 * ms), rtd-reason if it is dead. Those of a body: rtd-users. NULL: none, or no memory. */
rd_kafka_headers_t *rt_row_headers(const rt_dirty_key *key, const rt_row *row, uint32_t tag);

#endif
