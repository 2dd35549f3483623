#include "source/kafka/client.h"

#include "source/kafka/assign.h"
#include "source/kafka/notes.h"
#include "source/kafka/tell.h"

enum {
    POLLS_MAX = 1000,
    REOPEN_MS = 1000,
    TELL_MS = 5000 /* between two words to Kafka about offsets */
};

/* ---- opening ------------------------------------------------------------------------------------------- */

static rt_code open_consumer(rt_source *s, rt_err *err) {
    const rt_kafka_property own[] = {
        {"group.id", s->cfg.group, false},
        // Not cooperative-sticky: a librdkafka before 2.3 aborts when one with it closes before its first
        // assignment (confluentinc/librdkafka issue 4312), as after a broker's restart.
        {"partition.assignment.strategy", "roundrobin", false},
        {"enable.auto.commit", "false", false},
        {"enable.auto.offset.store", "false", false},
        {"enable.partition.eof", "false", false},
        {"auto.offset.reset", "error", false}, // whether records were lost is to be said, not passed over
        {.name = "queued.min.messages", .value = "1000", .soft = true},
        {"queued.max.messages.kbytes", "4096", false}, // a partition
        // A node with a name of its own does not leave when it stops: the others wait so long for it.
        {.name = "session.timeout.ms", .value = "10000", .soft = true},
        {.name = "heartbeat.interval.ms", .value = "2000", .soft = true},
        // New topics and partitions.
        {.name = "topic.metadata.refresh.interval.ms", .value = "10000", .soft = true},
        {"group.instance.id", s->cfg.instance, false},
    };
    const size_t count = sizeof own / sizeof *own - (s->cfg.instance[0] == '\0' ? 1 : 0);
    rd_kafka_conf_t *conf;
    rt_code code = rt_kafka_conf(&s->cfg.kafka, own, count, &conf, err);
    if (code != RT_OK) return code;
    rd_kafka_conf_set_rebalance_cb(conf, rt_assign_on_rebalance);
    code = rt_kafka_new(RD_KAFKA_CONSUMER, conf, &s->rk, err);
    if (code != RT_OK) return code;
    const uint64_t one = 1;
    (void)rd_kafka_poll_set_consumer(s->rk);
    s->queue = rd_kafka_queue_get_consumer(s->rk);
    rd_kafka_queue_io_event_enable(s->queue, s->fd, &one, sizeof one);
    s->subscribed = false;
    s->subscribe_at_ms = INT64_MIN;
    return RT_OK;
}

/* ---- topics -------------------------------------------------------------------------------------------- */

/* Asks for those that are missing; those that are there answer that they are, which is as good. */
static void ask_for_topics(rt_source *s) {
    rd_kafka_NewTopic_t *topics[RT_SOURCE_TOPICS_MAX + 1];
    const char *names[RT_SOURCE_TOPICS_MAX + 1];
    size_t count = 0;
    char why[8];
    for (uint32_t i = 0; i < s->topics_count; i++) names[count++] = s->topics[i].name;
    names[count++] = s->cfg.dead_topic;
    for (size_t i = 0; i < count; i++) topics[i] = rd_kafka_NewTopic_new(names[i], -1, -1, why, sizeof why);
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(s->rk, RD_KAFKA_ADMIN_OP_CREATETOPICS);
    const uint64_t one = 1;
    s->replies = rd_kafka_queue_new(s->rk);
    rd_kafka_queue_io_event_enable(s->replies, s->fd, &one, sizeof one);
    rd_kafka_CreateTopics(s->rk, topics, count, options, s->replies);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_NewTopic_destroy_array(topics, count);
}

static void end_asking(rt_source *s) {
    if (s->replies == NULL) return;
    rd_kafka_queue_io_event_enable(s->replies, -1, NULL, 0);
    rd_kafka_queue_destroy(s->replies);
    s->replies = NULL;
}

static void tell_refused_topics(rt_source *s, rd_kafka_event_t *event) {
    size_t count;
    const rd_kafka_CreateTopics_result_t *result = rd_kafka_event_CreateTopics_result(event);
    if (result == NULL) return;
    const rd_kafka_topic_result_t *const *each = rd_kafka_CreateTopics_result_topics(result, &count);
    for (size_t i = 0; i < count; i++) {
        const rd_kafka_resp_err_t error = rd_kafka_topic_result_error(each[i]);
        if (error == RD_KAFKA_RESP_ERR_NO_ERROR || error == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) continue;
        rt_tell(s, RT_SOURCE_TROUBLE, rd_kafka_topic_result_name(each[i]), -1, -1, rd_kafka_err2str(error));
    }
}

