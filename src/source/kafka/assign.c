#include "source/kafka/assign.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "source/kafka/notes.h"
#include "source/kafka/partition.h"
#include "source/kafka/tell.h"

enum { SETTLE_MS = 5000 }; /* for the engine when a partition goes */

/* ---- where a partition begins -------------------------------------------------------------------------- */

/* "<cluster>\0<topic>\0<partition>": offsets of another cluster mean nothing. */
static rt_str log_name(const rt_source *s, const char *topic, int32_t number) {
    rt_buf b = {0};
    rt_buf_add(&b, rt_str_of(s->cluster));
    rt_buf_add_char(&b, '\0');
    rt_buf_add(&b, rt_str_of(topic));
    rt_buf_add_char(&b, '\0');
    rt_buf_addf(&b, "%" PRId32, number);
    if (!b.failed && b.len <= RT_DOC_NAME_MAX) return rt_buf_str(&b); // owned by who called from now on
    rt_buf_deinit(&b);
    return (rt_str){0};
}

static rt_code read_offset(rt_source *s, rt_partition *p) {
    rt_view *v;
    rt_err err;
    rt_code code = rt_engine_view(s->cfg.engine, &v, &err);
    if (code != RT_OK) return code;
    code = rt_intake_offset(v, p->log, &p->offset);
    rt_view_close(v);
    return code;
}

/* What Kafka was told counts if another store told it, for our own knows better: a partition that a node with
 * a store of its own has had goes on where that node was. */
static int64_t offset_of_others(const rt_source *s, const rd_kafka_topic_partition_t *committed) {
    if (committed == NULL || committed->err != RD_KAFKA_RESP_ERR_NO_ERROR || committed->offset < 0) return -1;
    const rt_str tag = {.ptr = committed->metadata,
                        .len = committed->metadata == NULL ? 0 : committed->metadata_size};
    return rt_str_eq(tag, rt_str_of(s->tag)) ? -1 : committed->offset;
}

/* Sets p->next. False: the brokers do not say what they have. */
static bool choose_start(rt_source *s, rt_partition *p, const rd_kafka_topic_partition_t *committed) {
    int64_t low, high;
    if (rd_kafka_query_watermark_offsets(s->rk, p->topic, p->number, &low, &high, RT_SOURCE_ASK_MS) !=
        RD_KAFKA_RESP_ERR_NO_ERROR)
        return false;
    const int64_t others = offset_of_others(s, committed);
    p->next = others > p->offset ? others : p->offset;
    if (p->next >= low && p->next <= high) return true;
    if (p->next >= 0 && p->next < low) {
        atomic_fetch_add_explicit(&s->stats.lost, (uint64_t)(low - p->next), memory_order_relaxed);
        rt_tell(s, RT_SOURCE_LOST, p->topic, p->number, low,
                "Kafka deleted records before they were taken over");
    } else if (p->next > high) {
        rt_tell(s, RT_SOURCE_LOST, p->topic, p->number, low,
                "Kafka has fewer records than were taken over: its topic was made anew, or has lost some");
    }
    p->next = low;
    return true;
}

/* ---- coming -------------------------------------------------------------------------------------------- */

static rt_str type_of(const rt_source *s, const char *topic) {
    for (uint32_t i = 0; i < s->topics_count; i++) {
        if (strcmp(s->topics[i].name, topic) == 0) return s->topics[i].type;
    }
    return RT_STR_EMPTY;
}

static rt_partition *new_partition(rt_source *s, const rd_kafka_topic_partition_t *at) {
    rt_partition *p = calloc(1, sizeof *p);
    if (p == NULL) return NULL;
    p->note = (rt_note){.kind = RT_NOTE_DECIDED, .partition = p};
    p->source = s;
    const int len = snprintf(p->topic, sizeof p->topic, "%s", at->topic);
    p->number = at->partition;
    p->type = type_of(s, at->topic);
    p->told = -1;
    p->log = log_name(s, at->topic, at->partition);
    if (len >= 0 && (size_t)len < sizeof p->topic && p->log.ptr != NULL) return p;
    rt_partition_free(p);
    return NULL;
}

/* Its records come on a queue of its own, so that it can be left alone while its batch is under way. */
static bool split_queue(rt_source *s, rt_partition *p) {
    const uint64_t one = 1;
    p->queue = rd_kafka_queue_get_partition(s->rk, p->topic, p->number);
    if (p->queue == NULL) return false;
    rd_kafka_queue_forward(p->queue, NULL);
    rd_kafka_queue_io_event_enable(p->queue, s->fd, &one, sizeof one);
    return true;
}

