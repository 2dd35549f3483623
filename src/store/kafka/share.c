#include "store/kafka/share.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POLL_MS = 200, WORD_BITS = 64, WORDS_MAX = 1024 / WORD_BITS };

struct rt_share {
    rt_kafka kafka; /* first member: the opaque of librdkafka's client */
    rd_kafka_t *rk;
    uint32_t partitions;
    int fd;
    _Atomic uint64_t ours[WORDS_MAX];
    atomic_bool changed, stop;
    bool running;
    pthread_t thread;
};

uint32_t rt_share_partition(rt_id queue, uint32_t bucket, uint32_t count) {
    return (uint32_t)((rt_hash_u64(queue) + bucket) % count);
}

bool rt_share_has(const rt_share *share, uint32_t partition) {
    const uint64_t word = atomic_load_explicit(&share->ours[partition / WORD_BITS], memory_order_relaxed);
    return (word >> (partition % WORD_BITS) & 1) != 0;
}

bool rt_share_takes(const rt_share *share, rt_id queue, uint32_t bucket) {
    return rt_share_has(share, rt_share_partition(queue, bucket, share->partitions));
}

bool rt_share_changed(rt_share *share) { return atomic_exchange(&share->changed, false); }

/* ---- the group ----------------------------------------------------------------------------------------- */

static void set_ours(rt_share *share, const rd_kafka_topic_partition_list_t *list) {
    uint64_t ours[WORDS_MAX] = {0};
    for (int i = 0; list != NULL && i < list->cnt; i++) {
        const uint32_t p = (uint32_t)list->elems[i].partition;
        if (p < share->partitions) ours[p / WORD_BITS] |= UINT64_C(1) << (p % WORD_BITS);
    }
    for (size_t i = 0; i < WORDS_MAX; i++)
        atomic_store_explicit(&share->ours[i], ours[i], memory_order_relaxed);
    atomic_store(&share->changed, true);
    const uint64_t one = 1;
    (void)!write(share->fd, &one, sizeof one); // can fail only when it is readable already
}

/* Nothing is read through the group: it only says who has what. */
static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t *list,
                         void *opaque) {
    const bool assigned = what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
    if (assigned) {
        (void)rd_kafka_assign(rk, list);
        (void)rd_kafka_pause_partitions(rk, list);
    } else {
        (void)rd_kafka_assign(rk, NULL);
    }
    set_ours(opaque, assigned ? list : NULL);
}

static void *run(void *ctx) {
    rt_share *share = ctx;
    while (!atomic_load(&share->stop)) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(share->rk, POLL_MS);
        if (m != NULL) rd_kafka_message_destroy(m); // an error, which librdkafka has logged
    }
    return NULL;
}

static rt_code join(rt_share *share, const char *topic, const char *group, rt_err *err) {
    const rt_kafka_property own[] = {
        {"group.id", group, false},
        {"enable.auto.commit", "false", false},
        {"auto.offset.reset", "latest", false},
        {"partition.assignment.strategy", "range", false}, // each node a piece, and simple to take back
        {"session.timeout.ms", "8000", true},
        {"heartbeat.interval.ms", "1000", true},
    };
    rd_kafka_conf_t *conf;
    rt_code code = rt_kafka_conf(&share->kafka, own, sizeof own / sizeof *own, &conf, err);
    if (code != RT_OK) return code;
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    code = rt_kafka_new(RD_KAFKA_CONSUMER, conf, &share->rk, err);
    if (code != RT_OK) return code;
    (void)rd_kafka_poll_set_consumer(share->rk);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    (void)rd_kafka_topic_partition_list_add(list, topic, RD_KAFKA_PARTITION_UA);
    const rd_kafka_resp_err_t error = rd_kafka_subscribe(share->rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return RT_OK;
    return rt_fail(err, RT_E_INVALID, 0, "Kafka: %s: %s", topic, rd_kafka_err2str(error));
}

rt_code rt_share_open(const rt_kafka *kafka, const char *topic, const char *group, uint32_t partitions,
                      int fd, rt_share **out, rt_err *err) {
    RT_ASSERT(partitions >= 1 && partitions <= WORDS_MAX * WORD_BITS);
    rt_share *share = calloc(1, sizeof *share);
    if (share == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "Kafka group");
    share->kafka = *kafka;
    share->partitions = partitions;
    share->fd = fd;
    rt_code code = join(share, topic, group, err);
    if (code == RT_OK) {
        const int bad = pthread_create(&share->thread, NULL, run, share);
        share->running = bad == 0;
        if (bad != 0) code = rt_fail(err, RT_E_IO, bad, "Kafka group's thread: %s", strerror(bad));
    }
    if (code != RT_OK) {
        rt_share_close(share);
        return code;
    }
    *out = share;
    return RT_OK;
}

void rt_share_close(rt_share *share) {
    if (share == NULL) return;
    atomic_store(&share->stop, true);
    if (share->running) (void)pthread_join(share->thread, NULL);
    if (share->rk != NULL) {
        (void)rd_kafka_consumer_close(share->rk); // leaves the group: others need not wait
        rd_kafka_destroy(share->rk);
    }
    free(share);
}