/* True: they are there, or nothing more can be done for it. */
static bool topics_are_there(rt_source *s, int64_t now_ms) {
    if (s->subscribe_at_ms == INT64_MIN) {
        s->subscribe_at_ms = now_ms + (s->cfg.create_topics ? RT_SOURCE_ASK_MS : 0);
        if (s->cfg.create_topics) ask_for_topics(s);
    }
    rd_kafka_event_t *event = s->replies == NULL ? NULL : rd_kafka_queue_poll(s->replies, 0);
    if (event != NULL) {
        tell_refused_topics(s, event);
        rd_kafka_event_destroy(event);
        end_asking(s);
        return true;
    }
    return now_ms >= s->subscribe_at_ms;
}

static void subscribe(rt_source *s) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)s->topics_count);
    for (uint32_t i = 0; i < s->topics_count; i++)
        (void)rd_kafka_topic_partition_list_add(list, s->topics[i].name, RD_KAFKA_PARTITION_UA);
    const rd_kafka_resp_err_t error = rd_kafka_subscribe(s->rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    s->subscribed = true;
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return;
    rt_tell(s, RT_SOURCE_TROUBLE, "", -1, -1, rd_kafka_err2str(error));
    rt_source_reopen(s);
}

/* ---- tending ------------------------------------------------------------------------------------------- */

void rt_client_tend(rt_source *s, int64_t now_ms) {
    rt_err err;
    if (s->reopen) {
        rt_client_close(s);
        s->open_at_ms = now_ms + REOPEN_MS;
        s->reopen = false;
    }
    if (s->rk == NULL && now_ms >= s->open_at_ms && open_consumer(s, &err) != RT_OK) {
        rt_tell(s, RT_SOURCE_TROUBLE, "", -1, -1, err.msg);
        s->open_at_ms = now_ms + REOPEN_MS;
    }
    if (s->rk != NULL && !s->subscribed && topics_are_there(s, now_ms)) subscribe(s);
    if (s->rk != NULL && now_ms >= s->tell_at_ms) {
        rt_tell_offsets(s, false);
        s->tell_at_ms = now_ms + TELL_MS;
    }
}

static void on_error(rt_source *s, const rd_kafka_message_t *m) {
    char why[200];
    const char *text = rd_kafka_message_errstr(m);
    const bool fatal = rd_kafka_fatal_error(s->rk, why, sizeof why) != RD_KAFKA_RESP_ERR_NO_ERROR;
    // The same trouble is told once, until it has gone or another comes.
    if (m->err != s->trouble || fatal)
        rt_tell(s, RT_SOURCE_TROUBLE, m->rkt == NULL ? "" : rd_kafka_topic_name(m->rkt), m->partition, -1,
                fatal ? why : text);
    s->trouble = m->err;
    if (fatal || m->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET) rt_source_reopen(s);
}

void rt_client_poll(rt_source *s) {
    for (int i = 0; i < POLLS_MAX && s->rk != NULL && !s->reopen; i++) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(s->rk, 0);
        if (m == NULL && rd_kafka_queue_length(s->queue) == 0) return;
        if (m == NULL) continue;
        // Records have queues of their own. One that comes here must not be passed over.
        if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR) rt_source_reopen(s);
        else on_error(s, m);
        rd_kafka_message_destroy(m);
    }
}

/* ---- closing ------------------------------------------------------------------------------------------- */

void rt_client_close(rt_source *s) {
    if (s->rk == NULL) return;
    end_asking(s);
    rt_assign_revoke_all(s);
    // Without an end: the engine has records of this client, and answers whatever the store does.
    rt_notes_settle(s, RT_NEVER_MS);
    rt_tell_offsets(s, true);
    rt_assign_sweep(s);
    rd_kafka_queue_io_event_enable(s->queue, -1, NULL, 0);
    rd_kafka_queue_destroy(s->queue);
    (void)rd_kafka_consumer_close(s->rk);
    if (s->cluster != NULL) rd_kafka_mem_free(s->rk, s->cluster);
    s->cluster = NULL;
    rd_kafka_destroy(s->rk);
    s->rk = NULL;
    s->queue = NULL;
}