static bool add_partition(rt_source *s, rd_kafka_topic_partition_t *at,
                          const rd_kafka_topic_partition_t *committed) {
    if (s->partitions_count == RT_SOURCE_PARTITIONS_MAX) return false;
    rt_partition *p = new_partition(s, at);
    if (p == NULL) return false;
    if (read_offset(s, p) != RT_OK || !choose_start(s, p, committed) || !split_queue(s, p)) {
        rt_partition_free(p);
        return false;
    }
    at->offset = p->next;
    p->after = s->partitions;
    if (p->after != NULL) p->after->before = p;
    s->partitions = p;
    s->partitions_count++;
    s->trouble = RD_KAFKA_RESP_ERR_NO_ERROR; // what comes now is news
    rt_tell(s, RT_SOURCE_ASSIGNED, p->topic, p->number, p->next, "");
    return true;
}

static void assign(rt_source *s, rd_kafka_topic_partition_list_t *list) {
    rd_kafka_topic_partition_list_t *committed = rd_kafka_topic_partition_list_copy(list);
    bool fine = committed != NULL &&
                rd_kafka_committed(s->rk, committed, RT_SOURCE_ASK_MS) == RD_KAFKA_RESP_ERR_NO_ERROR;
    if (s->cluster == NULL) s->cluster = rd_kafka_clusterid(s->rk, RT_SOURCE_ASK_MS);
    fine = fine && s->cluster != NULL;
    for (int i = 0; fine && i < list->cnt; i++) {
        rd_kafka_topic_partition_t *at = &list->elems[i];
        fine = add_partition(s, at, rd_kafka_topic_partition_list_find(committed, at->topic, at->partition));
    }
    const rd_kafka_resp_err_t error = fine ? rd_kafka_assign(s->rk, list) : RD_KAFKA_RESP_ERR_NO_ERROR;
    if (!fine || error != RD_KAFKA_RESP_ERR_NO_ERROR) {
        rt_tell(s, RT_SOURCE_TROUBLE, "", -1, -1,
                fine ? rd_kafka_err2str(error) : "where partitions begin cannot be found out now");
        rt_source_reopen(s);
    }
    if (committed != NULL) rd_kafka_topic_partition_list_destroy(committed);
}

/* ---- going --------------------------------------------------------------------------------------------- */

static void revoke_partition(rt_source *s, rt_partition *p) {
    p->revoked = true;
    s->partitions_count--;
    rd_kafka_queue_io_event_enable(p->queue, -1, NULL, 0);
    rt_tell(s, RT_SOURCE_REVOKED, p->topic, p->number, p->offset, "");
}

void rt_assign_revoke_all(rt_source *s) {
    for (rt_partition *p = s->partitions; p != NULL; p = p->after) {
        if (!p->revoked) revoke_partition(s, p);
    }
}

void rt_assign_sweep(rt_source *s) {
    for (rt_partition *p = s->partitions, *after; p != NULL; p = after) {
        after = p->after;
        if (!p->revoked || p->state == RT_PARTITION_ENGINE) continue;
        rt_partition_clear(p);
        if (p->letters > 0) continue;
        if (p->before != NULL) p->before->after = after;
        else s->partitions = after;
        if (after != NULL) after->before = p->before;
        rt_partition_free(p);
    }
}

static void revoke(rt_source *s, const rd_kafka_topic_partition_list_t *list) {
    for (rt_partition *p = s->partitions; p != NULL; p = p->after) {
        const bool named = rd_kafka_topic_partition_list_find(list, p->topic, p->number) != NULL;
        if (named && !p->revoked) revoke_partition(s, p);
    }
    if (!rd_kafka_assignment_lost(s->rk)) { // lost: they are another's already
        rt_notes_settle(s, SETTLE_MS);
        rt_tell_offsets(s, true);
    }
    rt_assign_sweep(s);
    (void)rd_kafka_assign(s->rk, NULL); // `list` is all that there was; nothing assigned: so be it
}

void rt_assign_on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t *list,
                            void *opaque) {
    rt_source *s = opaque;
    (void)rk;
    if (what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS && !s->reopen) assign(s, list);
    else if (what == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS) revoke(s, list);
}
