/* share.h: which jobs this node takes. Nodes are a consumer group on the retry topic; whose partitions a node
 * has, its jobs it takes. For a moment two nodes may think that a partition is theirs; then the journal says
 * whose batch was first. */
#ifndef RT_STORE_KAFKA_SHARE_H
#define RT_STORE_KAFKA_SHARE_H
#include "kafka/client.h"
#include "port/record.h"

typedef struct rt_share rt_share;

/* The partition of `count` that the jobs of a queue's bucket belong to. */
uint32_t rt_share_partition(rt_id queue, uint32_t bucket, uint32_t count);

/* Joins the group; a thread of its own keeps it there. `fd`: an eventfd that is told of changes. */
RT_MUST_USE rt_code rt_share_open(const rt_kafka *kafka, const char *topic, const char *group,
                                  uint32_t partitions, int fd, rt_share **out, rt_err *err);
void rt_share_close(rt_share *share); /* NULL is a no-op */

/* Any thread. */
bool rt_share_has(const rt_share *share, uint32_t partition);
/* Are the jobs of that queue's bucket this node's to take? */
bool rt_share_takes(const rt_share *share, rt_id queue, uint32_t bucket);
/* True: other partitions than when it was last asked. */
bool rt_share_changed(rt_share *share);

#endif
