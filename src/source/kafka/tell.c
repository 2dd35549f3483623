#include "source/kafka/tell.h"

#include <string.h>

void rt_tell(rt_source *s, rt_source_news news, const char *topic, int32_t partition, int64_t offset,
             const char *text) {
    const rt_source_event event = {
        .news = news, .topic = topic, .partition = partition, .offset = offset, .text = text};
    s->cfg.tell(s->cfg.tell_ctx, &event);
}

static bool add_told(rt_source *s, rd_kafka_topic_partition_list_t *list, rt_partition *p) {
    rd_kafka_topic_partition_t *at = rd_kafka_topic_partition_list_add(list, p->topic, p->number);
    const size_t len = strlen(s->tag);
    at->offset = p->offset;
    at->metadata = rd_kafka_mem_malloc(s->rk, len); // the list frees it
    if (at->metadata == NULL) return false;
    memcpy(at->metadata, s->tag, len);
    at->metadata_size = len;
    p->told = p->offset;
    return true;
}

void rt_tell_offsets(rt_source *s, bool revoked) {
    rd_kafka_topic_partition_list_t *list = NULL;
    for (rt_partition *p = s->partitions; p != NULL; p = p->after) {
        if (p->revoked != revoked || p->offset < 0 || p->offset == p->told) continue;
        if (list == NULL) list = rd_kafka_topic_partition_list_new(1);
        if (!add_told(s, list, p)) break;
    }
    if (list == NULL) return;
    // Not waited for: it goes out before anything that makes the partitions another's.
    (void)rd_kafka_commit(s->rk, list, 1);
    rd_kafka_topic_partition_list_destroy(list);
}
