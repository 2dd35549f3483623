#include "store/kafka/open.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "os/clock.h"
#include "store/kafka/archive.h"
#include "store/kafka/fill.h"
#include "store/kafka/mend.h"
#include "store/kafka/own.h"
#include "store/kafka/topics.h"

enum { TRIES = 5 };

/* ---- what it needs ------------------------------------------------------------------------------------- */

static rt_code keep_config(rt_ks *s, const rt_store_kafka_config *cfg, rt_err *err) {
    s->cfg = *cfg;
    s->brokers = rt_str_dup(rt_str_of(cfg->brokers));
    s->dir = rt_str_dup(rt_str_of(cfg->dir));
    s->properties = rt_str_dup(cfg->properties);
    if (s->brokers == NULL || s->dir == NULL || s->properties == NULL)
        return rt_fail(err, RT_E_NOMEM, ENOMEM, "store");
    s->cfg.brokers = s->brokers;
    s->cfg.dir = s->dir;
    s->cfg.prefix = NULL; // the topics have it
    s->cfg.properties.ptr = s->properties;
    s->kafka = (rt_kafka){.brokers = s->brokers, .properties = s->cfg.properties};
    return RT_OK;
}

static rt_code init(rt_ks *s, const rt_store_kafka_config *cfg, rt_err *err) {
    s->base = (rt_store){.lags = true, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    (void)pthread_mutex_init(&s->cut_lock, NULL); // cannot fail on Linux
    rt_gate_init(&s->gate);
    const rt_code code = keep_config(s, cfg, err);
    if (code != RT_OK) return code;
    s->epoch = 1;
    s->copy.cfg = &s->cfg;
    s->batch_view = (rt_ks_view){.base.ops = &rt_ks_view_ops};
    if (s->base.fd < 0) return rt_fail(err, RT_E_IO, errno, "eventfd");
    if (getrandom(&s->node, sizeof s->node, 0) != (ssize_t)sizeof s->node)
        return rt_fail(err, RT_E_IO, errno, "getrandom");
    if (!rt_topic_name_is_valid(rt_str_of(cfg->prefix)) || strlen(cfg->prefix) > RT_STORE_KAFKA_PREFIX_MAX)
        return rt_fail(err, RT_E_INVALID, 0,
                       "\"%.80s\" cannot begin a topic's name: at most %d letters, digits, '.', '_' and '-'",
                       cfg->prefix, RT_STORE_KAFKA_PREFIX_MAX);
    (void)snprintf(s->journal_topic, sizeof s->journal_topic, "%s.journal", cfg->prefix);
    (void)snprintf(s->retry_topic, sizeof s->retry_topic, "%s.retry", cfg->prefix);
    (void)snprintf(s->dead_topic, sizeof s->dead_topic, "%s.dlq", cfg->prefix);
    (void)snprintf(s->audit_topic, sizeof s->audit_topic, "%s.audit", cfg->prefix);
    (void)snprintf(s->open_topic, sizeof s->open_topic, "%s.circuit.open", cfg->prefix);
    return RT_OK;
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

/* The store's name, on which its first two nodes may have to agree. */
static rt_code be_born(rt_ks *s, rt_err *err) {
    if (s->copy.ledger.tag != 0) return RT_OK;
    uint32_t tag = 0;
    while (tag == 0) {
        if (getrandom(&tag, sizeof tag, 0) != (ssize_t)sizeof tag)
            return rt_fail(err, RT_E_IO, errno, "getrandom");
    }
    rt_buf payload = {0};
    rt_pack_u32(&payload, tag);
    if (payload.failed) return rt_fail(err, RT_E_NOMEM, ENOMEM, "store");
    (void)rt_ks_write_line(s, RT_ENTRY_BIRTH, rt_buf_str(&payload));
    rt_buf_deinit(&payload);
    return rt_ks_settle_line(s, err);
}

static rt_code join(rt_ks *s, rt_err *err) {
    (void)rt_ks_write_line(s, RT_ENTRY_JOIN, RT_STR_EMPTY);
    const rt_code code = rt_ks_settle_line(s, err);
    if (code != RT_OK || s->joined) return code;
    return rt_fail(err, RT_E_UNAVAILABLE, 0, "%s cannot be read", s->journal_topic);
}

/* Lines that it was about to read may go meanwhile: then it begins again. */
static rt_code come_in(rt_ks *s, rt_err *err) {
    rt_code code = RT_E_ABSENT;
    for (int i = 0; i < TRIES && code == RT_E_ABSENT; i++) {
        code = rt_ks_fill(s, err);
        if (code == RT_OK) code = be_born(s, err);
        if (code == RT_OK) code = join(s, err);
    }
    return code == RT_E_ABSENT ? RT_E_UNAVAILABLE : code;
}

rt_code rt_ks_open(const rt_store_kafka_config *cfg, rt_ks **out, rt_err *err) {
    RT_ASSERT(cfg->retention.age_ms >= 1 && cfg->retention.events >= 1);
    RT_ASSERT(cfg->partitions >= 1 && cfg->partitions <= RT_STORE_KAFKA_PARTITIONS_MAX);
    rt_ks *s = calloc(1, sizeof *s);
    if (s == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "store");
    rt_code code = init(s, cfg, err);
    if (code == RT_OK) code = rt_journal_open(&s->journal, &s->kafka, s->journal_topic, s->base.fd, err);
    if (code == RT_OK) code = rt_ks_topics(s, err);
    if (code == RT_OK) code = rt_copy_open(&s->copy, err);
    if (code == RT_OK) code = come_in(s, err);
    s->base.tag = s->copy.ledger.tag;
    if (code == RT_OK) code = rt_ks_take_part(s, err);
    if (code != RT_OK) {
        rt_ks_close(s);
        return code;
    }
    s->base.sole_owner = cfg->alone;
    atomic_store(&s->looked_ms, rt_mono_ms());
    *out = s;
    return RT_OK;
}

void rt_ks_close(rt_ks *s) {
    rt_mend_stop(s);
    rt_archive_close(s->archive);
    rt_share_close(s->share);
    rt_ks_forget_batch(s);
    rt_journal_close(&s->journal);
    rt_copy_close(&s->copy);
    rt_parts_deinit(&s->parts);
    rt_dirty_deinit(&s->dirty);
    (void)pthread_mutex_destroy(&s->cut_lock);
    rt_gate_deinit(&s->gate);
    rt_arena_deinit(&s->arena);
    rt_buf_deinit(&s->line);
    if (s->base.fd >= 0) (void)close(s->base.fd);
    if (s->properties != NULL) explicit_bzero(s->properties, s->cfg.properties.len);
    free(s->properties);
    free(s->brokers);
    free(s->dir);
    free(s);
}
